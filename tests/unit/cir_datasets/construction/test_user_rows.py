"""Benchmarks from rows in Python: what is written is a benchmark, and what is wrong is named before it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from says import says
from typer.testing import CliRunner

import cir_datasets
import submissions
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.construction.user_rows import custom_benchmark
from cir_metrics.errors import CirError
from leaderboard.cli import build
from submissions.rank_file.content import LIMITS

IMAGES = [f"photo{number:02d}" for number in range(60)]
ROWS: list[dict[str, Any]] = [
    {
        "query_id": str(number),
        "reference_image_id": IMAGES[number],
        "relative_caption": f"with {number} apples",
        "target_image_id": IMAGES[number + 1],
    }
    for number in range(50)
]


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_CHALLENGES", str(tmp_path / "challenges"))
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    monkeypatch.setenv("CIR_BENCHMARKS", "")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for place, image in enumerate(IMAGES):
        Image.new("RGB", (8, 8), (4 * place, 90, 90)).save(folder / f"{image}.jpg")
    return folder


def cir(*arguments: str) -> str:
    done = CliRunner().invoke(build(), list(arguments))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_rows_and_a_folder_of_pictures_are_a_benchmark_that_every_command_reads(
    photos: Path, tmp_path: Path
) -> None:
    mine = custom_benchmark("mine", ROWS, images="photos")
    assert (mine.id, len(mine), list(mine.gallery or ())) == ("mine/test", 50, IMAGES)
    assert check_folder(tmp_path / "mine").ok
    assert os.environ["CIR_BENCHMARKS"] == str(tmp_path / "mine")
    assert "data:image/jpeg" in mine.queries[0]._repr_html_()
    run = submissions.make_rank_file(mine, "random")
    submissions.write(run, "run.json")
    score = submissions.score("run.json")
    assert score.n == 50
    assert json.loads(cir("score", "run.json", "--json"))["metrics"] == score.metrics
    assert "mine/test" in cir("datasets", "list")
    # A cell that is run again, with one query less.
    assert len(custom_benchmark("mine", ROWS[1:], images="photos")) == 49
    assert os.environ["CIR_BENCHMARKS"] == str(tmp_path / "mine")


def test_an_id_may_be_a_file_s_name_or_path_and_no_picture_is_needed(photos: Path, tmp_path: Path) -> None:
    (photos / "more").mkdir()
    (photos / "photo59.jpg").rename(photos / "more" / "photo00.jpg")
    by_name = [{**row, **{key: f"{row[key]}.jpg" for key in row if "image" in key}} for row in ROWS]
    with pytest.raises(CirError, match=r"more/photo00.jpg and photo00.jpg have one id, 'photo00'. Fix: "):
        custom_benchmark("stems", ROWS, images=photos)
    (photos / "more" / "photo00.jpg").rename(photos / "more" / "other.jpg")
    mine = custom_benchmark("by_name", by_name, images=photos)
    assert "other.jpg" in list(mine.gallery or ())
    assert len(cir_datasets.image_paths("by_name/test")) == 60
    assert custom_benchmark("bare", ROWS, IMAGES).gallery == IMAGES
    sessions = [{"session_id": "1", "ground_truth_ids": ["photo02"], "turns": [
        {"reference_image_id": "photo00", "relative_caption": "in red"},
        {"reference_image_id": "photo01", "relative_caption": "and large"},
    ]}]  # fmt: skip
    assert custom_benchmark("talks", sessions, IMAGES).multi_turn


def changed(**fields: Any) -> list[dict[str, Any]]:
    return [ROWS[0], ROWS[1] | fields, *ROWS[2:]]


BAD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a reference is missing": (
        {"rows": [{key: row[key] for key in row if key != "reference_image_id"} for row in ROWS]},
        (
            "50 errors; nothing was written",
            "row 1 (query_id 0): reference_image_id is missing",
            "and 45 more",
        ),
    ),
    "an unknown target": (
        {"rows": changed(target_image_id="photo99")},
        ("row 2 (query_id 1): its target 'photo99' is not in the gallery",),
    ),
    "half a character": (
        {"rows": changed(relative_caption="a\ud800b")},
        ("row 2 (query_id 1): relative_caption is 'a\\ud800b'", "a character that is not text"),
    ),
    "a NUL": ({"rows": changed(relative_caption="a\0b")}, ("relative_caption", "that is not text")),
    "a terminal's escape in an id": (
        {"rows": changed(query_id="a\x1b[2J")},
        ("query_id is 'a\\x1b[2J': an id has no line breaks or other control characters",),
    ),
    "an id longer than a rank file takes": (
        {"rows": changed(query_id="é" * (LIMITS["id"].least // 2 + 1))},
        ("query_id has 524,289 characters, and an id at most 1,048,576 bytes. Fix: shorten it",),
    ),
    "a line break in the gallery": (
        {"gallery": [*IMAGES, "a\rb"]},
        ("gallery: image 61 is 'a\\rb'", "line br"),
    ),
    "metrics as text": ({"metrics": "recall@1"}, ("metrics is a list", "metrics=['recall@1']")),
    "no target": ({"rows": changed(target_image_id=None)}, ("row 2 (query_id 1): it says no right answer",)),
    "a doubled id": ({"rows": changed(query_id="0")}, ("row 2 (query_id 0): its id is there twice",)),
    "an empty gallery": ({"gallery": []}, ("gallery: it names 0 images",)),
    "a doubled image": ({"gallery": [*IMAGES, "photo03"]}, ("gallery: image 61", "'photo03'", "twice")),
    "no gallery": ({"gallery": None}, ("neither gallery nor images is given",)),
    "a number as an image": (
        {"rows": changed(target_image_id=np.float64(1))},
        ("row 2 (query_id 1): target_image_id must be text, not",),
    ),
    "a number in the gallery": ({"gallery": [*IMAGES, 7.5]}, ("gallery: image 61 is 7.5",)),
    "a set of rows": ({"rows": {1}}, ("rows are a list of dictionaries, not a set, which has no order",)),
    "a list as row": ({"rows": [*ROWS, ["50", "photo00"]]}, ("row 51: a row is a dictionary",)),
    "no rows": ({"rows": []}, ("there are no rows",)),
    "a caption that is not a number": (
        {"rows": changed(relative_caption=float("nan"))},
        ("row 2 (query_id 1): relative_caption must be text, not nan",),
    ),
    "an empty caption": (
        {"rows": changed(relative_caption=" ")},
        ("row 2 (query_id 1): a caption is empty",),
    ),
    "a misspelt field": (
        {"rows": changed(captoin="x")},
        ("row 2 (query_id 1): there is no field 'captoin'. Did you mean 'captions'?",),
    ),
    "the target is the reference": (
        {"rows": changed(target_image_id="photo01")},
        ("row 2 (query_id 1): its reference 'photo01' is a positive",),
    ),
    "sessions among queries": (
        {"rows": [*ROWS, {"session_id": "1"}]},
        ("row 51 (session_id 1): it is a session, and the first row a query",),
    ),
    "the name of a benchmark": ({"name": "cirr"}, ("'cirr', which is a benchmark of this package",)),
    "not a name": ({"name": "My Own"}, ("cannot be called 'My Own'",)),
    "the name of another folder": ({"name": "taken"}, ("the benchmark 'taken' lies in",)),
    "no such folder": ({"images": "nowhere"}, ("nowhere: no such folder",)),
    "a folder without pictures": ({"images": "elsewhere"}, ("elsewhere: it holds no picture",)),
    "an unknown metric": ({"metrics": ["recall@ten"]}, ("recall@ten", "Did you mean")),
}


def test_the_name_of_0_1_goes_on_working() -> None:
    assert cir_datasets.own_benchmark("bare", ROWS, IMAGES).gallery == IMAGES


def test_a_data_frame_is_its_rows() -> None:
    made = custom_benchmark("mine", pd.DataFrame(ROWS), IMAGES, folder="made")
    assert made.query_ids == [row["query_id"] for row in ROWS]


def test_the_index_of_a_data_frame_holds_the_ids_where_no_column_does() -> None:
    indexed = pd.DataFrame(ROWS).set_index("query_id")
    numbered = pd.DataFrame(ROWS).drop(columns="query_id").set_axis(range(50, 0, -1))
    both = pd.DataFrame(ROWS, index=[f"row {n}" for n in range(len(ROWS))])
    of_texts = [row["query_id"] for row in ROWS]
    for frame, ids in (
        (indexed, of_texts),
        (indexed.rename_axis(None), of_texts),
        (numbered, [str(n) for n in range(50, 0, -1)]),
        (both, of_texts),
    ):
        assert custom_benchmark("mine", frame, IMAGES, folder="made").query_ids == ids


def test_sessions_of_a_data_frame_have_their_ids_in_its_index() -> None:
    turns = [{"turn": 1, "reference_image_id": IMAGES[0], "relative_caption": "in red"}]
    rows = [{"session_id": name, "turns": turns, "ground_truth_ids": [IMAGES[1]]} for name in ("s2", "s1")]
    frame = pd.DataFrame(rows).set_index("session_id")
    assert custom_benchmark("mine", frame, IMAGES, folder="made").query_ids == ["s2", "s1"]


def test_an_id_that_the_index_holds_twice_is_refused() -> None:
    indexed = pd.DataFrame(ROWS).set_index("query_id")
    with pytest.raises(CirError, match=ROWS[0]["query_id"]):
        custom_benchmark("mine", pd.concat([indexed, indexed[:1]]), IMAGES, folder="made")


def test_queries_that_a_data_frame_numbers_have_texts_as_their_ids() -> None:
    numbered = pd.DataFrame(ROWS).assign(query_id=range(50)).to_dict("records")
    assert custom_benchmark("mine", numbered, IMAGES, folder="made").query_ids == [str(n) for n in range(50)]


def test_a_cutoff_that_leaves_no_image_out_is_warned_of() -> None:
    with pytest.warns(
        UserWarning, match=r"^mine: metric recall@60: the gallery has 60 images, .* Fix: name a"
    ):
        custom_benchmark("mine", ROWS, IMAGES, folder="made", metrics=["recall@59", "recall@60"])


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named_with_place_and_fix_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    custom_benchmark("taken", ROWS, IMAGES, folder="elsewhere/taken")
    before = sorted(tmp_path.iterdir())
    given, fragments = BAD[case]
    with pytest.raises(CirError) as caught:
        custom_benchmark(**{"name": "mine", "rows": ROWS, "gallery": IMAGES, "folder": "made"} | given)
    says(caught, *fragments)
    says(caught, "Fix: ")
    assert sorted(tmp_path.iterdir()) == before
    assert os.environ["CIR_BENCHMARKS"] == str(tmp_path / "elsewhere/taken")


def test_a_picture_that_is_missing_or_broken_is_named(photos: Path) -> None:
    (photos / "photo05.jpg").write_bytes(b"not a picture")
    (photos / "photo07.jpg").unlink()
    with pytest.raises(CirError) as caught:
        custom_benchmark("mine", ROWS, IMAGES, images=photos)
    says(
        caught, "image 'photo07' has no picture", "Fix: put it there", "'photo05'", "Fix: replace the picture"
    )


def test_the_name_of_a_benchmark_is_no_protocol() -> None:
    with pytest.raises(CirError, match=r"custom_benchmark\(name, rows, images=FOLDER\)"):
        cir_datasets.Benchmark.from_rows("mine", ROWS, IMAGES)  # type: ignore[arg-type]


def test_two_spellings_of_an_image_are_one_positive() -> None:
    rows = [
        {**row, "positive_image_ids": [row["target_image_id"], f"{row['target_image_id']}.jpg"]}
        for row in ROWS
    ]
    made = custom_benchmark("mine", rows, IMAGES)
    assert [row["positive_image_ids"] for row in made.rows()] == [[row["target_image_id"]] for row in ROWS]
    twice = [{**ROWS[0], "positive_image_ids": [ROWS[0]["target_image_id"]] * 2}, *ROWS[1:]]
    with pytest.raises(CirError, match="holds 'photo01' twice"):
        custom_benchmark("twice", twice, IMAGES)


def test_verify_names_a_file_that_was_changed_after_it_was_written(tmp_path: Path) -> None:
    custom_benchmark("mine", ROWS, IMAGES)
    assert "2 files of the folder, each as the package wrote it" in cir("datasets", "verify", "mine/test")
    path = tmp_path / "mine/queries.jsonl"
    path.write_text(path.read_text().replace("with 7 apples", "with 8 pears"))
    done = CliRunner().invoke(build(), ["datasets", "verify", "mine/test"])
    assert done.exit_code == 1
    assert f"{path}: changed since it was written. Fix: make it again" in done.stdout
    card = tmp_path / "mine/card.yaml"
    card.write_text(card.read_text().partition("hashes:")[0])
    assert "card.yaml has no hashes: to compare with" in cir("datasets", "verify", "mine/test")
