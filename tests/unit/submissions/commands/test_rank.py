"""`cir rank`: one of three doors, files by their content, errors that name the file and its line."""

from __future__ import annotations

import json
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world.user_scores import BENCHMARK, IMAGES, KEYS, small_suite
from says import says
from typer.testing import CliRunner

import submissions
from cir_metrics.errors import CirError
from leaderboard.cli import build
from submissions.errors import MethodError
from submissions.running import user_ids

DRAWN = np.random.default_rng(0)
SCORES = DRAWN.standard_normal((len(KEYS), len(IMAGES))).astype(np.float32)
QUERIES, VECTORS = DRAWN.standard_normal((len(KEYS), 8)), DRAWN.standard_normal((len(IMAGES), 8))
LISTS = dict.fromkeys(KEYS, IMAGES)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The benchmark with few queries under its own id, and a folder with a user's files."""
    known = {BENCHMARK.id: BENCHMARK, **small_suite()}
    monkeypatch.setattr(
        user_ids, "loaded_benchmark", lambda given: known[given] if isinstance(given, str) else given
    )
    monkeypatch.chdir(tmp_path)
    np.save("S.npy", SCORES)
    np.save("Q.npy", QUERIES)
    np.save("G.npy", VECTORS)
    Path("Q.txt").write_text("\n".join(KEYS) + "\n", encoding="utf-8")
    Path("G.txt").write_text("\ufeff" + "\r\n".join(IMAGES), encoding="utf-8")
    Path("G.json").write_text(json.dumps(IMAGES), encoding="utf-8")
    Path("L.json").write_text(json.dumps(LISTS), encoding="utf-8")


IDS = ["--queries", "Q.txt", "--images", "G.txt"]
BY_SCORES = ["--scores", "S.npy", *IDS]
BY_VECTORS = ["--query-embeddings", "Q.npy", "--image-embeddings", "G.npy", *IDS]


def rank(*words: str, benchmark: str = BENCHMARK.id, out: str = "run.json") -> Any:
    return CliRunner().invoke(build(), ["rank", "-b", benchmark, "-m", "Ours", "-o", out, *words])


def test_each_door_gives_what_the_function_gives() -> None:
    ids: dict[str, Any] = {"query_ids": KEYS, "image_ids": IMAGES, "method": "Ours"}
    of = submissions
    by_scores = partial(of.rank_file_from_scores, BENCHMARK, SCORES, **ids)
    by_vectors = partial(of.rank_file_from_embeddings, BENCHMARK, QUERIES, VECTORS, **ids)
    made = {
        (*BY_SCORES,): by_scores(),
        ("--scores", "S.npy", "--queries", "Q.txt", "--images", "G.json"): by_scores(),
        ("--scores", "S.npy", "--by-position", "--k", "51"): by_scores(k=51),
        (*BY_VECTORS,): by_vectors(),
        (*BY_VECTORS, "--no-normalise"): by_vectors(normalise=False),
        ("--lists", "L.json"): of.rank_file_from_lists(BENCHMARK, LISTS, method="Ours"),
    }
    for words, expected in made.items():
        done = rank(*words)
        assert done.exit_code == 0, done.exception
        assert done.stdout.split() == [str(Path("run.json").absolute())]
        assert f"cir score {Path('run.json').absolute()}" in done.stderr
        assert Path("run.json").read_bytes() == expected.to_json()
    done = rank(*BY_SCORES, "--json")
    assert json.loads(done.stdout)["method"] == "Ours"


@pytest.mark.parametrize("ending", [".npz", ".pt", ".safetensors"])
def test_arrays_of_other_files_give_the_same_bytes(ending: str) -> None:
    torch = pytest.importorskip("torch")
    file = f"other{ending}"
    if ending == ".npz":
        np.savez(file, scores=SCORES)
    elif ending == ".pt":
        torch.save(torch.from_numpy(SCORES), file)
    else:
        pytest.importorskip("safetensors.numpy").save_file({"scores": SCORES}, file)
    assert rank(*BY_SCORES).exit_code == 0
    expected = Path("run.json").read_bytes()
    done = rank("--scores", file, *IDS)
    assert done.exit_code == 0, done.exception
    assert Path("run.json").read_bytes() == expected


def test_a_suite_takes_folders_with_a_file_a_member() -> None:
    for name in ("scores", "queries", "images"):
        Path(name).mkdir()
    for category, benchmark in zip(("dress", "shirt", "toptee"), small_suite().values(), strict=True):
        shape = (len(benchmark.query_ids), len(benchmark.gallery or ()))
        np.save(f"scores/{category}.npy", np.random.default_rng(1).random(shape))
        Path(f"queries/{category}_val.txt").write_text("\n".join(benchmark.query_ids), encoding="utf-8")
        Path(f"images/{category}.json").write_text(json.dumps(benchmark.gallery), encoding="utf-8")
    words = ["--scores", "scores", "--queries", "queries", "--images", "images"]
    done = rank(*words, benchmark="fashioniq/val")
    assert done.exit_code == 0, done.exception
    bundle = submissions.read("run.json")
    assert [run.benchmark for run in bundle.runs] == list(small_suite())
    Path("queries/shirt_val.txt").write_text("nobody\n" * 4, encoding="utf-8")
    done = rank(*words, benchmark="fashioniq/val", out="no.json")
    assert "queries/shirt_val.txt, line 1, and queries/shirt_val.txt, line 2, are both" in str(done.exception)
    Path("scores/toptee.npy").unlink()
    done = rank(*words, benchmark="fashioniq/val", out="no.json")
    assert "--scores: fashioniq/toptee_val is missing" in str(done.exception)
    done = rank(*BY_SCORES, benchmark="fashioniq/val", out="no.json")
    assert "this is not a folder. Fix: name a folder that holds dress_val.npy" in str(done.exception)
    assert not Path("no.json").exists()


def lines(*ids: str) -> str:
    return "\n".join(ids)


NAN = SCORES.copy()
NAN[2, 5] = np.nan
BY_LISTS = ["--lists", "L.json"]


@pytest.mark.parametrize(
    ("files", "words", "text"),
    [
        ({}, IDS, "none of them is given. Fix: give exactly one"),
        ({}, [*BY_SCORES, *BY_LISTS], "--scores and --lists are given. Fix: give exactly one"),
        ({}, ["--query-embeddings", "Q.npy", *IDS], "Fix: add --image-embeddings FILE"),
        ({}, [*BY_SCORES, "--image-embeddings", "G.npy"], "--image-embeddings has no effect beside --scores"),
        ({}, [*BY_SCORES, "--subset-lists", "L.json"], "--subset-lists has no effect beside --scores"),
        ({}, [*BY_SCORES, "--no-normalise"], "--no-normalise has no effect beside --scores"),
        ({}, ["--scores", "S.npy"], "--queries is not given. Fix: add --queries FILE ... or --by-position"),
        ({}, ["--scores", "absent.npy", *IDS], "--scores absent.npy: no such file"),
        ({}, ["--scores", "Q.txt", *IDS], "a file in '.txt' is not read. Fix: write it as one of .npy"),
        ({}, ["--scores", ".", *IDS], "--scores . is a folder"),
        ({"S.npy": SCORES.T}, BY_SCORES, "S.npy: shape (60, 6); ... Fix: transpose it"),
        ({"S.npy": NAN}, BY_SCORES, f"S.npy[2, 5] is NaN: query '{KEYS[2]}', image '{IMAGES[5]}'"),
        ({"S.npy": np.array([{}])}, BY_SCORES, "S.npy: cannot be read as .npy"),
        ({"Q.txt": lines(*KEYS[:-1], "nobody")}, BY_SCORES, "Q.txt, line 6, is 'nobody'"),
        ({"Q.txt": lines(*KEYS, KEYS[0])}, BY_SCORES, "there are 7 query ids and 60 image ids"),
        ({"Q.txt": lines(*KEYS[:-1], KEYS[0])}, BY_SCORES, "Q.txt, line 1, and Q.txt, line 6,"),
        ({"G.txt": ""}, BY_SCORES, "G.txt is empty. Fix: name each column"),
        ({"G.txt": "a\n\nb"}, BY_SCORES, "--images G.txt: line 2 is empty"),
        ({"Q.txt": '{"a": 1}'}, BY_SCORES, "--queries Q.txt: it is not a list"),
        ({"L.json": "[1"}, BY_LISTS, "L.json: line 1, column 3: this is not JSON"),
        ({"L.json": '{"a": [], "a": []}'}, BY_LISTS, "the key 'a' stands twice"),
        ({"L.json": "[" * 100_000}, BY_LISTS, "L.json: its lists or objects are nest"),
        ({"L.json": "{}"}, BY_LISTS, "L.json: empty. Fix: give a list for each"),
        ({}, [*BY_LISTS, "--queries", "Q.txt"], "--queries has no effect beside --lists"),
        ({}, [*BY_SCORES, "-o", "run.csv"], "--out run.csv: the native format is written"),
    ],
    ids=lambda value: value[:25] if isinstance(value, str) else "",
)
def test_a_wrong_call_says_place_and_fix_and_writes_nothing(
    files: dict[str, Any], words: list[str], text: str
) -> None:
    for name, content in files.items():
        if isinstance(content, str):
            Path(name).write_text(content, encoding="utf-8")
        else:
            np.save(name, content, allow_pickle=True)
    done = rank(*words)
    assert isinstance(done.exception, CirError), done.output
    says(done.exception, text)
    says(done.exception, "Fix: ")
    assert not list(Path().glob("run.*"))


def test_the_next_step_for_withheld_queries_is_the_publishers_server() -> None:
    from submissions.commands.rank import _next_step

    assert _next_step("cirr/test1", "run.json").endswith("cir convert run.json --to cirr-server")
    assert _next_step("cirr/val", "run.json").endswith("cir score run.json")
    assert worlds.cirr("test1").ground_truth_withheld


def test_rankings_shorter_than_the_board_uses_are_said_at_once() -> None:
    done = rank("--lists", "L.json", "--k", "10")
    assert done.exit_code == 0
    assert f"--k 10: the metrics of {BENCHMARK.id} use 50 images" in done.stderr
    assert "cir score refuses shorter rankings" in done.stderr
    assert "Where it stands" not in done.stderr
    assert "Where it stands: cir score" in rank("--lists", "L.json", "--k", "50").stderr


def bomb() -> None:
    """More than a gibibyte of zeros in five megabytes."""
    about = {"descr": "<f4", "fortran_order": False, "shape": (2**29,)}
    with (
        zipfile.ZipFile("S.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("scores.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, about)
        for _ in range(129):
            member.write(bytes(2**23))


def claiming(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


SHAPE = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%s,)}\n"
TENSOR = b'{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}'
DAMAGED = {
    "nested.npy": claiming(b"(" * 5000 + b"\n"),
    "long.npy": claiming(SHAPE % (b"9" * 400)),
    "negative.npy": claiming(SHAPE % b"-5"),
    "odd.npy": claiming(b"{'descr': [1, 'x'], 'fortran_order': 3, 'shape': None}\n"),
    "cut.npy": claiming(SHAPE % b"7"),
    "empty.npz": b"PK\x05\x06" + bytes(18),
    "cut.npz": b"PK\x03\x04" + bytes(18),
    "empty.safetensors": b"",
    "huge.safetensors": (2**62).to_bytes(8, "little") + b"{}",
    "list.safetensors": (2).to_bytes(8, "little") + b"[]",
    "dtype.safetensors": len(TENSOR).to_bytes(8, "little") + TENSOR + bytes(4),
    "empty.pt": b"",
    "text.pt": b"\x80\x04.",
}


def test_lists_under_gzip_are_read_up_to_their_bound() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    piece = packer.compress(b" " * 2**24) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(b" " * 2**24) + packer.flush(zlib.Z_FULL_FLUSH)
    Path("L.json.gz").write_bytes(piece + again * 20)
    Path("cut.json.gz").write_bytes(piece[:-9])
    for name, said in (("L.json.gz", "unpacked it has more than"), ("cut.json.gz", "it is not a text")):
        done = rank("--lists", name)
        assert isinstance(done.exception, MethodError), done.exception
        says(done.exception, name, said, "Fix: ")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_array_is_refused_in_words(name: str) -> None:
    Path(name).write_bytes(DAMAGED[name])
    done = rank("--scores", name, *IDS)
    assert isinstance(done.exception, MethodError), done.exception
    says(done.exception, name, "Fix: ")


def test_what_a_packed_array_unpacks_to_is_bounded_and_asked_for_last() -> None:
    bomb()
    done = rank("--scores", "S.npz")
    assert isinstance(done.exception, MethodError)
    says(done.exception, "--queries is not given", "Fix: add --queries FILE")
    done = rank("--scores", "S.npz", *IDS)
    assert isinstance(done.exception, MethodError)
    says(done.exception, "S.npz", "unpacked it has", "Fix: write it with np.save as .npy")
    Path("S.npz").rename("S.npy")  # numpy heeds the content
    done = rank(*BY_SCORES)
    assert isinstance(done.exception, MethodError)
    says(done.exception, "S.npy", "unpacked it has")
