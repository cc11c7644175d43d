"""CIRR's rule of subsets, on features with a known answer and beside a slow twin."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cir_datasets.construction.cirr.neighbours import neighbours
from cir_datasets.construction.cirr.rule import chosen, faults, similarities
from cir_datasets.construction.cirr.subset_rule import UNIT, SubsetRule
from cir_datasets.construction.cirr.subsets import SubsetMaker, first_images, without_overlaps
from cir_datasets.errors import ConstructionError
from cir_metrics.errors import CallError

Features = NDArray[np.float32]


def with_cosines(*cosines: float) -> NDArray[np.float64]:
    """A first feature along the first axis, and one for each cosine to it, each in a plane of its own."""
    features = np.zeros((len(cosines) + 1, len(cosines) + 1))
    features[0, 0] = 1
    for place, cosine in enumerate(cosines, start=1):
        features[place, 0] = cosine
        features[place, place] = math.sqrt(1 - cosine * cosine)
    return features


def subset_of(features: NDArray[Any], rule: SubsetRule = SubsetRule(), memory: int = 2**20) -> list[int]:  # noqa: B008
    (found,) = neighbours(features, [0], rule, memory=memory)
    _, near, values = found
    return [int(near[place]) for place in chosen(values.tolist(), rule)]


def test_the_most_similar_images_are_added_that_are_far_enough_apart() -> None:
    features = with_cosines(0.5, 0.9, 0.899, 0.8, 0.7, 0.69, 0.95)
    # 0.95 is too alike, 0.899 is within 0.002 of 0.9; rows by cosine: 2 (0.9), 4, 5, 6, 1 (0.5).
    assert subset_of(features) == [2, 4, 5, 6, 1]


def test_a_skipped_image_is_not_the_one_that_the_next_is_compared_with() -> None:
    # 0.897 is within 0.002 of 0.8985, but 0.8985 was skipped, and 0.9 was added last.
    assert subset_of(with_cosines(0.9, 0.8985, 0.897, 0.8, 0.7, 0.6)) == [1, 3, 4, 5, 6]


def test_exactly_the_limit_is_too_alike() -> None:
    # 47, 17, 1, 1 has length 50: cosine 47/50 = 0.94 without rounding, in float32 as well.
    features = np.array(
        [[50, 0, 0, 0], [47, 17, 1, 1], [45, 15, 15, 5], [2, 1, 0, 0], [1, 1, 0, 0]], np.float32
    )
    assert similarities(features[0], features[1:2]).tolist() == [94 * UNIT // 100]
    assert subset_of(features, SubsetRule(size=3)) == [2, 3]
    assert subset_of(features, SubsetRule(size=3, alike=0.9400001)) == [1, 2]


def test_exactly_as_far_as_the_limit_is_still_too_near() -> None:
    # As doubles 0.9 - 0.898 is a little more than 0.002; as decimals it is not.
    assert 0.9 - 0.898 > 0.002
    assert chosen([900 * UNIT // 1000, 898 * UNIT // 1000, 897 * UNIT // 1000], SubsetRule(size=3)) == [0, 2]
    assert chosen([900 * UNIT // 1000, 898 * UNIT // 1000 - 1], SubsetRule(size=3)) == [0, 1]


def test_of_images_that_are_equally_similar_the_first_one_is_added() -> None:
    features = with_cosines(0.5, 0.8, 0.8, 0.8, 0.7, 0.6, 0.4)
    assert subset_of(features) == [2, 5, 6, 1, 7]


def test_only_the_next_twenty_are_looked_at() -> None:
    close = [0.9 - 0.00001 * place for place in range(19)]
    assert subset_of(with_cosines(*close, 0.8, 0.7, 0.6, 0.5)) == [1, 20]
    assert subset_of(with_cosines(*close, 0.8, 0.7, 0.6, 0.5), SubsetRule(ranked=23)) == [1, 20, 21, 22, 23]


def test_images_that_are_too_alike_do_not_count_among_the_twenty() -> None:
    alike = [0.99 - 0.001 * place for place in range(30)]
    assert subset_of(with_cosines(*alike, 0.9, 0.8, 0.7, 0.6, 0.5)) == [31, 32, 33, 34, 35]


def test_a_subset_that_is_not_full_is_discarded_with_the_reason(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", with_cosines(0.9, 0.8).astype(np.float32))
    maker = SubsetMaker(tmp_path / "f.npy", ["a", "b", "c"], {"test": (0, 3)}, SubsetRule())
    (row,) = maker([("test", 0)])
    assert row["members"] == ["a", "b", "c"]
    assert row["failed"] == "only 2 of 5 images could be added"


def test_a_feature_of_zeros_is_similar_to_nothing_and_one_that_is_not_finite_is_refused() -> None:
    assert similarities(np.zeros(2), np.ones((1, 2))).tolist() == [0]
    with pytest.raises(ConstructionError, match="not finite"):
        list(neighbours(np.array([[1, 0], [np.nan, 1]], np.float32), [0], SubsetRule()))


@pytest.mark.parametrize("wrong", [{"size": 2}, {"ranked": 4}, {"alike": 1.5}, {"apart": -0.1}])
def test_rules_that_no_subset_could_obey_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(CallError, match="Fix:"):
        SubsetRule(**wrong)


def twin(features: Features, first: int, rule: SubsetRule) -> list[int]:
    """The rule word for word, a pair at a time."""
    one = features[first].astype(float).tolist()

    def cosine(other: int) -> int:
        two = features[other].astype(float).tolist()
        dot = math.fsum(a * b for a, b in zip(one, two, strict=True))
        length = math.sqrt(math.fsum(a * a for a in two) * math.fsum(a * a for a in one))
        return round(dot / length * UNIT) if length else 0

    others = sorted((-cosine(row), row) for row in range(len(features)) if row != first)
    left = [(-value, row) for value, row in others if -value < round(rule.alike * UNIT)][: rule.ranked]
    added: list[tuple[int, int]] = []
    for value, row in left:
        if len(added) < rule.size - 1 and (not added or added[-1][0] - value > round(rule.apart * UNIT)):
            added.append((value, row))
    return [row for _, row in added]


@pytest.mark.parametrize("seed", range(4))
def test_subsets_are_those_of_a_slow_twin_whatever_the_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, 16))
    features = (centres[rng.integers(0, 5, 150)] + 0.4 * rng.normal(size=(150, 16))).astype(np.float32)
    features[140:] = features[:10]  # copies tie
    rule = SubsetRule()
    expected = [twin(features, first, rule) for first in range(150)]
    for memory in (1, 150 * 4 * 7, 2**26):
        found = neighbours(features, list(range(150)), rule, memory=memory)
        assert [
            [int(near[at]) for at in chosen(values.tolist(), rule)] for _, near, values in found
        ] == expected
    assert sum(len(one) == 5 for one in expected) > 20


def test_the_order_of_the_folder_moves_nothing_but_ties() -> None:
    rng = np.random.default_rng(7)
    features = rng.normal(size=(80, 12)).astype(np.float32) + 1
    order = rng.permutation(80)
    there = {int(old): new for new, old in enumerate(order)}
    for first in range(0, 80, 9):
        (one,) = neighbours(features, [first], SubsetRule())
        (two,) = neighbours(features[order], [there[first]], SubsetRule())
        assert [there[int(row)] for row in one[1]] == two[1].tolist()
        assert one[2].tolist() == two[2].tolist()


@given(st.data())
def test_every_subset_obeys_the_rule(data: st.DataObject) -> None:
    number = data.draw(st.integers(3, 24))
    rows = st.lists(st.integers(-3, 3), min_size=3, max_size=3)
    features = np.array(data.draw(st.lists(rows, min_size=number, max_size=number)), np.float32)
    rule = SubsetRule(size=data.draw(st.integers(3, 5)), ranked=data.draw(st.integers(4, 9)))
    first = data.draw(st.integers(0, number - 1))
    (found,) = neighbours(features, [first], rule, memory=data.draw(st.integers(1, 4096)))
    places = chosen(found[2].tolist(), rule)
    members = [first, *(int(found[1][place]) for place in places)]
    if len(members) == rule.size:
        assert list(faults(members, features, rule)) == []
        swapped = [members[1], members[0], *members[2:]]
        assert list(faults(swapped[:-1], features, rule)) != []
    added = [int(found[2][place]) for place in places]
    assert all(value < rule.alike_steps for value in added)
    assert all(one - two > rule.apart_steps for one, two in itertools.pairwise(added))
    assert twin(features, first, rule) == members[1:]


def test_a_subset_that_breaks_the_rule_is_named() -> None:
    features = with_cosines(0.5, 0.9, 0.899, 0.8, 0.7, 0.69, 0.95)
    assert list(faults([0, 2, 4, 5, 6, 1], features, SubsetRule())) == []
    assert "the rule adds" in next(faults([0, 3, 4, 5, 6, 1], features, SubsetRule()))
    assert "5 different images" in next(faults([0, 2, 4, 5, 6, 6], features, SubsetRule()))


def test_first_images_come_in_the_order_of_the_seed() -> None:
    bounds = {"train": (0, 6), "val": (6, 9)}
    every = first_images(bounds, 1, None)
    assert sorted(every) == [("train", row) for row in range(6)] + [("val", row) for row in range(6, 9)]
    assert first_images(bounds, 1, 4) == every[:4]
    assert first_images(bounds, 2, None) != every


def test_overlaps_are_counted_against_subsets_that_stay() -> None:
    rows = [{"members": list(each)} for each in ("abcdef", "abcghi", "ghijkl", "abmnop")]
    found = without_overlaps(rows, shared=2, number=None, seed=0)
    # The second one goes because of the first, and so is nothing that the third could share images with.
    assert [row.get("failed") for row in found] == [None, "it shares 3 images with subset 0", None, None]
    assert [row.get("failed") for row in without_overlaps(rows, shared=1, number=None, seed=0)][3] is not None
    drawn = without_overlaps(rows, shared=2, number=1, seed=0)
    assert sum("failed" not in row for row in drawn) == 1
    assert sum(row.get("failed") == "not among the 1 that were drawn" for row in drawn) == 2
