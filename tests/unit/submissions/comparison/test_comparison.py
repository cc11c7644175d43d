"""Comparisons: what is paired, tested, grouped and named, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world import score
from says import says
from typer.testing import CliRunner

import submissions
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError, SettingError, UnknownNameError
from cir_metrics.resampling import bootstrap_means, percentile_interval
from leaderboard.cli import build
from submissions import ComparisonError
from submissions.comparison.keys import key_differences
from submissions.scoring.score_report import ScoreReport

CIRR = worlds.cirr(queries=30)
FILES = worlds.three_methods(CIRR)
CIRCLED = worlds.circled()


REPORTS = [score(made, CIRR, name) for name, made in FILES.items()]


def test_differences_and_intervals_are_paired() -> None:
    ours, theirs = REPORTS[:2]
    found = submissions.compare([ours, theirs], draws=300, seed=6).pairs[0].differences["recall_subset@1"]
    values = ours.evidence.values["recall_subset@1"] - theirs.evidence.values["recall_subset@1"]
    low, high = percentile_interval(bootstrap_means(values, draws=300, seed=6, key="cirr/val"))
    assert found.difference == pytest.approx(
        ours.metrics["recall_subset@1"] - theirs.metrics["recall_subset@1"], abs=1e-12
    )
    assert (found.interval.low, found.interval.high) == pytest.approx((float(low), float(high)), abs=1e-12)


def test_equal_values_are_ties_whatever_their_roundings() -> None:
    circo = worlds.circo(gallery=200, queries=30)
    reports = []
    # 1/28 + 2/42 + 3/48 = 1/30 + 2/40 + 3/48, and as floats the two differ in the last bit.
    for name, places in (("one", (28, 42, 48)), ("other", (30, 40, 48))):
        document = worlds.circo_document(circo)
        document["method"] = {"name": name}
        ranking = [worlds.coco(number) for number in range(10, 60)]
        for image, place in enumerate(places, start=1):
            ranking[place - 1] = worlds.coco(image)
        document["rankings"] = dict.fromkeys(circo.query_ids, ranking)
        reports.append(score(document, circo, f"{name}.json"))
    one, other = (report.metrics["map@50"] for report in reports)
    assert 0 < abs(one - other) < 1e-15
    for files in (reports, reports[::-1]):
        found = submissions.compare(files, draws=200)
        each = found.pairs[0].differences["map@50"]
        assert (each.wins, each.ties, each.losses) == (0, 30, 0)
        assert (each.difference, each.test.p, each.significant) == (0, 1, False)
        assert (each.interval.low, each.interval.high) == (0, 0)
        by_map = submissions.compare(files, metrics=["map@50"], draws=200)
        assert [method.group for method in by_map.methods] == [1, 1]
        place = by_map.tables()[0].columns.index("map@50")
        assert [row[place].bold for row in by_map.tables()[0].rows] == [False, False]


def test_the_same_file_twice_differs_in_nothing(tmp_path: Path) -> None:
    report = REPORTS[0]
    found = submissions.compare([report, report], draws=50)
    for each in found.pairs[0].differences.values():
        assert (each.difference, each.interval.low, each.interval.high) == (0, 0, 0)
        assert (each.test.p, each.adjusted, each.significant) == (1, 1, False)
        assert (each.wins, each.ties, each.losses) == (0, 30, 0)
    assert [method.group for method in found.methods] == [1, 1]
    assert [method.name for method in found.methods] == [f"{report.method} (ours.json) #{n}" for n in (1, 2)]
    assert list(found.flipped()) == []


def test_methods_of_one_name_are_told_apart_by_file() -> None:
    reports = [
        dataclasses.replace(REPORTS[0], method="CLIP", file=file) for file in ("a/run.json", "b/run.json")
    ]
    found = submissions.compare([*reports, dataclasses.replace(REPORTS[1], method="BLIP")], draws=50)
    assert [method.name for method in found.methods] == ["CLIP (a/run.json)", "CLIP (b/run.json)", "BLIP"]
    two = [dataclasses.replace(REPORTS[0], method="CLIP", file=file) for file in ("x/a.json", "x/b.json")]
    named = [method.name for method in submissions.compare(two, draws=50).methods]
    assert named == ["CLIP (a.json)", "CLIP (b.json)"]


def test_the_order_of_the_files_turns_signs_and_nothing_else() -> None:
    one = submissions.compare(REPORTS[:2], draws=400)
    other = submissions.compare(REPORTS[1::-1], draws=400)
    for metric, found in one.pairs[0].differences.items():
        turned = other.pairs[0].differences[metric]
        assert turned.difference == -found.difference
        assert (turned.test, turned.adjusted) == (found.test, found.adjusted)
        assert (turned.wins, turned.losses) == (found.losses, found.wins)
        ends = (-found.interval.high, -found.interval.low)
        assert (turned.interval.low, turned.interval.high) == pytest.approx(ends, abs=1e-12)
    assert {method.name: method.group for method in one.methods} == {
        method.name: method.group for method in other.methods
    }


def test_letters_and_groups_follow_the_corrected_tests() -> None:
    found = submissions.compare(REPORTS, draws=1_000)
    assert [(method.letter, method.group) for method in found.methods] == [("a", 1), ("b", 2), ("c", 2)]
    ours, theirs, base = found.methods
    assert ours.beats["recall@5"] == ("b", "c")
    assert theirs.beats["recall_subset@2"] == ("c",)
    assert set(base.beats.values()) == {()}
    # The best is not the first of the files: letters follow the files, groups the numbers.
    turned = submissions.compare(REPORTS[::-1], draws=1_000)
    assert [(method.letter, method.group) for method in turned.methods] == [("a", 2), ("b", 2), ("c", 1)]
    assert turned.methods[2].beats["recall@5"] == ("a", "b")


def test_flips_name_the_queries() -> None:
    found = submissions.compare(REPORTS[:2], draws=50)
    recall, subset = found.pairs[0].flips
    assert (recall.metric, subset.metric) == ("recall@5", "recall_subset@1")
    assert recall.hit_to_miss == tuple(("cirr/val", str(100 + n)) for n in range(12, 28))
    assert recall.miss_to_hit == ()
    assert [query for _, query in subset.miss_to_hit] == [str(100 + n) for n in range(24, 30)]
    assert recall.to_dict()["hit_to_miss"] == {
        "count": 16,
        "first": [{"benchmark": "cirr/val", "id": str(112 + n)} for n in range(5)],
    }
    lines = list(found.flipped())
    assert len(lines) == 16 + 10 + 6
    methods = {"first": "Ours & theirs_50%", "second": "Theirs", "change": "hit to miss"}
    assert lines[0] == {"metric": "recall@5", "benchmark": "cirr/val", "id": "112", **methods}


def test_a_smaller_mean_rank_is_better() -> None:
    def with_ranks(report: ScoreReport, ranks: np.ndarray[Any, Any]) -> ScoreReport:
        assert report.evidence is not None
        values = {"mean_rank": ranks.astype(float)}
        return dataclasses.replace(
            report,
            metrics={"mean_rank": float(ranks.mean())},
            signatures={
                "mean_rank": dataclasses.replace(REPORTS[0].signatures["recall@5"], metric="mean_rank")
            },  # type: ignore[type-var]
            main_metric="mean_rank",
            main=float(ranks.mean()),
            evidence=dataclasses.replace(report.evidence, values=values),
        )

    near, far = with_ranks(REPORTS[0], np.arange(30) + 1), with_ranks(REPORTS[1], np.arange(30) + 9)
    found = submissions.compare([far, near], draws=200)
    difference = found.pairs[0].differences["mean_rank"]
    assert (difference.difference, difference.wins, difference.losses) == (pytest.approx(8), 0, 30)
    assert [method.group for method in found.methods] == [2, 1]
    assert found.methods[1].beats == {"mean_rank": ("a",)}
    assert found.pairs[0].flips == ()
    assert "+8.00" in found.text()


def test_sessions_are_compared_whole() -> None:
    good = worlds.circled_document(CIRCLED, 30)
    bad = json.loads(json.dumps(good))
    bad["method"]["name"] = "late"
    for turns in bad["rankings"].values():
        turns[0].sort(key=lambda image: -int(image.removeprefix("im")))
    found = submissions.compare([score(good, CIRCLED), score(bad, CIRCLED)], draws=50)
    assert (found.unit, found.n, found.leading) == ("sessions", 3, "hits_auc@10")
    found_at_1 = found.pairs[0].differences["hits@10@turn1"]
    assert (found_at_1.wins, found_at_1.difference) == (3, pytest.approx(1))
    assert found.pairs[0].differences["final_recall@10"].ties == 3
    assert json.loads(found.text("json"))["interval"]["resampled"] == "sessions"


def suite(seed: int, name: str) -> ScoreReport:
    chance = np.random.default_rng(seed)
    members = [worlds.fashioniq(each, queries=n) for each, n in (("dress", 20), ("shirt", 7), ("toptee", 9))]
    bundle = worlds.fashioniq_bundle(members)
    for run, benchmark in zip(bundle["runs"], members, strict=True):
        run["method"] = {"name": name}
        run["rankings"] = {
            query: chance.permutation(benchmark.gallery or [])[:50].tolist() for query in benchmark.query_ids
        }
    return score(bundle, {member.id: member for member in members}, f"{name}.json")


def test_suites_are_compared_by_their_means() -> None:
    one, other = suite(1, "one"), suite(2, "other")
    found = submissions.compare([one, other], draws=400)
    pair = found.pairs[0]
    assert set(found.metrics) == {*one.metrics, "mean(recall@10, recall@50)"}
    drawn = []
    for left, right in zip(one.runs, other.runs, strict=True):
        values = left.evidence.values["recall@50"] - right.evidence.values["recall@50"]
        drawn.append(bootstrap_means(values, draws=400, key=left.benchmark))
    low, high = percentile_interval(np.mean(drawn, axis=0))
    macro = pair.differences["recall@50"]
    assert macro.difference == pytest.approx(one.metrics["recall@50"] - other.metrics["recall@50"])
    assert (macro.interval.low, macro.interval.high) == pytest.approx((float(low), float(high)), abs=1e-12)
    micro = pair.differences["recall@50@micro"]
    assert micro.difference == pytest.approx(
        one.metrics["recall@50@micro"] - other.metrics["recall@50@micro"]
    )
    # Every query weighs the same in the micro mean: the test is McNemar's. Not so in the macro mean.
    assert micro.test.test == "binomial"
    assert macro.wins + macro.ties + macro.losses == 36


def test_a_metric_that_one_file_cannot_tell_is_named_with_the_file() -> None:
    recall = {"version": "rc2", "metric": "recall", **FILES["ours.json"]["rankings"]}
    part = score(recall, CIRR, "part.json")
    found = submissions.compare([part, REPORTS[1]], draws=50)
    assert "recall_subset@1" not in found.metrics
    for metric in ("recall_subset@1", "mean(recall@5, recall_subset@1)"):
        for files in ([part, REPORTS[1]], [REPORTS[1], part], [part, part]):
            with pytest.raises(CallError) as caught:
                submissions.compare(files, metrics=[metric])
            says(caught, f"metric {metric}: part.json holds no rankings for recall_subset@1 ... Fix: leave")
    content = [json.dumps(made).encode() for made in (recall, FILES["theirs.json"])]
    with pytest.raises(CallError, match="holds no rankings for recall_subset@1"):
        submissions.compare(content, CIRR, metrics=["recall_subset@1"])
    further = score(FILES["ours.json"], CIRR, "further.json", metrics=["recall@20"])
    with pytest.raises(CallError, match=r"metric recall@20: theirs\.json was not scored by it"):
        submissions.compare([further, REPORTS[1]], metrics=["recall@20"])


def test_a_single_turn_is_compared() -> None:
    content = [json.dumps(worlds.circled_document(CIRCLED)).encode()] * 2
    found = submissions.compare(content, CIRCLED, metrics=["hits@10@turn2", "hits@5@turn1"], draws=50)
    assert found.metrics == ("hits@10@turn2", "hits@5@turn1")
    with pytest.raises(CallError, match=r"metric hits@10@turn9: the longest session of circled/cirr_val"):
        submissions.compare(content, CIRCLED, metrics=["hits@10@turn9"])


@pytest.mark.parametrize("count", [1, 26, 27, 53])
def test_letters_do_not_run_out(count: int) -> None:
    from submissions.comparison.comparing import letter

    assert letter(count - 1) == {1: "a", 26: "z", 27: "aa", 53: "ba"}[count]


def test_too_few_draws_are_said() -> None:
    found = submissions.compare(REPORTS, draws=100)
    note = "With 100 draws, a sampled p-value is never small enough for the first of 24 tests. Fix: use 479"
    assert any(each.startswith(note) for each in found.notes)
    assert submissions.compare(REPORTS, draws=479).notes == ()


def partly() -> ScoreReport:
    """A report on a file that lacks a query."""
    document = json.loads(json.dumps(FILES["theirs.json"]))
    for part in ("rankings", "subset_rankings"):
        del document[part]["100"]
    return score(document, CIRR, "part.json", allow_missing=True)


def skipping(name: str = "theirs.json") -> ScoreReport:
    """A report on a file whose method could not read some images."""
    document = json.loads(json.dumps(FILES[name]))
    document["method"]["skipped_images"] = 3
    return score(document, CIRR, f"some of {name}")


def on_larger_gallery() -> ScoreReport:
    other = worlds.cirr(queries=30, gallery=71)
    return score(worlds.cirr_document(other), other, "other.json")


def on_fewer_queries() -> ScoreReport:
    other = worlds.cirr(queries=29)
    return score(worlds.cirr_document(other), other, "other.json")


def on_circled() -> ScoreReport:
    return score(worlds.circled_document(CIRCLED), CIRCLED, "sessions.json")


def on_suite() -> ScoreReport:
    return suite(1, "one")


def on_circo() -> ScoreReport:
    circo = worlds.circo()
    return score(worlds.circo_document(circo), circo, "circo.json")


def on_dress() -> ScoreReport:
    dress = worlds.fashioniq("dress", queries=20)
    return score(worlds.fashioniq_bundle([dress])["runs"][0], dress, "dress.json")


def on_turned_rows() -> ScoreReport:
    turned = Benchmark.from_rows(CIRR.spec, list(CIRR.rows())[::-1], CIRR.gallery)
    return score(FILES["theirs.json"], turned, "turned.json")


GET_IMAGES = "get the images that were missing, and make again without --skip-missing the file made with it"
SAME_BENCHMARK = "Fix: rank the same version of the same benchmark"


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ([on_larger_gallery], "other.json ... of recall@1 differ ... gallery: 70: ...  against 71: ... same"),
        ([on_fewer_queries], "other.json ... data: ...  against  ... Fix: score both"),
        ([on_circo], f"cirr/val#1 against circo/val#1 ... ref: removed against kept ... {SAME_BENCHMARK}"),
        ([on_circled], f"no metric in common ... cirr/val#1 against circled/cirr_val#1 ... {SAME_BENCHMARK}"),
        ([on_dress, on_suite], f"fashioniq/dress_val#1 against fashioniq/val#1 ... {SAME_BENCHMARK}"),
        ([partly], "part.json ... skipped: none against complete ... Fix: score both with"),
        ([skipping], f"of recall@1 differ ... skipped: none against images ... Fix: {GET_IMAGES}"),
        ([partly, skipping], f"skipped: complete against images ... --allow-missing; {GET_IMAGES}."),
        ([on_turned_rows], "turned.json were scored with their queries in different orders"),
    ],
)
def test_what_does_not_compare_is_refused_with_what_differs(
    others: list[Callable[[], ScoreReport]], text: str
) -> None:
    with pytest.raises(ComparisonError) as caught:
        submissions.compare([REPORTS[0], *(other() for other in others)][-2:])
    says(caught, text)
    assert not re.search("[0-9a-f]{8}", str(caught.value)), "a hash is not shortened"
    assert (isinstance(caught.value, ValueError), caught.value.exit_code) == (True, 1)


def test_the_file_of_another_benchmark_is_named_behind_one_that_compares() -> None:
    with pytest.raises(ComparisonError) as caught:
        submissions.compare([*REPORTS[:2], on_circled()])
    says(caught, f"{REPORTS[0].file} and sessions.json ... no metric in common ... {SAME_BENCHMARK}")


def test_files_that_skipped_the_same_checks_compare() -> None:
    assert submissions.compare([skipping(), skipping("ours.json")], draws=50).n == len(CIRR)


def test_a_member_of_a_suite_that_differs_is_named() -> None:
    one = suite(1, "one").signatures["recall@10"]
    first = dataclasses.replace(one.members[1], reference="removed")  # type: ignore[union-attr]
    other = dataclasses.replace(one, members=(one.members[0], first, one.members[2]))  # type: ignore[union-attr, call-arg, type-var]
    assert key_differences(one, other) == ["ref (fashioniq/shirt_val): kept against removed"]
    assert key_differences(one, one) == []


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"files": REPORTS[:1]}, CallError, "a comparison needs two rank files or more"),
        ({"files": "ab"}, CallError, "a comparison needs two rank files or more"),
        ({"alpha": 5}, SettingError, "alpha=5; a level of significance is"),
        ({"alpha": "x"}, SettingError, "alpha='x'; a level of significance"),
        ({"draws": 0}, SettingError, "draws=0; draws are counted"),
        ({"draws": 1.5}, SettingError, "draws=1.5; draws are counted"),
        ({"metrics": []}, CallError, "metrics names nothing ... name a"),
        ({"metrics": "recall@5"}, CallError, "metrics is the string 'recall@5' ... pass a list,"),
        ({"metrics": ["recal@5"]}, UnknownNameError, "no metric 'recal@5' ... Did you mean 'recall@5'? Fix:"),
    ],
)
def test_a_wrong_call_is_named(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        submissions.compare(**{"files": REPORTS, **arguments})
    says(caught, text)
    assert caught.value.exit_code == 2


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two rank files of the embedded benchmark."""
    folder = tmp_path_factory.mktemp("compare")
    names = {"image_text_sum": "image_text_sum_pixels", "random": "random"}
    for name, method in names.items():
        submissions.write(submissions.make_rank_file("shapes/val", method), folder / f"{name}.json")
    return [str(folder / f"{name}.json") for name in names]


class TestCommand:
    """`cir compare` on the embedded benchmark."""

    def run(self, *arguments: str) -> Any:
        return CliRunner().invoke(build(), ["compare", *arguments])

    def test_json_holds_everything(self, files: list[str], tmp_path: Path) -> None:
        flips = tmp_path / "flips.jsonl"
        done = self.run(*files, "--json", "--draws", "500", "--seed", "3", "--flips", str(flips))
        assert done.exit_code == 0
        document = json.loads(done.stdout)
        drawn = {"resampled": "queries", "draws": 500, "seed": 3, "level": 0.95}
        assert document["interval"] == {"method": "paired percentile bootstrap", **drawn}
        assert document["test"]["family"] == "11 metrics x 1 pair"
        lines = [json.loads(line) for line in flips.read_text(encoding="utf-8").splitlines()]
        (counted,) = document["pairs"][0]["flips"]
        assert len(lines) == counted["hit_to_miss"]["count"] + counted["miss_to_hit"]["count"]
        assert f"{flips}: {len(lines):,} lines" in done.stderr

    def test_metrics_and_formats_are_chosen(self, files: list[str]) -> None:
        done = self.run(*files, "--metric", "recall@10", "--format", "latex", "--draws", "100")
        assert done.exit_code == 0
        assert r"method & letter & group & recall@10 \\" in done.stdout
        assert r"\textbf{39.00}$^{b}$" in done.stdout

    def test_wrong_calls_and_files_that_cannot_be_compared_are_refused(
        self, files: list[str], tmp_path: Path
    ) -> None:
        twice = self.run(*files, "--json", "--format", "csv")
        assert isinstance(twice.exception, CallError)
        unknown = self.run(*files, "--format", "tex")
        assert isinstance(unknown.exception, UnknownNameError)
        other = tmp_path / "sessions.json"
        submissions.write(submissions.make_rank_file("shapes/multiturn_val", "random"), other)
        refused = self.run(files[0], str(other))
        assert isinstance(refused.exception, ComparisonError)
