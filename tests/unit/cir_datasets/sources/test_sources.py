"""Where files come from, what is pinned, and when a prepared benchmark is made anew."""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import datasets_publishers as made
import pytest
from programs import run_program

import cir_datasets
from cir_datasets import registry, sources
from cir_datasets.errors import DatasetError, SourceError, UnpinnedDataWarning
from cir_datasets.prepared import ensure, last_prepared
from cir_metrics.errors import CallError, UnknownNameError

quiet = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    return tmp_path / "cache"


def load(benchmark_id: str, home: Path | None = None) -> cir_datasets.Benchmark:
    return cir_datasets.load(benchmark_id, data_dir=home, verification_mode="no_checks")


@quiet
def test_data_dir_is_the_publishers_folder_its_parent_or_another_name_for_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    root = made.write_cirr(home, "val")
    made.write_fashioniq(home, "dress", "val")  # its layout is like CIRR's: content tells them apart
    hashes = {load("cirr/val", folder).data_hash for folder in (root, home)}
    root.rename(home / "a-clone-of-cirr")
    hashes.add(load("cirr/val", home).data_hash)
    assert len(hashes) == 1


@quiet
def test_a_relative_data_dir_reads_the_same_files_as_one_below_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write_cirr(tmp_path / "home", "val")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load("cirr/val", Path("home")).source_hashes == load("cirr/val", Path("~/home")).source_hashes


def test_a_data_dir_without_the_files_is_an_error_that_names_them(tmp_path: Path) -> None:
    root = made.write_cirr(tmp_path, "val")
    (root / "captions_ext/cap.ext.rc2.val.json").unlink()
    with pytest.raises(SourceError, match=r"captions_ext/cap\.ext\.rc2\.val\.json does not exist") as error:
        load("cirr/val", tmp_path)
    assert "git clone" in str(error.value)
    assert error.value.exit_code == 2
    with pytest.raises(SourceError, match="no such folder"):
        load("cirr/val", tmp_path / "nowhere")


@quiet
def test_data_dir_comes_before_the_data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write_cirr(tmp_path / "a", "val")
    root = made.write_cirr(tmp_path / "b", "val")
    made.edit(root / "captions/cap.rc2.val.json", lambda rows: rows[0].update(caption="another"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "a"))
    assert load("cirr/val").rows()[0]["relative_caption"] == "made up 0"
    assert load("cirr/val", tmp_path / "b").rows()[0]["relative_caption"] == "another"


def test_without_any_source_the_error_names_all_three_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    with pytest.raises(SourceError) as error:
        load("fashioniq/dress_val")
    text = str(error.value)
    at = "http://127.0.0.1:1/XiaoxiaoGuo/fashion-iq/f71b16c3b09ef03b02c0fed160fa072fb3b8aa16"
    for words in (
        "data_dir: not given",
        f"CIR_DATA_HOME: {tmp_path / 'fashion-iq'} has no such file",
        f"Download: {at}/captions/cap.dress.val.json: no network",
        "Fix: `cir datasets prepare fashioniq/dress_val --data-dir FOLDER` (in Python data_dir=)",
        "By hand: git clone",
    ):
        assert words in text


@quiet
def test_the_gallery_of_circo_may_lie_below_the_data_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write_circo(tmp_path / "given", "val", gallery=False)
    made.write_coco(tmp_path / "home/CIRCO")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    assert load("circo/val", tmp_path / "given").gallery is not None


def test_a_local_file_that_is_not_the_pinned_one_is_used_and_said(tmp_path: Path) -> None:
    made.write_cirr(tmp_path, "val")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        benchmark = load("cirr/val", tmp_path)
    assert not benchmark.pinned
    assert [warning.category for warning in said] == [UnpinnedDataWarning] * 3
    assert "cap.rc2.val.json: not the file that the card pins" in str(said[0].message)


def test_a_file_without_a_pin_is_unpinned_without_a_warning(tmp_path: Path) -> None:
    made.write_circled(tmp_path, "cirr_val")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not load("circled/cirr_val", tmp_path).pinned


@quiet
def test_what_was_got_is_recorded(tmp_path: Path) -> None:
    made.write_circled(tmp_path, "cirr_val")
    folder = cir_datasets.prepare("circled/cirr_val", data_dir=tmp_path, verification_mode="no_checks")
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    got = meta["sources"]["data/cirr_val.json"]
    assert got["num_bytes"] == (tmp_path / "CIRCLED/data/cirr_val.json").stat().st_size
    assert (got["origin"], got["pinned"], got["revision"]) == ("data_dir", False, None)
    assert len(got["sha256"]) == 64


@quiet
def test_a_changed_source_is_noticed_in_spite_of_an_older_cache(tmp_path: Path) -> None:
    path = made.write_cirr(tmp_path, "val") / "captions/cap.rc2.val.json"
    before = load("cirr/val", tmp_path)
    times = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("made up 0", "made up 9"), encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time: the content decides
    after = load("cirr/val", tmp_path)
    assert after.rows()[0]["relative_caption"] == "made up 9"
    assert after.data_hash != before.data_hash


@quiet
def test_the_key_holds_the_checks_the_card_and_the_builder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write_cirr(tmp_path, "val")
    first = ensure("cirr/val", data_dir=tmp_path, verification_mode="no_checks")
    assert ensure("cirr/val", data_dir=tmp_path, verification_mode="no_checks").key == first.key
    monkeypatch.setitem(vars(registry.card("cirr")), "builder_version", 2)
    assert ensure("cirr/val", data_dir=tmp_path, verification_mode="no_checks").key != first.key


@quiet
def test_counts_skipped_once_are_not_trusted_later(tmp_path: Path) -> None:
    made.write_cirr(tmp_path, "val")
    load("cirr/val", tmp_path)
    with pytest.raises(cir_datasets.errors.CountError):
        cir_datasets.load("cirr/val", data_dir=tmp_path)


@quiet
def test_a_prepared_benchmark_is_read_again_not_made_again(tmp_path: Path) -> None:
    made.write_cirr(tmp_path, "val")
    folder = cir_datasets.prepare("cirr/val", data_dir=tmp_path, verification_mode="no_checks")
    made_at = (folder / "rows.parquet").stat().st_mtime_ns
    load("cirr/val", tmp_path)
    assert (folder / "rows.parquet").stat().st_mtime_ns == made_at
    cir_datasets.prepare("cirr/val", data_dir=tmp_path, verification_mode="no_checks", force=True)
    assert (folder / "rows.parquet").stat().st_mtime_ns > made_at
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@quiet
@quiet
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("rows.parquet", b"PAR1"),
        ("rows.parquet", None),
        ("images.parquet", None),
        ("places.parquet", None),
        ("places.parquet", b"PAR1"),
        ("meta.json", b'{"rows": 3'),
        ("meta.json", None),
    ],
)
def test_a_damaged_preparation_is_made_anew(file: str, content: bytes | None, tmp_path: Path) -> None:
    made.write_cirr(tmp_path, "val")
    folder = cir_datasets.prepare("cirr/val", data_dir=tmp_path, verification_mode="no_checks")
    rows = load("cirr/val", tmp_path).rows()
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    assert load("cirr/val", tmp_path).rows() == rows
    assert load("cirr/val", tmp_path).gallery == made.cirr_images("val")


@quiet
def test_without_a_source_the_preparation_used_last_is_taken(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    made.write_cirr(first, "val")
    path = made.write_cirr(second, "val") / "captions/cap.rc2.val.json"
    made.edit(path, lambda rows: rows[0].update(caption="changed"))
    expected = load("cirr/val", first).data_hash
    assert load("cirr/val", second).data_hash != expected
    load("cirr/val", first)
    assert load("cirr/val").data_hash == expected


def test_a_source_that_has_changed_since_is_not_hidden_by_its_preparation(tmp_path: Path) -> None:
    path = made.write_cirr(tmp_path, "val") / "captions/cap.rc2.val.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load("cirr/val", tmp_path)
        assert len(load("cirr/val")) == 3
    made.edit(path, lambda rows: rows[0].update(caption="changed"))
    with (
        pytest.warns(UnpinnedDataWarning, match="changed since cirr/val was prepared from it"),
        pytest.raises(SourceError),
    ):
        load("cirr/val")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load("cirr/val", tmp_path).rows()[0]["relative_caption"] == "changed"


FISD_NAMES_SEVERAL = (
    "'fisd' names several benchmarks. Fix: choose one of fisd/cardinality, fisd/addition, fisd/negation, "
    "fisd/change, fisd/background, fisd/complex. Suites of them, where a suite is taken: fisd."
)
IS_A_SUITE = (
    "'fashioniq/val_union' is a suite of 3 benchmarks, and one benchmark is wanted here. Fix: name its "
    "members one at a time: fashioniq/dress_val_union, fashioniq/shirt_val_union, fashioniq/toptee_val_union."
)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (None, "None is not a benchmark id. Fix: pass a string such as 'cirr/val'."),
        ("circo", "'circo' names several benchmarks. Fix: choose one of circo/val, circo/test."),
        ("fisd", FISD_NAMES_SEVERAL),
        ("fashioniq/val_union", IS_A_SUITE),
        (
            "fashioniq/vall",
            "no benchmark 'fashioniq/vall'. Did you mean 'fashioniq/val'? Fix: use one that `cir datasets",
        ),
        ("cir/val", "no benchmark 'cir/val'. Did you mean 'cirr/val'? Fix: use one that `cir datasets"),
    ],
)
def test_an_unknown_id_says_what_there_is(wanted: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        cir_datasets.load(wanted)
    assert str(error.value).startswith(words)


@quiet
def test_the_last_prepared_is_the_one_that_was_made_last(tmp_path: Path) -> None:
    spec = registry.spec("cirr/val")
    assert last_prepared(spec) is None
    path = made.write_cirr(tmp_path, "val") / "captions/cap.rc2.val.json"
    load("cirr/val", tmp_path)
    made.edit(path, lambda rows: rows[0].update(caption="changed"))
    newest = ensure("cirr/val", data_dir=tmp_path, verification_mode="no_checks")
    found = last_prepared(spec)
    assert found.key == newest.key


@quiet
def test_a_cache_home_that_is_a_file_names_the_setting(tmp_path: Path, cache: Path) -> None:
    made.write_cirr(tmp_path, "val")
    cache.write_text("in the way", encoding="utf-8")
    with pytest.raises(DatasetError, match="set CIR_CACHE_HOME"):
        load("cirr/val", tmp_path)


def test_an_unknown_benchmark_mode_or_attribute_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"no benchmark 'cirr/vall'. Did you mean 'cirr/val'\?"):
        cir_datasets.load("cirr/vall")
    with pytest.raises(
        CallError, match="verification_mode='some'; it is one of all_checks, basic_checks, no_checks"
    ):
        cir_datasets.load("cirr/val", verification_mode="some")
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = cir_datasets.nothing


def test_the_embedded_benchmark_has_no_sources() -> None:
    assert sources.resolve(registry.spec("shapes/val")) == {}


@quiet
def test_a_gallery_beside_the_folder_must_bear_the_publishers_name(tmp_path: Path) -> None:
    sessions = made.write_circled(tmp_path, "cirr_val")
    made.write_cirr(tmp_path, "val").rename(tmp_path / "an_edited_copy")
    assert load("circled/cirr_val", sessions).gallery is None
    (tmp_path / "an_edited_copy").rename(tmp_path / "cirr")
    assert load("circled/cirr_val", sessions).gallery == made.cirr_images("val")


def test_the_gallery_is_part_of_the_key(tmp_path: Path) -> None:
    root = made.write_circo(tmp_path, "val")
    assert load("circo/val", tmp_path).gallery is not None
    shutil.rmtree(root / "COCO2017_unlabeled")
    assert load("circo/val", tmp_path).gallery is None


@quiet
def test_what_was_prepared_from_a_folder_needs_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.write_cirr(tmp_path, "val")
    before = load("cirr/val", tmp_path)
    assert load("cirr/val").data_hash == before.data_hash
    with pytest.raises(SourceError, match="no network"):
        cir_datasets.load("cirr/val")  # it was prepared without checks, and this asks for them
    monkeypatch.setitem(vars(registry.card("cirr")), "builder_version", 2)
    with pytest.raises(SourceError, match="no network"):
        load("cirr/val")


@quiet
def test_a_source_at_hand_comes_before_what_was_prepared_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made.write_cirr(tmp_path, "val")
    load("cirr/val", tmp_path)
    made.edit(root / "captions/cap.rc2.val.json", lambda rows: rows[0].update(caption="changed"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path))
    assert load("cirr/val").rows()[0]["relative_caption"] == "changed"
    (root / "captions_ext/cap.ext.rc2.val.json").unlink()
    with pytest.raises(SourceError, match="is not available"):
        load("cirr/val")


@quiet
def test_reading_a_prepared_benchmark_imports_no_pandas_and_no_client(tmp_path: Path) -> None:
    made.write_cirr(tmp_path, "val")
    load("cirr/val", tmp_path)
    code = (
        "import sys, cir_datasets\n"
        "cir_datasets.load('cirr/val', data_dir='.', verification_mode='no_checks')\n"
        "print([name for name in ('pandas', 'httpx', 'huggingface_hub', 'datasets') if name in sys.modules])"
    )
    done = run_program(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[4])},
    )
    assert done.stdout.strip() == "[]"
