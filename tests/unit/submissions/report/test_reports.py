"""Reports: groups against slow plain-Python twins, values by hand, members of suites, the whole."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world import reports
from benchmark_world.reports import report_of, rows
from hypothesis import given
from hypothesis import strategies as st

import cir_datasets
import cir_datasets.registry.suites
from cir_datasets.registry import card
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.records import query_schema
from cir_metrics import UNLISTED
from cir_metrics.errors import CallError
from submissions.comparison.comparing import compare
from submissions.report import full_report
from submissions.report.grouping import by_aspect
from submissions.report.turns import by_length, by_turn
from submissions.scoring import score as score_of
from submissions.scoring.evidence import Evidence
from submissions.scoring.intervals import intervals

# -- by aspect


def test_aspects_of_the_invented_circo_equal_those_worked_by_hand() -> None:
    found = rows(full_report(reports.scored("circo_like")), "by_aspect")
    first = (1 + 2 / 3 + 3 / 9) / 3
    second = (1 / 2) / 3
    last = (1 / 10) / 3
    expected = {
        "cardinality": (1, first),
        "addition": (3, (first + second + 0) / 3),
        "negation": (1, 0.0),
        "viewpoint": (2, (0 + last) / 2),
    }
    for aspect, (n, value) in expected.items():
        assert found[aspect]["queries"] == n
        assert found[aspect]["map@10"] == pytest.approx(value, abs=1e-15)
    assert found["compare_change"]["map@10"] is None
    assert found["compare_change"]["queries"] == 0
    assert list(found)[:9] == list(card("circo").report.aspect_names)
    assert found["macro"]["map@10"] == pytest.approx(sum(v for _, v in expected.values()) / 4, abs=1e-15)
    assert found["micro"]["map@10"] == pytest.approx((first + second + 0 + last) / 4, abs=1e-15)
    assert (found["macro"]["queries"], found["micro"]["queries"]) == (4, 4)


@given(
    st.lists(
        st.tuples(st.sets(st.sampled_from("abcd")), st.floats(0, 1, allow_subnormal=False)),
        min_size=1,
        max_size=12,
    )
)
def test_by_aspect_is_its_slow_twin(queries: list[tuple[set[str], float]]) -> None:
    benchmark = worlds.circo(queries=len(queries))
    own = [{**row, "aspects": sorted(a)} for row, (a, _) in zip(benchmark.rows(), queries, strict=True)]
    benchmark = Benchmark.from_rows(benchmark.spec, own, benchmark.gallery, schema=query_schema())
    evidence = Evidence(benchmark, {}, None, None, None, None)
    values = np.array([value for _, value in queries])
    found = by_aspect(evidence, {"m": values}, {"a": "A", "e": "E"}, None)
    seen = sorted({aspect for aspects, _ in queries for aspect in aspects} - {"a", "e"})
    assert [group.key for group in found.groups] == ["a", "e", *seen]
    slow_means = []
    for group in found.groups:
        inside = [value for aspects, value in queries if group.key in aspects]
        assert group.n == len(inside)
        slow = sum(inside) / len(inside) if inside else None
        assert group.values["m"] == (None if slow is None else pytest.approx(slow, abs=1e-12))
        slow_means += [] if slow is None else [slow]
    some = [value for aspects, value in queries if aspects]
    macro, micro = found.means
    assert macro.values["m"] == (pytest.approx(statistics.fmean(slow_means)) if slow_means else None)
    assert micro.values["m"] == (pytest.approx(statistics.fmean(some)) if some else None)
    assert macro.n == micro.n == len(some)


def test_ranks_and_counts_by_aspect_are_not_means_of_shares() -> None:
    benchmark = reports.circo()
    report = report_of(reports.circo_document(benchmark), benchmark, metrics=["mean_rank"])
    found = rows(report, "by_aspect")
    # Best ranks of the five queries: 1, 2, none (51), 1, 10; the fourth query has no aspect.
    expected = {
        "cardinality": (1.0, 1.0, 0),
        "addition": ((1 + 2 + 51) / 3, 2.0, 1),
        "negation": (51.0, 51.0, 1),
        "viewpoint": ((51 + 10) / 2, 30.5, 1),
        "compare_change": (None, None, None),
        "macro": ((1 + 18 + 51 + 30.5) / 4, (1 + 2 + 51 + 30.5) / 4, 3 / 4),
        "micro": ((1 + 2 + 51 + 10) / 4, (2 + 10) / 2, 1),
    }
    for key, values in expected.items():
        row = found[key]
        assert tuple(row[name] for name in ("mean_rank", "median_rank", "censored")) == pytest.approx(values)
        assert key == "macro" or isinstance(row["censored"], int | None)
    assert report.extra["censored"] == 1
    # 80 images, 3 of them positives: a random order lists none of them in 50 with (30 29 28)/(80 79 78).
    missed = 30 * 29 * 28 / (80 * 79 * 78)
    assert found["addition"]["random"]["censored"] == pytest.approx(3 * missed)
    assert "median_rank" not in found["addition"]["random"]
    (table,) = (table for table in report.tables() if table.title == "By aspect")
    place = table.columns.index("censored")
    shown = {row[0].text: row[place].text for row in table.rows}
    assert (shown["Addition"], shown["macro mean"]) == ("1", "0.75")


def test_the_share_of_lists_that_rank_the_reference_is_said_with_its_count() -> None:
    world = reports.circo()
    references = {query: worlds.coco(70 + number) for number, query in enumerate(world.query_ids)}
    rows = [{**row, "reference_image_id": references[row["query_id"]]} for row in world.rows()]
    benchmark = Benchmark.from_rows(world.spec, rows, world.gallery)
    document = reports.circo_document(benchmark)
    first, second, third, *_ = benchmark.query_ids
    for query, place in ((first, 0), (third, 49)):
        document["rankings"][query][place] = references[query]
    document["rankings"][second][5] = references[first]  # another query's reference is not a reference here
    report = report_of(document, benchmark)
    assert report.counts["reference_ranked"] == 2
    note = "reference: ranked in 2 of 5 lists (40.00 %); the protocol keeps it, and a list may hold it"
    (said,) = [each for each in report.to_dict()["notes"] if each.startswith("reference:")]
    assert said.startswith(note)
    assert note in report.render()

    del document["rankings"][third]
    report = report_of(document, benchmark, allow_missing=True)
    assert any(each.startswith("reference: ranked in 1 of 4 lists (25.00 %)") for each in report.notes)

    deep = [image for image in benchmark.gallery or () if image != references[first]]
    document["rankings"][first] = [*deep[:50], references[first], *deep[50:]]  # behind what the board uses
    report = report_of(document, benchmark, allow_missing=True)
    assert report.counts["reference_ranked"] == 1


def test_where_no_reference_is_kept_or_known_nothing_is_said_of_it() -> None:
    known = reports.circo()
    rows = [{**row, "reference_image_id": None} for row in known.rows()]
    unknown = Benchmark.from_rows(known.spec, rows, known.gallery, schema=known.table.schema)
    removed = full_report(reports.scored("cirr_like"))
    for report in (removed, report_of(reports.circo_document(known), unknown)):
        assert "reference_ranked" not in report.counts
        assert not any(note.startswith("reference:") for note in report.notes)


def test_zerosights_six_categories_have_map_and_pnr_map() -> None:
    categories = list(card("zerosight").report.aspect_names)
    images = [f"v/{number}.jpg" for number in range(80)]
    own = []
    for number, category in enumerate(categories):
        more = {"positive_image_ids": images[:2], "negative_image_ids": images[2:4], "aspects": [category]}
        own.append({**worlds.query(str(number), images[70], images[0]), "target_image_id": None, **more})
    benchmark = Benchmark.from_rows(cir_datasets.spec("zerosight/all"), own, images, schema=query_schema())
    document = worlds.circo_document(benchmark)
    for number, query in enumerate(benchmark.query_ids):  # hard negatives in front of every second query's
        front = images[2:4] + images[:2] if number % 2 else images[:4]
        document["rankings"][query] = front + images[4:50]
    found = rows(report_of(document, benchmark), "by_aspect")
    assert list(found) == [*categories, "macro", "micro"]
    behind = (1 / 3 + 2 / 4) / 2, ((1 / 3) * (1.5 / 3) + (2 / 4) * (1.5 / 4)) / 2
    for number, category in enumerate(categories):
        row = found[category]
        expected = behind if number % 2 else (1.0, 1.0)
        assert (row["map@10"], row["pnr_map@10"]) == pytest.approx(expected, abs=1e-15)
        assert row["random"]["pnr_map@10"] < row["random"]["map@10"]
    assert len(categories) == 6


def test_fisds_six_aspects_stand_side_by_side_with_their_means() -> None:
    members: dict[str, Benchmark] = {}
    runs = []
    for number, aspect in enumerate(card("fisd").configs):
        images = [f"{aspect}/{n}.png" for n in range(12)]
        count = 3 if number == 5 else 6
        own = [
            worlds.query(f"{aspect}_{n:03d}", images[9], images[n], aspects=[aspect]) for n in range(count)
        ]
        member = Benchmark.from_rows(cir_datasets.spec(f"fisd/{aspect}"), own, images)
        document = worlds.circo_document(member)
        for place, row in enumerate(own):  # `number` of the six targets first, the others second
            others = [image for image in images if image != row["target_image_id"]]
            others.insert(0 if place < number else 1, row["target_image_id"])
            document["rankings"][row["query_id"]] = others[:10]
        members[member.id] = member
        runs.append(document)
    bundle = {"format": "cir-rank-bundle", "suite": "fisd", "runs": runs}
    report = report_of(bundle, members)
    (table,) = (table for table in report.tables() if table.title == "By benchmark")
    place = table.columns.index("recall@1")
    assert [row[0].text for row in table.rows] == [*members, "macro mean", "micro mean"]
    assert [row[1].value for row in table.rows] == [6, 6, 6, 6, 6, 3, 33, 33]
    shares = [*(n / 6 for n in range(5)), 1]  # of the last one's three targets, all stand first
    means = [sum(shares) / 6, (0 + 1 + 2 + 3 + 4 + 3) / 33]
    assert [row[place].value for row in table.rows] == pytest.approx([*shares, *means])
    # The suite's own number is Recall@1; the means of what all members have besides stand below them.
    place = table.columns.index("recall@5")
    assert [row[place].value for row in table.rows] == [1] * 8
    assert table.notes[0] == (
        "macro: every benchmark weighs the same; micro: every query does (- where there is no such mean)."
    )
    assert report.floors["random"] == {"recall@1": pytest.approx(1 / 12)}
    assert report.counts["queries"] == 33
    macro, micro = report.to_dict()["means"]
    assert (macro["mean"], micro["mean"], micro["queries"]) == ("macro", "micro", 33)
    assert (macro["recall@1"], micro["recall@1"]) == pytest.approx(means)
    assert macro["random"]["recall@10"] == micro["random"]["recall@10"] == pytest.approx(10 / 12)


def test_an_area_under_a_curve_has_no_micro_mean() -> None:
    from cir_datasets.registry.suites import suite

    ids = suite("circled").benchmarks
    members, runs = {}, []
    for number, member_id in enumerate(ids):
        own = [{**worlds.session("s0", 2 + number % 2, "im7"), "subset": member_id.partition("/")[2]}]
        gallery = [f"im{image}" for image in range(30)]
        members[member_id] = Benchmark.from_rows(cir_datasets.spec(member_id), own, gallery)
        runs.append(worlds.circled_document(members[member_id]))
    report = report_of({"format": "cir-rank-bundle", "suite": "circled", "runs": runs}, members)
    macro, micro = report.means
    assert (macro.values["final_recall@10"], micro.values["final_recall@10"]) == (1, 1)
    assert (macro.values["hits_auc@10"], micro.values.get("hits_auc@10")) == (1, None)
    # The members end at turn 2 or at turn 3; one that has ended keeps its value.
    assert {name for name in macro.values if "turn" in name} == {f"hits@10@turn{turn}" for turn in (1, 2, 3)}
    assert "micro: every session does (- where there is no such mean)." in report.render("table")


def test_hits_by_turn_of_a_suite_go_to_the_last_turn_of_its_longest_member() -> None:
    """As if the sessions of all members were one benchmark's: the pooled curve is the micro mean."""
    members, runs, places, lengths = {}, [], [], []
    images = [f"im{image}" for image in range(30)]
    ids = cir_datasets.registry.suites.suite("circled/val").benchmarks
    # Of each session the place of its target at every turn; the last member's end at turn 2.
    drawn = [[[8, 4, 2], [20, 20, 20]], [[1, 9, 9]], [[9, 1]], [[20, 20, 3]], [[20, 4], [7, 7]]]
    for member_id, own in zip(ids, drawn, strict=True):
        rows = [
            {**worlds.session(f"s{number}", len(turns), "im29"), "subset": member_id.partition("/")[2]}
            for number, turns in enumerate(own)
        ]
        members[member_id] = Benchmark.from_rows(cir_datasets.spec(member_id), rows, images)
        run = worlds.circled_document(members[member_id])
        for row, turns in zip(rows, own, strict=True):
            run["rankings"][row["session_id"]] = [
                [*images[: place - 1], "im29", *images[place - 1 : 28]][:10] for place in turns
            ]
        runs.append(run)
        places += own
        lengths += map(len, own)
    bundle = {"format": "cir-rank-bundle", "suite": "circled/val", "runs": runs}
    scored = score_of(json.dumps(bundle).encode(), members, metrics=["hits@5"])
    hits = [[min(turns[: turn + 1]) <= 5 for turn in range(3)] for turns in places]
    pooled = [statistics.fmean(each[turn] for each in hits) for turn in range(3)]
    macro, micro = full_report(scored).means
    assert [micro.values[f"hits@5@turn{turn}"] for turn in (1, 2, 3)] == pytest.approx(pooled)
    assert [macro.values[f"hits@5@turn{turn}"] for turn in (1, 2, 3)] == pytest.approx([0.2, 0.6, 0.8])
    assert scored.extra["hits@5@turn3"] == pytest.approx(0.8)
    last = scored.signatures["hits@5@turn3"].members
    assert [each.metric for each in last] == [f"hits@5@turn{turn}" for turn in (3, 3, 2, 3, 2)]
    assert intervals(scored, draws=50).values["hits@5@turn3"].low <= 0.8
    asked = score_of(json.dumps(bundle).encode(), members, metrics=["hits@5@turn3"])
    assert asked.extra == {"hits@5@turn3": pytest.approx(0.8)}
    # The members' boards show hits@10, and the suite's does not: as a further metric they are its, too.
    of_boards = {f"hits@10@turn{turn}": pytest.approx(mean) for turn, mean in ((1, 0.6), (2, 0.7), (3, 0.9))}
    named = score_of(json.dumps(bundle).encode(), members, metrics=["hits@10"])
    assert named.extra == of_boards
    assert set(compare([named, named], metrics=["hits@10"], draws=20).metrics) == set(of_boards)
    asked = score_of(json.dumps(bundle).encode(), members, metrics=["hits@10@turn3", "final_recall@10"])
    assert asked.extra == {"hits@10@turn3": of_boards["hits@10@turn3"]}
    with pytest.raises(CallError, match=r"the longest session of .* has 3 turns"):
        score_of(json.dumps(bundle).encode(), members, metrics=["hits@5@turn4"])


# -- sessions


Sessions = list[list[int | None]]
sessions = st.lists(
    st.lists(st.one_of(st.none(), st.integers(1, 12)), min_size=1, max_size=5), min_size=1, max_size=9
)
LENGTH = 12


def arrays(given_ranks: Sessions) -> tuple[Any, Any, Any]:
    turns = np.array([len(own) for own in given_ranks])
    ranks = np.full((len(turns), turns.max()), 1, dtype=np.int64)  # what lies behind the end is not read
    lengths = np.full_like(ranks, LENGTH)
    for place, own in enumerate(given_ranks):
        ranks[place, : len(own)] = [UNLISTED if rank is None else rank for rank in own]
    return ranks, lengths, turns


def hit(own: Sequence[int | None], turn: int, k: int) -> bool:
    return any(rank is not None and rank <= k for rank in own[:turn])


def slow_mean(values: Sequence[float]) -> Any:
    return pytest.approx(sum(values) / len(values), abs=1e-12) if values else None


@given(sessions, st.integers(1, 12))
def test_by_turn_is_its_slow_twin(given_ranks: Sessions, k: int) -> None:
    found = by_turn(*arrays(given_ranks), [k], None)
    assert [group.key for group in found.groups] == list(range(1, max(map(len, given_ranks)) + 1))
    for turn, group in enumerate(found.groups, start=1):
        running = [own[turn - 1] for own in given_ranks if len(own) >= turn]
        shown = [LENGTH + 1 if rank is None else rank for rank in running]
        assert group.n == len(running)
        assert group.values[f"hits@{k}"] == slow_mean([hit(own, turn, k) for own in given_ranks])
        assert group.values[f"recall@{k}"] == slow_mean([rank is not None and rank <= k for rank in running])
        assert group.values["mean_rank"] == slow_mean(shown)
        assert group.values["median_rank"] == statistics.median(shown)
        assert group.values["censored"] == running.count(None)


@given(sessions, st.integers(1, 12))
def test_by_length_is_its_slow_twin(given_ranks: Sessions, k: int) -> None:
    ranks, _, turns = arrays(given_ranks)
    found = by_length(ranks, turns, [k], None)
    lengths = [len(own) for own in given_ranks]
    assert [group.key for group in found.groups] == list(range(min(lengths), max(lengths) + 1))
    for group in found.groups:
        inside = [own for own in given_ranks if len(own) == group.key]
        assert group.n == len(inside)
        assert group.values[f"hits@{k}"] == slow_mean([hit(own, len(own), k) for own in inside])
        final = [own[-1] is not None and own[-1] <= k for own in inside]  # type: ignore[operator]
        assert group.values[f"final_recall@{k}"] == slow_mean(final)
        areas = []
        for own in inside:
            curve = [float(hit(own, turn, k)) for turn in range(1, len(own) + 1)]
            pairs = list(pairwise(curve))
            areas.append(sum((a + b) / 2 for a, b in pairs) / len(pairs) if pairs else curve[0])
        assert group.values[f"hits_auc@{k}"] == slow_mean(areas)


def test_turns_agree_with_the_boards_own_numbers() -> None:
    score = reports.scored("shapes_multiturn_val")
    found = rows(full_report(score), "by_turn")
    for turn, row in found.items():
        assert row["hits@10"] == score.metrics[f"hits@10@turn{turn}"]
    lengths = rows(full_report(score), "by_length")
    counts = {turns: row["sessions"] for turns, row in lengths.items()}
    assert counts == {2: 92, 3: 56, 4: 28, 5: 15, 6: 9}  # the card's own table
    assert [found[turn]["sessions"] for turn in range(1, 7)] == [200, 200, 108, 52, 24, 9]
    final = sum(row["final_recall@10"] * row["sessions"] for row in lengths.values()) / 200
    assert final == pytest.approx(score.metrics["final_recall@10"], abs=1e-15)


def test_a_missing_turn_counts_as_the_longest_list_and_a_file_of_nothing_has_no_rank() -> None:
    benchmark = worlds.circled()
    document = worlds.circled_document(benchmark)
    document["rankings"]["s1"] = document["rankings"]["s1"][:2]
    found = rows(report_of(document, benchmark, allow_missing=True), "by_turn")
    assert (found[3]["mean_rank"], found[3]["censored"], found[3]["sessions"]) == (11.0, 1, 1)
    none = by_turn(np.array([[UNLISTED]]), np.array([[0]]), np.array([1]), [10], None)
    no_rank = dict.fromkeys(("mean_rank", "median_rank", "censored"))
    assert none.groups[0].values == {"hits@10": 0.0, "recall@10": 0.0, **no_rank}


# -- the whole


def test_intervals_stand_beside_the_scores() -> None:
    score = reports.scored("circo_like")
    found = intervals(score, draws=200)
    report = full_report(score, found)
    table = report.tables()[0]
    assert table.columns == ("metric", "score", "low", "high", "random")
    drawn = found.values["map@5"]
    assert [cell.value for cell in table.rows[0][2:4]] == [drawn.low, drawn.high]
    assert table.notes[0] == found.note()
    assert report.to_dict()["intervals"] == found.to_dict()


def test_a_suite_of_sessions_has_the_tables_of_its_members() -> None:
    own = worlds.circled().rows()
    ids = cir_datasets.registry.suites.suite("circled").benchmarks
    images = [f"im{number}" for number in range(30)]
    members = {each: Benchmark.from_rows(cir_datasets.spec(each), own, images) for each in ids}
    runs = [worlds.circled_document(member) for member in members.values()]
    report = report_of({"format": "cir-rank-bundle", "suite": "circled", "runs": runs}, members)
    titles = [table.title for table in report.tables()]
    assert titles[1:3] == ["By benchmark", "Counts"]
    assert titles[3:5] == [f"{ids[0]}: by turn", f"{ids[0]}: by number of turns"]
    assert len(titles) == 3 + 2 * 9
    assert (report.counts["sessions"], report.counts["turns"]) == (27, 63)


@pytest.mark.parametrize("case", ["shapes_val", "shapes_multiturn_val", "circo_like", "cirr_like"])
def test_json_has_no_nan_and_keeps_the_scores_own_keys(case: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    score = reports.scored(case)
    document = json.loads(full_report(score).render("json"), parse_constant=refuse)
    for key, value in score.to_dict().items():
        if key != "signatures":
            assert document[key] == (value if key != "extra" else document["extra"])
    assert score.to_dict()["signatures"].items() <= document["signatures"].items()
