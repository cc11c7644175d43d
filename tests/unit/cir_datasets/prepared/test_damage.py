"""Prepared files carry their hashes: a changed bit is an error with a fix that works, never another score."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import Any

import datasets_publishers as made
import orjson
import pytest

import cir_datasets
import submissions
from cir_datasets.errors import DamagedError, SourceError
from cir_datasets.prepared import FORMAT, ensure, last_prepared
from cir_datasets.registry.overlays import Overlay
from leaderboard.cli import build
from submissions import make_rank_file

pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")
FILES = ("images.parquet", "meta.json", "places.parquet", "rows.parquet")
FLIPS = 16
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", "http://127.0.0.1:1")
    return tmp_path / "cache"


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def is_of_the_layout(meta: Path) -> bool:
    try:
        return bool(orjson.loads(meta.read_bytes()).get("format") == FORMAT)
    except orjson.JSONDecodeError:
        return False


def load(data_dir: Path | None = None) -> cir_datasets.Benchmark:
    return cir_datasets.load("cirr/val", data_dir=data_dir, verification_mode="no_checks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made.write_cirr(tmp_path / "data", "val")
    path = cir_datasets.prepare("cirr/val", data_dir=tmp_path / "data", verification_mode="no_checks")
    assert sorted(entry.name for entry in path.iterdir()) == sorted(FILES)
    return path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("with_data", [True, False], ids=["data available", "data gone"])
def test_a_flipped_bit_is_an_error_or_is_made_anew(
    name: str, with_data: bool, folder: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data" if with_data else None
    wanted = load(tmp_path / "data")
    hashes, rows, gallery = wanted.data_hash, wanted.rows(), list(wanted.gallery or ())
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    size = (folder / name).stat().st_size * 8
    said = set()
    for bit in random.Random(7).sample(range(size), FLIPS):
        flip(folder / name, bit)
        of_the_layout = name != "meta.json" or is_of_the_layout(folder / name)
        try:
            found = load(data)
        except DamagedError as error:
            assert of_the_layout
            said.add(str(error))
        except SourceError:
            # The folder no longer says that it is of this layout, and nothing is there to make it from.
            assert (of_the_layout, with_data) == (False, False)
        else:
            # What cannot be read as a prepared folder is made anew.
            assert (of_the_layout, with_data) == (False, True)
            assert (found.data_hash, found.rows(), list(found.gallery or ())) == (hashes, rows, gallery)
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    assert said
    for message in said:
        assert message.startswith(f"{folder / name}: its sha256 is not the one")
        assert "cir datasets prepare --force cirr/val" in message
        assert f"or remove {folder}" in message


@pytest.mark.parametrize("name", FILES)
def test_the_fix_of_a_damaged_file_makes_it_whole_again(name: str, folder: Path, tmp_path: Path) -> None:
    expected = load(tmp_path / "data").rows()
    content = (folder / name).read_bytes()
    # A digit of a hash, or a bit in the middle of a Parquet file.
    at = content.index(b'"data_hash"') + 20 if name == "meta.json" else len(content) // 2
    flip(folder / name, at * 8)
    before = (folder / name).read_bytes()
    with pytest.raises(DamagedError) as caught:
        load(tmp_path / "data")
    command = re.findall(r"`(cir datasets prepare [^`]*)`", str(caught.value))[0]
    if name != "meta.json":
        assert command.endswith(f"--data-dir {tmp_path / 'data' / 'cirr'}")
        arguments = command.split()[1:]
    else:
        # What it was prepared from is in the file that was changed.
        arguments = [*command.split()[1:], "--data-dir", str(tmp_path / "data")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIR_VERIFICATION_MODE", "no_checks")
        build()(args=[*arguments, "--no-hub-cache"], standalone_mode=False)
    assert (folder / name).read_bytes() != before
    assert load(tmp_path / "data").rows() == expected
    shutil.rmtree(folder)
    assert load(tmp_path / "data").rows() == expected


def test_a_score_is_refused_or_the_same(cache: Path) -> None:
    """Places that point elsewhere gave another score under the same signature, or an IndexError."""
    rank_file = make_rank_file("shapes/val", "random")
    wanted = submissions.score(rank_file).to_dict()
    folder = cir_datasets.prepare("shapes/val")
    places = folder / "places.parquet"
    content = places.read_bytes()
    for bit in random.Random(3).sample(range(len(content) * 8), 20):
        flip(places, bit)
        with pytest.raises(DamagedError):
            submissions.score(rank_file)
        places.write_bytes(content)
    assert submissions.score(rank_file).to_dict() == wanted


def test_an_overlay_is_verified_too(folder: Path, tmp_path: Path) -> None:
    overlay = Overlay("few", "cirr/val", 1, "", dict.fromkeys(load(tmp_path / "data").query_ids[:2], None))
    options: Any = {"overlay": overlay, "data_dir": tmp_path / "data", "verification_mode": "no_checks"}
    assert len(cir_datasets.load("cirr/val", **options)) == 2
    (laid,) = (path.parent for path in folder.parents[2].glob("val+few/*/*/rows.parquet"))
    flip(laid / "rows.parquet", 1001)
    with pytest.raises(DamagedError, match=rf"Fix: remove {re.escape(str(laid))}, which is made anew"):
        cir_datasets.load("cirr/val", **options)
    shutil.rmtree(laid)
    assert len(cir_datasets.load("cirr/val", **options)) == 2


def test_what_an_earlier_layout_prepared_is_made_anew_or_explained(folder: Path, tmp_path: Path) -> None:
    meta = orjson.loads((folder / "meta.json").read_bytes())
    old = {name: value for name, value in meta.items() if name not in ("files", "sha256")}
    (folder / "meta.json").write_bytes(orjson.dumps(old | {"format": 2}))
    assert last_prepared(load_spec()) is None
    with pytest.raises(SourceError, match=r"another\s+layout\. It is not read; with the publisher's files"):
        load()
    assert len(load(tmp_path / "data")) == 3
    found = last_prepared(load_spec())
    assert found.meta["format"] == FORMAT
    assert len(load()) == 3


def load_spec() -> Any:
    return cir_datasets.registry.spec("cirr/val")


def test_numbers_of_a_changed_meta_file_are_not_shown(folder: Path) -> None:
    text = (folder / "meta.json").read_text(encoding="utf-8")
    data_hash = orjson.loads(text)["data_hash"]
    (folder / "meta.json").write_text(text.replace(data_hash, data_hash[::-1]), encoding="utf-8")
    assert last_prepared(load_spec()) is None
    with pytest.raises(DamagedError, match=r"meta\.json: its sha256"):
        ensure("cirr/val", verification_mode="no_checks")
