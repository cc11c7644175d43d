"""The embedding store: shards, damage, listing, verifying, removing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from benchmark_world import embeddings
from benchmark_world.embeddings import (
    BATCH_SIZE,
    IMAGES,
    SHARD_SIZE,
    SHARDS,
    embed,
    every_vector,
    finished,
    folder_of,
    shapes_pictures,
)
from benchmark_world.encoders import PlainEncoder
from programs import run_program

import cir_datasets
from cir_datasets.common.shared_stages import Shard
from cir_metrics.errors import CallError
from submissions.embeddings.embed import encode_shard
from submissions.embeddings.folder import EmbeddingFolder
from submissions.embeddings.pictures import ShapesPictures
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.protocol import Identity, Vectors
from submissions.errors import StoreError


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingStore:
    return EmbeddingStore(tmp_path / "store")


@pytest.fixture(scope="module")
def wanted() -> Vectors:
    """Every picture encoded alone, without any store."""
    return every_vector()


def test_vectors_are_stored_once_and_mapped(store: EmbeddingStore, wanted: Vectors) -> None:
    first = PlainEncoder()
    made = embed(store, first)
    assert sum(first.batches) == IMAGES
    assert set(first.batches) == {1, 2}  # shards of five: 2, 2, 1
    assert made.vectors.dtype == np.float32
    np.testing.assert_array_equal(made.vectors, wanted)
    assert list(made.ids) == list(shapes_pictures().ids)
    assert not made.missing
    assert isinstance(made.vectors, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        made.vectors[0, 0] = 0
    second = PlainEncoder()
    np.testing.assert_array_equal(embed(store, second).vectors, wanted)
    assert second.batches == []


ARRAY = "01-vectors.npy"
DAMAGES = {"flipped": SHARD_SIZE, "cut": 3, "other shape": IMAGES, "empty": IMAGES, "gone": IMAGES}
"""What can happen to an array, and how many images are then encoded again: those of the shards it hit."""


def damage(how: str, path: Path, wanted: Vectors) -> None:
    whole = bytearray(path.read_bytes())
    if how == "flipped":
        whole[-13 * 48 - 5] ^= 1  # in the image 14th from the end, which is the last of shard 17
        path.write_bytes(whole)
    elif how == "other shape":
        np.save(path, wanted[:3])
    elif how == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:-20] if how == "cut" else b"")


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_array_is_noticed_and_mended(how: str, store: EmbeddingStore, wanted: Vectors) -> None:
    embed(store, PlainEncoder())
    damage(how, store.root / store.list()[0].key / ARRAY, wanted)
    again = PlainEncoder()
    np.testing.assert_array_equal(embed(store, again).vectors, wanted)
    assert sum(again.batches) == DAMAGES[how]


@pytest.mark.parametrize("how", ["flipped", "empty", "gone"])
def test_rows_without_their_hash_are_encoded_again(how: str, store: EmbeddingStore, wanted: Vectors) -> None:
    folder = folder_of(store)
    for shard in folder.parts()[:3]:
        folder.write_part(shard, wanted[shard.start : shard.stop])
    path = folder.folder / "01-vectors.parts/000001"
    if how == "gone":
        path.unlink()
    else:
        path.write_text("" if how == "empty" else path.read_text()[::-1])
    again = PlainEncoder()
    np.testing.assert_array_equal(embed(store, again).vectors, wanted)
    assert sum(again.batches) == IMAGES - 2 * SHARD_SIZE


def test_a_damaged_shard_of_an_array_under_way_is_encoded_again(
    store: EmbeddingStore, wanted: Vectors
) -> None:
    folder = folder_of(store)
    for shard in folder.parts()[:4]:
        folder.write_part(shard, wanted[shard.start : shard.stop])
    path = folder.folder / "01-vectors.part.npy"
    whole = bytearray(path.read_bytes())
    whole[128 + 48 * 12] ^= 1
    path.write_bytes(whole)
    assert [shard.number for shard in finished(folder)] == [0, 1, 3]
    again = PlainEncoder()
    np.testing.assert_array_equal(embed(store, again).vectors, wanted)
    assert sum(again.batches) == IMAGES - 3 * SHARD_SIZE


def test_damage_is_told_by_rows_with_the_command_that_mends_them(
    store: EmbeddingStore, wanted: Vectors
) -> None:
    embed(store, PlainEncoder())
    folder = folder_of(store)
    assert store.damage(folder.key) == []
    path = folder.folder / ARRAY
    whole = bytearray(path.read_bytes())
    for row in (6, 14, 101):
        whole[128 + 48 * row] ^= 1
    path.write_bytes(whole)
    ids = folder.ids
    fix = f"Fix: `cir embeddings rm {folder.key}`; the images are encoded again when they are needed."
    assert store.damage(folder.key) == [
        f"rows {start} to {last} of 103 ({ids[start]!r} to {ids[last]!r}) are damaged. {fix}"
        for start, last in [(5, 14), (100, 102)]  # neighbours are named together
    ]
    again = PlainEncoder()
    embed(store, again)
    assert sum(again.batches) == 13
    assert store.damage(folder.key) == []


def test_an_array_that_is_gone_is_damage_to_all_rows(store: EmbeddingStore) -> None:
    embed(store, PlainEncoder())
    folder = folder_of(store)
    (folder.folder / ARRAY).unlink()
    [message] = store.damage(folder.key)
    assert message.startswith("rows 0 to 102 of 103 (")


def test_what_is_not_vectors_is_looked_at_too(store: EmbeddingStore) -> None:
    embed(store, PlainEncoder())
    folder = folder_of(store)
    whole = (folder.folder / "ids.json").read_text()
    (folder.folder / "ids.json").write_text(whole.replace("val-", "vel-", 1))  # as many as before
    [message] = store.damage(folder.key)
    assert "ids.json: missing or damaged. Fix: embed again" in message
    again = PlainEncoder()
    embed(store, again)
    assert again.batches == []
    assert store.damage(folder.key) == []
    (folder.folder / "make.json").unlink()
    [message] = store.damage(folder.key)
    assert message.endswith(f"or `cir embeddings rm {folder.key}`.")
    with pytest.raises(StoreError, match="no embeddings 'x'"):
        store.damage("x")


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("finished", [True, False])
def test_what_version_0_1_wrote_is_gone_on_with(
    finished: bool, cut: bool, store: EmbeddingStore, wanted: Vectors
) -> None:
    """It had one array, of each shard a checksum of its rows and of how many are zeros, and a description."""
    key = folder_of(store).key
    folder = store.root / key
    settings = json.loads((folder / "make.json").read_bytes())["settings"]
    described = {"pictures": settings.pop("called"), **settings}
    ids = (folder / "ids.json").read_bytes()
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "ids.json").write_bytes(ids)
    (folder / "about.json").write_text(json.dumps(described))
    np.save(folder / "vectors.npy", wanted)
    checksums = np.zeros(SHARDS, [("sha256", "S64"), ("missing", "<u4")])
    for number in range(SHARDS if finished else 4):
        rows = wanted[number * SHARD_SIZE : (number + 1) * SHARD_SIZE].tobytes()
        checksums[number]["sha256"] = hashlib.sha256(rows + bytes(4)).hexdigest()
    checksums[2]["sha256"] = "damaged"
    np.save(folder / "finished.npy", checksums)
    good = IMAGES - SHARD_SIZE if finished else 3 * SHARD_SIZE
    if cut:
        with (folder / "vectors.npy").open("r+b") as file:
            file.truncate(128 + 48 * (IMAGES - 1))
        good -= IMAGES % SHARD_SIZE if finished else 0
    [entry] = store.list()
    assert (entry.done, entry.pictures, entry.images) == (good, "shapes/val", IMAGES)
    again = PlainEncoder()
    np.testing.assert_array_equal(embed(store, again).vectors, wanted)
    assert sum(again.batches) == IMAGES - good
    assert [(one.done, one.pictures) for one in store.list()] == [(IMAGES, "shapes/val")]
    names = {path.name for path in folder.iterdir()}
    assert names == {".claims", "01-vectors.npy", "ids.json", "make.json"}


def test_of_an_array_that_was_cut_only_the_lost_shards_are_damaged(
    store: EmbeddingStore, wanted: Vectors
) -> None:
    embed(store, PlainEncoder())
    folder = folder_of(store)
    path = folder.folder / ARRAY
    path.write_bytes(path.read_bytes()[: 128 + 2 * 5 * 48 + 7])
    [message] = store.damage(folder.key)
    assert message.startswith("rows 10 to 102 of 103 (")
    again = PlainEncoder()
    np.testing.assert_array_equal(embed(store, again).vectors, wanted)
    assert sum(again.batches) == IMAGES - 10
    assert store.damage(folder.key) == []


def test_writers_that_repair_different_images_have_both_encoded_again(store: EmbeddingStore) -> None:
    embed(store, PlainEncoder())
    one, other = folder_of(store), folder_of(store)
    one.encode_again([one.ids[0]])
    other.encode_again([one.ids[2 * SHARD_SIZE]])
    assert [part.number for part in one.parts_to_do()] == [0, 2]


def test_a_run_that_another_program_has_ended_is_not_begun_anew(store: EmbeddingStore) -> None:
    embed(store, PlainEncoder())
    folder = folder_of(store)
    EmbeddingFolder.begin(folder.folder, "embeddings", {"vectors": "?"}, {})
    assert folder_of(store).parts_to_do() == []


@pytest.mark.parametrize("key", ["settings", "done"])
def test_a_state_that_was_changed_is_damage_until_it_is_removed(key: str, store: EmbeddingStore) -> None:
    embed(store, PlainEncoder())
    folder = folder_of(store)
    path = folder.folder / "make.json"
    state = json.loads(path.read_bytes())
    changed = {"settings": {"shard_size": 6}, "done": {"vectors": {"rows": IMAGES}}}
    state[key] |= changed[key]
    path.write_text(json.dumps(state))
    [message] = store.damage(folder.key)
    assert f"make.json: it is damaged. Fix: `cir embeddings rm {folder.key}`" in message
    [entry] = store.list()
    assert (entry.pictures, entry.identity, entry.images) == ("", None, 0)
    with pytest.raises(StoreError, match=r"make\.json: it is damaged"):
        embed(store, PlainEncoder())
    assert store.remove(folder.key) > 0


def test_the_command_that_mends_is_of_galleries_and_encoders_that_a_command_can_name(
    store: EmbeddingStore,
) -> None:
    def fix(name: str, identity: Identity, ids: tuple[str, ...], size: int = 1024) -> str:
        folder = store.folder(identity, ShapesPictures(name, ids), shard_size=size)
        folder.prepare()
        rows = np.eye(1, 12, dtype=np.float32).repeat(min(size, len(ids)), axis=0)
        folder.write_part(folder.parts()[0], rows)
        (folder.folder / "01-vectors.part.npy").unlink()
        [message] = store.damage(folder.key)
        start = message.index("Fix: ")
        return message[start:].replace(folder.key, "KEY")

    gallery = tuple(cir_datasets.load("shapes/val").gallery or ())
    sha256, commit = "3f" * 32, "4e" * 20
    remove = "Fix: `cir embeddings rm KEY`; the images are encoded again when they are needed."
    hub = Identity("a/b", commit, "clip", sha256, "float16", 12)
    assert fix("shapes/val", hub, gallery, 100) == (
        f"Fix: `cir embed --benchmark shapes/val --encoder a/b --revision {commit} --dtype float16 "
        "--shard-size 100` encodes them again, and no others."
    )
    local = Identity("tiny", sha256, "clip", sha256, "float32", 12)
    assert fix("shapes/val", local, gallery) == (
        "Fix: `cir embed --benchmark shapes/val --encoder FOLDER` (FOLDER: the folder of the encoder "
        "'tiny') encodes them again, and no others."
    )
    assert fix("photos", hub, gallery) == remove  # of no benchmark
    assert fix("shapes/val", hub, gallery[:9]) == remove  # other images than the gallery's
    assert fix("shapes/val", PlainEncoder().identity, gallery) == remove  # an encoder of one's own


def test_another_encoder_gallery_or_shard_size_is_another_entry(store: EmbeddingStore) -> None:
    pictures = shapes_pictures(12)
    keys = {
        store.folder(identity, shown, shard_size=size).key
        for identity in (PlainEncoder().identity, PlainEncoder(revision="2").identity)
        for shown in (pictures, shapes_pictures(11), ShapesPictures(pictures.name, pictures.ids[::-1]))
        for size in (5, 6)
    }
    assert len(keys) == 12
    renamed = ShapesPictures("another/name", pictures.ids)  # names change no vectors
    assert store.folder(PlainEncoder().identity, renamed, shard_size=5).key in keys


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            np.eye(4, 12, dtype=np.float32),
            r"shard 0 of shapes/val: vectors of shape \(4, 12\), not \(5, 12\)",
        ),
        (np.full((5, 12), np.nan, dtype=np.float32), "has length nan, not 1. Fix: use --dtype float32"),
        (np.eye(5, 12, dtype=np.float32) * 2, "has length 2, not 1. Fix: use --dtype float32"),
    ],
)
def test_what_is_not_a_vector_is_refused(rows: Vectors, text: str, store: EmbeddingStore) -> None:
    folder = folder_of(store)
    with pytest.raises(StoreError, match=text):
        folder.write_part(folder.parts()[0], rows)
    assert len(folder.parts_to_do()) == SHARDS
    with pytest.raises(StoreError, match=r"21 of 21 shards are still to do\. Fix: run `cir embed` again"):
        folder.embeddings()


def test_shards_of_one_process_are_those_of_many(store: EmbeddingStore, wanted: Vectors) -> None:
    """What another engine uses: claim, encode, write, join."""
    folder, pictures = folder_of(store), shapes_pictures()
    for shard in folder.parts_to_do():
        with folder.claim(shard) as ours:
            assert ours
            folder.write_part(shard, encode_shard(PlainEncoder(), pictures, shard, batch_size=BATCH_SIZE))
        with folder.claim(shard) as ours:
            assert not ours  # done
    assert folder.parts()[-1] == Shard(20, 100, 103)
    np.testing.assert_array_equal(folder.embeddings().vectors, wanted)


def test_what_a_store_lists_can_be_removed(store: EmbeddingStore) -> None:
    assert store.list() == []
    made = embed(store, PlainEncoder())
    [entry] = store.list()
    assert (entry.pictures, entry.images, entry.done, entry.missing) == ("shapes/val", IMAGES, IMAGES, 0)
    assert entry.identity == PlainEncoder().identity
    assert IMAGES * 48 < entry.num_bytes < IMAGES * 48 + 20_000
    with pytest.raises(
        StoreError, match=rf"no embeddings '{entry.key[:-1]}x' in .* Did you mean '{entry.key}'"
    ):
        store.remove(entry.key[:-1] + "x")
    folder = folder_of(store)
    with (
        folder.claim(folder.parts()[3]),
        pytest.raises(StoreError, match=r"a process is writing to them\. Fix: wait until it ends"),
    ):
        store.remove(entry.key)
    before = made.vectors.copy()
    assert store.remove(entry.key) == entry.num_bytes
    np.testing.assert_array_equal(made.vectors, before)  # an open array stays good
    assert store.list() == []
    with pytest.raises(StoreError, match=r"no embeddings '\.\./\.\./etc'"):
        store.remove("../../etc")


def test_a_folder_that_was_renamed_finds_its_vectors(store: EmbeddingStore) -> None:
    """A folder's model is its weights; on the Hub, and of encoders of one's own, the name counts."""
    pictures, sha256 = shapes_pictures(3), "3f" * 32

    def entry(model: str, revision: str, preprocessing: str = sha256) -> EmbeddingFolder:
        return store.folder(Identity(model, revision, "clip", preprocessing, "float32", 12), pictures)

    first, copy = entry("model", sha256), entry("copy", sha256)
    assert first.key == copy.key
    assert (first.identity.model, copy.identity.model) == ("model", "copy")
    assert [one.identity and one.identity.model for one in store.list()] == ["model"]
    keys = {first.key, entry("a/b", "3f" * 20).key, entry("b/b", "3f" * 20).key, entry("own", sha256, "").key}
    assert len(keys | {entry("other", sha256, "").key, entry("model", "4e" * 32).key}) == 6


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users can reach, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def another_user() -> Iterator[None]:
    """Who may write nothing here. To root no rights count; anyone else takes away their own."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_is_complete_is_used_where_it_may_not_be_written(shared: Path, wanted: Vectors) -> None:
    store, pictures = EmbeddingStore(shared / "store"), shapes_pictures()
    embed(store, PlainEncoder())
    before = sorted((path, path.stat().st_mtime_ns) for path in shared.rglob("*"))
    with another_user():
        again = PlainEncoder()
        np.testing.assert_array_equal(embed(store, again, pictures).vectors, wanted)
        assert again.batches == []
        assert [one.done for one in store.list()] == [IMAGES]
    assert sorted((path, path.stat().st_mtime_ns) for path in shared.rglob("*")) == before


def test_what_is_under_way_is_refused_where_it_may_not_be_written(shared: Path, wanted: Vectors) -> None:
    store, pictures = EmbeddingStore(shared / "store"), shapes_pictures()
    folder = folder_of(store)
    folder.write_part(folder.parts()[0], wanted[:SHARD_SIZE])
    text = r"cannot be written: Permission denied\. Fix: set CIR_CACHE_HOME to a folder that"
    with another_user(), pytest.raises(StoreError, match=text):
        embed(store, PlainEncoder(), pictures)
    embed(store, PlainEncoder())
    with another_user(), pytest.raises(StoreError, match=text):
        store.remove(folder.key)


def test_files_have_the_rights_that_the_umask_gives(store: EmbeddingStore) -> None:
    before = os.umask(0o027)
    try:
        embed(store, PlainEncoder())
    finally:
        os.umask(before)
    names = {path.name: path.stat().st_mode & 0o777 for path in folder_of(store).folder.glob("[!.]*")}
    assert names == dict.fromkeys(("01-vectors.npy", "ids.json", "make.json"), 0o640)


def test_a_shard_size_of_0_an_empty_gallery_and_a_file_as_store_are_refused(
    store: EmbeddingStore, tmp_path: Path
) -> None:
    with pytest.raises(CallError, match=r"shard_size=0; it is 1 or more\. Fix: choose another one"):
        store.folder(PlainEncoder().identity, shapes_pictures(3), shard_size=0)
    with pytest.raises(CallError, match=r"shapes/val: no images\. Fix: pass pictures with ids"):
        store.folder(PlainEncoder().identity, ShapesPictures("shapes/val", ()))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be written: .* Fix: set CIR_CACHE_HOME"):
        EmbeddingStore(tmp_path / "file").folder(PlainEncoder().identity, shapes_pictures(3))


def test_the_store_lies_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    assert EmbeddingStore().root == tmp_path / "embeddings"


@pytest.mark.slow
def test_a_disk_that_takes_no_more_is_told_before_anything_is_encoded(
    store: EmbeddingStore, tmp_path: Path
) -> None:
    full = (
        "import pathlib, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "sys.path.insert(0, sys.argv[1]); from benchmark_world import embeddings\n"
        "embeddings.main(sys.argv[2], sys.argv[3])"
    )
    fixtures = Path(embeddings.__file__).parents[1]
    command = [sys.executable, "-c", full, fixtures, store.root, tmp_path / "log"]
    done = run_program(command, code=1)
    assert "cannot be written: File too large. Fix: set CIR_CACHE_HOME to a folder that can be" in done.stderr
    assert not (tmp_path / "log").exists()


def test_an_entry_that_is_removed_under_way_is_told(store: EmbeddingStore, wanted: Vectors) -> None:
    folder = folder_of(store)
    assert store.remove(folder.key) > 0
    removed = rf"embeddings {folder.key}: removed meanwhile\. Fix: make them again"
    with pytest.raises(StoreError, match=removed):
        folder.write_part(folder.parts()[0], wanted[:SHARD_SIZE])
    with pytest.raises(StoreError, match=removed), folder.claim(folder.parts()[0]):
        pass
    with pytest.raises(StoreError, match=removed):
        folder.prepare()
    assert store.list() == []
