"""`cir make circled`: what it writes is a benchmark, and what it asks is asked once."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import datasets_publishers as made_up
import numpy as np
import pytest
from benchmark_world.encoders import unit, word
from cir_here import invoked
from typer.testing import CliRunner

import cir_datasets
from cir_datasets.construction.circled.pipeline import make_circled
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.turns import CircledModels
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.errors import SourceError
from leaderboard.cli import build
from submissions.making.circled import earlier_splits

FEW = ("make", "circled", "--benchmark", "shapes/val", "--language", "oracle", "--k", "3", "--limit", "30")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def through_datasets(name: str) -> Any:
    """The rows that the library `datasets` gives of a registered benchmark, or of `FOLDER:CONFIG`."""
    import datasets

    folder, _, config = name.partition("/" if name.startswith("mine/") else ":")
    found = datasets.load_dataset(folder, config, verification_mode="no_checks", cache_dir="hf")
    (rows,) = found.values()
    return rows


cir = functools.partial(invoked, code=0)


@pytest.mark.slow
def test_the_result_is_a_benchmark_that_loads_and_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = cir(*FEW, "--out", "made", "--name", "mine")
    assert "Sessions by filter" in done.stderr
    folder = tmp_path / "made/benchmark"
    assert check_folder(folder, registered=False).ok
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    loaded = cir_datasets.load("mine/test")
    published = json.loads((tmp_path / "made/circled.json").read_text())
    assert loaded.query_ids == [row["session_id"] for row in published]
    assert loaded.rows() == published
    assert "It is a benchmark." in cir("datasets", "check", str(folder)).stdout
    assert [row["session_id"] for row in through_datasets("mine/test")] == loaded.query_ids
    cir("datasets", "publish", "mine/test", "--to", "published")
    (public,) = (tmp_path / "published").iterdir()
    assert [row["session_id"] for row in through_datasets(f"{public}:test")] == loaded.query_ids
    cir("run", "--benchmark", "mine/test", "--method", "random", "--out", "run.json")
    assert "hits@10" in cir("score", "run.json").stdout
    before = {path: path.read_bytes() for path in sorted((tmp_path / "made").rglob("*")) if path.is_file()}
    cir(*FEW, "--out", "made", "--name", "mine")
    assert {path: path.read_bytes() for path in before} == before


def test_a_dry_run_writes_nothing_and_says_calls_tokens_and_hours(tmp_path: Path) -> None:
    said = cir(*FEW, "--out", "made", "--dry-run").stdout
    for words in ("calls", "tokens in", "hours", "30 queries", "at most"):
        assert words in said
    assert not (tmp_path / "made").exists()


def test_several_benchmarks_are_estimated_together(tmp_path: Path) -> None:
    said = cir(*FEW, "--benchmark", "shapes/train", "--out", "made", "--dry-run").stdout
    assert "60 queries" in said
    config = tmp_path / "made.yaml"
    config.write_text("benchmark: shapes/train\nlanguage: oracle\nlimit: 30\n")
    assert "30 queries" in cir("make", "circled", "--config", config, "--out", "made", "--dry-run").stdout


@pytest.mark.slow
def test_several_benchmarks_have_a_folder_each_and_a_table_together(tmp_path: Path) -> None:
    asked = (*FEW[:-1], 12, "--benchmark", "shapes/train", "--out", "made", "--name", "mine")
    *each, together = cir(*asked).stderr.split("Sessions by filter\n")[1:]
    assert [table.splitlines()[1].split()[:2] for table in each] == [
        ["shapes_val", "12"],
        ["shapes_train", "12"],
    ]
    assert [line.split()[:2] for line in together.splitlines()[1:4]][-1] == ["total", "24"]
    for name in ("shapes_val", "shapes_train"):
        card = (tmp_path / "made" / name / "benchmark/card.yaml").read_text()
        assert f"name: mine_{name}\n" in card
    runs = [tmp_path / "made" / name for name in ("shapes_val", "shapes_train")]
    assert cir("make", "status", *runs).stdout.split("\n", 1)[1].strip() == together.strip()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (("--name", "My Sessions"), "cannot be called 'My Sessions'. Fix: choose a name of small letters"),
        (("--name", "cirr"), "which is a benchmark of this package"),
        (("--benchmark", "cirr/test1"), "its targets are withheld"),
        (("--benchmark", "circo/val"), "image_info_unlabeled2017.zip"),
        (("--language", "gpt"), "no language backend 'gpt'"),
        (("--engine", "rya"), "no engine 'rya'. Did you mean 'ray'?"),
        (("--address", "auto"), "of a Ray cluster. Fix: add --engine ray"),
    ],
)
def test_what_cannot_be_made_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: tuple[str, ...], says: str
) -> None:
    made_up.write_cirr(tmp_path, "test1")
    made_up.write_circo(tmp_path, "val", gallery=False)
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    for more in ((), ("--dry-run",)):
        done = CliRunner().invoke(build(), [*FEW, "--out", "made", *changed, *more])
        assert done.exit_code
        assert says in " ".join(f"{done.output} {done.exception}".split())
    assert not (tmp_path / "made").exists()


def test_circo_is_made_with_a_list_of_its_gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COCO's list, which the user brings: what the message of its absence says."""

    class Drawn:
        identity: Any = {"name": "random"}  # noqa: RUF012

        def images(self, ids: Any) -> Any:
            return unit(np.stack([word(one, 8) for one in ids]))

        texts = images

    class Says:
        identity: Any = {"name": "made up"}  # noqa: RUF012

        def caption(self, images: Any, prompt: str) -> Any:
            return [f"a picture of {one}" for one in images]

        def merge(self, captions: Any, changes: Any) -> Any:
            return [f"{one}, {other}" for one, other in zip(captions, changes, strict=True)]

        def ask(self, prompt: str, questions: Any) -> Any:
            return [{"instruction": " to ".join(one.pictures)} for one in questions]

    made_up.write_circo(tmp_path, "val")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    benchmark = cir_datasets.load("circo/val")
    models: Any = CircledModels(Drawn(), Drawn(), Says())
    made = make_circled(benchmark, tmp_path / "made", models, CircledSettings(k=2), fingerprint=list)
    assert made.images == benchmark.gallery
    assert made.counts["begun"] == len(made.verdicts) == 2
    assert made.counts["failed"] == 0


def test_the_estimate_counts_on_the_questions_that_are_asked_at_once() -> None:
    def hours(language: str) -> float:
        said = cir(*FEW[:4], "--language", language, "--out", "made", "--dry-run").stdout
        return float(next(line for line in said.splitlines() if "together" in line).split()[-1])

    assert hours("openai:m,concurrency=1") == pytest.approx(4 * hours("openai:m"), rel=0.1)


def test_released_duplicates_are_those_of_earlier_galleries_whose_queries_are_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for split in ("train", "val"):
        made_up.write_cirr(tmp_path, split)
    # Train's captions are not here, its list of images is.
    (tmp_path / "cirr/captions/cap.rc2.train.json").unlink()
    images = tmp_path / "nlvr2/train/34"
    images.mkdir(parents=True)
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    val = cir_datasets.load("cirr/val")
    (train,) = earlier_splits(val, tmp_path / "nlvr2")
    assert (train.name, list(train.ids)) == ("cirr/train", made_up.cirr_images("train"))
    (tmp_path / "cirr/image_splits/split.rc2.train.json").unlink()
    with pytest.raises(SourceError, match="cirr/train"):
        earlier_splits(val, tmp_path / "nlvr2")


@pytest.mark.slow
def test_a_gallery_that_comes_first_keeps_its_pictures() -> None:
    assert earlier_splits(cir_datasets.load("shapes/train"), None) == []
    (train,) = earlier_splits(cir_datasets.load("shapes/val"), None)
    assert train.name == "shapes/train"
