"""Which gallery was ranked is inferred where it is evident, and ids of others are called by their owner.

The world is FashionIQ's dresses in size: 2,017 queries, whose references and targets are 2,628 of the 3,817
images of the gallery.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from datasets_publishers import edit, write, write_cirr

import cir_datasets
import submissions
from cir_datasets import Overlay, registry
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.hashing import gallery_hash
from cir_datasets.rows.records import query_row
from submissions.errors import MethodError
from submissions.rank_file.model import Method, RankFile

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")

QUERIES, UNION, GALLERY, DEPTH = 2017, 2628, 3817, 50
IMAGES = [f"B{number:09d}" for number in range(GALLERY)]
PAIRS = [(IMAGES[(QUERIES + number) % UNION], IMAGES[number]) for number in range(QUERIES)]
"""Reference and target of each query."""
IDS = [f"dress_val_{number:05d}" for number in range(QUERIES)]
RANDOM = np.random.default_rng(0)

Lists = list[list[str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    captions = [{"candidate": one, "target": two, "captions": ["a", "b"]} for one, two in PAIRS]
    write(home / "fashion-iq/captions/cap.dress.val.json", captions)
    write(home / "fashion-iq/image_splits/split.dress.val.json", IMAGES)
    write(home / "fashion-iq/image_splits/split.shirt.val.json", [f"S{number}" for number in range(100)])
    return home


@pytest.fixture(autouse=True)
def world(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(home))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))


def dresses(config: str = "dress_val") -> Benchmark:
    rows = [
        query_row(
            query, reference_image_id=one, target_image_id=two, positive_image_ids=[two], captions=["a", "b"]
        )
        for query, (one, two) in zip(IDS, PAIRS, strict=True)
    ]
    return Benchmark.from_rows(registry.spec(f"fashioniq/{config}"), rows, IMAGES)


def drawn(size: int, depth: int = DEPTH, first: bool = False) -> Lists:
    """Random lists over the first images; with `first` the target stands in front, as of a good method."""
    lists = [[IMAGES[place] for place in RANDOM.choice(size, depth, replace=False)] for _ in PAIRS]
    if not first:
        return lists
    return [
        [two, *(each for each in ranked if each != two)][:depth]
        for ranked, (_, two) in zip(lists, PAIRS, strict=True)
    ]


def handed_in(lists: Lists, benchmark: Benchmark, **method: Any) -> RankFile:
    rankings = dict(zip(IDS, lists, strict=True))
    return RankFile(benchmark.id, 1, Method(name="m", **method), rankings)


def codes(lists: Lists, **method: Any) -> list[str]:
    benchmark = dresses()
    return [
        finding.code
        for finding in submissions.validate(handed_in(lists, benchmark, **method), benchmark).findings
    ]


@pytest.mark.parametrize("good", [False, True])
def test_lists_that_never_leave_a_known_part_were_made_over_it(good: bool) -> None:
    benchmark = dresses()
    file = handed_in(drawn(UNION, first=good), benchmark)
    (finding,) = submissions.validate(file, benchmark).warnings
    assert (finding.code, finding.examples[0]["value"]) == ("other-gallery", "fashioniq/dress_val_union")
    assert all(count in finding.message for count in ("100,850", "2,628", "3,817"))
    of_part = submissions.score(file, benchmark).signatures["recall@10"]
    of_all = submissions.score(handed_in(drawn(GALLERY), benchmark), benchmark).signatures["recall@10"]
    assert (of_part.ranked, of_all.ranked) == ("fashioniq/dress_val_union", "")
    assert of_part.key != of_all.key


def fix_of(benchmark: Benchmark, rankings: Mapping[str, Any]) -> str:
    """What to do about lists over the union, which stay what they evidently are."""
    file = RankFile(benchmark.id, benchmark.version, Method(name="m", aggregation="latest"), rankings)
    (finding,) = (
        each for each in submissions.validate(file, benchmark).findings if each.code == "other-gallery"
    )
    assert finding.examples[0]["value"].startswith("fashioniq/dress_val_union")
    return finding.fix


@pytest.mark.parametrize("protocol", ["", "_without_reference"])
def test_a_file_of_a_known_part_is_sent_to_the_benchmark_with_the_same_queries(protocol: str) -> None:
    benchmark = dresses(f"dress_val{protocol}")
    lists = [
        [each for each in ranked if each != one][:DEPTH]
        for ranked, (one, _) in zip(drawn(UNION, DEPTH + 1), PAIRS, strict=True)
    ]
    fix = fix_of(benchmark, dict(zip(IDS, lists, strict=True)))
    assert fix.startswith(f"hand it in for fashioniq/dress_val_union{protocol}, or rank the whole gallery")


def test_no_file_is_sent_to_a_benchmark_with_other_queries() -> None:
    """Sessions have no benchmark over the union, and neither has a part of the queries."""
    sessions = Benchmark.from_rows(
        registry.spec("circled/fashioniq_dress_val"),
        [worlds.session(query, 2, two) for query, (_, two) in zip(IDS, PAIRS, strict=True)],
        IMAGES,
    )
    turns = [list(pair) for pair in zip(drawn(UNION), drawn(UNION), strict=True)]
    overlay = Overlay("few", "fashioniq/dress_val", 1, "", dict.fromkeys(IDS[:-1], "a"))
    some = dataclasses.replace(registry.spec("fashioniq/dress_val"), overlay=overlay)
    part = Benchmark.from_rows(some, dresses().rows()[:-1], IMAGES)
    for benchmark, lists in ((sessions, turns), (part, drawn(UNION)[:-1])):
        fix = fix_of(benchmark, dict(zip(benchmark.query_ids, lists, strict=True)))
        assert fix.startswith("rank the whole gallery; a list of your own is declared as")
        assert "hand it in" not in fix


SILENT: dict[str, Callable[[], Lists]] = {
    "random": lambda: drawn(GALLERY),
    "a good method's": lambda: drawn(GALLERY, first=True),
    "deep": lambda: drawn(GALLERY, depth=200),
    "all but one inside": lambda: [*drawn(UNION)[:-1], IMAGES[-1:] + IMAGES[:49]],
    "targets alone": lambda: [[two] for _, two in PAIRS],
    "targets of all queries": lambda: drawn(QUERIES),
    "target and reference": lambda: [[two, one] for one, two in PAIRS],
    "short": lambda: drawn(UNION, depth=3),
    "constant scores": lambda: [IMAGES[:DEPTH] for _ in PAIRS],
    "popular images": lambda: drawn(400),
}


@pytest.mark.parametrize("lists", SILENT)
def test_lists_that_may_be_of_the_whole_gallery_infer_nothing(lists: str) -> None:
    assert "other-gallery" not in codes(SILENT[lists]())


def test_a_gallery_that_is_declared_is_believed() -> None:
    lists = drawn(UNION)
    assert "other-gallery" in codes(lists, own_gallery=f"{GALLERY}:{gallery_hash(IMAGES)}")
    assert "other-gallery" not in codes(lists, own_gallery=f"{UNION}:{gallery_hash(IMAGES[:UNION])}")
    assert "other-gallery" not in codes(lists, skipped_images=GALLERY - UNION)


def test_images_from_outside_are_called_by_the_list_that_has_them() -> None:
    union = Benchmark.from_rows(registry.spec("fashioniq/dress_val_union"), dresses().rows(), IMAGES[:UNION])
    (finding,) = submissions.validate(handed_in(drawn(GALLERY), union), union).errors
    assert finding.code == "unknown-image"
    assert f"{GALLERY - UNION:,} of {GALLERY - UNION:,} are of fashioniq/dress_val." in finding.message
    lists = [[*ranked[:-1], "X1"] for ranked in drawn(UNION)]
    (finding,) = submissions.validate(handed_in(lists, union), union).errors
    assert "1 image from outside, first in 0 of 2,017 lists." in finding.message
    assert "(fashioniq/dress_val, fashioniq/shirt_val) has one" in finding.message
    unknown, null = submissions.validate(handed_in([*lists[:-1], None], union), union).errors
    assert {unknown.code, null.code} == {"unknown-image", "bad-type"}
    assert not any("from outside" in each.message for each in (unknown, null))


def test_a_file_that_holds_references_is_told_which_protocol_it_fits() -> None:
    removed = dresses("dress_val_without_reference")
    lists = [[one, two, *IMAGES[-48:]] for one, two in PAIRS]
    (finding,) = submissions.validate(handed_in(lists, removed), removed).errors
    assert (finding.code, finding.count) == ("reference-ranked", QUERIES)
    assert finding.fix.endswith("are handed in for fashioniq/dress_val")


Splits = tuple[Benchmark, Benchmark]


@pytest.fixture
def splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Splits:
    """CIRR's val and test1, small, whose queries have other ids."""
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    for split in ("val", "test1"):
        write_cirr(tmp_path / "data", split)
    for path in (tmp_path / "data/cirr").glob("captions*/*.test1.json"):
        edit(path, lambda records: [each.update(pairid=each["pairid"] + 1000) for each in records])
    val, test1 = (
        cir_datasets.load(f"cirr/{split}", verification_mode="no_checks") for split in ("val", "test1")
    )
    return val, test1


def test_queries_of_another_split_are_called_so_at_every_door(splits: Splits) -> None:
    val, test1 = splits
    lists = {query: list(test1.gallery or ()) for query in test1.query_ids}
    said = f"All {len(lists)} such ids are of cirr/test1."
    server = json.dumps({"version": "rc2", "metric": "recall", **lists}).encode()
    run = "\n".join(f"{query} Q0 a 1 1.0 m" for query in lists).encode()
    for content in (server, run):
        (nameless,) = submissions.validate(content, name="run").errors
        assert said in nameless.message
        assert nameless.fix.endswith("--benchmark cirr/test1")
    found, *others = submissions.validate(server, val, name="run").errors
    assert (found.code, said in found.message) == ("unknown-query", True)
    assert {other.code for other in others} <= {"unknown-query"}, "nothing else has a fix that works"
    assert found.fix.startswith("name cirr/test1 as its benchmark")
    with pytest.raises(MethodError, match=said):
        submissions.rank_file_from_lists(val, lists, method="m")


def nameless(lists: Mapping[str, list[str]]) -> dict[str, bytes]:
    """Rankings in formats that do not name their benchmark."""
    document = {"version": "rc2", "metric": "recall", **lists}
    run = "\n".join(f"{query} Q0 {ids[0]} 1 1.0 m" for query, ids in lists.items())
    return {"server": worlds.as_bytes(document), "trec": run.encode(), "plain": worlds.as_bytes(lists)}


def first_images(*benchmarks: Benchmark) -> dict[str, list[str]]:
    return {query: list(each.gallery or ())[:2] for each in benchmarks for query in each.query_ids}


@pytest.mark.parametrize("to", ["native", "lines", "parquet", "trec"])
@pytest.mark.parametrize("form", ["server", "trec", "plain"])
def test_no_conversion_names_a_benchmark_that_has_none_of_the_queries(
    form: str, to: str, splits: Splits
) -> None:
    val, test1 = splits
    content = nameless(first_images(test1))[form]
    with pytest.raises(submissions.RefusedError) as refused:
        submissions.convert([content], to, benchmark=val)
    (found,) = refused.value.report.errors
    assert (found.code, found.count) == ("unknown-query", len(test1))
    assert f"All {len(test1)} such ids are of cirr/test1." in found.message
    assert found.fix.startswith("name cirr/test1 as its benchmark")
    (made,) = submissions.convert([content], to, benchmark=test1)
    assert not any("no such query" in note for note in made.notes)


def test_a_conversion_names_the_benchmark_of_some_of_the_queries(splits: Splits) -> None:
    val, test1 = splits
    content = nameless(first_images(val, test1))["server"]
    (made,) = submissions.convert([content], "native", benchmark=val)
    (note,) = made.notes
    assert note.startswith(
        f"{len(test1)} queries of {len(val) + len(test1)} kept: cirr/val has no such query."
    )
    assert f"All {len(test1)} such ids are of cirr/test1." in note
    assert "Fix: name cirr/test1 as its benchmark" in note


def test_conversions_go_on_where_the_file_says_its_benchmark_or_the_queries_are_not_known(
    splits: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    val, test1 = splits
    named = RankFile(val.id, 1, Method(name="m"), first_images(test1)).to_json()
    assert submissions.convert([named], "lines", benchmark=val)[0].notes == ()
    of_nobody = {f"{query}x": ["a"] for query in val.query_ids}
    assert submissions.convert([nameless(of_nobody)["server"]], "native", benchmark=val)[0].notes == ()
    content = nameless(first_images(test1))["server"]
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "new"))
    (made,) = submissions.convert([content], "native", benchmark="cirr/val")
    assert json.loads(made.content)["benchmark"] == "cirr/val"
