"""Scores: values, signatures, what is refused, what is withheld, and what is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import benchmark_world as worlds
import pytest
from benchmark_world import score
from programs import run_program
from says import refusal

import submissions
from cir_datasets import registry
from cir_datasets.rows.benchmark import Benchmark
from submissions import RefusedError, WithheldError

ROOT = Path(__file__).resolve().parents[4]

CIRR = worlds.cirr()
CIRCLED = worlds.circled()


def test_a_perfect_file_scores_one_everywhere() -> None:
    report = score(worlds.perfect_cirr(CIRR), CIRR)
    assert set(report.metrics.values()) == {1.0}
    assert list(report.metrics) == list(CIRR.spec.metrics)
    assert (report.main, report.main_metric) == (1.0, "mean(recall@5, recall_subset@1)")
    assert (report.n, report.missing, report.complete, report.submittable) == (6, 0, True, True)


def test_values_are_those_of_the_formulas() -> None:
    document = worlds.perfect_cirr(CIRR)
    first = document["rankings"]["100"]
    document["rankings"]["100"] = [*first[1:7], first[0], *first[7:]]
    document["subset_rankings"]["101"] = document["subset_rankings"]["101"][::-1]
    report = score(document, CIRR, per_query=True)
    assert report.metrics["recall@5"] == pytest.approx(5 / 6, abs=1e-15)
    assert report.metrics["recall@10"] == 1.0
    assert report.metrics["recall_subset@1"] == pytest.approx(5 / 6, abs=1e-15)
    assert report.metrics["recall_subset@3"] == 1.0
    assert report.main == pytest.approx(5 / 6, abs=1e-15)
    rows = report.per_query
    assert [row["query_id"] for row in rows] == CIRR.query_ids
    assert (rows[0]["recall@5"], rows[0]["recall@10"], rows[1]["recall_subset@1"]) == (0.0, 1.0, 0.0)
    for metric, value in report.metrics.items():
        assert sum(row[metric] for row in rows) / len(rows) == pytest.approx(value, abs=1e-15)


def test_multiturn_fashioniq_is_scored_at_the_last_turn() -> None:
    # The target, image 0, stands at ranks 1, 6, 9 and 51 at the last turns, and at rank 1 at the first.
    rows = [worlds.session(f"s{number}", 2, "im0") for number in range(4)]
    benchmark = Benchmark.from_rows(
        registry.spec("multiturn_fashioniq/dress_val"), rows, [f"im{number}" for number in range(60)]
    )
    others = [f"im{number}" for number in range(1, 60)]
    last = [[*others[: rank - 1], "im0", *others[rank - 1 :]][:50] for rank in (1, 6, 9, 51)]
    document = {**worlds.circled_document(benchmark), "benchmark_version": benchmark.version}
    document["rankings"] = {f"s{number}": [["im0", *others][:50], last[number]] for number in range(4)}
    report = score(document, benchmark)
    assert (report.main_metric, report.main) == ("final_recall@10", 0.75)
    assert [report.metrics[f"final_recall@{k}"] for k in (5, 8, 10, 50)] == [0.25, 0.5, 0.75, 0.75]
    assert report.metrics["final_mrr@50"] == pytest.approx((1 + 1 / 6 + 1 / 9 + 0) / 4, abs=1e-15)
    # Beside it, and ours: the target was found at the first turn of all.
    assert report.metrics["hits@10@turn2"] == report.metrics["hits_auc@10"] == 1.0
    assert str(report.signatures["final_mrr@50"]).startswith("multiturn_fashioniq/dress_val#2 | ")
    document["rankings"]["s0"][0].pop()
    with pytest.raises(RefusedError, match="short-ranking"):
        score(document, benchmark)


def test_what_is_deeper_than_the_board_uses_gains_nothing() -> None:
    short, deep = worlds.circled_document(CIRCLED), worlds.circled_document(CIRCLED, 30)
    for document in (short, deep):
        for turns in document["rankings"].values():
            for ranking in turns:
                ranking[:10] = [f"im{n}" for n in range(10, 20)]
    for turns in deep["rankings"].values():
        for ranking in turns:
            ranking[10:] = [f"im{n}" for n in (*range(10), *range(20, 30))]
    one, other = score(short, CIRCLED), score(deep, CIRCLED)
    assert one.metrics == other.metrics
    assert [finding.code for finding in other.warnings] == ["deep-ranking"]


def test_every_number_has_a_signature_that_fits_it() -> None:
    report = score(worlds.perfect_cirr(CIRR), CIRR)
    assert list(report.signatures) == list(report.metrics)
    signature = report.signatures["recall@5"]
    assert signature.key == (
        f"sig:3|benchmark:cirr/val#1|data:{CIRR.data_hash}|gallery:70:{CIRR.gallery_hash}|ref:removed|ties:listed"
        f"|metric:recall@5:1|skipped:none"
    )
    assert f"cirr/val#1 | data:{CIRR.data_hash[:7]} | gallery:70:" in str(signature)
    assert signature.n == 6


def test_the_signature_says_what_was_not_checked() -> None:
    unlisted = Benchmark.from_rows(
        CIRCLED.spec, CIRCLED.rows(), None, pinned=False, checks_skipped=("counts",)
    )
    report = score(worlds.circled_document(CIRCLED), unlisted)
    assert "gallery:unknown" in str(report.signatures["hits_auc@10"])
    assert "skipped:counts" in str(report.signatures["hits_auc@10"])
    assert [finding.code for finding in report.warnings] == ["gallery-unavailable", "unpinned-data"]


def test_an_invalid_file_is_refused_with_all_its_findings() -> None:
    document = worlds.perfect_cirr(CIRR)
    document["rankings"]["100"][1] = document["rankings"]["100"][0]
    document["rankings"]["101"][1] = "elsewhere"
    with pytest.raises(RefusedError) as caught:
        score(document, CIRR)
    assert {finding.code for finding in caught.value.report.errors} == {"duplicate-image", "unknown-image"}
    assert "run.json cannot be scored.\n" in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("broken", ["type", "version", "member"])
def test_a_broken_bundle_is_refused_with_its_findings(broken: str) -> None:
    members = [worlds.fashioniq(each) for each in ("dress", "shirt", "toptee")]
    bundle = worlds.fashioniq_bundle(members)
    if broken == "type":
        bundle["runs"][1]["rankings"] = {**bundle["runs"][1]["rankings"], "shirt_val_00000": [1]}
    elif broken == "version":
        bundle["runs"][0]["benchmark_version"] = 99
    else:
        bundle["runs"].append(bundle["runs"][0])
    code = {"type": "bad-type", "version": "wrong-version", "member": "wrong-benchmark"}[broken]
    with pytest.raises(RefusedError) as caught:
        score(bundle, {member.id: member for member in members})
    assert caught.value.report.benchmark == "fashioniq/val"
    assert code in {finding.code for finding in caught.value.report.errors}
    assert caught.value.exit_code == 1


def test_missing_queries_are_refused_unless_they_are_allowed_and_then_are_misses() -> None:
    document = worlds.perfect_cirr(CIRR)
    for part in ("rankings", "subset_rankings"):
        del document[part]["100"], document[part]["101"]
    with pytest.raises(RefusedError, match="--allow-missing counts what is missing as misses"):
        score(document, CIRR)
    report = score(document, CIRR, allow_missing=True)
    assert set(report.metrics.values()) == {4 / 6}
    assert (report.n, report.missing, report.submittable) == (6, 2, False)
    assert any("missing rankings, which count as misses: 2" in note for note in report.notes())


def test_rankings_of_subsets_alone_are_scored_for_the_subsets() -> None:
    document = worlds.perfect_cirr(CIRR)
    document["rankings"] = {}
    report = score(document, CIRR, allow_missing=True)
    assert {name.partition("_subset@")[0] for name in report.metrics} == {"recall"}
    assert set(report.metrics.values()) == {1.0}
    assert "recall@5" in report.missing_metrics


def test_missing_turns_are_misses() -> None:
    document = worlds.circled_document(CIRCLED)
    document["rankings"]["s1"] = document["rankings"]["s1"][:1]
    del document["rankings"]["s2"]
    report = score(document, CIRCLED, allow_missing=True)
    assert report.missing == 4
    assert report.metrics["final_recall@10"] == pytest.approx(1 / 3)
    assert report.metrics["hits@10@turn3"] == pytest.approx(2 / 3)


def test_allow_missing_forgives_nothing_else() -> None:
    document = worlds.perfect_cirr(CIRR)
    del document["rankings"]["100"]
    document["rankings"]["101"] = []
    with pytest.raises(RefusedError):
        score(document, CIRR, allow_missing=True)


def test_one_of_cirrs_two_files_is_scored_for_what_it_names() -> None:
    document = worlds.perfect_cirr(CIRR)
    recall = {"version": "rc2", "metric": "recall", **document["rankings"]}
    report = score(recall, CIRR)
    assert list(report.metrics) == ["recall@1", "recall@5", "recall@10", "recall@50"]
    assert report.missing_metrics == ("recall_subset@1", "recall_subset@2", "recall_subset@3")
    assert (report.main, report.complete, report.submittable) == (None, False, False)
    assert json.loads(json.dumps(report.to_dict()))["complete"] is False
    assert "not in the file, so not scored: recall_subset@1" in report.notes()[0]
    assert "convert RECALL SUBSET --benchmark cirr/val --to native" in report.notes()[0]

    subset = {"version": "rc2", "metric": "recall_subset", **document["subset_rankings"]}
    report = score(subset, CIRR)
    assert report.metrics == {"recall_subset@1": 1.0, "recall_subset@2": 1.0, "recall_subset@3": 1.0}
    assert report.submittable is False


def test_a_native_file_without_subsets_is_not_scored_in_part() -> None:
    document = worlds.perfect_cirr(CIRR)
    del document["subset_rankings"]
    with pytest.raises(RefusedError, match="missing-subset"):
        score(document, CIRR)


def test_withheld_ground_truth_names_the_way_out() -> None:
    hidden = worlds.cirr("test1")
    with refusal(
        "run.json ... cirr/test1 is withheld ... --to cirr-server --benchmark cirr/test1", WithheldError
    ):
        score(worlds.cirr_document(hidden), hidden)
    hidden = worlds.circo("test")
    with refusal("Fix: cir convert run.json --to circo-server --benchmark circo/test", WithheldError):
        score(worlds.circo_document(hidden), hidden)


def test_a_server_that_is_gone_is_not_named() -> None:
    shirts = worlds.fashioniq("shirt")
    from cir_datasets.registry import spec

    rows = [row | {"target_image_id": None, "positive_image_ids": []} for row in shirts.rows()]
    hidden = Benchmark.from_rows(spec("fashioniq/shirt_test"), rows, shirts.gallery)
    (document,) = worlds.fashioniq_bundle([hidden])["runs"]
    with pytest.raises(WithheldError, match="No server scores it any more"):
        score(document, hidden)


def test_a_suite_is_the_mean_of_its_members_macro_and_micro() -> None:
    members = [worlds.fashioniq(name, queries=n) for name, n in (("dress", 2), ("shirt", 4), ("toptee", 8))]
    document = worlds.fashioniq_bundle(members)
    for ranking in document["runs"][0]["rankings"].values():
        ranking[:] = ranking[20:] + ranking[:20]
    report = score(document, {member.id: member for member in members}, per_query=True)
    assert [run.metrics["recall@10"] for run in report.runs] == [0.0, 1.0, 1.0]
    assert report.metrics["recall@10"] == pytest.approx(2 / 3)
    assert report.metrics["recall@50"] == 1.0
    assert report.main == pytest.approx((2 / 3 + 1) / 2)
    assert report.metrics["recall@10@micro"] == pytest.approx(12 / 14)
    assert report.metrics["recall@50@micro"] == 1.0
    assert report.signature_key("recall@10@micro") != report.signature_key("recall@10")
    assert "recall@10@micro   85.71  fashioniq/val#1 | mean:micro | " in report.text()
    assert (report.benchmark, report.n) == ("fashioniq/val", 14)
    assert report.signature_key("recall@10").count("benchmark:fashioniq/") == 3
    assert len(report.per_query) == 14
    assert report.per_query[0]["benchmark"] == "fashioniq/dress_val"
    assert json.loads(json.dumps(report.to_dict()))["runs"][1]["benchmark"] == "fashioniq/shirt_val"
    assert "fashioniq/val#1: mean of 3 benchmarks" in report.text()


def test_a_rank_file_object_scores_like_its_bytes() -> None:
    content = json.dumps(worlds.perfect_cirr(CIRR)).encode()
    found = [submissions.score(file, CIRR, name="x") for file in (submissions.read(content), content)]
    assert found[0] == found[1]


def test_the_table_multiplies_by_a_hundred_and_json_does_not() -> None:
    document = worlds.perfect_cirr(CIRR)
    document["rankings"]["100"].reverse()
    report = score(document, CIRR)
    assert "recall@5          83.33\n" in report.text()
    assert f"signature: cirr/val#1 | data:{CIRR.data_hash[:7]}" in report.text()
    assert report.to_dict()["metrics"]["recall@5"] == pytest.approx(5 / 6)
    assert report.to_dict()["signatures"]["recall@5"]["text"] == str(report.signatures["recall@5"])


def test_scoring_imports_neither_datasets_nor_torch(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(worlds.perfect_cirr(CIRR)))
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests/fixtures")!r})
import benchmark_world as worlds
import submissions
assert submissions.score({str(path)!r}, worlds.cirr()).main == 1.0
print([m for m in ("datasets", "evaluate", "torch", "gradio") if m in sys.modules])
"""
    done = run_program([sys.executable, "-c", code], cwd=ROOT)
    assert done.stdout.strip() == "[]"
