"""What the four configurations ask, checked against the scenes themselves."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import mean
from typing import Any

import pytest
from slowly import some

from cir_datasets import registry
from cir_datasets.builders.shapes import Shapes
from cir_datasets.rows.records import image_schema
from cir_datasets.shapes import Goal, Split, distance, merge, scene, split

# To draw the scenes of train takes some ten seconds; that they are the same, a golden says on every long run.
SPLITS = ["val", *some(("train",), ())]
CONFIGS = ["val", "multiturn_val", *some(("train", "multiturn_train"), ())]


def builder(config: str) -> Shapes:
    return Shapes(registry.spec(f"shapes/{config}"), {})


def queries(part: Split) -> list[tuple[dict[str, Any], Goal]]:
    return list(zip(part.queries, part.goals, strict=True))


@pytest.mark.parametrize("config", CONFIGS)
def test_rows_fit_the_schema_and_counts_are_the_cards(config: str) -> None:
    import pyarrow as pa

    made = builder(config)
    rows, images = list(made.rows()), list(made.images())
    table = pa.Table.from_pylist(rows, schema=made.schema())
    assert table.to_pylist() == rows
    assert pa.Table.from_pylist(images, schema=image_schema()).to_pylist() == images
    card = made.spec.config
    assert (len(rows), len(images)) == (card.queries, card.gallery)
    if made.spec.kind == "multi_turn":
        assert Counter(row["num_turns"] for row in rows) == card.turns


def test_the_kept_split_cannot_be_changed_through_its_rows() -> None:
    row = next(builder("val").rows())
    row["positive_image_ids"].clear()
    assert next(builder("val").rows())["positive_image_ids"]


@pytest.mark.parametrize("part", SPLITS)
def test_ids_are_unique_and_of_one_form(part: str) -> None:
    found = split(part)
    assert [row["query_id"] for row in found.queries] == [
        f"shapes_{part}_{i:05d}" for i in range(len(found.queries))
    ]
    assert [row["session_id"] for row in found.sessions] == [
        f"shapes_multiturn_{part}_{i:05d}" for i in range(len(found.sessions))
    ]
    assert len(set(found.scenes)) == len(found.scenes)
    asked = {(row["reference_image_id"], row["relative_caption"]) for row in found.queries}
    assert len(asked) == len(found.queries)


@pytest.mark.parametrize("part", SPLITS)
def test_captions_read_literally_turn_the_reference_into_the_target(part: str) -> None:
    for row, goal in queries(split(part)):
        assert row["captions"] == [row["relative_caption"]]
        assert goal.misses(merge(scene(row["reference_image_id"]), row["relative_caption"])) == 0
        assert goal.misses(scene(row["target_image_id"])) == 0
        assert goal.misses(scene(row["reference_image_id"])) == len(row["changes"])


def check_against_the_whole_gallery(part: Split, every: int) -> None:
    """Positives and hard negatives by looking at every picture, without any index."""
    for row, goal in queries(part)[::every]:
        reference = scene(row["reference_image_id"])
        positives, negatives = [], []
        for image_id, one in zip(part.image_ids, part.scenes, strict=True):
            misses = goal.misses(one)
            if misses == 0:
                positives.append(image_id)
            elif one is not reference and (misses == 1 or one.meaning == reference.meaning):
                negatives.append(image_id)
        assert row["positive_image_ids"] == positives
        assert row["negative_image_ids"] == negatives


@pytest.mark.parametrize(
    ("part", "every"), [("val", 8), pytest.param("train", 300, marks=pytest.mark.exhaustive)]
)
def test_positives_and_hard_negatives_are_exactly_those_of_the_rule(part: str, every: int) -> None:
    check_against_the_whole_gallery(split(part), every)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("part", "every"), [("val", 1), ("train", 29)])
def test_many_more_queries_have_the_positives_and_hard_negatives_that_the_whole_gallery_says(
    part: str, every: int
) -> None:
    check_against_the_whole_gallery(split(part), every)


@pytest.mark.parametrize("part", SPLITS)
def test_reference_target_positives_and_hard_negatives_keep_apart(part: str) -> None:
    for row in split(part).queries:
        positives, negatives = set(row["positive_image_ids"]), set(row["negative_image_ids"])
        assert row["target_image_id"] in positives
        assert row["reference_image_id"] not in positives | negatives
        assert positives.isdisjoint(negatives)
        assert len(negatives) >= 3
        assert len(positives) == len(row["positive_image_ids"])
        assert len(negatives) == len(row["negative_image_ids"])


@pytest.mark.parametrize("part", SPLITS)
def test_queries_have_several_positives_on_average(part: str) -> None:
    assert mean(len(row["positive_image_ids"]) for row in split(part).queries) > 2


@pytest.mark.parametrize("part", SPLITS)
def test_the_subset_has_one_right_answer_among_look_alikes(part: str) -> None:
    for row, goal in queries(split(part)):
        subset = row["subset_image_ids"]
        assert len(set(subset)) == len(subset) == 6
        assert {row["reference_image_id"], row["target_image_id"]} <= set(subset)
        assert set(subset) & set(row["positive_image_ids"]) == {row["target_image_id"]}
        others = set(subset) - {row["reference_image_id"], row["target_image_id"]}
        assert others <= set(row["negative_image_ids"])
        assert all(goal.misses(scene(other)) <= 3 for other in others)


@pytest.mark.exhaustive
def test_the_place_in_the_subset_tells_nothing() -> None:
    places = Counter(row["subset_image_ids"].index(row["target_image_id"]) for row in split("train").queries)
    expected = len(split("train").queries) / 6
    assert all(abs(places[i] - expected) < 4 * (expected * 5 / 6) ** 0.5 for i in range(6))


@pytest.mark.parametrize("part", SPLITS)
def test_aspects_name_the_changes(part: str) -> None:
    appearance = {"colour", "shape", "size", "texture"}
    seen = set[str]()
    for row in split(part).queries:
        kinds = [change["kind"] for change in row["changes"]]
        assert 1 <= len(kinds) <= 3
        words = {"change" if kind in appearance else kind for kind in kinds}
        assert set(row["aspects"]) == words | ({"complex"} if len(kinds) > 1 else set())
        assert len(set(row["aspects"])) == len(row["aspects"])
        seen |= set(row["aspects"])
        for change in row["changes"]:
            assert (change["before"] is None) == (change["kind"] == "addition")
            assert (change["after"] is None) == (change["kind"] == "negation")
            assert change["before"] != change["after"]
    fisd = {"cardinality", "addition", "negation", "change", "background", "complex"}
    assert seen == fisd | {"viewpoint", "position"}


@pytest.mark.parametrize("part", SPLITS)
def test_sessions_come_nearer_turn_by_turn(part: str) -> None:
    for row in split(part).sessions:
        turns = row["turns"]
        assert row["subset"] == f"multiturn_{part}"
        assert 2 <= len(turns) == row["num_turns"] <= 6
        assert [turn["turn"] for turn in turns] == list(range(1, len(turns) + 1))
        references = [turn["reference_image_id"] for turn in turns]
        assert len(set(references)) == len(references)
        assert set(references).isdisjoint(row["ground_truth_ids"])
        assert len({turn["relative_caption"] for turn in turns}) == len(turns)
        goal = scene(row["ground_truth_ids"][0]).meaning
        away = [distance(scene(reference).meaning, goal) for reference in references]
        assert all(later < earlier for earlier, later in pairwise(away))
        assert away[0] in (len(turns), len(turns) + 1)
        for i, turn in enumerate(turns):
            left = distance(merge(scene(references[i]), turn["relative_caption"]).meaning, goal)
            assert left == (away[i + 1] if i + 1 < len(turns) else 0)
        assert away[0] - away[1] == 1  # the first turn says a single thing


@pytest.mark.parametrize("part", SPLITS)
def test_ground_truth_of_a_session_is_all_that_means_the_same(part: str) -> None:
    by_meaning: dict[Any, list[str]] = {}
    for image_id, one in zip(split(part).image_ids, split(part).scenes, strict=True):
        by_meaning.setdefault(one.meaning, []).append(image_id)
    for row in split(part).sessions:
        assert row["ground_truth_ids"] == by_meaning[scene(row["ground_truth_ids"][0]).meaning]


@pytest.mark.exhaustive
def test_train_shows_nothing_of_val() -> None:
    of_val = {one.meaning for one in split("val").scenes}
    assert of_val.isdisjoint(one.meaning for one in split("train").scenes)


@pytest.mark.exhaustive
def test_neighbours_in_the_gallery_are_strangers() -> None:
    """Ids tell nothing: a query's target is no nearer to its reference, by number, than chance has it."""
    gaps = [
        abs(int(row["reference_image_id"][-6:]) - int(row["target_image_id"][-6:]))
        for row in split("train").queries
    ]
    size = len(split("train").scenes)
    assert abs(mean(gaps) - size / 3) < 4 * (size**2 / 18 / len(gaps)) ** 0.5
