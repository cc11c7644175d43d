"""Reciprocal rank fusion: a case by hand, a slow twin in fractions, what a fused file says, and refusals."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_twins import best_first
from says import refusal, says
from typer.testing import CliRunner

import submissions
from cir_metrics.errors import CallError, InputError, UnknownNameError
from cir_metrics.ranking import best_of
from leaderboard.cli import build
from submissions import FusionError, Method, RankFile, RefusedError
from submissions.transform.fuse import _reciprocals, _rrf

CIRR = worlds.cirr()
CIRCLED = worlds.circled()


def as_bytes(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


def turned(document: dict[str, Any], name: str = "turned") -> dict[str, Any]:
    """The same file with every ranking back to front."""
    made = json.loads(json.dumps(document))
    made["method"] = {"name": name}
    for part in ("rankings", "subset_rankings"):
        for ranking in made.get(part, {}).values():
            for each in ranking if isinstance(ranking[0], list) else [ranking]:
                each.reverse()
    return made


def by_fractions(rankings: list[list[str]], k: int, depth: int, query: str) -> list[str]:
    """The equation, word for word."""
    images = {image for ranking in rankings for image in ranking}
    scores = {
        image: sum(Fraction(1, k + ranking.index(image) + 1) for ranking in rankings if image in ranking)
        for image in images
    }
    return best_first(scores, query)[:depth]


lists = st.lists(
    st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=12, unique=True), min_size=2, max_size=4
)


def test_reciprocal_rank_fusion_equals_a_case_worked_by_hand_and_its_ties_are_broken_by_hash() -> None:
    # k = 0. a: 1 + 1/3 = 8/6; b: 1/2 + 1 = 9/6; c: 1/3; d: 1/2.
    assert _rrf([["a", "b", "c"], ["b", "d", "a"]], _reciprocals(3, 0), 10, "q") == ["b", "a", "d", "c"]
    # 1/90 + 1/360 = 1/72: x at ranks 30 and 300 ties with y and j012 at rank 12; the query's hash decides.
    one = [f"i{rank:03d}" for rank in range(1, 301)]
    other = [f"j{rank:03d}" for rank in range(1, 301)]
    for twice, once in (("x", "y"), ("y", "x")):
        one[29], one[11], other[299] = twice, once, twice
        for query in ("a", "b", "c", "d"):
            fused = _rrf([one, other], _reciprocals(300, 60), 1000, query)
            first, second = best_first({"x": 0, "y": 0}, query)
            assert 0 < fused.index(second) - fused.index(first) <= 2
    assert len({tuple(best_first({"x": 0, "y": 0}, query)) for query in "abcd"}) == 2


@given(lists, st.integers(0, 70), st.integers(1, 12))
def test_it_is_the_equation_in_exact_fractions(rankings: list[list[str]], k: int, depth: int) -> None:
    assert _rrf(rankings, _reciprocals(12, k), depth, "q") == by_fractions(rankings, k, depth, "q")


def test_queries_and_subsets_are_fused_apart() -> None:
    one, other = worlds.cirr_document(CIRR), turned(worlds.cirr_document(CIRR))
    fused = submissions.fuse([as_bytes(one), as_bytes(other)], CIRR)
    for part, depth in (("rankings", 50), ("subset_rankings", 3)):
        made = getattr(fused, part)
        assert set(made) == set(one[part])
        for query, ranking in made.items():
            assert ranking == by_fractions([one[part][query], other[part][query]], 60, depth, query)
    assert submissions.validate(fused, CIRR).findings == ()
    swapped = submissions.fuse([as_bytes(other), as_bytes(one)], CIRR)
    assert (swapped.rankings, swapped.subset_rankings) == (fused.rankings, fused.subset_rankings)


def test_a_file_fused_with_itself_keeps_its_order() -> None:
    document = turned(worlds.cirr_document(CIRR))
    fused = submissions.fuse([as_bytes(document)] * 3, CIRR, constant=0)
    assert fused.rankings == document["rankings"]
    assert fused.subset_rankings == document["subset_rankings"]


def test_sessions_are_fused_turn_by_turn() -> None:
    one = worlds.circled_document(CIRCLED, 12)
    other = turned(one)
    fused = submissions.fuse([as_bytes(one), as_bytes(other)], CIRCLED)
    assert submissions.validate(fused, CIRCLED).findings == ()
    for session, turns in fused.rankings.items():
        for turn, ranking in enumerate(turns):
            given = [one["rankings"][session][turn], other["rankings"][session][turn]]
            assert ranking == by_fractions(given, 60, 10, f"{session}#{turn + 1}")


def test_bundles_are_fused_member_by_member() -> None:
    members = [worlds.fashioniq(each) for each in ("dress", "shirt", "toptee")]
    known = {member.id: member for member in members}
    one = worlds.fashioniq_bundle(members)
    other = {**one, "runs": [turned(run) for run in one["runs"]][::-1]}
    fused = submissions.fuse([as_bytes(one), as_bytes(other)], known, name="both")
    assert submissions.validate(fused, known).findings == ()
    for run, first in zip(fused.runs, one["runs"], strict=True):
        assert (run.benchmark, run.method.name) == (first["benchmark"], "both")
        for query, ranking in run.rankings.items():
            given = first["rankings"][query]
            assert ranking == by_fractions([given, given[::-1]], 60, 50, query)
    with pytest.raises(FusionError) as caught:
        submissions.fuse([as_bytes(one), as_bytes(one["runs"][0])], known)
    says(caught, "answers fashioniq/val ... answers fashioniq/dress_val ... Fix: fuse rank files of one")


def with_method(**fields: Any) -> bytes:
    return as_bytes({**worlds.cirr_document(CIRR), "method": {"name": "toy", **fields}})


def test_the_method_block_says_what_was_fused() -> None:
    one = with_method(
        name="A", zero_shot=True, trained_on=["CC3M", "SynCIR"], backbone="ViT-L/14", text_fields=["captions"]
    )
    other = with_method(name="B", zero_shot=True, trained_on=["SynCIR", "NLVR2"], backbone="ViT-L/14")
    fused = submissions.fuse([one, other], CIRR, constant=10)
    assert fused.method == Method(
        name="RRF: A + B",
        paper="https://doi.org/10.1145/1571941.1572114",
        backbone="ViT-L/14",
        zero_shot=True,
        trained_on=["CC3M", "SynCIR", "NLVR2"],
        text_fields=["captions"],
        notes="Reciprocal rank fusion, k = 10, of: A; B",
    )


@pytest.mark.parametrize(
    ("said", "zero_shot"),
    [((True, True), True), ((True, None), None), ((True, False), False), ((None, False), False)],
)
def test_zero_shot_holds_where_it_holds_for_all(said: Any, zero_shot: bool | None) -> None:
    fused = submissions.fuse([with_method(zero_shot=each) for each in said], CIRR)
    assert fused.method.zero_shot is zero_shot


def test_a_file_without_the_reference_is_not_fused_with_others_in_silence() -> None:
    document = worlds.cirr_document(CIRR)
    files = [
        as_bytes(document | {"method": {"name": name, **declared}})
        for name, declared in (("kept", {}), ("without", {"reference": "removed"}))
    ]
    with pytest.warns(UserWarning, match="without: declared without the reference image"):
        assert submissions.fuse(files, CIRR, constant=0).method.reference == ""


def test_what_does_not_fit_a_method_block_is_shortened() -> None:
    many = [
        with_method(
            name="N" * 70,
            trained_on=[f"set {n}" for n in range(start, start + 15)],
            backbone=f"{start}" * 100,
        )
        for start in (10, 20)
    ]
    fused = submissions.fuse(many, CIRR)
    assert fused.method.name == "RRF of 2 methods"
    assert fused.method.trained_on == [*(f"set {n}" for n in range(10, 29)), "and 6 more"]
    assert fused.method.backbone == ""
    assert submissions.validate(fused, CIRR).ok


def test_a_gallery_of_ones_own_is_kept_and_two_are_not_fused() -> None:
    coco = worlds.circo(gallery=None)

    def of(gallery: str) -> RankFile:
        document = worlds.circo_document(coco)
        return RankFile(coco.id, 1, Method(name="toy", own_gallery=gallery), document["rankings"])

    def fused(*galleries: str) -> str:
        found = submissions.fuse([of(each) for each in galleries], coco)
        return found.method.own_gallery

    one, other = f"60:{'a' * 64}", f"61:{'b' * 64}"
    assert fused(one, one) == one
    assert fused(one, "") == fused("", "") == ""
    with pytest.raises(FusionError, match=r"a gallery of 60 images and .* another one, of 61 images\. Fix: "):
        submissions.fuse([of(one), of(""), of(other)], coco)
    listed = worlds.circo()
    same = submissions.fuse([of(""), of(f"60:{listed.gallery_hash}")], listed)
    assert same.method.own_gallery == ""


def test_depth_is_what_the_board_uses_unless_it_is_chosen() -> None:
    files = [as_bytes(worlds.circled_document(CIRCLED, depth)) for depth in (30, 12)]
    for depth, expected in ((None, 10), (11, 11), (1000, 30)):
        fused = submissions.fuse(files, CIRCLED, k=depth)
        assert {len(turn) for turns in fused.rankings.values() for turn in turns} == {expected}


def test_withheld_ground_truth_is_not_needed() -> None:
    sealed = worlds.cirr("test1")
    document = worlds.cirr_document(sealed)
    fused = submissions.fuse([as_bytes(document), as_bytes(turned(document))], sealed)
    assert submissions.validate(fused, sealed).ok


def test_files_that_lack_rankings_are_refused() -> None:
    document = worlds.cirr_document(CIRR)
    without = {key: value for key, value in document.items() if key != "subset_rankings"}
    del document["rankings"]["100"]
    with pytest.raises(RefusedError, match=r"rank file cannot be fused\.\nmissing-query"):
        submissions.fuse([as_bytes(document)] * 2, CIRR)
    with pytest.raises(RefusedError, match="missing-subset"):
        submissions.fuse([as_bytes(without)] * 2, CIRR)
    recall = {"version": "rc2", "metric": "recall", **worlds.cirr_document(CIRR)["rankings"]}
    subset = {"version": "rc2", "metric": "recall_subset", **worlds.cirr_document(CIRR)["subset_rankings"]}
    fused = submissions.fuse([as_bytes(recall)] * 2, CIRR)
    assert fused.subset_rankings is None
    with pytest.raises(FusionError) as caught:
        submissions.fuse([as_bytes(recall), as_bytes(worlds.cirr_document(CIRR))], CIRR)
    says(
        caught,
        'has a ranking of the subset ... query "100" ... has none (6 such queries) ... Fix: fuse files',
    )
    with pytest.raises(FusionError, match=r"rank file ranks the subsets only\. Fix: join the CIRR"):
        submissions.fuse([as_bytes(subset)] * 2, CIRR)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"by": "rff"}, UnknownNameError, "by='rff' is not a way to fuse ... mean 'rrf'? ... leave it out"),
        ({"constant": -1}, CallError, "constant=-1; it is a whole number, 0 or more. Fix: use 60."),
        ({"constant": 1.5}, CallError, "constant=1.5; it is a whole number, 0 or more. Fix: use 60."),
        ({"constant": "a"}, CallError, "constant='a'; it is a whole number, 0 or more. Fix: use 60."),
        ({"constant": True}, CallError, "constant=True; it is a whole number, 0 or more. Fix: use 60."),
        ({"k": 60.5}, CallError, "k=60.5; it is a whole number of images. Fix: use 50, say."),
        ({"k": 5}, CallError, "k=5; this board takes 50 to 1,000 images a ranking."),
        (
            {"name": "a\u202eb"},
            FusionError,
            "the method's name ... is refused: the character U+202E",
        ),
    ],
)
def test_a_wrong_call_is_named(options: Any, error: type[Exception], text: str) -> None:
    with refusal(text, error):
        submissions.fuse([as_bytes(worlds.cirr_document(CIRR))] * 2, CIRR, **options)
    with pytest.raises(CallError, match="a fusion needs two rank files or more"):
        submissions.fuse([as_bytes(worlds.cirr_document(CIRR))], CIRR)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(-(10**400), 10**400), min_size=1))
def test_the_best_of_a_few_are_those_of_all_sorted(scores: dict[str, int]) -> None:
    assert best_of(scores, 4, "q") == best_first(scores, "q")[:4]


def test_a_score_that_is_not_a_number_is_named() -> None:
    with pytest.raises(InputError, match=r"the score of 'b' is NaN, which has no rank\. Fix: find where"):
        best_of({"a": 1.0, "b": float("nan")}, 1, "q")
    with pytest.raises(InputError, match="k=0; a cutoff is a whole number, 1 or more"):
        best_of({"a": 1.0}, 0, "q")


def test_the_name_says_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(submissions.make_rank_file("shapes/val", "random").to_json())

    def fuse(out: str) -> Any:
        named = [str(tmp_path / "run.json")] * 2
        return CliRunner().invoke(build(), ["fuse", *named, "--name", "twice", "--out", str(tmp_path / out)])

    assert fuse("fused.json").exit_code == 0
    plain = (tmp_path / "fused.json").read_bytes()
    for packed in ("fused.json.gz", "fused.JSON.GZ", "fused.gz"):
        assert fuse(packed).exit_code == 0
        content = (tmp_path / packed).read_bytes()
        assert (content[:2], gzip.decompress(content)) == (b"\x1f\x8b", plain)
    for other in ("fused.parquet", "fused.jsonl", "fused.trec.gz"):
        refused = fuse(other)
        assert isinstance(refused.exception, CallError)
        says(refused.exception, f"--out {tmp_path / other} ... native format is written ... Fix: name it so")
        assert not (tmp_path / other).exists()


@pytest.mark.slow
def test_the_command_writes_a_file_that_scores(tmp_path: Path) -> None:
    for name in ("image_only", "image_text_sum"):
        made = submissions.make_rank_file("shapes/multiturn_val", f"{name}_pixels")
        submissions.write(made, tmp_path / f"{name}.json")
    out = tmp_path / "fused.json"
    files = [str(tmp_path / f"{name}.json") for name in ("image_only", "image_text_sum")]
    done = CliRunner().invoke(build(), ["fuse", *files, "--out", str(out), "--name", "Both", "--json"])
    assert done.exit_code == 0
    made = {"file": str(out), "benchmark": "shapes/multiturn_val", "method": "Both"}
    assert json.loads(done.stdout) == made
    report = submissions.score(out)
    assert (report.method, report.submittable) == ("Both", True)


def test_the_way_to_fuse_is_deprecated() -> None:
    files = [as_bytes(worlds.cirr_document(CIRR))] * 2
    with pytest.warns(DeprecationWarning, match="by='rrf' is deprecated"):
        fused = submissions.fuse(files, CIRR, by="rrf")
    assert fused == submissions.fuse(files, CIRR)
