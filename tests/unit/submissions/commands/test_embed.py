"""`cir embed` and `cir embeddings`, from a checkpoint folder and a folder of pictures to the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cir_here import invoked as cir

import cir_datasets
from cir_datasets.errors import MissingImagesError
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError, UnknownNameError
from submissions.errors import EncoderError, MethodError, StoreError

IMAGES = 40


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store, and shapes/val with the first of its images only."""
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    whole = cir_datasets.load("shapes/val")
    small = Benchmark.from_rows(whole.spec, whole.rows()[:3], list(whole.gallery or ())[:IMAGES])
    monkeypatch.setattr(cir_datasets, "load", lambda _: small)
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small picture for every image of shapes/val, in the layout of its card."""
    from datasets_pictures import write_picture

    from cir_datasets.prepared import image_manifest

    root = tmp_path_factory.mktemp("shapes")
    for row in image_manifest("shapes/val")[:IMAGES]:
        write_picture(root / str(row["relative_path"]), str(row["image_id"]), (8, 8))
    return root


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    from retrieval_models import save_clip

    return save_clip(tmp_path_factory.mktemp("models") / "tiny")


@pytest.mark.slow
def test_embed_of_a_suite_has_a_file_a_member(
    model: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import benchmark_world as worlds
    from datasets_pictures import write_picture

    from cir_datasets.registry.suites import suite

    members = {found.id: found for found in map(worlds.fashioniq, ("dress", "shirt", "toptee"))}
    for member in members.values():
        for image in member.gallery or ():
            write_picture(tmp_path / "pictures" / "fashion-iq" / f"{image}.png", image, (8, 8))
    monkeypatch.setattr(cir_datasets, "load", members.__getitem__)
    options = ["--benchmark", "fashioniq/val", "--encoder", model, "--device", "cpu", "--workers", 0]
    done = cir("embed", *options, "--images", tmp_path / "pictures", "--json", code=0)
    assert "240 images encoded in " in done.stderr
    printed = json.loads(done.stdout)
    assert [one["benchmark"] for one in printed] == list(suite("fashioniq/val").benchmarks)
    assert [np.load(one["file"]).shape for one in printed] == [(80, 24)] * 3
    assert len({one["key"] for one in printed}) == 3
    again = cir("embed", *options, "--images", tmp_path / "pictures")
    assert again.stdout.split() == [one["file"] for one in printed]


def test_embed_then_list_then_remove(model: Path, cache: Path) -> None:
    options = ["--benchmark", "shapes/val", "--encoder", model, "--device", "cpu"]
    done = cir("embed", *options, "--batch-size", 16, code=0)
    file = Path(done.stdout.strip())
    assert file.parent.parent == cache / "embeddings"
    vectors = np.load(file, mmap_mode="r")
    assert vectors.shape == (IMAGES, 24)
    assert vectors.dtype == np.float32
    assert len(json.loads((file.parent / "ids.json").read_text())) == IMAGES
    assert "40 images encoded in " in done.stderr
    again = cir("embed", *options, "--json")
    printed: dict[str, Any] = json.loads(again.stdout)
    assert "0 images encoded: all were in the store" in again.stderr
    wanted = {"key": file.parent.name, "file": str(file), "images": IMAGES, "missing": [], "dimensions": 24}
    assert wanted.items() <= printed.items()
    assert printed["encoder"]["family"] == "clip"
    listed = json.loads(cir("embeddings", "list", "--json").stdout)
    shown = [(one["key"], one["gallery"], one["done"]) for one in listed]
    assert shown == [(printed["key"], "shapes/val", IMAGES)]
    rows = cir("embeddings", "list").stdout.splitlines()
    assert rows[0].split() == ["KEY", "IMAGES", "MISSING", "MIB", "GALLERY", "ENCODER"]
    assert rows[1].split()[:2] == [printed["key"], "40"]
    assert "tiny (clip, 24 dimensions, float32, revision " in rows[1]
    key = printed["key"]
    assert cir("embeddings", "verify", key).stdout == f"{key}: no damage, 40 images\n"
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    file.write_bytes(whole)
    found = cir("embeddings", "verify", "--all", code=1)
    assert found.stdout.startswith(f"{key}: rows 0 to 39 of 40 (")
    assert f"{cache / 'embeddings'}: 1 of 1 entries are damaged" in found.stderr
    assert "`cir embed --benchmark shapes/val --encoder FOLDER` (FOLDER: the folder of the " in found.stdout
    found = cir("embeddings", "verify", key, "--json", code=1)
    [entry] = json.loads(found.stdout)
    assert (entry["key"], entry["done"], len(entry["damage"])) == (key, IMAGES, 1)
    assert "40 images encoded in " in cir("embed", *options, "--batch-size", 16).stderr
    assert cir("embeddings", "verify", "--all").exit_code == 0
    assert cir("embeddings", "rm", printed["key"]).stdout == f"{printed['key']}: 0.0 MiB freed\n"
    assert json.loads(cir("embeddings", "list", "--json").stdout) == []


@pytest.mark.slow
@pytest.mark.parametrize("from_files", [False, True])
def test_the_command_that_verify_names_mends_word_for_word(
    from_files: bool, images: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    options = ["--shard-size", 7, "--dtype", "bfloat16", "--device", "cpu", "--workers", 0]
    if from_files:
        some = tmp_path / "some" / "val"
        some.mkdir(parents=True)
        for path in sorted((images / "val").iterdir())[2:]:
            (some / path.name).symlink_to(path)
        options += ["--images", some.parent, "--skip-missing"]
    file = Path(cir("embed", "--benchmark", "shapes/val", "--encoder", "shapes", *options).stdout.strip())
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    file.write_bytes(whole)
    printed = cir("embeddings", "verify", "--all").stdout
    assert printed.startswith(f"{file.parent.name}: rows 35 to 39 of 40 (")
    command = printed.split("`")[1]
    assert ("--images FOLDER" in command) == from_files  # where they lie is no part of an entry
    if from_files:
        command = command.replace("FOLDER", str(some.parent))
    mended = cir(*command.split()[1:])
    assert "5 images encoded in " in mended.stderr
    assert Path(mended.stdout.strip()) == file
    assert cir("embeddings", "verify", "--all").exit_code == 0


def test_missing_pictures_refuse_or_are_skipped(model: Path, images: Path, tmp_path: Path) -> None:
    some = tmp_path / "some"
    (some / "val").mkdir(parents=True)
    for path in sorted((images / "val").iterdir())[2:]:
        (some / "val" / path.name).symlink_to(path)
    options = ["--benchmark", "shapes/val", "--images", some, "--encoder", model, "--workers", 0]
    refused = cir("embed", *options)
    assert isinstance(refused.exception, MissingImagesError)
    assert str(refused.exception).startswith(
        f"shapes/val: 2 of 40 images are missing or cannot be read:\n  val-000000: no file below {some}\n"
    )
    skipped = cir("embed", *options, "--skip-missing", "--shard-size", 7, "--json", code=0)
    printed = json.loads(skipped.stdout)
    assert printed["missing"] == ["val-000000", "val-000001"]
    assert "2 missing images; zeros in place of vectors" in skipped.stderr
    vectors = np.load(printed["file"])
    assert len(vectors) == IMAGES
    assert (vectors[:2] == 0).all()
    assert (np.abs(np.linalg.norm(vectors[2:], axis=1) - 1) < 1e-5).all()


@pytest.mark.slow
def test_ray_finds_what_this_machine_has_made(model: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `distributed`")
    options = [
        "--benchmark",
        "shapes/val",
        "--encoder",
        model,
        "--device",
        "cpu",
        "--shard-size",
        30,
        "--json",
    ]
    made = cir("embed", *options, "--engine", "ray", "--max-workers", 1, code=0)
    vectors = np.load(json.loads(made.stdout)["file"])
    assert vectors.shape == (IMAGES, 24)
    again = cir("embed", *options)
    assert "0 images encoded: all were in the store" in again.stderr
    assert json.loads(again.stdout) == json.loads(made.stdout)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            ["--engine", "rai"],
            UnknownNameError,
            "no engine 'rai'. Did you mean 'ray'? Fix: use local or ray.",
        ),
        (["--address", "auto"], CallError, "--address: of a Ray cluster. Fix: add --engine ray"),
        (["--shard-size", "0"], CallError, "--shard-size 0; it is 1 or more. Fix: choose another one."),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_embedded(
    arguments: list[str], error: type[Exception], text: str, model: Path, images: Path
) -> None:
    done = cir("embed", "-b", "shapes/val", "-e", model, "--images", images, "--device", "cpu", *arguments)
    assert isinstance(done.exception, error)
    assert str(done.exception).startswith(text)


def test_without_an_encoder_a_real_benchmark_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import benchmark_world

    monkeypatch.setattr(cir_datasets, "load", lambda _: benchmark_world.cirr())
    done = cir("embed", "--benchmark", "cirr/val")
    assert isinstance(done.exception, MethodError)
    assert str(done.exception).startswith("cir embed needs an encoder for cirr/val. Fix: add --encoder NAME")


@pytest.mark.parametrize("name", ["pixels", "none"])
def test_pixels_and_none_are_not_encoders_and_the_fix_is_one_of_this_command(name: str) -> None:
    done = cir("embed", "--benchmark", "shapes/val", "--encoder", name)
    assert isinstance(done.exception, EncoderError)
    assert str(done.exception).startswith(f"there is no encoder {name!r}. Fix: name one (shapes, ")


def test_a_dtype_that_is_not_known_is_refused_before_the_pictures_are_looked_for() -> None:
    done = cir("embed", "--benchmark", "shapes/val", "--images", "/nonexistent", "--dtype", "float99")
    assert isinstance(done.exception, MethodError)
    assert str(done.exception).startswith("--dtype 'float99'; it is float32, float16, bfloat16 or auto.")


@pytest.mark.parametrize(("command", "verb"), [("rm", "remove"), ("verify", "verify")])
def test_entries_are_named_by_their_keys_or_all_at_once(command: str, verb: str) -> None:
    for arguments in ([], ["abc", "--all"]):
        done = cir("embeddings", command, *arguments)
        assert isinstance(done.exception, CallError)
        assert str(done.exception).startswith(f"name the entries to {verb}, or all. Fix: add KEY")
    done = cir("embeddings", command, "abc")
    assert isinstance(done.exception, StoreError)
    assert str(done.exception).startswith("no embeddings 'abc' in ")
    assert cir("embeddings", command, "--all").stdout == ""
