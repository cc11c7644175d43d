"""`load_dataset` with our names: both import orders, every option, and without importing us at all."""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest
from http_hub import Hub
from programs import run_program

import cir_datasets
from cir_datasets import hook as datasets_hook
from cir_datasets import registry
from cir_datasets.errors import CountError, SourceError

ROOT = Path(__file__).resolve().parents[4]


pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of publishers' folders; caches of this test alone; no network."""
    import datasets

    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")  # of streams
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf/datasets"))
    return tmp_path / "home"


def load_dataset(name: str, config: str, **options: Any) -> Any:
    import datasets

    return datasets.load_dataset(name, config, **{"verification_mode": "no_checks", **options})


def run(code: str, cwd: Path, **environment: str) -> str:
    """Run Python in a fresh process that can import this project; its stdout."""
    done = run_program(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", **environment},
    )
    return done.stdout


@pytest.mark.parametrize(
    "imports",
    [
        "import cir_datasets\nfrom datasets import load_dataset",
        "from datasets import load_dataset\nimport cir_datasets",
    ],
    ids=["ours-first", "theirs-first"],
)
def test_names_are_known_in_either_import_order(imports: str, home: Path, tmp_path: Path) -> None:
    made.write_circled(home, "cirr_val")
    code = f"""{imports}
from datasets import get_dataset_config_names, get_dataset_split_names
found = load_dataset("circled", "cirr_val", data_dir="home", verification_mode="no_checks")
print(list(found), found["validation"].num_rows)
print(get_dataset_config_names("cirr")[:6], get_dataset_split_names("cirr", "test1"))
"""
    assert run(code, tmp_path).splitlines() == [
        "['validation'] 2",
        "['train', 'train_images', 'val', 'val_images', 'test1', 'test1_images'] ['test']",
    ]


def test_loading_never_imports_datasets(home: Path, tmp_path: Path) -> None:
    made.write_cirr(home, "val")
    code = (
        "import sys, cir_datasets\n"
        "print(len(cir_datasets.load('cirr/val', data_dir='home', verification_mode='no_checks')))\n"
        "print('datasets' in sys.modules)"
    )
    assert run(code, tmp_path).split() == ["3", "False"]


@pytest.mark.parametrize("name", [name for name in registry.names() if name != "shapes"])
def test_rows_are_those_of_load(name: str, home: Path) -> None:
    for config in registry.card(name).configs:
        made.write_for(home, f"{name}/{config}")
        found = load_dataset(name, config, data_dir=str(home))
        benchmark = cir_datasets.load(f"{name}/{config}", data_dir=home, verification_mode="no_checks")
        assert list(found) == [benchmark.spec.config.split]
        assert found[benchmark.spec.config.split].to_list() == benchmark.rows()


def test_split_slice_num_proc_and_stream(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write_cirr(home, "val")
    monkeypatch.chdir(tmp_path)  # data_dir may be relative
    assert load_dataset("cirr", "val", data_dir="home", split="validation").num_rows == 3
    assert load_dataset("cirr", "val", data_dir="home", split="validation[1:]")["query_id"][:] == [
        "901",
        "902",
    ]
    assert load_dataset("cirr", "val", data_dir="home", split="validation", num_proc=2).num_rows == 3
    stream = load_dataset("cirr", "val", data_dir="home", split="validation", streaming=True)
    assert [row["query_id"] for row in stream] == ["900", "901", "902"]
    assert stream.features == load_dataset("cirr", "val", data_dir="home", split="validation").features


def test_a_stream_of_other_counts_is_an_error_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write_cirr(home, "val")
    monkeypatch.delenv("CIR_VERIFICATION_MODE")
    with pytest.raises(CountError, match="3 queries, but the card says 4,181") as caught:
        load_dataset("cirr", "val", data_dir=str(home), split="validation", streaming=True)
    assert str(caught.value).endswith("For a stream set CIR_VERIFICATION_MODE=no_checks instead.")


def test_the_gallery_is_a_configuration_of_its_own(home: Path) -> None:
    made.write_cirr(home, "val")
    found = load_dataset("cirr", "val_images", data_dir=str(home), split="validation")
    assert found["image_id"][:] == made.cirr_images("val")
    stream = load_dataset("cirr", "val_images", data_dir=str(home), split="validation", streaming=True)
    assert next(iter(stream))["relative_path"] == "val/val-0-0-img0.png"


def test_a_gallery_that_is_not_at_hand_is_an_error(home: Path) -> None:
    made.write_circo(home, "val", gallery=False)
    with pytest.raises(SourceError, match="the list of its gallery is not available"):
        load_dataset("circo", "val_images", data_dir=str(home))
    with pytest.raises(SourceError, match="the list of its gallery is not available"):
        load_dataset("circo", "val_images", data_dir=str(home), streaming=True)


def test_counts_are_checked_unless_no_checks_is_passed(home: Path) -> None:
    made.write_cirr(home, "val")
    load_dataset("cirr", "val", data_dir=str(home))
    for mode in ("all_checks", "basic_checks"):
        with pytest.raises(CountError):
            load_dataset("cirr", "val", data_dir=str(home), verification_mode=mode)


def test_a_changed_source_is_noticed_in_spite_of_the_hub_cache(home: Path) -> None:
    path = made.write_cirr(home, "val") / "captions/cap.rc2.val.json"
    load_dataset("cirr", "val", data_dir=str(home))
    made.edit(path, lambda rows: rows[0].update(caption="changed"))
    found = load_dataset("cirr", "val", data_dir=str(home), split="validation")
    assert found[0]["relative_caption"] == "changed"


def test_an_unknown_configuration_names_those_that_exist() -> None:
    with pytest.raises(ValueError, match="'val_images'"):
        load_dataset("cirr", "nothing")


def test_force_redownload_prepares_again(home: Path) -> None:
    made.write_cirr(home, "val")
    load_dataset("cirr", "val", data_dir=str(home))
    folder = cir_datasets.prepare("cirr/val", data_dir=home, verification_mode="no_checks")
    before = (folder / "rows.parquet").stat().st_mtime_ns
    load_dataset("cirr", "val", data_dir=str(home), download_mode="force_redownload")
    assert (folder / "rows.parquet").stat().st_mtime_ns > before


WITHOUT_US = """
import json, sys
from datasets import load_dataset
found = load_dataset("cirr", "val")["validation"]
images = load_dataset("cirr", "val_images", split="validation")
stream = load_dataset("cirr", "val", split="validation", streaming=True)
assert "cir_datasets" not in sys.modules
print(json.dumps([found["relative_caption"][:], images.num_rows, next(iter(stream))["query_id"]]))
"""


@pytest.mark.slow
def test_without_importing_us_the_one_prepared_last_is_found(home: Path, tmp_path: Path) -> None:
    from cir_datasets.huggingface.builder import fill_cache

    path = made.write_cirr(home, "val") / "captions/cap.rc2.val.json"
    first = path.read_text(encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for caption in ("made up 0", "changed", "made up 0"):  # back to the first: its folder is there already
        path.write_text(first.replace("made up 0", caption), encoding="utf-8")
        folders = fill_cache("cirr/val", home, "no_checks")
        assert [folder.parts[-3] for folder in folders] == ["val", "val_images"]
        captions, images, query_id = json.loads(run(WITHOUT_US, elsewhere))
        assert (captions[0], images, query_id) == (caption, 8, "900")


def test_our_names_win_over_a_folder_of_that_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write_cirr(home, "val")
    monkeypatch.chdir(home)  # holds a folder cirr
    assert load_dataset("cirr", "val", data_dir=".", split="validation").num_rows == 3


def test_other_names_are_left_alone(tmp_path: Path) -> None:
    import datasets

    path = tmp_path / "mine.jsonl"
    path.write_text('{"a": 1}\n', encoding="utf-8")
    found = datasets.load_dataset("json", data_files=str(path), split="train")
    assert found.to_list() == [{"a": 1}]


def test_a_version_without_the_factory_is_said_and_left_alone() -> None:
    moved = types.ModuleType("datasets")
    moved.load, moved.inspect = types.ModuleType("load"), types.ModuleType("inspect")  # type: ignore[attr-defined]
    with pytest.warns(RuntimeWarning, match=r"no load\.dataset_module_factory; .*cir setup NAME"):
        datasets_hook.wrap(moved)


def test_the_factory_is_wrapped_once() -> None:
    import datasets

    before = datasets.load.dataset_module_factory
    datasets_hook.wrap(datasets)
    assert datasets.load.dataset_module_factory is before
    assert datasets.inspect.dataset_module_factory is not before.__wrapped__


def test_the_prepared_parquet_is_what_datasets_would_write(home: Path) -> None:
    import datasets

    made.write_circled(home, "cirr_val")
    folder = cir_datasets.prepare("circled/cirr_val", data_dir=home, verification_mode="no_checks")
    plain = datasets.load_dataset("parquet", data_files=str(folder / "rows.parquet"), split="train")
    ours = load_dataset("circled", "cirr_val", data_dir=str(home), split="validation")
    assert plain.features == ours.features
    assert plain.to_list() == ours.to_list()


def test_circled_comes_from_the_hub(
    hub: Hub, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made.write_circled(home, "circo_val") / "data/circo_val.json"
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    hub.repository("tk1441/CIRCLED").commit({"data/circo_val.json": path.read_bytes()})
    found = load_dataset("circled", "circo_val")
    assert found["validation"][1]["num_turns"] == 3
    assert not (tmp_path / "hf/hub").exists()
