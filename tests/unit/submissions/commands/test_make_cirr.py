"""`cir make cirr` from pictures to a benchmark that is loaded, run, scored and published."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fisd_runs import content
from language_server import Fault, LanguageServer
from PIL import Image
from typer.testing import CliRunner

import cir_datasets
from cir_datasets.construction.cirr.pipeline import run_of, settings_of
from cir_datasets.construction.cirr.rule import faults
from cir_datasets.construction.cirr.subset_rule import SubsetRule
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.shapes import picture
from leaderboard.cli import build

pytestmark = pytest.mark.usefixtures("one_thread")

IMAGES = 150
RESULTS = ("benchmark", "dialogues")


def call(*arguments: object, fails: bool = False) -> str:
    made = CliRunner().invoke(build(), list(map(str, arguments)))
    said = f"{made.output}{made.exception or ''}"
    assert (made.exit_code != 0) == fails, said
    return said


def refused(*arguments: object) -> str:
    return " ".join(call("make", *arguments, fails=True).replace("\u2502", " ").split())


def rows(folder: Path, stage: str) -> list[dict[str, Any]]:
    (path,) = folder.glob(f"[0-9][0-9]-{stage}.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of shapes as files, a copy of one, and a file that is none."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "more").mkdir()
    for image in list(cir_datasets.load("shapes/val").gallery or ())[:IMAGES]:
        picture(image).save(folder / "more" / f"{image}.png")
    Image.open(folder / "more" / "val-000000.png").save(folder / "zz-copy.bmp")
    (folder / "broken.jpg").write_bytes(b"no picture")
    return folder


def make(photos: Path, out: Path, *more: object) -> str:
    return call(
        "make", "cirr", "--images", photos, "-e", "shapes", "--out", out, "--splits", "val=50,test=50",
        "--name", "mine", *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def asked(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that waits for annotators."""
    out = tmp_path_factory.mktemp("asked") / "out"
    make(photos, out, "--subsets", 6, "--annotators", 2, "--common", 4)
    return out


def test_every_subset_obeys_the_rule_within_its_split(asked: Path) -> None:
    images = [row for row in rows(asked, "images") if "failed" not in row]
    features = np.load(asked / "02-features.npy")
    place = {row["image"]: at for at, row in enumerate(images)}
    found = [row for row in rows(asked, "subsets") if "failed" not in row]
    assert len(found) > 100
    for split in ("val", "test"):
        start = min(place[row["image"]] for row in images if row["split"] == split)
        own = features[start : start + sum(row["split"] == split for row in images)]
        for subset in (row for row in found if row["split"] == split):
            members = [place[image] - start for image in subset["members"]]
            assert list(faults(members, own, SubsetRule())) == []


def test_counts_add_up_and_what_is_left_out_has_a_reason(asked: Path) -> None:
    images, subsets, overlaps = (rows(asked, stage) for stage in ("images", "subsets", "overlaps"))
    assert len(images) == IMAGES + 2
    assert {row["image"]: row["failed"] for row in images if "failed" in row} == {
        "broken.jpg": "it cannot be opened (MissingImagesError)",
        "zz-copy.bmp": "the same pixels as more/val-000000.png",
    }
    assert len(subsets) == IMAGES
    assert len(overlaps) == sum("failed" not in row for row in subsets)
    used = [row for row in overlaps if "failed" not in row]
    assert len(used) == 6
    for one in used:
        assert all(len(set(one["members"]) & set(two["members"])) <= 2 for two in used if two is not one)
    assert len(rows(asked, "pairs")) == 6 * 9


def test_pages_stand_alone(asked: Path) -> None:
    page = (asked / "tasks" / "page-1.html").read_text()
    assert "http://" not in page
    assert "https://" not in page
    with (asked / "tasks" / "tasks.csv").open() as file:
        tasks = list(csv.DictReader(file))
    assert len(tasks) == 54 + 4
    assert all((asked / "tasks" / row[name]).is_file() for row in tasks for name in ("reference", "other_4"))


def answers_of(run: Path, path: Path, *, page: int, caption: Any, folder: str = "tasks") -> Path:
    with (run / folder / "tasks.csv").open() as file:
        tasks = [row for row in csv.DictReader(file) if row["page"] == str(page)]
    answers = [{"task": row["task"], "caption": caption(at), "mark": ""} for at, row in enumerate(tasks)]
    path.write_text(json.dumps({"run": tasks[0]["run"], "annotator": f"a{page}", "answers": answers}))
    return path


def test_name_and_title_may_be_said_later_and_answers_to_the_pages_still_count(
    photos: Path, asked: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(asked, out)
    before = settings_of(out)
    make(photos, out, "--subsets", 6, "--annotators", 2, "--common", 4, "--title", "Ours", "--name", "ours")
    after = settings_of(out)
    assert after["called"] == {"name": "ours", "title": "Ours"}
    assert run_of(after) == run_of(before)
    assert "<title>Ours" in (out / "tasks" / "page-1.html").read_text()


@pytest.mark.slow
def test_answers_become_a_benchmark_and_open_pairs_are_asked_again(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    make(photos, out, "--subsets", 6, "--annotators", 2)
    call("make", "cirr-import", out, tmp_path / "absent.json", "--images", photos, fails=True)
    assert "it holds no run" in refused("cirr-import", tmp_path, tmp_path / "absent.json")
    long = "put thing {} there".format
    first = answers_of(out, tmp_path / "one.json", page=1, caption=lambda at: long(at) if at else "short")
    said = call("make", "cirr-import", out, first, "--images", photos)
    assert "refused: 0001-one.json, answer 1: t1-" in said
    assert "caption is too short" in said
    answers = rows(out, "answers")
    assert answers[0]["failed"].startswith("caption is too short")
    assert answers[0]["caption"] == "short"
    two = answers_of(out, tmp_path / "two.json", page=2, caption=lambda at: f"paint piece {at} blue")
    call("make", "cirr-import", out, two, "--images", photos)
    assert sum("failed" in row for row in rows(out, "captions")) == 1
    right = "move it to the right".format
    again = answers_of(out, tmp_path / "three.json", page=1, caption=right, folder="open-tasks")
    # What somebody saved beside the pages stays.
    (out / "open-tasks" / "answers-1.json").write_text("mine")
    before = content(out)
    call("make", "cirr-import", out, again, "--images", photos)
    assert [path.name for path in (out / "open-tasks").iterdir()] == ["answers-1.json"]
    assert not any("failed" in row for row in rows(out, "captions"))
    assert len(rows(out, "answers")) == 55
    done = content(out)
    assert done != before
    # The same file a second time, and the same call as at first, change nothing.
    call("make", "cirr-import", out, again, "--images", photos)
    make(photos, out, "--subsets", 6, "--annotators", 2)
    assert content(out) == done
    assert not (out / "card.yaml").exists()
    monkeypatch.setenv("CIR_BENCHMARKS", os.pathsep.join(str(out / name) for name in RESULTS))
    monkeypatch.setenv("CIR_IMAGES", str(photos.parent))
    for name in RESULTS:
        found = check_folder(out / name)
        assert (found.errors, found.notes) == ([], [])
    counts = {split: len(cir_datasets.load(f"mine/{split}").query_ids) for split in ("val", "test")}
    assert sum(counts.values()) == 54
    for split in counts:
        dialogues = cir_datasets.load(f"mine_dialogues/{split}")
        assert dialogues.gallery == cir_datasets.load(f"mine/{split}").gallery


def test_files_of_answers_are_never_written_over_and_others_beside_them_are_none(
    asked: Path, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(asked, out)
    kept = {}
    for number, page in enumerate((1, 2, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        # Every page saves under the same name.
        caption = f"put {number} things {{}}".format
        file = answers_of(out, folder / "answers-1.json", page=page, caption=caption)
        (out / "answers" / ".DS_Store").write_bytes(b"\0\0\0\1Bud1") if number else None
        call("make", "cirr-import", out, file, "--images", photos)
        kept[f"{number + 1:04d}-answers-1.json"] = file.read_bytes()
        if number == 1:
            (out / "answers" / "0001-answers-1.json").unlink()
    del kept["0001-answers-1.json"]
    assert {path.name: path.read_bytes() for path in (out / "answers").glob("[!.]*.json")} == kept
    assert {row["file"] for row in rows(out, "answers")} == {"0003-answers-1.json"}
    with (out / "open-tasks" / "tasks.csv").open() as file:
        assert all(row["task"].startswith("r3-") for row in csv.DictReader(file))


@pytest.mark.slow
def test_what_a_model_writes_is_run_scored_and_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "mine"
    command = ["make", "cirr", "--benchmark", "shapes/val", "--out", out, "--limit", 30, "--subsets", 4]
    command += ["--splits", "test=100", "--captions", "model", "--language", "oracle"]
    call(*command)
    done = content(out)
    call(*command)
    assert content(out) == done
    assert "benchmark: " + str(out / "benchmark") in call("make", "status", out)
    assert json.loads(call("make", "status", out, "--json"))["benchmarks"] == list(RESULTS)
    monkeypatch.setenv("CIR_BENCHMARKS", os.pathsep.join(str(out / name) for name in RESULTS))
    for name in RESULTS:
        found = check_folder(out / name)
        assert (found.errors, found.notes) == ([], [])
    ranks = tmp_path / "ranks.json"
    call("run", "-b", "mine/test", "-m", "image_text_sum", "-e", "shapes", "--out", ranks)
    scored = json.loads(call("score", ranks, "--format", "json"))
    assert "recall_subset@1" in json.dumps(scored)
    call("datasets", "publish", "mine/test", "--to", tmp_path / "published")
    queries = [json.loads(line) for line in (out / "benchmark" / "queries.jsonl").read_text().splitlines()]
    assert all(len(row["subset_image_ids"]) == 6 for row in queries)
    assert all(row["reference_image_id"] in row["subset_image_ids"] for row in queries)


@pytest.mark.slow
def test_dialogue_paths_are_a_benchmark_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "mine"
    # Subsets that share images, so that paths lead from one to another.
    call(
        "make", "cirr", "--benchmark", "shapes/val", "--out", out, "--limit", 60, "--shared", 3,
        "--splits", "test=100", "--captions", "model", "--language", "oracle",
    )  # fmt: skip
    monkeypatch.setenv("CIR_BENCHMARKS", os.pathsep.join(str(out / name) for name in RESULTS))
    sessions = cir_datasets.load("mine_dialogues/test").rows()
    queries = {
        (row["reference_image_id"], row["relative_caption"], row["target_image_id"])
        for row in cir_datasets.load("mine/test").rows()
    }
    assert {row["subset"] for row in sessions} == {"within", "across"}
    for row in sessions:
        (target,) = row["ground_truth_ids"]
        images = [turn["reference_image_id"] for turn in row["turns"]] + [target]
        said = [turn["relative_caption"] for turn in row["turns"]]
        assert len(set(images)) == len(images) >= 3
        assert set(zip(images[:-1], said, images[1:], strict=True)) <= queries
    paths = [json.loads(line) for line in (out / "dialogues" / "paths.jsonl").read_text().splitlines()]
    assert [path["path"] for path in paths] == [row["session_id"] for row in sessions]
    assert any(path["closed"] for path in paths)
    ranks = tmp_path / "ranks.json"
    call("run", "-b", "mine_dialogues/test", "-m", "image_text_sum", "-e", "shapes", "--out", ranks)
    assert "final_recall@10" in call("score", ranks)
    call("datasets", "publish", "mine_dialogues/test", "--to", tmp_path / "published")


@pytest.mark.slow
def test_a_server_with_faults_is_asked_once_a_pair(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    numbers = iter(range(10_000))

    def look(asked: Any) -> str:
        return json.dumps({"instruction": f"move thing {next(numbers)} up"})

    def fault(prompt: str, times: int) -> Fault | None:
        return {1: Fault("status", 503), 5: Fault("not_json"), 9: Fault("refusal")}.get(times)

    with LanguageServer(fault, look=look) as server:
        name = f"openai:tiny,url={server.url},concurrency=1"
        out = tmp_path / "out"
        make(photos, out, "--subsets", 3, "--captions", "model", "--language", name)
        answered = len(server.requests)
        made = rows(out, "captions")
        assert len(made) == 27
        assert all(len(asked.images) == 6 for asked in server.requests)
        call("make", "again", out, "--from", "captions")
        make(photos, out, "--subsets", 3, "--captions", "model", "--language", name)
        refused = sum("failed" in row for row in made)
        assert len(server.requests) - answered <= refused


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["--captions", "model"], "--language goes with --captions model"),
        (["--captions", "peple"], "Did you mean"),
        (["--splits", "val=50"], "add up to 100"),
        (["--splits", "val"], "train=80,val=10,test=10"),
        (["--splits", "a/b=50,../x=50"], "a split cannot be called 'a/b'"),
        (["--splits", "paths=50,val=50"], "a split cannot be called 'paths'"),
        (["--splits", "Test=50,val=50"], "a split cannot be called 'Test'"),
        (["--name", "Mine!"], "cannot be called"),
        (["--size", "2"], "3 images or more"),
        (["--address", "auto"], "--engine ray"),
        (["--alike", "-0.99"], "make no subset of 6"),
    ],
)
def test_calls_that_cannot_be_followed_are_refused(
    photos: Path, tmp_path: Path, more: list[str], what: str
) -> None:
    assert what in refused("cirr", "--images", photos, "-e", "shapes", "--out", tmp_path / "out", *more)


def test_pictures_that_no_benchmark_can_name_are_left_out_before_anybody_writes(
    photos: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "odd pics \u00fc"
    shutil.copytree(photos / "more", odd)
    names = [b"  lead.png", b"tab\there.png", b"new\nline.png", b"\xef\xbb\xbfmark.png", b"bad\xff.png"]
    for image, name in zip(sorted(odd.iterdir()), names, strict=False):
        image.rename(os.fsdecode(os.fsencode(odd) + b"/" + name))
    out = tmp_path / "out"
    make(odd, out, "--subsets", 2)
    left = {row["image"]: row["failed"] for row in rows(out, "images") if "failed" in row}
    blanks = "its name has a tab, a line break or blanks at its ends, or leads out of the folder"
    assert left == {
        "  lead.png": blanks,
        "tab\there.png": blanks,
        "new\nline.png": blanks,
        "\ufeffmark.png": blanks,
        "bad\\xff.png": "its name is not UTF-8",
    }
    answers = answers_of(out, tmp_path / "one.json", page=1, caption=lambda at: f"put thing {at} there")
    call("make", "cirr-import", out, answers, "--images", odd)
    assert check_folder(out / "benchmark", pictures=False).ok


def test_a_run_in_the_folder_of_its_pictures_is_refused(photos: Path) -> None:
    inside = photos / "more" / ".." / "run"
    made, imported = ["cirr", "-e", "shapes", "--out", inside], ["cirr-import", inside, photos / "broken.jpg"]
    for command in (made, imported):
        assert "it lies in the folder of the pictures" in refused(*command, "--images", photos)
    assert not (photos / "run").exists()


def test_a_folder_without_a_picture_that_can_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "a.png").write_bytes(b"no picture")
    said = refused("cirr", "--images", tmp_path / "none", "-e", "shapes", "--out", tmp_path / "out")
    assert "none of 1 pictures can be used, such as 'a.png': it cannot be opened" in said


def test_a_small_split_and_small_subsets_are_said_and_scored_as_what_they_are(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    command = ["make", "cirr", "--images", photos, "-e", "shapes", "--out", out, "--name", "mine"]
    command += ["--size", 4, "--subsets", 3, "--splits", "test=98,val=2"]
    said = call(*command)
    assert "cir: val: no subset was found among its images" in said
    assert "subsets of val that are used: 0" in said
    assert "CIR_IMAGES" not in said
    pairs = rows(out, "pairs")
    assert len(pairs) == 3 * 5
    answers = answers_of(out, tmp_path / "one.json", page=1, caption=lambda at: f"put thing {at} there")
    said = call("make", "cirr-import", out, answers, "--images", photos)
    assert f"export CIR_IMAGES={photos.parent}" in said
    monkeypatch.setenv("CIR_BENCHMARKS", str(out / "benchmark"))
    monkeypatch.setenv("CIR_IMAGES", str(photos.parent))
    # Of two others a ranking has the target among the first two: a metric that says nothing.
    of_subsets = [name for name in cir_datasets.load("mine/test").spec.card.metrics if "subset" in name]
    assert of_subsets == ["recall_subset@1", "recall_subset@2"]
    assert check_folder(out / "benchmark").notes == []
    # Every pair got a reason instead of a caption: no benchmark is left.
    with (out / "tasks" / "tasks.csv").open() as file:
        marked = [{"task": row["task"], "mark": "same"} for row in csv.DictReader(file)]
    answers.write_text(json.dumps({"annotator": "a1", "answers": marked}))
    call("make", "cirr-import", out, answers, "--images", photos)
    assert not list(out.glob("*/card.yaml"))


def test_a_dry_run_says_what_would_be_asked(photos: Path, tmp_path: Path) -> None:
    said = make(photos, tmp_path / "out", "--dry-run", "--subsets", 10)
    assert "152 images to encode; at most 10 subsets and 90 pairs." in said
    assert "1 person" in said
    assert "captions 90" in " ".join(said.split())
    common = make(photos, tmp_path / "out", "--dry-run", "--limit", 10, "--annotators", 3, "--common", 4)
    assert "3 people; a page each" in common
    assert "captions 98" in " ".join(common.split())
    written = ["--dry-run", "--subsets", 10, "--captions", "model"]
    said = make(photos, tmp_path / "out", *written, "--language", "openai:m,concurrency=3")
    # 90 calls of 280 + 6 * 85 tokens, 1.5 seconds each, three at once.
    assert "captions 90 71,100 3,600 0.01" in " ".join(said.split())
    assert "3 at once" in said
    assert not (tmp_path / "out").exists()
