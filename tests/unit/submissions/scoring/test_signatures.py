"""Signatures of suites and of scores that were computed on a part."""

from __future__ import annotations

import json

import benchmark_world as worlds
from benchmark_world import score

from cir_datasets.registry.suites import SuiteSignature
from cir_datasets.rows.benchmark import Benchmark
from submissions.comparison.keys import key_differences

CIRR = worlds.cirr()
CIRCLED = worlds.circled()
MEMBERS = [worlds.fashioniq("dress", queries=2), worlds.fashioniq("shirt"), worlds.fashioniq("toptee")]
FASHIONIQ = {member.id: member for member in MEMBERS}


def test_every_number_of_a_suite_has_a_signature_of_its_members() -> None:
    report = score(worlds.fashioniq_bundle(MEMBERS), FASHIONIQ)
    said = json.loads(json.dumps(report.to_dict()))["signatures"]
    assert list(said) == list(report.metrics)
    for metric, signature in report.signatures.items():
        member = metric.removesuffix("@micro")
        keys = [run.signatures[member].key for run in report.runs]
        assert [one["key"] for one in said[metric]["members"]] == keys
        assert all(key in signature.key for key in keys)
        assert said[metric]["text"] == report.signature_text(metric)
        assert signature.n == report.n == 10
        assert any(
            line.startswith(f"{metric} ") and str(signature) in line for line in report.text().splitlines()
        )
    assert str(report.signatures["recall@10"]).startswith("fashioniq/val#1 | mean:macro | members:3:")


def test_a_suites_signature_is_read_again_and_one_of_format_1_differs_by_its_format() -> None:
    one = score(worlds.fashioniq_bundle(MEMBERS), FASHIONIQ).signatures["recall@10"]
    stored = json.loads(json.dumps(one.to_dict()))
    assert SuiteSignature.from_dict(stored) == one
    assert " | sig:3 | " in str(one)
    for member in stored["members"]:
        del member["format"]
    old = SuiteSignature.from_dict(stored)
    assert "sig:" not in str(old)
    assert old.key != one.key
    assert key_differences(old, one) == [f"sig ({member.id}): 1 against 3" for member in MEMBERS]


def test_other_data_of_one_member_changes_the_suites_signature() -> None:
    one = score(worlds.fashioniq_bundle(MEMBERS), FASHIONIQ).signatures["recall@10"]
    shirt = FASHIONIQ["fashioniq/shirt_val"]
    other = Benchmark.from_rows(shirt.spec, shirt.rows(), [*shirt.gallery, "one more"])
    two = score(worlds.fashioniq_bundle(MEMBERS), {**FASHIONIQ, shirt.id: other}).signatures["recall@10"]
    assert one.key != two.key
    assert str(one) != str(two)


def test_a_score_with_missing_queries_says_how_many_and_compares_to_no_other() -> None:
    document = worlds.cirr_document(CIRR)
    whole = score(document, CIRR)
    for part in ("rankings", "subset_rankings"):
        del document[part]["100"]
    report = score(document, CIRR, allow_missing=True)
    assert report.text().startswith("toy on cirr/val#1, 5 of 6 answered\n")
    assert whole.text().startswith("toy on cirr/val#1, 6 answered\n")
    assert (report.answered, report.to_dict()["answered"], report.n) == (5, 5, 6)
    assert "skipped:complete" in report.signature_text("recall@5")
    assert report.signature_key("recall@5") != whole.signature_key("recall@5")
    assert whole.signature_key("recall@5") == score(
        worlds.cirr_document(CIRR), CIRR, allow_missing=True
    ).signature_key("recall@5")


def test_a_session_counts_as_answered_with_all_its_turns() -> None:
    document = worlds.circled_document(CIRCLED)
    document["rankings"]["s1"].pop()
    report = score(document, CIRCLED, allow_missing=True)
    assert (report.answered, report.n, report.missing) == (2, 3, 1)
    assert "2 of 3 answered" in report.text()


def test_a_bundle_with_missing_queries_says_so_in_its_own_line() -> None:
    document = worlds.fashioniq_bundle(MEMBERS)
    rankings = document["runs"][1]["rankings"]
    document["runs"][1]["rankings"] = {query: rankings[query] for query in list(rankings)[1:]}
    report = score(document, FASHIONIQ, allow_missing=True)
    assert (report.answered, report.n) == (9, 10)
    assert "9 of 10 answered" in report.text().splitlines()[0]
    assert "skipped:complete" in report.signature_key("recall@10")
