"""Reports: groups against slow plain-Python twins, values by hand, floors, further metrics, errors."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import report_worlds
import submissions_worlds as worlds
from hypothesis import given
from hypothesis import strategies as st

import cir_datasets
import cir_datasets.suites
import submissions
from cir_datasets.benchmark import Benchmark
from cir_datasets.records import query_schema
from cir_datasets.registry import card
from cir_metrics.errors import CallError, UnknownNameError
from cir_metrics.kernels import UNLISTED
from submissions.evidence import Evidence
from submissions.report import Report, full_report
from submissions.report.grouping import by_aspect
from submissions.report.sessions import by_length, by_turn


def report_of(document: dict[str, Any], benchmark: Any, **options: Any) -> Report:
    content = json.dumps(document).encode()
    return full_report(submissions.score(content, benchmark, name="run.json", **options))


def rows(report: Report, name: str) -> dict[Any, dict[str, Any]]:
    grouping = report.groupings[name]
    return {row[grouping.head]: row for row in grouping.to_dict()}


# -- by aspect


def test_aspects_of_the_invented_circo_by_hand() -> None:
    found = rows(full_report(report_worlds.scored("circo_like")), "by_aspect")
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


def test_fisds_six_aspects_stand_side_by_side_with_their_macro_mean() -> None:
    members = {}
    runs = []
    for number, aspect in enumerate(card("fisd").configs):
        images = [f"{aspect}/{n}.png" for n in range(12)]
        own = [worlds.query(f"{aspect}_{n:03d}", images[9], images[n], aspects=[aspect]) for n in range(6)]
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
    assert [row[0].text for row in table.rows] == [*members, "macro mean"]
    assert [row[place].value for row in table.rows] == pytest.approx([*(n / 6 for n in range(6)), 2.5 / 6])
    assert report.floors["random"] == {"recall@1": pytest.approx(1 / 12)}
    assert report.counts["queries"] == 36


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
    score = report_worlds.scored("shapes_multiturn_val")
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
    assert none.groups[0].values == {
        "hits@10": 0.0,
        "recall@10": 0.0,
        "mean_rank": None,
        "median_rank": None,
        "censored": None,
    }


# -- CIRR's Table 5, further metrics


def test_table_5_of_the_invented_cirr_by_hand() -> None:
    report = full_report(report_worlds.scored("cirr_like"))
    ranks = [rank for rank, _ in report_worlds.CIRR_RANKS]
    subset = [rank for _, rank in report_worlds.CIRR_RANKS]
    for name, given_ranks in (("map", ranks), ("map_subset", subset)):
        for k in (1, 5, 10, 50) if name == "map" else (1, 2, 3):
            value = sum(1 / rank for rank in given_ranks if rank is not None and rank <= k) / 6
            assert report.extra[f"{name}@{k}"] == pytest.approx(value, abs=1e-15)
    assert list(report.extra) == list(card("cirr").report.metrics)
    assert report.signatures["map@5"].key == report.signatures["recall@5"].key.replace(
        "recall@5:1", "map@5:1"
    )


def test_what_the_report_derives_is_what_scoring_computes() -> None:
    names_of = card("cirr").report.metrics
    benchmark = worlds.cirr()
    document = report_worlds.cirr_document(benchmark)
    asked = submissions.score(json.dumps(document).encode(), benchmark, metrics=names_of)
    derived = full_report(report_worlds.scored("cirr_like"))
    assert asked.extra == pytest.approx(dict(derived.extra), abs=1e-15)
    assert full_report(asked).extra == asked.extra


def test_one_of_cirrs_two_files_has_its_own_half_of_table_5() -> None:
    benchmark = worlds.cirr()
    document = report_worlds.cirr_document(benchmark)
    subset = {"version": "rc2", "metric": "recall_subset", **document["subset_rankings"]}
    report = report_of(subset, benchmark)
    assert list(report.extra) == ["map_subset@1", "map_subset@2", "map_subset@3"]
    assert report.notes[-1] == (
        "Not computed, because the file holds no rankings for it: map@1, map@5, map@10, map@50."
    )


def test_further_metrics_have_values_signatures_and_groups() -> None:
    rank_file = submissions.make_rank_file("shapes/val", "image_text_sum", encoder="pixels")
    asked = ("recall@20", "pnr_map@10:released_code", "pnr_map@10:equation", "recall@10", "mean_rank")
    score = submissions.score(rank_file, metrics=asked, per_query=True)
    assert list(score.extra) == [
        "recall@20",
        "pnr_map@10:released_code",
        "mean_rank",
        "median_rank",
        "censored",
    ]
    assert list(score.metrics) == list(cir_datasets.spec("shapes/val").metrics)
    assert "metric:1:released_code" in score.signature_text("pnr_map@10:released_code")
    assert score.signature_key("pnr_map@10:released_code") != score.signature_key("pnr_map@10")
    assert score.metrics["recall@10"] <= score.extra["recall@20"] <= score.metrics["recall@50"]
    assert score.per_query is not None
    mean = sum(row["recall@20"] for row in score.per_query) / 300
    assert mean == pytest.approx(score.extra["recall@20"])
    report = full_report(score)
    assert rows(report, "by_aspect")["micro"]["pnr_map@10:released_code"] == pytest.approx(
        score.extra["pnr_map@10:released_code"]
    )
    assert report.floors["random"]["recall@20"] == pytest.approx(20 / 3939)
    assert json.loads(report.render("json"))["extra"] == dict(score.extra)
    assert score.to_dict()["extra"] == dict(score.extra)


def test_a_turn_that_is_asked_for_is_the_only_one() -> None:
    benchmark = worlds.circled()
    content = json.dumps(worlds.circled_document(benchmark)).encode()
    asked = ["hits@8@turn2", "hits@08@turn02", "hits@10@turn1", "hits@10", "hits@10@turn3"]
    score = submissions.score(content, benchmark, metrics=asked)
    # Targets stand at ranks 8, 9 and 10 at every turn; the board shows Hits@10 anyway.
    assert score.extra == {"hits@8@turn2": pytest.approx(1 / 3)}
    assert list(full_report(score).floors["random"])[-1] == "hits@8@turn2"
    every = submissions.score(content, benchmark, metrics=["hits@8", "hits@8@turn2"])
    assert list(every.extra) == ["hits@8@turn1", "hits@8@turn2", "hits@8@turn3"]
    for turn in (0, 4):
        with pytest.raises(CallError) as caught:
            submissions.score(content, benchmark, metrics=[f"hits@8@turn{turn}"])
        assert str(caught.value) == (
            f"metric hits@8@turn{turn}: the longest session of circled/cirr_val has 3 turns. "
            "Fix: ask for a turn from 1 to 3."
        )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("recall@20", r"metrics is the string 'recall@20'\. Fix: pass a list, \['recall@20'\]\."),
        (20, r"metrics is of type int\. Fix: pass a list such as \['recall@20'\]\."),
        ([20], r"metrics holds 20\. Fix: pass names such as 'recall@20'\."),
    ],
)
def test_what_is_no_list_of_names_is_refused(asked: Any, message: str) -> None:
    benchmark = worlds.cirr()
    with pytest.raises(CallError, match=message):
        submissions.score(json.dumps(worlds.cirr_document(benchmark)).encode(), benchmark, metrics=asked)


def test_further_metrics_of_a_suite_are_averaged_as_its_own() -> None:
    members = [worlds.fashioniq("dress", queries=2), worlds.fashioniq("shirt"), worlds.fashioniq("toptee")]
    document = worlds.fashioniq_bundle(members)
    gallery = list(members[0].gallery or ())
    for query in members[0].query_ids:  # the two targets stand at ranks 12 and 13
        document["runs"][0]["rankings"][query] = gallery[40:50] + gallery[:40]
    by_id = {member.id: member for member in members}
    score = submissions.score(json.dumps(document).encode(), by_id, metrics=["recall@12", "mean_rank"])
    assert score.extra["recall@12"] == pytest.approx((1 / 2 + 1 + 1) / 3)
    assert score.extra["recall@12@micro"] == pytest.approx(9 / 10)
    assert "median_rank@micro" not in score.extra
    assert score.signature_key("recall@12@micro").startswith("suite:fashioniq/val#1|mean:micro + ")
    report = full_report(score)
    (table,) = (table for table in report.tables() if table.title == "By benchmark")
    assert [row[0].text for row in table.rows] == [*by_id, "macro mean", "micro mean"]
    assert table.columns[:4] == ("benchmark", "queries", "recall@1", "recall@1 random")
    place = table.columns.index("recall@10")
    values = [row[place].value for row in table.rows]
    assert values == pytest.approx([0.0, 1.0, 1.0, 2 / 3, 0.8])
    assert report.floors["random"]["recall@10"] == pytest.approx(10 / 80)
    assert json.loads(report.render("json"))["runs"][0]["counts"]["queries"] == 2


TOO_DEEP = (
    "metric recall@51: the board of cirr/val cuts every ranking to 50 images, so that nothing is known "
    "beyond rank 50. Fix: ask for a cutoff of at most 50."
)
TOO_DEEP_IN_THE_SUBSET = (
    "metric recall_subset@4: a subset's ranking need not hold more than 3 images, so that nothing is known "
    "beyond rank 3. Fix: ask for a cutoff of at most 3."
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("recall@51", TOO_DEEP),
        ("recall_subset@4", TOO_DEEP_IN_THE_SUBSET),
        ("hits@10", "metric hits@10: a metric of sessions, and cirr/val has queries. Fix: leave it out."),
        (
            "map@5:x",
            "metric 'map@5:x': variant='x': map_at_k has no such variant. Fix: use one of 'equation'.",
        ),
        (
            "recall@0",
            "metric 'recall@0': k=0; a cutoff is 1 or more. Fix: ask for recall@1 or more.",
        ),
        ("recall", "metric 'recall': names no cutoff. Fix: write 'recall@K', such as 'recall@1'."),
        (
            "map@5:",
            "metric 'map@5:': variant='': map_at_k has no such variant. Fix: use one of 'equation'.",
        ),
    ],
)
def test_a_metric_that_the_file_cannot_tell_is_refused(name: str, text: str) -> None:
    with pytest.raises(CallError) as caught:
        report_of(worlds.cirr_document(worlds.cirr()), worlds.cirr(), metrics=[name])
    assert str(caught.value) == text
    assert caught.value.exit_code == 2


def test_other_metrics_that_a_file_cannot_tell() -> None:
    with pytest.raises(CallError) as caught:
        report_of(worlds.circled_document(worlds.circled()), worlds.circled(), metrics=["recall@5"])
    assert str(caught.value) == (
        "metric recall@5: a metric of queries, and circled/cirr_val has sessions. Fix: leave it out."
    )
    with pytest.raises(CallError) as caught:
        report_of(worlds.circo_document(worlds.circo()), worlds.circo(), metrics=["recall_subset@1"])
    assert str(caught.value) == (
        "metric recall_subset@1: needs a ranking of each query's subset, which the file does not hold. "
        "Fix: leave it out."
    )
    document = worlds.cirr_document(worlds.cirr())
    subset = {"version": "rc2", "metric": "recall_subset", **document["subset_rankings"]}
    with pytest.raises(CallError) as caught:
        report_of(subset, worlds.cirr(), metrics=["recall@7"])
    assert str(caught.value) == (
        "metric recall@7: needs rankings of the gallery, which the file does not hold. Fix: leave it out."
    )
    with pytest.raises(UnknownNameError, match=r"no metric is printed as 'recal@5'"):
        report_of(document, worlds.cirr(), metrics=["recal@5"])


# -- the whole


def test_intervals_stand_beside_the_scores() -> None:
    from submissions.intervals import intervals

    score = report_worlds.scored("circo_like")
    found = intervals(score, draws=200)
    report = full_report(score, found)
    table = report.tables()[0]
    assert table.columns == ("metric", "score", "low", "high", "random")
    assert [cell.value for cell in table.rows[0][2:4]] == [
        found.values["map@5"].low,
        found.values["map@5"].high,
    ]
    assert table.notes[0] == found.note()
    assert report.to_dict()["intervals"] == found.to_dict()


def test_a_suite_of_sessions_has_the_tables_of_its_members() -> None:
    own = worlds.circled().rows()
    ids = cir_datasets.suites.suite("circled").benchmarks
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

    score = report_worlds.scored(case)
    document = json.loads(full_report(score).render("json"), parse_constant=refuse)
    for key, value in score.to_dict().items():
        if key != "signatures":
            assert document[key] == (value if key != "extra" else document["extra"])
    assert score.to_dict()["signatures"].items() <= document["signatures"].items()
