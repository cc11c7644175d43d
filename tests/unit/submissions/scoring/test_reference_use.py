"""The reference image: what lists show is measured, what a file declares is told apart, and both are said."""

from __future__ import annotations

import json
from typing import Any

import benchmark_world as worlds
import pytest
from benchmark_world import score

import submissions
from cir_datasets.common import tables
from cir_datasets.registry.suites import SuiteSignature
from cir_datasets.rows.benchmark import Benchmark
from submissions.errors import ComparisonError
from submissions.report import full_report

Document = dict[str, Any]
QUERIES = 120
"""Enough that shares which differ tenfold are no chance."""
GALLERY = [worlds.coco(number) for number in range(200)]


def circo_like(**changes: Any) -> Benchmark:
    """CIRCO's card: reference of query i is image i, its positive image 150."""
    rows = [
        worlds.query(str(n), worlds.coco(n), worlds.coco(150)) | {"shared_concept": "", **changes}
        for n in range(QUERIES)
    ]
    return Benchmark.from_rows(worlds.spec("circo/val"), rows, GALLERY)


CIRCO = circo_like()


def document(benchmark: Benchmark, kept: int = QUERIES, depth: int = 60, **method: Any) -> Document:
    """A rank file that lists the reference of its first `kept` queries, at the very end of a deep list."""
    rankings = {}
    for number, query in enumerate(benchmark.query_ids):
        images = [worlds.coco(n) for n in range(150 - number % 2, 150 - number % 2 + depth - 1)]
        images = [image for image in images if image in GALLERY]
        others = [image for image in GALLERY if image not in images and image != worlds.coco(number)]
        last = worlds.coco(number) if number < kept else others[-1]
        rankings[query] = [*(images + others)[: depth - 1], last]
    head = {"format": "cir-rank-file", "format_version": 1, "benchmark": benchmark.id, "benchmark_version": 1}
    return {**head, "method": {"name": "toy", **method}, "rankings": rankings}


def signature(report: submissions.ScoreReport) -> Any:
    return next(iter(report.signatures.values()))


# --- measured ---


def test_whole_lists_are_looked_at_beyond_the_boards_depth() -> None:
    report = score(document(CIRCO, kept=7), CIRCO)
    assert any(each.code == "deep-ranking" for each in report.warnings)
    assert report.reference_held == signature(report).reference_held == (7, QUERIES)
    assert signature(report).reference == "kept"
    assert not signature(report).unverified
    assert report.to_dict()["signatures"]["map@5"]["reference_held"] == [7, QUERIES]


def test_each_turn_is_looked_at_with_its_own_reference_and_missing_ones_are_not() -> None:
    circled = worlds.circled()
    made = worlds.circled_document(circled)
    assert score(made, circled).reference_held == (7, 7)
    made["rankings"]["s1"] = made["rankings"]["s1"][:1]
    for ranking in made["rankings"]["s0"]:
        ranking.remove("im1")
        ranking.append("im20")
    assert score(made, circled, allow_missing=True).reference_held == (4, 5)


@pytest.mark.parametrize(
    ("benchmark", "use"),
    [
        (CIRCO, "kept"),
        (worlds.cirr(), "removed"),
        (circo_like(reference_image_id=None), "none"),
        (circo_like(reference_image_id=worlds.coco(999)), "outside"),
        (worlds.circled(), "kept"),
        (worlds.circled(gallery=None), "kept"),
    ],
)
def test_what_becomes_of_the_reference_is_counted_in_the_benchmark(benchmark: Benchmark, use: str) -> None:
    assert benchmark.reference_use == use


@pytest.mark.parametrize("reference", [None, worlds.coco(999)])
def test_where_no_reference_can_be_ranked_a_declaration_changes_nothing(reference: str | None) -> None:
    benchmark = circo_like(reference_image_id=reference)
    keys = {
        signature(score(document(benchmark, kept=0, **method), benchmark)).key
        for method in ({}, {"reference": "kept"}, {"reference": "removed"})
    }
    assert len(keys) == 1
    assert f"|ref:{'none' if reference is None else 'outside'}|" in keys.pop()


# --- declared ---


def test_a_file_moves_from_kept_to_removed_by_declaration_only() -> None:
    kept, silent, removed, low = (
        score(document(CIRCO, kept=number, **({"reference": word} if word else {})), CIRCO)
        for number, word in ((QUERIES, "kept"), (0, ""), (0, "removed"), (0, "kept"))
    )
    found = [(signature(each).reference, signature(each).unverified) for each in (kept, silent, removed, low)]
    assert found == [("kept", False), ("kept", True), ("removed", False), ("kept", False)]
    assert signature(kept).key == signature(silent).key == signature(low).key != signature(removed).key


def declared(reference: str) -> Document:
    return {"method": {"name": "toy", "reference": reference}}


@pytest.mark.parametrize(
    ("made", "benchmark", "place"),
    [
        (document(CIRCO, kept=2, reference="removed"), CIRCO, "0"),
        (worlds.circled_document(worlds.circled()) | declared("removed"), worlds.circled(), "s0"),
        (worlds.cirr_document(worlds.cirr()) | declared("kept"), worlds.cirr(), None),
    ],
    ids=["lists", "turns", "protocol"],
)
def test_a_declaration_that_is_contradicted_is_an_error(
    made: Document, benchmark: Benchmark, place: str | None
) -> None:
    report = submissions.validate(json.dumps(made).encode(), benchmark, name="run.json")
    (found,) = report.errors
    assert (found.code, found.query) == ("reference-contradiction", place)
    assert '"reference"' in found.fix
    assert report.rank_file is None or not report.ok


def test_a_small_gallery_may_be_ranked_without_the_reference_where_that_is_declared() -> None:
    rows = [worlds.query(str(n), worlds.coco(n), worlds.coco(9)) for n in range(3)]
    small = Benchmark.from_rows(worlds.spec("circo/val"), rows, GALLERY[:20])
    made = {
        **document(small, kept=0, depth=5, reference="removed"),
        "rankings": {str(n): [one for one in GALLERY[:20] if one != worlds.coco(n)] for n in range(3)},
    }
    assert submissions.validate(json.dumps(made).encode(), small, name="run.json").ok
    made["method"] = {"name": "toy"}
    (short,) = submissions.validate(json.dumps(made).encode(), small, name="run.json").errors
    assert short.code == "short-ranking"


def test_makers_that_rank_the_gallery_declare_and_others_do_not() -> None:
    import numpy as np

    scores = np.random.default_rng(0).random((QUERIES, len(GALLERY)))
    made = submissions.rank_file_from_scores(CIRCO, scores, method="mine", by_position=True)
    assert made.method.reference == "kept"
    scores[np.arange(QUERIES), np.arange(QUERIES)] = -np.inf
    masked = submissions.rank_file_from_scores(CIRCO, scores, method="mine", by_position=True)
    assert masked.method.reference == ""  # the caller took it out, and only the caller can say so
    said = submissions.Method(name="mine", reference="removed")
    assert (
        submissions.rank_file_from_scores(CIRCO, scores, method=said, by_position=True).method.reference
        == "removed"
    )
    lists = dict(made.rankings)
    assert submissions.rank_file_from_lists(CIRCO, lists, method="mine").method.reference == ""
    assert submissions.make_rank_file("shapes/val", "random").method.reference == "removed"


def test_a_fusion_declares_what_all_agree_on() -> None:
    kept = document(CIRCO, reference="kept")
    for other, agreed in (
        (kept, "kept"),
        (document(CIRCO, kept=0, reference="removed"), ""),
        (document(CIRCO), ""),
    ):
        files = [json.dumps(each).encode() for each in (kept, other)]
        assert submissions.fuse(files, CIRCO).method.reference == agreed


def test_an_unknown_declaration_is_refused_in_words() -> None:
    made = document(CIRCO, reference="dropped")
    (found,) = submissions.validate(json.dumps(made).encode(), CIRCO, name="run.json").errors
    assert found.code == "bad-metadata"
    assert "'kept' or 'removed'" in found.message


# --- side by side ---


def test_two_files_of_one_score_matrix_are_not_compared_without_a_word() -> None:
    kept = score(document(CIRCO), CIRCO, "kept.json")
    silent = score(document(CIRCO, kept=0), CIRCO, "silent.json")
    found = submissions.compare([kept, silent], draws=100)
    unverified, apart = (line for line in found.notes if line.startswith("reference: "))
    assert "toy (silent.json) is unverified" in unverified or "toy is unverified" in unverified
    assert "120 of 120 lists" in apart
    assert "0 of 120 lists" in apart
    assert "held:" not in "".join(found.signatures.values())
    few = score(document(CIRCO, kept=119), CIRCO, "few.json")
    assert not any("reference: " in line for line in submissions.compare([kept, few], draws=100).notes)


def test_kept_and_removed_share_no_test() -> None:
    kept = score(document(CIRCO), CIRCO, "kept.json")
    removed = score(document(CIRCO, kept=0, reference="removed"), CIRCO, "removed.json")
    with pytest.raises(ComparisonError, match=r"(?s)\n  ref: kept against removed\n  Fix: keep or remove"):
        submissions.compare([kept, removed], draws=100)


def test_a_table_shows_kept_and_removed_as_two_blocks() -> None:
    reports = [
        score(document(CIRCO, kept=0, name="gone", reference="removed"), CIRCO, "a.json"),
        score(document(CIRCO, name="first", reference="kept"), CIRCO, "b.json"),
        score(document(CIRCO, kept=100, name="second"), CIRCO, "c.json"),
    ]
    (table,) = submissions.paper_table(reports, "circo", significance=True, draws=100).made
    assert [row[0].text for row in table.rows] == ["first", "second", "gone"]
    assert table.rules == (2,)
    lines = tables.render([table], "table").splitlines()
    assert [n for n, line in enumerate(lines) if set(line) == {"-"}] == [4]
    assert "|  |" in tables.render([table], "markdown").splitlines()[6]
    assert any("reference kept: first, second; reference removed: gone" in note for note in table.notes)
    assert any("over 4 tests" in note for note in table.notes)
    assert not any(cell.bold or cell.superscript for cell in table.rows[2][1:])
    assert [note for note in table.notes if "ref:removed" in note]
    assert [note for note in table.notes if "ref:kept" in note]


def test_the_means_of_a_suite_stay_on_a_narrow_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [worlds.fashioniq(category, queries=60) for category in ("dress", "shirt", "toptee")]
    by_id = {member.id: member for member in members}
    report = score(worlds.fashioniq_bundle(members), by_id)
    (table,) = submissions.paper_table([report], "fashioniq").made
    monkeypatch.setenv("COLUMNS", "60")
    head, left_out = (tables.render([table], "table").splitlines()[place] for place in (1, 3))
    assert "Avg R@10" in head
    assert "Avg" not in left_out
    assert "Toptee R@50" in left_out


def test_members_of_a_suite_that_differ_are_shown_and_said() -> None:
    members = [worlds.fashioniq(category, queries=60) for category in ("dress", "shirt", "toptee")]
    bundle = worlds.fashioniq_bundle(members)
    by_id = {member.id: member for member in members}
    alike = score(bundle, by_id)
    assert full_report(alike).notes == ()
    suite = signature(alike)
    assert isinstance(suite, SuiteSignature)
    assert not suite.differs_in_reference
    for query, row in zip(members[1].query_ids, members[1].rows(), strict=True):
        images = [image for image in members[1].gallery or () if image != row["reference_image_id"]]
        bundle["runs"][1]["rankings"][query] = images[:50]
    report = score(bundle, by_id)
    suite = signature(report)
    assert (suite.unverified, suite.differs_in_reference, suite.key) == (True, True, signature(alike).key)
    assert " | ref:kept,kept,kept | held:50/60,0/60:unverified,50/60 | " in str(suite)
    assert suite.to_dict()["unverified"] is True
    (said,) = full_report(report).notes
    assert "fashioniq/shirt_val in 0 of 60 lists" in said
    rendered = full_report(report).render()
    assert "fashioniq/shirt_val: reference: unverified" in rendered
    bundle["runs"][1]["method"]["reference"] = "removed"
    declared = signature(score(bundle, by_id))
    assert (declared.unverified, declared.differs_in_reference) == (False, True)
    assert declared.key != suite.key
