"""Scenes, their meanings, and how far apart they are."""

from __future__ import annotations

import itertools

import pytest

from cir_datasets.errors import RecordError
from cir_datasets.shapes.draws import Draws
from cir_datasets.shapes.edits import altered, random_scene, rearranged, retaken
from cir_datasets.shapes.queries import MEANING_KINDS
from cir_datasets.shapes.world import (
    Goal,
    Look,
    Meaning,
    Scene,
    Thing,
    changes,
    distance,
    less_one,
    one_step_away,
)

RED = Thing("circle", "red", "small", "plain", (4,))
BLUE = Thing("star", "blue", "large", "striped", (0, 1))


def scenes(name: str, count: int) -> list[Scene]:
    return [random_scene(Draws(name, i)) for i in range(count)]


def slow_distance(first: Meaning, second: Meaning) -> int:
    """Every pairing of things tried, padded with nothing; sharing neither shape nor colour is two changes."""
    wide = max(len(first.looks), len(second.looks))
    size = len(first.looks) + len(second.looks)
    best = size
    padded = [*second.looks, *[None] * (size - len(second.looks))]
    for order in itertools.permutations(padded, len(first.looks)):
        cost = 0
        for look, other in zip(first.looks, order, strict=True):
            if other is None:
                cost += 1
            elif look.shape != other.shape and look.colour != other.colour:
                cost += 2
            else:
                cost += sum(look[i] != other[i] for i in range(5))
        cost += sum(other not in order for other in second.looks)
        best = min(best, cost)
    assert wide <= 3
    return best + (first.background != second.background)


@pytest.mark.parametrize(
    ("things", "background", "words"),
    [
        ((Thing("circel", "red", "small", "plain", (4,)),), "sandy", r"shape 'circel' does not exist"),
        ((RED,), "sand", r"background 'sand' does not exist\. Fix: use one of sandy, grassy"),
        ((), "sandy", r"it has 0 things"),
        ((Thing("circle", "red", "small", "plain", ()),), "sandy", r"each in at least one cell"),
        ((RED, Thing("circle", "blue", "small", "plain", (1,))), "sandy", r"two things have one shape"),
        ((RED, Thing("star", "red", "small", "plain", (1,))), "sandy", r"two things have one colour"),
        ((RED, Thing("star", "blue", "small", "plain", (4,))), "sandy", r"its cells are \[4, 4\]"),
        ((Thing("star", "blue", "small", "plain", (9,)),), "sandy", r"Fix: different cells of 0\.\.8"),
        ((Thing("star", "blue", "small", "plain", (0, 1, 2, 3, 4)),), "sandy", r"it has 5 objects"),
    ],
)
def test_a_scene_that_breaks_a_rule_is_refused(
    things: tuple[Thing, ...], background: str, words: str
) -> None:
    with pytest.raises(RecordError, match=words):
        Scene(things, background)


def test_meaning_knows_no_layout() -> None:
    first = Scene((RED, BLUE), "sandy", "close", 1)
    moved = Scene((Thing("star", "blue", "large", "striped", (7, 8)), RED), "sandy", "far", 2)
    assert first.meaning == moved.meaning
    assert first.meaning != Scene((RED, BLUE), "snowy").meaning


def test_distance_equals_the_slow_reading() -> None:
    for first, second in zip(scenes("left", 400), scenes("right", 400), strict=True):
        assert distance(first.meaning, second.meaning) == slow_distance(first.meaning, second.meaning)


def test_distance_is_symmetric_and_zero_only_for_equals() -> None:
    some = scenes("some", 40)
    for first, second in itertools.combinations(some, 2):
        apart = distance(first.meaning, second.meaning)
        assert apart == distance(second.meaning, first.meaning)
        assert (apart == 0) == (first.meaning == second.meaning)


def test_changes_are_as_many_as_the_distance() -> None:
    for first, second in zip(scenes("before", 300), scenes("after", 300), strict=True):
        assert len(changes(first, second)) == distance(first.meaning, second.meaning)
        views = len(changes(first, second, viewpoint=True)) - len(changes(first, second))
        assert views == (first.viewpoint != second.viewpoint)


def test_neighbours_are_at_distance_one() -> None:
    for scene in scenes("near", 20):
        near = [*one_step_away(scene.meaning), *less_one(scene.meaning)]
        assert {distance(scene.meaning, other) for other in near} == {1}


@pytest.mark.parametrize("kind", [*dict(MEANING_KINDS), "position", "viewpoint"])
def test_a_random_change_is_one_change_of_its_kind(kind: str) -> None:
    happened = 0
    for i, scene in enumerate(scenes("start", 120)):
        step = altered(scene, kind, Draws("step", kind, i))
        if step is None:
            continue
        happened += 1
        after, change = step
        found = changes(scene, after, viewpoint=True)
        if kind == "position":
            assert found == ()
            assert isinstance(change.after, Look)
            assert after.cell_of(change.after.shape) == change.cell != scene.cell_of(change.after.shape)
        else:
            assert found == (change,)
    assert happened > 40


def test_layout_is_free_but_what_is_named_stays() -> None:
    scene = Scene((RED, BLUE), "sandy", "close", 1)
    layouts = [
        rearranged(scene, Draws("lay", i), viewpoint="far", places=(("circle", 4),)) for i in range(50)
    ]
    assert {other.meaning for other in layouts} == {scene.meaning}
    assert {other.viewpoint for other in layouts} == {"far"}
    assert {other.cell_of("circle") for other in layouts} == {4}
    assert len({other.things for other in layouts}) > 20
    again = retaken(scene, Draws("again"))
    assert (again.things, again.viewpoint) == (scene.things, scene.viewpoint)
    assert again.grain != scene.grain


def test_a_goal_counts_only_what_is_named() -> None:
    scene = Scene((RED, BLUE), "sandy", "close")
    assert Goal(scene.meaning).misses(scene) == 0
    assert Goal(scene.meaning, viewpoint="far").misses(scene) == 1
    assert Goal(scene.meaning, viewpoint="far", places=(("circle", 3),)).misses(scene) == 2
    assert Goal(scene.meaning, places=(("star", 0),)).misses(scene) == 1  # two stars have no one place


def test_draws_are_fixed_for_ever() -> None:
    draws = Draws("golden", 7)
    assert [draws.below(1000) for _ in range(5)] == GOLDEN_DRAWS
    assert [Draws("golden", 7).below(1000) for _ in range(2)] == GOLDEN_DRAWS[:1] * 2


GOLDEN_DRAWS = [795, 514, 100, 527, 586]
"""The last five little-endian words of blake2b(b"golden/7#" + bytes(8), digest_size=64), times 1000 >> 32."""


def test_draws_are_even() -> None:
    draws = Draws("even")
    counts = [0] * 8
    for _ in range(8000):
        counts[draws.below(8)] += 1
    assert all(abs(count - 1000) < 4 * (8000 * 7 / 64) ** 0.5 for count in counts)


def test_weights_and_samples_are_kept_to() -> None:
    draws = Draws("weights")
    drawn = [draws.weighted((("often", 90), ("never", 0), ("seldom", 10))) for _ in range(1000)]
    assert 850 < drawn.count("often") < 950
    assert "never" not in drawn
    assert sorted(draws.shuffled("abcdefgh")) == list("abcdefgh")
    assert len(set(draws.sample("abcdefgh", 3))) == 3
    assert len(draws.sample("ab", 5)) == 2
