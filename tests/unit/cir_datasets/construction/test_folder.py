"""Folders that are benchmarks: written, registered, checked, changed, kept here."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from says import says

import cir_datasets
from cir_datasets.audit.describe import listed
from cir_datasets.construction import folder_check
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.construction.names import made_name
from cir_datasets.construction.new_folder import new_folder
from cir_datasets.errors import CardError, RecordError
from cir_datasets.images.locate import picture_folders
from cir_datasets.rows.records import query_row
from cir_metrics.errors import CallError, UnknownNameError

IMAGES = ["a", "b", "c", "d"]
QUERY = {"query_id": "1", "reference_image_id": "a", "relative_caption": "in red", "target_image_id": "b"}
SECOND = {
    **QUERY,
    "query_id": "2",
    "reference_image_id": "c",
    "negative_image_ids": ["d"],
    "aspects": ["color"],
}
TURNS = [
    {"turn": 1, "reference_image_id": "a", "relative_caption": "in red"},
    {"turn": 2, "reference_image_id": "c", "relative_caption": "and large"},
]
SESSION = {"session_id": "1", "ground_truth_ids": ["b"], "turns": TURNS}

Write = Callable[..., Path]
Register = Callable[..., None]


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_CHALLENGES", str(tmp_path / "challenges"))
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    monkeypatch.delenv("CIR_BENCHMARKS", raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a folder by hand: card, rows and images as texts."""

    def folder(
        name: str = "mine",
        *rows: Any,
        card: str = "",
        images: str | None = "a\nb\nc\nd\n",
        file: str = "queries.jsonl",
    ) -> Path:
        made = tmp_path / "own" / name
        made.mkdir(parents=True, exist_ok=True)
        (made / "card.yaml").write_text(card or f"name: {name}\ntitle: Mine\n", encoding="utf-8")
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows or (QUERY, SECOND)]
        (made / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        if images is not None:
            (made / "images.txt").write_text(images, encoding="utf-8")
        return made

    return folder


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    def named(*folders: Path) -> None:
        monkeypatch.setenv("CIR_BENCHMARKS", os.pathsep.join(map(str, folders)))

    return named


def test_a_name_and_a_title_are_enough(write: Write, register: Register) -> None:
    register(write())
    benchmark = cir_datasets.load("mine/test")
    assert [row["positive_image_ids"] for row in benchmark.rows()] == [["b"], ["b"]]
    assert benchmark.rows()[1]["aspects"] == ["color"]
    assert list(benchmark.gallery or ()) == IMAGES
    assert (benchmark.pinned, benchmark.excludes_reference) == (True, True)
    assert (benchmark.spec.main_metric, benchmark.spec.card.private) == ("recall@10", True)
    assert "mine" in cir_datasets.names()


def test_several_folders_and_folders_of_folders_are_known(
    write: Write, tmp_path: Path, register: Register
) -> None:
    write("one"), write("two")
    other = new_folder("three", tmp_path / "elsewhere")
    register(tmp_path / "own", other)
    assert {"one/test", "two/test", "three/test"} <= set(cir_datasets.benchmark_ids())


def test_the_three_formats_hold_the_same_queries(write: Write, register: Register) -> None:
    by_lines = write("by_lines")
    csv = (
        "query_id,reference_image_id,relative_caption,target_image_id,negative_image_ids,aspects\n"
        "1,a,in red,b,,\n"
        "2,c,in red,b,d,color"
    )
    by_cells = write("by_cells", csv, file="queries.csv")
    by_columns = write("by_columns")
    (by_columns / "queries.jsonl").unlink()
    pq.write_table(
        pa.Table.from_pylist([SECOND | dict.fromkeys(SECOND) | QUERY, SECOND]), by_columns / "queries.parquet"
    )
    register(by_lines, by_cells, by_columns)
    loaded = [cir_datasets.load(f"{folder.name}/test") for folder in (by_lines, by_cells, by_columns)]
    assert [one.rows() for one in loaded[1:]] == [loaded[0].rows()] * 2
    assert len({one.data_hash for one in loaded}) == 1
    assert all(check_folder(folder).ok for folder in (by_lines, by_cells, by_columns))


def test_sessions_load_from_lines_and_from_cells(write: Write, register: Register) -> None:
    csv = (
        "session_id,ground_truth_ids,turn,reference_image_id,relative_caption\n"
        '1,b,1,a,in red\n1,b,2,c,"and large"\n2,b|d,1,a,small'
    )
    second = {
        "session_id": "2",
        "ground_truth_ids": ["b", "d"],
        "turns": [{**TURNS[0], "relative_caption": "small"}],
    }
    register(write("lines", SESSION, second), write("cells", csv, file="queries.csv"))
    rows = cir_datasets.load("lines/test").rows()
    assert cir_datasets.load("cells/test").rows() == rows
    assert [row["num_turns"] for row in rows] == [2, 1]
    assert cir_datasets.spec("lines/test").turns == "1-2"
    assert cir_datasets.spec("lines/test").main_metric == "hits_auc@10"


def test_configurations_have_rows_and_galleries_of_their_own(write: Write, register: Register) -> None:
    card = (
        "name: mine\ntitle: Mine\nconfigs:\n"
        "  train: {queries: train.jsonl, images: few.txt}\n  test: {queries: queries.jsonl}\n"
    )
    folder = write("mine", card=card)
    (folder / "train.jsonl").write_text(json.dumps(QUERY) + "\n")
    (folder / "few.txt").write_text("a\nb\nc\n")
    register(folder)
    assert len(cir_datasets.load("mine/train").gallery or ()) == 3
    assert cir_datasets.spec("mine/train").config.split == "train"
    assert len(cir_datasets.load("mine/test")) == 2


def test_cirrs_own_fields_are_columns_where_the_rows_have_them(write: Write, register: Register) -> None:
    own = {"subset_id": 7, "target_soft": [{"image_id": "b", "score": 1}], "auxiliary_captions": ["x"]}
    subset = {"subset_image_ids": ["a", "b", "c", "d"]}
    register(write("mine", {**QUERY, **own, **subset}), write("plain"))
    (row,) = cir_datasets.load("mine/test").rows()
    assert (row["subset_id"], row["target_soft"]) == (7, [{"image_id": "b", "score": 1.0}])
    assert "recall_subset@1" in cir_datasets.spec("mine/test").metrics
    assert "subset_id" not in cir_datasets.load("plain/test").rows()[0]


def test_cirrs_own_fields_can_be_published(tmp_path: Path, write: Write, register: Register) -> None:
    own = {
        "subset_id": 4,
        "target_soft": [{"image_id": "b", "score": 0.5}],
        "auxiliary_captions": ["behind it"],
    }
    register(write("mine", {**QUERY, **own}))
    (done,) = cir_datasets.publish("mine", tmp_path / "published")
    page = (done.folder / "README.md").read_text()
    for field in (*own, "target_soft.image_id", "target_soft.score"):
        assert f"`{field}`" in page


def test_turns_with_several_captions_can_be_published(
    tmp_path: Path, write: Write, register: Register
) -> None:
    turns = [{"turn": 1, "reference_image_id": "a", "captions": ["in red", "redder"]}, TURNS[1]]
    register(write("mine", {**SESSION, "turns": turns}))
    rows = cir_datasets.load("mine/test").rows()
    assert [turn["captions"] for turn in rows[0]["turns"]] == [["in red", "redder"], ["and large"]]
    (done,) = cir_datasets.publish("mine", tmp_path / "published")
    assert "`turns.captions`" in (done.folder / "README.md").read_text()
    (file,) = (done.folder / "test").glob("*.parquet")
    assert pq.read_table(file).to_pylist() == rows


def test_what_is_prepared_and_published_is_counted_in_words(
    tmp_path: Path, write: Write, register: Register, caplog: pytest.LogCaptureFixture
) -> None:
    from cir_datasets.huggingface.prepare_all import prepare_all

    folder = write("mine", QUERY)
    register(folder)
    (outcome,) = prepare_all(["mine"], None, None, force=False, hub_cache=False, say=print)
    assert outcome.text().startswith("mine/test: 1 query, 4 images in the gallery\n")
    (done,) = cir_datasets.publish("mine", tmp_path / "published")
    assert done.text().startswith("mine: 1 configuration and 1 gallery, ")
    # The command prints what is in `warnings`; mlcroissant logs it as often as it reads the metadata.
    assert "datePublished" not in caplog.text
    says(done.warnings[0], "datePublished", "Fix: write the year of publication, as in `year: 2026`")
    (folder / "README.md").write_text("---\nyear: 2026\n---\nMine.\n")
    assert cir_datasets.publish("mine", tmp_path / "published")[0].warnings == ()


def test_what_changes_in_a_folder_is_read_again(write: Write, register: Register) -> None:
    folder = write()
    register(folder)
    before = cir_datasets.load("mine/test")
    write("mine", QUERY, images="a\nb\nc\nd\ne\n")
    after = cir_datasets.load("mine/test")
    assert (len(before), len(after), len(after.gallery or ())) == (2, 1, 5)
    assert before.data_hash != after.data_hash
    assert before.gallery_hash != after.gallery_hash


@pytest.mark.parametrize("name", ["cirr", "shapes"])
def test_a_name_of_the_package_is_refused(write: Write, register: Register, name: str) -> None:
    folder = write(name)
    register(folder)
    with pytest.raises(CardError) as caught:
        cir_datasets.load(f"{name}/val")
    says(caught, str(folder), name, "a benchmark of this package", "Fix: give it another name")
    other = "shapes/val" if name == "cirr" else "cirr/val"
    assert cir_datasets.spec(other).config.queries
    assert any(row["id"] == name and "cannot be used" in row["status"] for row in listed())
    says(check_folder(folder).errors[0], "card.yaml: name:", "a benchmark of this package", "Fix:")


def test_two_folders_of_one_name_are_refused(write: Write, tmp_path: Path, register: Register) -> None:
    first, other = write("mine"), tmp_path / "other"
    new_folder("mine", other)
    register(first, other)
    with pytest.raises(CardError) as caught:
        cir_datasets.load("mine/test")
    says(caught, str(first), str(other), "'mine'", "Fix: give one of them another name")
    register(first, first)
    assert len(cir_datasets.load("mine/test")) == 2


def test_places_with_blanks_and_colons_and_relative_ones_are_known(
    write: Write, tmp_path: Path, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank, colon = tmp_path / "own" / "with blank", tmp_path / "own" / "with:colon"
    write("one").rename(blank)
    write("two").rename(colon)
    monkeypatch.chdir(blank.parent)
    register(Path("with blank"))
    assert len(cir_datasets.load("one/test")) == 2
    register(colon)  # alone: the command that `cir datasets check` prints
    assert len(cir_datasets.load("two/test")) == 2
    register(blank, colon)
    with pytest.raises(UnknownNameError, match="where a name holds it name its parent"):
        cir_datasets.load("two/test")
    register(tmp_path / "own", tmp_path / "own")
    assert len(cir_datasets.load("two/test")) == 2


def test_a_broken_folder_hides_no_other(write: Write, register: Register) -> None:
    good, broken = write("good"), write("broken", card="name: broken\ntitel: Mine\n")
    register(broken, good, broken / "card.yaml")
    assert len(cir_datasets.load("good/test")) == 2
    with pytest.raises(CardError) as caught:
        cir_datasets.load("broken/test")
    says(caught, f"{broken}/card.yaml", "titel (line 2): there is no such field", "Did you mean 'title'?")
    with pytest.raises(UnknownNameError) as unknown:
        cir_datasets.load("nothing/test")
    says(unknown, f"{broken}/card.yaml: is a file. Fix: name its folder")


def test_a_place_without_a_benchmark_is_said_where_a_name_is_not_found(
    tmp_path: Path, register: Register
) -> None:
    (tmp_path / "empty").mkdir()
    register(tmp_path / "nowhere", tmp_path / "empty")
    with pytest.raises(UnknownNameError) as caught:
        cir_datasets.load("mine/test")
    says(caught, "no benchmark 'mine/test'", "nowhere: no such folder", "empty: neither it nor", "Fix:")


CSV_HEADER = "query_id,reference_image_id,relative_caption,target_image_id,negative_image_ids"
TURNS_HEADER = (
    "session_id,ground_truth_ids,turn,reference_image_id,relative_caption",
    "1,b,1,a,in red",
)
BROKEN: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "no title": ({"card": "name: mine\n"}, ("card.yaml: title: is missing", "Fix: add it")),
    "unknown field of the card": (
        {"card": "name: mine\ntitle: Mine\nrefrence: kept\n"},
        ("refrence (line 3): there is no such field", "Did you mean 'reference'?"),
    ),
    "not YAML": ({"card": "name: [mine\n"}, ("card.yaml: line 2", "Fix:")),
    "a bad name": ({"card": "name: My-Own\ntitle: Mine\n"}, ("card.yaml: name (line 1): 'My-Own'", "Fix:")),
    "a metric that is not there": (
        {"card": "name: mine\ntitle: Mine\nmetrics: [recal@5]\n"},
        ("card.yaml: metrics.0 (line 3)", "recal", "Fix:"),
    ),
    "a path out of the folder": (
        {"card": "name: mine\ntitle: Mine\nconfigs: {test: {queries: ../x.jsonl}}\n"},
        ("configs.test.queries (line 3)", "'../x.jsonl' is not the name of a file in the folder", "Fix:"),
    ),
    **{
        f"all files of the machine ({root})": (
            {"card": f"name: mine\ntitle: Mine\nimage_folder: {root}\n"},
            ("image_folder (line 3)", "every file of the machine", "Fix:"),
        )
        for root in ("/", "//", "/home/..")
    },
    "no rows": ({"file": "others.jsonl"}, ("queries.jsonl: no such file", "Fix: write it")),
    "no images": ({"images": None}, ("images.txt: no such file", "Fix: write it")),
    "a named file that is not there": (
        {"card": "name: mine\ntitle: Mine\nconfigs: {test: {queries: gone.jsonl}}\n"},
        ("gone.jsonl: no such file", "Fix:"),
    ),
    "not JSON": ({"rows": [QUERY, "{nope"]}, ("queries.jsonl: line 2: it is not JSON", "Fix:")),
    "unknown field of a row": (
        {"rows": [{**QUERY, "captoin": "x"}]},
        ("line 1 (query_id 1): there is no field 'captoin'", "Did you mean", "Fix:"),
    ),
    "doubled ids": (
        {"rows": [QUERY, {**SECOND, "query_id": "1"}]},
        ("line 2 (query_id 1): its id is there twice (first in line 1)", "Fix:"),
    ),
    "a doubled image": ({"images": "a\nb\nc\nd\na\n"}, ("images.txt: line 5: 'a' is there twice", "Fix:")),
    "a reference that is not an image": (
        {"rows": [{**QUERY, "reference_image_id": "z"}]},
        ("line 1 (query_id 1): its reference 'z' is not in the gallery", "Fix:"),
    ),
    "a target that is not an image": (
        {"rows": [{**QUERY, "target_image_id": "z"}]},
        ("line 1 (query_id 1): its target 'z' is not in the gallery", "Fix:"),
    ),
    "an empty caption": (
        {"rows": [QUERY, {**SECOND, "relative_caption": "  "}]},
        ("line 2 (query_id 2): a caption is empty", "Fix:"),
    ),
    "the target is the reference": (
        {"rows": [{**QUERY, "target_image_id": "a"}]},
        ("line 1 (query_id 1): its reference 'a' is a positive", "Fix:"),
    ),
    "no right answer": (
        {"rows": [{name: value for name, value in QUERY.items() if name != "target_image_id"}]},
        ("line 1 (query_id 1): it says no right answer", "Fix: add target_image_id"),
    ),
    "a wrong type": (
        {"rows": [QUERY, {**SECOND, "query_id": 2}]},
        ("line 2: query_id must be text, not 2", "Fix: write it as text; in JSON in quotation marks"),
    ),
    "a text for a list": (
        {"rows": [QUERY, {**SECOND, "negative_image_ids": "d"}]},
        ("line 2 (query_id 2): negative_image_ids must be a list, not 'd'", "Fix:"),
    ),
    "turns from 0": (
        {"rows": [{**SESSION, "turns": [{**turn, "turn": turn["turn"] - 1} for turn in TURNS]}]},
        ("line 1 (session_id 1): its turns are numbered [0, 1]", "Fix: number them 1, 2, 3"),
    ),
    "queries and sessions": (
        {"rows": [QUERY, SESSION]},
        ("line 2", "it is a session, and the first row a query"),
    ),
    "a wrong CSV header": (
        {"rows": ["id,reference,caption"], "file": "queries.csv"},
        ("queries.csv: line 1: the header", "has neither query_id nor session_id", "Fix:"),
    ),
    "too few cells": (
        {
            "rows": ["query_id,reference_image_id,relative_caption,target_image_id", "1,a"],
            "file": "queries.csv",
        },
        ("queries.csv: line 2: it has 2 cells", "Fix:"),
    ),
    "semicolons": (
        {"rows": ["query_id;reference_image_id", "1;a"], "file": "queries.csv"},
        ("queries.csv: line 1: the header", "has ';' between its fields", "Fix: save the file with commas"),
    ),
    "a list of Python in a cell": (
        {
            "rows": [CSV_HEADER, "1,a,in red,b,\"['c', 'd']\""],
            "file": "queries.csv",
        },
        ("line 2 (query_id 1): negative_image_ids must be a list", "in CSV | stands between the items"),
    ),
    "NaN of a spreadsheet": (
        {"rows": [CSV_HEADER, "1,a,in red,NaN,"], "file": "queries.csv"},
        ("queries.csv: line 2 (query_id 1): its target 'NaN' is not in the gallery", "Fix:"),
    ),
    "an empty cell for a caption": (
        {"rows": [CSV_HEADER, "1,a,,b,"], "file": "queries.csv"},
        ("queries.csv: line 2 (query_id 1): it has no text", "Fix: write"),
    ),
    "a comma in a caption": (
        {"rows": [CSV_HEADER, "1,a,in red, large,b,"], "file": "queries.csv"},
        ("queries.csv: line 2: it has 6 cells, the first '1', but the header 5", "Fix: write as many commas"),
    ),
    "a turn that is left out": (
        {"rows": [*TURNS_HEADER, "1,b,3,c,large"], "file": "queries.csv"},
        ("queries.csv: line 2 (session_id 1): its turns are numbered [1, 3]", "Fix: number them"),
    ),
    "the lines of a session apart": (
        {"rows": [*TURNS_HEADER, "2,b,1,a,small", "1,b,2,c,large"], "file": "queries.csv"},
        ("line 4 (session_id 1): its id is there twice (first in line 2)", "lines one after the other"),
    ),
    "empty": ({"rows": [""]}, ("queries.jsonl: it holds no row", "Fix:")),
    "a tab without a path": (
        {"images": "a\t\nb\nc\nd\n"},
        ("images.txt: line 1:", "one tab and a path", "Fix:"),
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_named_with_file_line_and_fix(write: Write, register: Register, case: str) -> None:
    given, fragments = BROKEN[case]
    rows = given.get("rows", ())
    folder = write("mine", *rows, **{name: value for name, value in given.items() if name != "rows"})
    found = check_folder(folder)
    assert not found.ok
    matching = [error for error in found.errors if fragments[0] in error]
    assert matching, found.errors
    says(matching[0], *fragments)
    assert str(folder) in matching[0]
    register(folder)
    with pytest.raises((CardError, RecordError)):
        cir_datasets.load("mine/test")
    assert cir_datasets.spec("shapes/val").config.queries


NAN = float("nan")
PARQUET: dict[str, tuple[list[dict[str, Any]], str]] = {
    "ids that are numbers": ([{**QUERY, "query_id": 1}], "row 1: query_id must be text, not 1"),
    "no caption, as pandas has it": (
        [{**QUERY, "relative_caption": NAN}],
        "row 1 (query_id 1): relative_caption must be text, not nan",
    ),
    "a list as text": (
        [{**QUERY, "negative_image_ids": "['c', 'd']"}],
        "row 1 (query_id 1): negative_image_ids must be a list, not \"['c', 'd']\"",
    ),
    "null in a list": (
        [{**QUERY, "negative_image_ids": ["c", None]}],
        "row 1 (query_id 1): negative_image_ids holds an item that must be text, not None",
    ),
    "numbers in a list": ([{**QUERY, "aspects": [1]}], "row 1 (query_id 1): aspects holds an item that must"),
    "doubled ids": (
        [QUERY, {**QUERY, "reference_image_id": "c"}],
        "row 2 (query_id 1): its id is there twice (first in row 1)",
    ),
    "the index of a data frame": (
        [{**QUERY, "__index_level_0__": 0}],
        "row 1 (query_id 1): there is no field '__index_level_0__'",
    ),
    "turns counted in fractions": (
        [{**SESSION, "turns": [{**TURNS[0], "turn": 1.0}]}],
        "row 1 (session_id 1): turn 1: turn must be a whole number, not 1.0",
    ),
}


@pytest.mark.parametrize("case", PARQUET)
def test_what_is_wrong_in_parquet_is_named_with_file_row_id_and_fix(
    write: Write, register: Register, case: str
) -> None:
    rows, said = PARQUET[case]
    folder = write()
    (folder / "queries.jsonl").unlink()
    pq.write_table(pa.Table.from_pylist(rows), folder / "queries.parquet")
    (error,) = check_folder(folder).errors
    says(error, f"{folder}/queries.parquet: {said}", "Fix: ")
    register(folder)
    with pytest.raises(RecordError) as caught:
        cir_datasets.load("mine/test")
    says(caught, f"{folder}/queries.parquet: row {len(rows)}", "Fix: ")


def test_faults_of_the_card_come_first_and_those_of_a_row_together(write: Write) -> None:
    broken = {
        **QUERY,
        "relative_caption": " ",
        "target_image_id": "z",
        "negative_image_ids": "d",
    }
    folder = write("cirr", "{nope", *[{**broken, "query_id": f"{number}"} for number in range(40)])
    (folder / "images.txt").write_text("a\nb\nc\nd\na\n")
    found = check_folder(folder)
    lines = found.text().splitlines()
    assert lines[0] == "cirr/test: 41 queries, 4 images"
    assert [line.partition(f"{folder}/")[2].partition(":")[0] for line in lines[1:4]] == [
        "card.yaml",
        "images.txt",
        "queries.jsonl",
    ]
    place = f"error: {folder}/queries.jsonl: line 2 (query_id 0):"
    at = lines.index(place)
    says("\n".join(lines[at : at + 4]), "must be a list", "a caption is empty", "its target 'z' is not in")
    assert len(found.errors) == 3 + 40 * 3
    assert sum("a caption is empty" in line for line in lines) == 5 + 1
    assert f"error: {folder}/queries.jsonl: 35 more of this kind: a caption is empty. Fix:" in found.text()
    assert lines[-1] == "123 errors."


def test_a_file_of_nothing_but_faults_is_looked_at_so_far(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_check, "MOST", 100)
    found = check_folder(write("mine", *[{}] * 1000, images="a\n" * 1000))
    assert len(found.errors) < 220
    for file in ("images.txt", "queries.jsonl"):
        (last,) = [one for one in found.errors if file in one and "were not looked at" in one]
        says(last, file, "100 faults before it", "Fix:")


def test_pictures_are_not_looked_for_in_all_files_of_the_machine(write: Write) -> None:
    up = "/".join([".."] * 40)
    folder = write("mine", QUERY, card=f"name: mine\ntitle: Mine\nimage_folder: {up}\n")
    assert picture_folders(folder, up) == ()
    says(check_folder(folder).notes[0], "there are no pictures")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_named(write: Write, encoding: str) -> None:
    folder = write()
    text = json.dumps({**QUERY, "relative_caption": "größer"}, ensure_ascii=False)
    (folder / "queries.jsonl").write_text(f"{text}\n", encoding=encoding)
    says(
        "\n".join(check_folder(folder).errors),
        "queries.jsonl: line 1: it is not UTF-8",
        "Fix: save the file as UTF-8",
    )


def test_a_byte_order_mark_is_not_a_part_of_the_first_id(write: Write, register: Register) -> None:
    folder = write("mine", images="\ufeffa\r\nb\r\nc\r\nd\r\n")
    assert check_folder(folder).ok
    register(folder)
    assert list(cir_datasets.load("mine/test").gallery or ()) == IMAGES


def test_pictures_are_found_beside_the_card_and_looked_at(
    write: Write, tmp_path: Path, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    folder = write("mine", images="a\nb\tdeep/b.png\nc\nd\n")
    says(
        check_folder(folder).notes[0],
        "there are no pictures of these images (of 'a' tried: ",
        "Scoring needs none",
    )
    (folder / "images" / "deep").mkdir(parents=True)
    for name in ("a.png", "deep/b.png", "c.jpg"):
        Image.new("RGB", (4, 4)).save(folder / "images" / name)
    errors = check_folder(folder).errors
    assert len(errors) == 1
    says(errors[0], "image 'd' has no picture: tried", "images/d.png", "Fix: put it there")
    (folder / "images" / "d.webp").write_bytes(b"nothing")
    says(check_folder(folder).errors[0], "d.webp: image 'd'", "Fix: replace the picture")
    Image.new("RGB", (4, 4)).save(folder / "images" / "d.webp")
    assert check_folder(folder).ok
    register(folder)
    assert set(cir_datasets.image_paths("mine/test")) == set(IMAGES)
    (folder / "images").rename(tmp_path / "images")
    monkeypatch.setenv("CIR_IMAGES", str(tmp_path))
    assert cir_datasets.image_paths("mine/test")["b"] == tmp_path / "images/deep/b.png"


def test_an_id_that_leads_out_of_the_folder_hides_no_other_picture(write: Write) -> None:
    from PIL import Image

    folder = write("mine", images="a\n..\nb\nc\nd\n../up\tup.png\n")
    (folder / "images").mkdir()
    for name in ("a.png", "b.png", "up.png"):
        Image.new("RGB", (4, 4)).save(folder / "images" / name)
    found = check_folder(folder)
    says(found.errors[0], "images.txt: line 2: image '..': as a path it leads out", "Fix: give it another id")
    assert [each.partition(" has no picture")[0] for each in found.errors[1:]] == ["image 'c'", "image 'd'"]


def written(folder: Path, **changes: Any) -> Path:
    rows = [query_row(**QUERY, captions=["in red"], positive_image_ids=["b"]), query_row(**SECOND)]
    given: dict[str, Any] = {"name": "made", "title": "Made", "configs": {"test": rows}, "galleries": IMAGES}
    return write_benchmark(folder, **(given | changes))


def test_what_is_written_is_a_benchmark_of_the_same_bytes(tmp_path: Path, register: Register) -> None:
    first = written(tmp_path / "first", made={"seed": 1}, image_paths={"a": "x/a.png"})
    again = written(tmp_path / "again", made={"seed": 1}, image_paths={"a": "x/a.png"})
    content = {path.name: path.read_bytes() for path in first.iterdir()}
    assert content == {path.name: path.read_bytes() for path in again.iterdir()}
    assert check_folder(first).ok
    assert "captions" not in content["queries.jsonl"].decode().replace("relative_caption", "")
    register(first)
    assert cir_datasets.load("made/test").spec.card.version == 1
    assert cir_datasets.image_manifest("made/test")[0]["relative_path"] == "x/a.png"


def test_rows_that_do_not_fit_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(RecordError) as caught:
        written(tmp_path / "made", galleries=["a", "c", "d"])
    says(caught, "nothing was written", "queries.jsonl: line 1 (query_id 1): its target 'b'", "line 2")
    assert list(tmp_path.glob("**/made")) == []


def test_a_benchmark_is_written_again_and_another_is_not_overwritten(tmp_path: Path) -> None:
    folder = written(tmp_path / "made")
    (folder / "stage.parquet").write_bytes(b"kept")
    (folder / "README.md").write_text("Our own words.\n")
    written(folder, version=2, configs={"test": [query_row(**QUERY)]})
    assert (folder / "queries.jsonl").read_text().count("\n") == 1
    assert (folder / "stage.parquet").read_bytes() == b"kept"
    assert (folder / "README.md").read_text() == "Our own words.\n"
    with pytest.raises(CallError) as caught:
        written(folder, name="other")
    says(caught, "holds the benchmark 'made'", "Fix: choose another folder")


@pytest.mark.parametrize("ends_at", range(9))
def test_a_call_with_other_configurations_leaves_none_of_the_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_at: int
) -> None:
    rows = [query_row(**QUERY)]
    both = {"configs": {"one": rows, "two": rows}, "galleries": {"one": IMAGES, "two": IMAGES[:3]}}
    folder = written(tmp_path / "made")
    (folder / "ranks.jsonl").write_text("{}\n")
    left = [ends_at]

    def ending(self: Path, *given: Any, act: Callable[..., Any], **named: Any) -> Any:
        left[0] -= self.parent == folder or folder in (Path(each).parent for each in given)
        if left[0] < 0:
            raise KeyboardInterrupt
        return act(self, *given, **named)

    with monkeypatch.context() as patch:
        for name in ("unlink", "replace"):
            patch.setattr(Path, name, functools.partialmethod(ending, act=getattr(Path, name)))
        with contextlib.suppress(KeyboardInterrupt):
            written(folder, **both)
    written(folder, **both)
    whole = ["one.jsonl", "one_images.txt", "two.jsonl", "two_images.txt"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "card.yaml", whole[0], whole[1], "ranks.jsonl", *whole[2:],
    ]  # fmt: skip
    written(folder)
    assert not any((folder / name).exists() for name in whole)


def test_the_benchmark_of_a_pipeline_may_be_renamed_by_it_alone(tmp_path: Path) -> None:
    folder = written(tmp_path / "made", made={"pipeline": "fisd"})
    written(folder, name="other", made={"pipeline": "fisd"})
    assert check_folder(folder).name == "other"
    for another in ({"pipeline": "cirr"}, {}):
        with pytest.raises(CallError, match="holds the benchmark 'other'"):
            written(folder, name="third", made=another)


def test_sessions_and_several_galleries_are_written(tmp_path: Path, register: Register) -> None:
    session = {**SESSION, "subset": "", "num_turns": 2}
    galleries = {"test": IMAGES, "train": IMAGES[:3]}
    register(written(tmp_path / "made", configs={"test": [session], "train": [session]}, galleries=galleries))
    assert len(cir_datasets.load("made/train").gallery or ()) == 3
    assert cir_datasets.load("made/test").rows() == [session]


def test_private_data_is_not_pushed(tmp_path: Path, register: Register) -> None:
    register(written(tmp_path / "made"))
    to = tmp_path / "published"
    with pytest.raises(CallError) as caught:
        cir_datasets.publish("made", to, push_to="me/made", may_copy="unknown")
    says(caught, "private: true", "nothing was pushed", "--even-private", "private: false")
    with pytest.raises(CallError) as caught:
        cir_datasets.publish("made", to, push_to="me/made", even_private=True, private=False)
    says(caught, "a public repository would show it", "leave --public out")
    assert not to.exists()
    (done,) = cir_datasets.publish("made", to)
    assert str(tmp_path) not in (done.folder / "README.md").read_text()
    assert str(tmp_path) not in (done.folder / "croissant.json").read_text()


def test_the_readme_of_a_folder_is_its_dataset_card(tmp_path: Path, register: Register) -> None:
    folder = written(tmp_path / "made", license="CC BY 4.0")
    (folder / "README.md").write_text(
        "---\ntags: [birds]\nrai: {data_biases: [Only birds.]}\n---\nOn birds.\n"
    )
    register(folder)
    (done,) = cir_datasets.publish("made", tmp_path / "published")
    card = (done.folder / "README.md").read_text()
    assert "On birds." in card
    assert "- Only birds." in card
    assert "CC BY 4.0" in card


@pytest.mark.parametrize("sessions", [False, True])
def test_a_new_folder_is_a_benchmark(tmp_path: Path, register: Register, sessions: bool) -> None:
    folder = new_folder("fresh", tmp_path / "fresh", sessions=sessions)
    found = check_folder(folder)
    assert (found.errors, found.notes) == ([], [])
    rows = next(folder.glob("*.jsonl"))
    other = rows.with_suffix(".csv")
    other.write_text("query_id\n", encoding="utf-8")
    assert check_folder(folder).notes == [f"{other.name} is not read: card.yaml names {rows.name}."]
    rows.rename(folder / "kept")
    assert f"{rows.name}: no such file. Fix: name {other.name} in" in check_folder(folder).errors[0]
    other.unlink()
    (folder / "kept").rename(rows)
    register(folder)
    assert len(cir_datasets.load("fresh/test")) == 4
    with pytest.raises(CallError) as caught:
        new_folder("fresh", folder)
    says(caught, "fresh", "Fix: choose another")
    with pytest.raises(CallError) as caught:
        new_folder("cirr", tmp_path / "cirr")
    says(caught, "'cirr', which is a benchmark of this package", "Fix: choose another name")


@pytest.mark.parametrize(
    ("name", "said"),
    [("My-Own", "Fix: choose a name of small letters"), ("shapes", "which is a benchmark of this package")],
)
def test_what_is_made_has_a_name_that_can_be_used(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(CallError, match=said):
        written(tmp_path / "made", name=name)
    with pytest.raises(CallError, match=said):
        made_name(name, tmp_path, "made")
    assert not (tmp_path / "made").exists()
