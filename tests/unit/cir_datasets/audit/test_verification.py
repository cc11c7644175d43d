"""`verify`: faults are faults, known differences and leaks are notes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import cir_here
import datasets_publishers as made
import orjson
import pytest

import cir_datasets
from cir_datasets import registry
from cir_datasets.audit.verification import Result, Verification, _owner, _sources, leaks, repeated, verify
from cir_datasets.errors import SourceError
from cir_datasets.registry.schema import PaperDifference
from cir_datasets.rows.benchmark import Benchmark

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    return tmp_path / "home"


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tests' own cache for those that verify shapes, which takes seconds to prepare."""
    folder, cache = tmp_path_factory.mktemp("verification-cache"), Path(os.environ["CIR_CACHE_HOME"])
    for config in ("train", "val"):
        cir_datasets.prepare(f"shapes/{config}")
    shutil.copytree(cache / "prepared" / "shapes", folder / "prepared" / "shapes")
    return folder


@pytest.fixture
def with_shapes(home: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_CACHE_HOME", str(shared_cache))
    return home


def kinds(found: Verification, verdict: str) -> list[str]:
    return [result.kind for result in found.results if result.verdict == verdict]


def message(found: Verification, kind: str) -> str:
    return next(result.message for result in found.results if result.kind == kind)


def test_made_up_files_are_changed_and_miscounted(home: Path) -> None:
    made.write_cirr(home, "val")
    found = verify("cirr/val")
    assert not found.ok
    # The made-up rows are 3, the card's 4,181: the difference that the card tells is no longer the one seen.
    assert kinds(found, "fault") == ["sources", "counts", "difference"]
    assert "3 changed" in message(found, "sources")
    assert "is not the file that the card pins" in message(found, "sources")
    assert "3 queries, but the card says 4,181" in message(found, "counts")
    assert kinds(found, "ok") == ["rows", "hashes"]
    assert message(found, "unchecked") == "leaks from cirr/train: not available"


def test_dialogues_say_how_many_of_their_turns_are_single_queries(home: Path) -> None:
    made.write_cirr_loops(home, "val")
    cir_datasets.load("cirr/val", verification_mode="no_checks")
    (leak,) = [each for each in verify("cirr/dialogues_val").results if each.kind == "leak"]
    assert leak.verdict == "note"
    assert leak.details == {"queries": "cirr/val", "turns": 10, "shared": 10}
    assert leak.message.startswith("10 of 10 turns are queries of cirr/val, with caption and target; a model")


def test_a_broken_record_is_a_fault(home: Path) -> None:
    root = made.write_cirr(home, "val")
    made.edit(root / "captions/cap.rc2.val.json", lambda records: records[1].update(target_hard="x"))
    found = verify("cirr/val")
    assert kinds(found, "fault") == ["sources", "rows"]
    assert "record 2 (query_id 901): its target_image_id 'x' is not in its subset" in message(found, "rows")


@pytest.mark.slow
def test_a_damaged_cache_is_a_fault(with_shapes: Path) -> None:
    folder = cir_datasets.prepare("shapes/val")
    content = (folder / "meta.json").read_bytes()
    meta = orjson.loads(content)
    (folder / "meta.json").write_bytes(orjson.dumps({**meta, "data_hash": "0" * 64}))
    found = verify("shapes/val")
    assert kinds(found, "fault") == ["hashes"]
    assert "cir datasets prepare --force shapes/val" in message(found, "hashes")
    (folder / "meta.json").write_bytes(content)
    found = verify("shapes/val")
    assert found.ok
    assert message(found, "leak") == "no image is shared with shapes/train"


def test_what_is_not_at_hand_is_an_error(home: Path) -> None:
    with pytest.raises(SourceError, match="is not available"):
        verify("cirr/val")


def row(number: int, reference: str, target: str | None, caption: str = "red") -> dict[str, Any]:
    return {
        "query_id": f"q{number}",
        "reference_image_id": reference,
        "captions": [caption],
        "relative_caption": caption,
        "target_image_id": target,
        "positive_image_ids": [] if target is None else [target],
        "negative_image_ids": [],
        "subset_image_ids": [],
        "aspects": [],
    }


def benchmark(config: str, rows: list[dict[str, Any]], gallery: list[str]) -> Benchmark:
    return Benchmark.from_rows(registry.spec(f"fashioniq/{config}"), rows, gallery)


def test_leaks_tell_listed_from_used() -> None:
    val = benchmark(
        "shirt_val", [row(0, "a", "b"), row(1, "c", "d"), row(2, "c", "e"), row(3, "f", "z")], list("abcdefz")
    )
    train = benchmark("toptee_train", [row(0, "x", "b"), row(1, "c", "y")], ["x", "b", "c", "y", "d"])
    found = leaks(val, train)
    assert (found.rows, found.target_listed, found.target_used) == (4, 2, 1)
    assert (found.references, found.reference_listed, found.reference_used) == (3, 1, 1)
    assert found.any
    assert found.text() == (
        "50.0 % of the targets (2 of 4) are images of fashioniq/toptee_train, 1 in its rows; "
        "1 of 3 reference images are (1 in its rows)"
    )
    assert not leaks(val, benchmark("dress_train", [row(0, "m", "n")], ["m", "n"])).any


def test_without_targets_references_still_tell() -> None:
    test = benchmark("shirt_test", [row(0, "a", None)], ["a"])
    found = leaks(test, benchmark("shirt_train", [row(0, "a", "b")], ["a", "b"]))
    assert (found.rows, found.reference_used) == (0, 1)
    assert found.text().startswith("images of fashioniq/shirt_train: 1 of 1 reference")


def test_shared_references_alone_are_told_without_a_share_of_targets() -> None:
    val = benchmark("shirt_val", [row(0, "a", "b")], list("ab"))
    found = leaks(val, benchmark("toptee_train", [row(0, "a", "y")], ["a", "y"]))
    assert found.any
    assert found.text() == (
        "images of fashioniq/toptee_train: no target; 1 of 1 reference images are (1 in its rows)"
    )


def test_repeated_queries_are_grouped() -> None:
    rows = [row(0, "a", "b"), row(1, "a", "c"), row(2, "a", "d", "blue"), row(3, "e", "b"), row(4, "a", "b")]
    assert repeated(benchmark("dress_val", rows, list("abcde"))) == [["q0", "q1", "q4"]]


def test_differences_read_as_a_line() -> None:
    known = PaperDifference(what="average_turns", published=2.56, ours=2.55, why="the table's own sum")
    assert known.text() == "average turns: 2.55 here, 2.56 published: the table's own sum"


def test_a_figure_that_no_paper_states_is_not_called_published() -> None:
    (known,) = registry.card("fashioniq").known_differences
    assert known.text().startswith(
        "distinct images over all splits: 74,381 here, 77,683 as the sum of the split files: "
    )


def test_what_concerns_the_whole_dataset_is_told_once() -> None:
    wide = Result("difference", "note", "of the whole", {"of": "fashioniq"})
    own = Result("difference", "note", "of one", {})
    one, other = Verification("a/b", (wide, own)), Verification("a/c", (wide, own))
    assert one.of_the_dataset == (wide,)
    assert one.text().splitlines()[1:] == ["  note   difference  of the whole", "  note   difference  of one"]
    assert other.text(one.of_the_dataset).splitlines()[1:] == ["  note   difference  of one"]
    assert len(other.to_dict()["results"]) == 2


@pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")
def test_a_changed_gallery_is_got_again_from_who_lends_it(home: Path) -> None:
    spec = registry.spec("circled/cirr_val")
    lender = registry.card("cirr")
    gallery = registry.spec("cirr/val").config.gallery_files[0]
    assert spec.config.gallery_from == "cirr/val"
    assert _owner(spec, gallery) == lender
    assert _owner(spec, spec.config.files[0]) == spec.card
    made.write_circled(home, "cirr_val")
    made.write_cirr(home, "val")
    found = _sources(spec, None)
    assert found.verdict == "fault"
    assert str(home / lender.source.folder / gallery) in found.message
    assert lender.source.instructions in found.message


@pytest.mark.parametrize("benchmark_id", registry.benchmark_ids())
def test_known_differences_agree_with_the_card(benchmark_id: str) -> None:
    config = registry.spec(benchmark_id).config
    for known in config.known_differences:
        assert known.published != known.ours
        if known.what in ("queries", "gallery"):
            assert known.ours == getattr(config, known.what)
        else:
            assert known.what == "average_turns"
            turns = sum(length * count for length, count in config.turns.items())
            assert known.ours == round(turns / sum(config.turns.values()), 2)


def cir(*arguments: str) -> subprocess.CompletedProcess[str]:
    return cir_here.cir("datasets", "verify", *arguments)


@pytest.mark.slow
def test_the_command_exits_with_1_for_faults_alone(with_shapes: Path) -> None:
    made.write_cirr(with_shapes, "val")
    good = cir("shapes/val")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("shapes/val: verified\n  ok     sources ")
    bad = cir("shapes/val", "cirr/val", "--json")
    assert bad.returncode == 1
    first, second = json.loads(bad.stdout)
    assert (first["ok"], second["ok"]) == (True, False)
    assert "Traceback" not in bad.stderr


@pytest.mark.slow
def test_the_command_exits_with_2_where_data_is_missing(with_shapes: Path) -> None:
    one = cir("cirr/test1")
    assert (one.returncode, one.stdout) == (2, "")
    two = cir("shapes/val", "cirr/test1")
    assert two.returncode == 2
    assert "1 of 2 benchmarks are not available" in two.stderr


def test_sessions_of_circled_are_looked_up_in_their_source(home: Path) -> None:
    def joined() -> Result:
        found = verify("circled/cirr_val")
        return next(result for result in found.results if result.kind in ("joined", "unchecked"))

    root = made.write_circled(home, "cirr_val")
    assert (joined().verdict, joined().details) == ("note", {"missing": ["cirr/val"]})
    made.write_source(home, "cirr_val")
    none = joined()
    assert none.verdict == "fault"
    assert none.message.startswith("0.0 % of the sessions (0 of 2) begin with a query of cirr/val")
    assert "of no query: cirr_val_0000, cirr_val_0001. Fix: get the publisher's file again" in none.message
    query = cir_datasets.load("cirr/val", verification_mode="no_checks").rows()[0]

    def begin(sessions: Any) -> None:
        sessions[0]["turns"][0] |= {
            "reference_image_id": query["reference_image_id"],
            "relative_caption": query["relative_caption"],
        }
        sessions[0]["ground_truth_ids"] = query["positive_image_ids"]
        sessions[0]["turns"][1]["reference_image_id"] = query["reference_image_id"]

    made.edit(root / "data/cirr_val.json", begin)
    half = joined()
    assert (half.verdict, half.details["joined"]) == ("note", 1)
    made.edit(root / "data/cirr_val.json", lambda sessions: sessions[1].update(turns=sessions[0]["turns"]))
    made.edit(
        root / "data/cirr_val.json",
        lambda sessions: sessions[1].update(num_turns=2, ground_truth_ids=query["positive_image_ids"]),
    )
    assert (joined().verdict, joined().details["of_no_query"]) == ("ok", [])
