"""The training of the shapes encoder: what it sees, what it makes small, and that it can be stopped."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cir_datasets.shapes import Draws, Scene, describe, picture, random_scene, read, split
from cir_datasets.shapes.edits import altered
from examples.shapes_encoder import pictures
from examples.shapes_encoder.learning import (
    TrainingSettings,
    contrastive_loss,
    learn,
    prepare_torch,
    to_model,
)
from examples.shapes_encoder.lessons import Lesson, Lessons, Saying
from examples.shapes_encoder.model import (
    LONGEST,
    UNKNOWN,
    make_image_processor,
    make_tokenizer,
    vocabulary,
)
from examples.shapes_encoder.truth import facts_of, true_of
from submissions.training import Plan

PLAN = Plan(steps=4, batch_size=2, learning_rate=1e-3, weight_decay=0.05)


@pytest.fixture(autouse=True)
def torch_as_it_was() -> Iterator[None]:
    """Threads and modes of torch are the whole process's."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(strict)


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    """Twelve scenes, and of each three that lie a change apart from the one before."""
    found: list[Scene] = []
    for number in range(12):
        draws = Draws("training test", number)
        found.append(random_scene(draws, fewest_things=2))
        while len(found) % 4:
            step = altered(found[-1], draws.choice(("colour", "size", "texture", "background")), draws)
            if step is not None:
                found.append(step[0])
    return found


def lesson(scenes: list[Scene], seed: int) -> Lesson:
    return Lessons(scenes, Saying()).lesson([0, 5, 10, 20], Draws("lesson", seed))


# What is true of what


def holds(caption: str, scene: Scene) -> bool:
    """Slow twin of `true_of`: one caption, one scene, a mention at a time."""
    said = read(caption)
    if said.background not in (None, scene.background) or said.viewpoint not in (None, scene.viewpoint):
        return False
    for mention in said.mentions:
        fitting = [
            thing
            for thing in scene.things
            if thing.shape == mention.shape
            and mention.colour in (None, thing.colour)
            and mention.size in (None, thing.size)
            and mention.texture in (None, thing.texture)
            and mention.number in (None, 0, len(thing.cells))
            and (mention.cell is None or thing.cells == (mention.cell,))
        ]
        if bool(fitting) == (mention.number == 0):
            return False
    return True


def test_truth_is_what_a_slow_reader_finds(scenes: list[Scene]) -> None:
    captions = [
        describe(scene, seed=seed, keep=keep)
        for seed, scene in enumerate(scenes)
        for keep in (10, 25, 40, 60, 90)
    ]
    captions += [row["relative_caption"] for row in split("val").queries[:100]]
    found = true_of(captions, facts_of(scenes))
    assert found.tolist() == [[holds(caption, scene) for scene in scenes] for caption in captions]
    assert 0.02 < found.mean() < 0.6


# Lessons


@pytest.mark.parametrize("seed", range(5))
def test_a_lesson_is_about_its_pictures(scenes: list[Scene], seed: int) -> None:
    found = lesson(scenes, seed)
    n, relative = len(found.pictures), len(found.references)
    assert len(set(found.pictures)) == n
    assert relative > 0
    assert found.true.shape == (n + relative, n)
    assert found.true[:n].diagonal().all()
    assert found.targets.shape == (relative, n)
    assert found.targets.any(1).all()
    assert not (found.targets & ~found.true[n:]).any()


def test_what_a_lesson_asks_for_has_one_meaning(scenes: list[Scene]) -> None:
    found = lesson(scenes, 1)
    for row in found.targets:
        assert len({scenes[found.pictures[at]].meaning for at in np.flatnonzero(row)}) == 1


# The objective


def slow_loss(images: Any, texts: Any, true: Any, scale: float) -> float:
    """The equation of `contrastive_loss`, a number at a time."""
    scores = [[scale * sum(a * b for a, b in zip(t, i, strict=True)) for i in images] for t in texts]

    def mean_log(row: list[float], right: list[bool]) -> float | None:
        whole = math.log(sum(math.exp(score) for score in row))
        logs = [score - whole for score, true in zip(row, right, strict=True) if true]
        return sum(logs) / len(logs) if logs else None

    by_text = [mean_log(row, right) for row, right in zip(scores, true, strict=True)]
    columns = [[row[at] for row in scores] for at in range(len(images))]
    by_image = [mean_log(column, [row[at] for row in true]) or 0.0 for at, column in enumerate(columns)]
    return -(sum(filter(None, by_text)) / len(by_text) + sum(by_image) / len(by_image)) / 2


def test_the_loss_is_its_equation() -> None:
    rng = np.random.default_rng(3)
    images, texts = rng.normal(size=(5, 4)), rng.normal(size=(7, 4))
    images, texts = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (images, texts))
    true = rng.random((7, 5)) < 0.4
    true[np.arange(7), np.arange(7) % 4] = True
    true[:, 4] = False  # a picture that no caption is true of
    found = contrastive_loss(*map(torch.from_numpy, (images, texts, true)), torch.tensor(5.0))
    assert float(found) == pytest.approx(
        slow_loss(images.tolist(), texts.tolist(), true.tolist(), 5.0), abs=1e-6
    )


# Model and tokenizer


def test_the_tokenizer_knows_every_word_of_shapes() -> None:
    found = split("val")
    captions = [row["relative_caption"] for row in found.queries]
    captions += [turn["relative_caption"] for row in found.sessions for turn in row["turns"]]
    captions += [describe(scene, positions=True) for scene in found.scenes[:500]]
    captions += [describe(scene, seed=seed, keep=90) for seed, scene in enumerate(found.scenes[:500])]
    tokens = make_tokenizer()(captions)["input_ids"]
    assert not any(vocabulary().index(UNKNOWN) in each for each in tokens)
    assert max(map(len, tokens)) <= LONGEST


def test_training_sees_the_pixels_that_the_image_processor_makes() -> None:
    images = ["val-000001", "val-000002"]
    drawn, digest = pictures.drawn([split("val").scenes[1], split("val").scenes[2]])
    made = make_image_processor()(images=[picture(image) for image in images], return_tensors="pt")
    torch.testing.assert_close(to_model(torch.from_numpy(drawn)), made["pixel_values"], atol=1e-6, rtol=0)
    assert len(digest) == 64


# Training


def trained(scenes: list[Scene], folder: Path, *, seed: int = 0, drawn: Any = None) -> Any:
    prepare_torch(seed, 1)
    plan = Plan(PLAN.steps, PLAN.batch_size, PLAN.learning_rate, PLAN.weight_decay, seed)
    drawn = pictures.drawn(scenes)[0] if drawn is None else drawn
    return learn(scenes, drawn, plan, TrainingSettings(), folder=folder, depends={})


def weights(model: Any) -> dict[str, Any]:
    return {name: each.numpy() for name, each in model.state_dict().items()}


class Interrupted:
    """Pictures whose reader is interrupted (Ctrl-C) at the third batch; its step is done before the end."""

    def __init__(self, drawn: Any) -> None:
        self.drawn, self.left = drawn, 3

    def __getitem__(self, places: list[int]) -> Any:
        self.left -= 1
        if not self.left:
            signal.raise_signal(signal.SIGINT)
        return self.drawn[places]


def test_the_same_order_gives_the_same_weights_stopped_or_not(scenes: list[Scene], tmp_path: Path) -> None:
    first, whole = trained(scenes, tmp_path / "first")
    drawn = pictures.drawn(scenes)[0]
    with pytest.raises(KeyboardInterrupt):
        trained(scenes, tmp_path / "stopped", drawn=Interrupted(drawn))
    again, resumed = trained(scenes, tmp_path / "stopped")
    other, _ = trained(scenes, tmp_path / "other", seed=1)
    assert (whole.resumed_at, resumed.resumed_at) == (0, 3)
    assert resumed.last_loss == whole.last_loss
    for name, each in weights(first).items():
        np.testing.assert_array_equal(weights(again)[name], each, err_msg=name)
    assert any((weights(other)[name] != each).any() for name, each in weights(first).items())


# The command


@pytest.mark.slow
def test_nothing_of_val_and_nothing_held_out_is_learned_from() -> None:
    parts = pictures.parts()
    learned = {scene.meaning for scene in parts.learned}
    val = split("val")
    assert not learned & {scene.meaning for scene in val.scenes}
    assert not learned & {scene.meaning for scene in parts.held_out.values()}
    assert len(parts.learned) + len(parts.held_out) == len(split("train").scenes)
    assert len(parts.queries) == 3 * pictures.HELD_OUT
    for row in parts.queries:
        assert {row["reference_image_id"], row["target_image_id"], *row["negative_image_ids"]} <= set(
            parts.held_out
        )
