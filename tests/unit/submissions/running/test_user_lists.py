"""Lists of one's own become rank files: a plain twin, what is filled in and cut, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
from benchmark_world.user_scores import BENCHMARK, IMAGES, KEYS, SESSIONS, TURNS, for_real_cirr, small_suite
from says import refusal

import submissions
from cir_datasets.rows.benchmark import SUBSET, AskedRanking, Benchmark
from cir_datasets.rows.hashing import gallery_hash
from submissions.errors import MethodError
from submissions.running import user_ids
from submissions.running.user_lists import rank_file_from_lists

SECOND = AskedRanking(SUBSET, removes_reference=True, on_board=True)

ROWS = {row["query_id"]: row for row in BENCHMARK.rows()}


def drawn(benchmark: Benchmark, seed: int = 0) -> dict[str, list[str]]:
    """The whole gallery in a random order of each query."""
    draws, images = np.random.default_rng(seed), np.array(benchmark.gallery)
    return {query: draws.permutation(images).tolist() for query in benchmark.query_ids}


LISTS = drawn(BENCHMARK)
SUBSETS = {key: SECOND.images(row)[::-1] for key, row in ROWS.items()}


def made(
    lists: Any = LISTS, subset_lists: Any = None, benchmark: Any = BENCHMARK, **change: Any
) -> submissions.RankFile:
    found = rank_file_from_lists(benchmark, lists, subset_lists, **{"method": "Mine", **change})
    assert isinstance(found, submissions.RankFile)
    return found


def check_twin(benchmark: Benchmark, lists: dict[str, list[str]]) -> None:
    """Plain Python: without the reference, the first 50; of the subset the first three."""
    found = made(lists, None, benchmark)
    assert found.rankings.keys() == found.subset_rankings.keys() == set(benchmark.query_ids)
    for row in benchmark.rows():
        own = [image for image in lists[row["query_id"]] if image != row["reference_image_id"]]
        assert found.rankings[row["query_id"]] == own[:50]
        members = set(row["subset_image_ids"])
        assert found.subset_rankings[row["query_id"]] == [image for image in own if image in members][:3]
    assert submissions.validate(found, benchmark).errors == ()


def test_rankings_are_what_plain_python_gives() -> None:
    check_twin(BENCHMARK, LISTS)


@pytest.mark.slow
def test_rankings_of_real_annotations_are_what_plain_python_gives() -> None:
    benchmark = for_real_cirr()
    check_twin(benchmark, drawn(benchmark))


def test_subsets_that_are_given_are_taken() -> None:
    short = {key: [image for image in ids if image not in SUBSETS[key]] for key, ids in LISTS.items()}
    found = made(short, {key: [*ids, ROWS[key]["reference_image_id"]] for key, ids in SUBSETS.items()})
    assert found.subset_rankings == {key: ids[:3] for key, ids in SUBSETS.items()}
    assert (
        made({key: tuple(ids) for key, ids in LISTS.items()}, k=51).rankings[KEYS[0]][:50]
        == (made({key: np.array(ids) for key, ids in LISTS.items()}).rankings[KEYS[0]])
    )


def test_sessions_are_lists_of_lists_or_a_list_a_turn() -> None:
    images = list(SESSIONS.gallery or ())
    by_turn = {key: images[number:] + images[:number] for number, key in enumerate(TURNS)}
    by_session: dict[str, list[list[str]]] = {}
    for key, ids in by_turn.items():
        by_session.setdefault(key.partition("#")[0], []).append(ids)
    found = made(by_turn, None, SESSIONS)
    assert found == made(by_session, None, SESSIONS)
    assert submissions.validate(found, SESSIONS).errors == ()


def test_a_session_that_is_not_answered_with_a_list_a_turn_is_named() -> None:
    images, answers = list(SESSIONS.gallery or ()), {}
    for row in SESSIONS.rows():
        answers[row["session_id"]] = [images] * len(row["turns"])
    first = next(iter(answers))
    turns = len(answers[first])
    with refusal(
        f"lists['{first}']: one list of {len(images)} ... of {turns} turns. Fix: give a list", MethodError
    ):
        made({**answers, first: images}, None, SESSIONS)
    for given in (turns - 1, turns + 1):
        with refusal(f"{given} list ... for a session of {turns} turns. Fix: give one", MethodError):
            made({**answers, first: [images] * given}, None, SESSIONS)


def test_a_list_of_the_users_own_is_the_gallery_and_without_one_it_is_unknown() -> None:
    unlisted = dataclasses.replace(BENCHMARK, gallery=None, gallery_hash=None)
    named = made(LISTS, None, unlisted, image_ids=IMAGES)
    assert named.rankings == made().rankings
    assert named.method.own_gallery == f"{len(IMAGES)}:{gallery_hash(IMAGES)}"
    assert made(LISTS, None, unlisted).method.own_gallery == ""
    coco = worlds.circo(gallery=None)
    numbers = {query: list(range(1, 51)) for query in coco.query_ids}
    assert made(numbers, None, coco).rankings["0"][:2] == [worlds.coco(1), worlds.coco(2)]
    with refusal("lists['0']: 'cat' is not an image's id. Fix: write COCO ids", MethodError):
        made({**numbers, "0": ["cat", *range(2, 51)]}, None, coco)


def test_a_suite_is_answered_by_member(monkeypatch: pytest.MonkeyPatch) -> None:
    own = small_suite()
    monkeypatch.setattr(user_ids, "loaded_benchmark", own.__getitem__)
    lists = {member.partition("/")[2]: drawn(benchmark) for member, benchmark in own.items()}
    bundle = rank_file_from_lists("fashioniq/val", lists, method="Mine")
    assert isinstance(bundle, submissions.RankBundle)
    assert submissions.validate(bundle, own).errors == ()
    lists["shirt_val"]["shirt_val_00002"] = ["cat"]
    with refusal("lists['fashioniq/shirt_val']['shirt_val_00002']: 'cat' is not", MethodError):
        rank_file_from_lists("fashioniq/val", lists, method="Mine")
    assert user_ids.Names(member="a/b").of("lists") == "lists['a/b']"


FIRST = LISTS[KEYS[0]]
REFERENCE = ROWS[KEYS[0]]["reference_image_id"]
OTHERS = [image for image in FIRST if image != REFERENCE]
PLACE = f"lists['{KEYS[0]}']"


def changed(ids: Any, subset_lists: Any = None) -> dict[str, Any]:
    return {"lists": {**LISTS, KEYS[0]: ids}, "subset_lists": subset_lists}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"lists": [FIRST]}, "lists: of type list. Fix: give {query id"),
        ({"lists": {}}, "lists: empty. Fix: give a list for each query"),
        ({"lists": {"rankings": LISTS}}, 'the lists stand below the key "rankings". Fix: give the object'),
        ({"lists": made().to_dict()}, "lists: it is a rank file already. Fix: use it as it is"),
        ({"lists": {7.5: FIRST}}, "lists: the key 7.5 is not an id"),
        ({"lists": {**LISTS, "nobody": FIRST}}, "lists['nobody']: shapes/val has no such query id"),
        ({"lists": {KEYS[0]: FIRST}}, f"lists: 5 of 6 of shapes/val are missing, '{KEYS[1]}' first"),
        (changed("im1"), f"{PLACE} is 'im1'; a ranking is a list"),
        (changed([7.5, *FIRST]), f"{PLACE}[0] is 7.5; an image id is a string. Fix: write '7.5' if"),
        (changed(["cat", *FIRST]), f"{PLACE}: 'cat' is not in the gallery"),
        (changed([f"{OTHERS[0]}.png", *FIRST]), f"an image is listed twice, '{OTHERS[0]}'"),
        (changed([OTHERS[0], *OTHERS]), f"{PLACE}: an image is listed twice, '{OTHERS[0]}'"),
        (changed([REFERENCE, *OTHERS[:49]], SUBSETS), f"{PLACE}: 49 images beside the reference, and 50 are"),
        (changed([]), f"subset_lists is not given, and {PLACE} holds 0 of the 5 ... pass subset_lists="),
        ({"subset_lists": {KEYS[0]: []}}, "subset_lists: 5 of 6 of shapes/val are missing"),
        ({"subset_lists": {**SUBSETS, KEYS[0]: OTHERS}}, "is not in the query's subset"),
        ({"subset_lists": {**SUBSETS, KEYS[0]: SUBSETS[KEYS[0]][:2]}}, "2 images, and 3 are wanted"),
        ({"image_ids": IMAGES[1:]}, f"image_ids: 1 of 60 images of shapes/val are missing, '{IMAGES[0]}'"),
        ({"benchmark": "fashioniq/val", "lists": [1]}, "lists is of type list; fashioniq/val is a suite"),
        ({"k": 1001}, "k=1001; it is 1 to 1,000"),
    ],
    ids=lambda value: value[:25] if isinstance(value, str) else "",
)
def test_what_cannot_be_ranked_is_refused_with_place_and_fix(change: dict[str, Any], text: str) -> None:
    with refusal(text, MethodError):
        made(**change)
