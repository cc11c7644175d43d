"""Scores of one's own become rank files: the plain definition, ids in any order, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world.user_scores import BENCHMARK, IMAGES, KEYS, SESSIONS, TURNS, best_first
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from says import refusal

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import SUBSET, AskedRanking, Benchmark
from cir_datasets.rows.hashing import gallery_hash
from submissions.errors import ComparisonError, MethodError
from submissions.running import user_ids, user_scores
from submissions.running.user_scores import rank_file_from_scores

# Few distinct values, so that ties are common; infinities have a place too.
VALUES = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, np.inf])
SCORES = np.random.default_rng(0).standard_normal((len(KEYS), len(IMAGES))).astype(np.float32)


SECOND = AskedRanking(SUBSET, removes_reference=True, on_board=True)


def made(scores: Any, benchmark: Benchmark = BENCHMARK, **change: Any) -> submissions.RankFile:
    ids = {"query_ids": KEYS, "image_ids": IMAGES, "method": "Mine"}
    found = rank_file_from_scores(benchmark, scores, **{**ids, **change})
    assert isinstance(found, submissions.RankFile)
    return found


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@given(data=st.data())
def test_rankings_are_what_plain_python_gives(kind: type, data: st.DataObject) -> None:
    scores = data.draw(arrays(kind, (len(KEYS), len(IMAGES)), elements=VALUES))
    found = made(scores)
    for row, own in zip(BENCHMARK.rows(), scores.astype(float).tolist(), strict=True):
        query, reference = row["query_id"], row["reference_image_id"]
        of = dict(zip(IMAGES, own, strict=True))
        subset = {image: of[image] for image in SECOND.images(row)}
        assert found.subset_rankings[query] == best_first(subset, query)[:3]
        del of[reference]
        assert found.rankings[query] == best_first(of, query)[:50]


def test_rows_and_columns_are_joined_by_their_ids() -> None:
    rows, columns = np.arange(len(KEYS))[::-1], np.arange(len(IMAGES))[::-1]
    moved = made(
        SCORES[rows][:, columns],
        query_ids=np.array(KEYS)[rows],
        image_ids=[IMAGES[column] for column in columns],
    )
    assert moved.to_json() == made(SCORES).to_json()
    by_position = made(SCORES, query_ids=None, image_ids=None, by_position=True)
    assert by_position.to_json() == made(SCORES).to_json()
    assert submissions.validate(made(SCORES), BENCHMARK).errors == ()


def test_every_holder_of_scores_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = made(SCORES).to_json()
    np.save(tmp_path / "scores.npy", SCORES)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="r")
    for cells in (1, 150, 8_000_000):
        monkeypatch.setattr(user_scores, "CELLS", cells)
        assert made(mapped).to_json() == expected
        assert made(SCORES.astype(np.float64)).to_json() == expected
        for size in (1, 4, 100):
            blocks = (SCORES[start : start + size] for start in range(0, len(KEYS), size))
            assert made(blocks).to_json() == expected


def test_a_tensor_is_taken_bfloat16_included() -> None:
    torch = pytest.importorskip("torch")
    assert made(torch.from_numpy(SCORES)).to_json() == made(SCORES).to_json()
    coarse = torch.from_numpy(SCORES).bfloat16()
    assert made(coarse).to_json() == made(coarse.float().numpy()).to_json()


def test_sessions_are_named_by_session_and_turn() -> None:
    images = list(SESSIONS.gallery or ())
    scores = np.random.default_rng(1).standard_normal((len(TURNS), len(images)))
    found = made(scores, SESSIONS, query_ids=TURNS, image_ids=images)
    assert submissions.validate(found, SESSIONS).errors == ()
    for key, own in zip(TURNS, scores.tolist(), strict=True):
        session, turn = key.split("#")
        wanted = best_first(dict(zip(images, own, strict=True)), key)[: len(found.rankings[session][0])]
        assert found.rankings[session][int(turn) - 1] == wanted


def test_without_the_publishers_list_the_users_is_the_gallery_and_the_signature_says_so() -> None:
    unlisted = dataclasses.replace(BENCHMARK, gallery=None, gallery_hash=None)
    family = made(SCORES, unlisted)
    assert family.method.own_gallery == f"{len(IMAGES)}:{BENCHMARK.gallery_hash}"
    assert family.rankings == made(SCORES).rankings
    own, whole = submissions.score(family, unlisted), submissions.score(made(SCORES), BENCHMARK)
    assert own.signatures == whole.signatures, "who ranks the publisher's list ranks the publisher's list"
    fewer = made(SCORES[:, 1:], unlisted, image_ids=IMAGES[1:])
    other = submissions.score(fewer, unlisted)
    hashed = gallery_hash(IMAGES[1:])
    assert f"| gallery:{len(IMAGES) - 1}:{hashed[:7]} |" in str(other.signatures["recall@1"])
    with pytest.raises(ComparisonError, match=rf"gallery: {len(IMAGES)}:\w+ against {len(IMAGES) - 1}:\w+"):
        submissions.compare([family, fewer], unlisted)
    nameless = dataclasses.replace(family, method=submissions.Method(name="Mine"))
    assert "gallery:unknown |" in str(submissions.score(nameless, unlisted).signatures["recall@1"])


OTHER_SPLIT = list(user_ids.rows_and_turns(cir_datasets.load("shapes/multiturn_val"))[1])[: len(KEYS)]
NAN = SCORES.copy()
NAN[2, 5] = np.nan


LAST, SUITE = KEYS[-1], {"benchmark": "fashioniq/val"}


@pytest.mark.parametrize(
    ("scores", "change", "text"),
    [
        (SCORES.T, {}, "shape (60, 6) ... Fix: transpose it (.T)"),
        (SCORES[:, :-1], {}, "shape (6, 59); there are 6 query ids and 60 image ids"),
        (NAN, {}, f"scores[2, 5] is NaN: query '{KEYS[2]}', image '{IMAGES[5]}'"),
        ([SCORES[:2], NAN[2:]], {}, f"block 1 of scores[0, 5] is NaN: query '{KEYS[2]}'"),
        (SCORES.astype(np.int64), {}, "type int64 ... may be ranks"),
        (SCORES.astype(np.longdouble), {}, "float16 to float64"),
        (SCORES.astype(complex), {}, "type complex128"),
        (np.ma.masked_greater(SCORES, 0), {}, "scores: a masked array. Fix: ... .filled"),
        ("scores.npy", {}, "scores: of type str"),
        ([SCORES[:4]], {}, f"end after 4 rows; query '{KEYS[4]}' has none"),
        ([SCORES, SCORES[:1]], {}, "block 1 of scores: shape (1, 60) behind 6 rows"),
        (SCORES.tolist(), {}, "block 0 of scores: of type list"),
        (SCORES, {"query_ids": set(KEYS)}, "query_ids is a set, which has no order"),
        (SCORES, {"query_ids": None}, "query_ids is not given ... by_position=True"),
        (SCORES, {"query_ids": [*KEYS[:-1], "nobody"]}, "query_ids[5] is 'nobody': ... no such query id"),
        (SCORES, {"query_ids": [*KEYS[:-1], KEYS[0]]}, f"query_ids[0] and query_ids[5] are both '{KEYS[0]}'"),
        (SCORES.T, {"query_ids": IMAGES, "image_ids": KEYS}, "no such query id ... Fix: give them as"),
        (SCORES[:-1], {"query_ids": KEYS[:-1]}, f"1 of 6 of shapes/val are missing, '{LAST}' first"),
        (SCORES, {"image_ids": [*IMAGES[:-1], "none"]}, "image_ids[59] is 'none': the gallery"),
        (SCORES, {"image_ids": [*IMAGES[:-1], 7.5]}, "image_ids[59] is 7.5; an image id is a string. Fix:"),
        (SCORES[:, 1:], {"image_ids": IMAGES[1:]}, f"1 of 60 images ... missing, '{IMAGES[0]}' first"),
        (SCORES[:, :0], {"image_ids": []}, "image_ids is empty"),
        (SCORES, {"k": 0}, "k=0; it is 1 to 1,000"),
        (SCORES, SUITE, "scores is of type ndarray; fashioniq/val is a suite ... toptee_val"),
        ({"dress": SCORES}, SUITE, "scores: fashioniq/shirt_val is missing"),
        ({"hat": SCORES}, SUITE, "scores['hat']: fashioniq/val has no such member"),
        (SCORES, {"method": ""}, "the method's name '' is refused"),
        (SCORES, {"query_ids": list("abcdef")}, "None of the 6 ids is of shapes/val ... such as"),
        (SCORES, {"query_ids": OTHER_SPLIT}, "such ids are of shapes/multiturn_val. Fix: name that"),
    ],
    ids=lambda value: value[:25] if isinstance(value, str) else "",
)
def test_what_cannot_be_ranked_is_refused_with_place_and_fix(
    scores: Any, change: dict[str, Any], text: str
) -> None:
    with refusal(text, MethodError):
        made(scores, **change)


def _resident(path: Path) -> int:
    """KiB of the file's maps that are in this process's memory."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            inside = line.endswith(str(path))
        elif inside and first == "Rss:":
            found += int(line.split()[1])
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="reads Linux's table of a process's memory")
def test_a_map_that_was_read_is_not_kept_in_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "scores.npy", SCORES)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="r")
    assert float(mapped.sum()) == float(SCORES.sum())
    before = _resident(tmp_path / "scores.npy")
    assert before > 0
    assert made(mapped) == made(SCORES)
    assert _resident(tmp_path / "scores.npy") < before
    changed = np.load(tmp_path / "scores.npy", mmap_mode="c")
    changed[:] = -SCORES
    assert made(changed) == made(-SCORES) == made(changed), "changes that are in no file stay"


def test_numbers_and_other_spellings_are_ids_too() -> None:
    cirr, coco = worlds.cirr(), worlds.circo()
    for benchmark, images in (
        (cirr, [f"{image}.png" for image in cirr.gallery or ()]),
        (coco, np.array([int(image) for image in coco.gallery or ()])),
    ):
        scores = np.random.default_rng(0).random((len(benchmark.query_ids), len(images)))
        numbers = np.array([int(query) for query in benchmark.query_ids])
        found = made(scores, benchmark, query_ids=numbers, image_ids=images)
        plain = made(scores, benchmark, query_ids=benchmark.query_ids, image_ids=benchmark.gallery)
        assert found.to_json() == plain.to_json()
