"""The training of the shapes encoder: what it sees, what it makes small, and that it can be stopped."""

from __future__ import annotations

import itertools
import math
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cir_datasets.shapes import Draws, Scene, describe, distance, picture, random_scene, read, split
from cir_datasets.shapes.edits import altered
from examples.shapes_encoder import pictures, results
from examples.shapes_encoder.__main__ import Order, main, train_shapes, write_recipe
from examples.shapes_encoder.learning import (
    TrainingSettings,
    contrastive_loss,
    learn,
    offset,
    prepare_torch,
    text_vectors,
    to_model,
)
from examples.shapes_encoder.lessons import Lesson, Lessons, Neighbours, Saying
from examples.shapes_encoder.model import (
    LONGEST,
    UNKNOWN,
    make_image_processor,
    make_model,
    make_tokenizer,
    save,
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


def test_a_partial_caption_is_true_of_its_picture(scenes: list[Scene]) -> None:
    captions = [describe(scene, seed=seed, keep=60) for scene in scenes for seed in range(5)]
    assert (
        true_of(captions, facts_of(scenes))
        .reshape(len(scenes), 5, -1)[np.arange(len(scenes)), :, np.arange(len(scenes))]
        .all()
    )


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


def test_lessons_follow_from_their_draws(scenes: list[Scene]) -> None:
    first, again, other = lesson(scenes, 1), lesson(scenes, 1), lesson(scenes, 2)
    assert first.captions == again.captions
    assert first.pictures == again.pictures
    assert first.captions != other.captions


def test_a_walk_goes_a_change_at_a_time(scenes: list[Scene]) -> None:
    near = Neighbours(scenes)
    walks = [near.walk(first, 4, Draws("walk", first)) for first in range(len(scenes))]
    assert max(map(len, walks)) == 4
    for walk in walks:
        assert len(set(walk)) == len(walk)
        steps = itertools.pairwise(walk)
        assert all(distance(scenes[one].meaning, scenes[next_one].meaning) == 1 for one, next_one in steps)


def test_a_picture_without_neighbours_stands_alone() -> None:
    alone = [random_scene(Draws("alone", number)) for number in (1, 2)]
    assert Neighbours(alone).walk(0, 4, Draws("x")) == [0]
    found = Lessons(alone, Saying()).lesson([0, 1], Draws("x"))
    assert found.references.shape == (0,)
    assert found.targets.shape == (0, 2)


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


def test_the_offset_of_balanced_vectors_is_nothing() -> None:
    both = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert float(offset(both, both)) == 0.0
    assert float(offset(both[:1], both)) == 1.0


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


def test_the_tokenizer_ignores_case_and_marks_unknown_words() -> None:
    tokenizer = make_tokenizer()
    tokens = tokenizer("A zebra, please")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(tokens) == ["<start>", "a", UNKNOWN, ",", UNKNOWN, "<end>"]


def test_training_sees_the_pixels_that_the_image_processor_makes() -> None:
    images = ["val-000001", "val-000002"]
    drawn, digest = pictures.drawn([split("val").scenes[1], split("val").scenes[2]])
    made = make_image_processor()(images=[picture(image) for image in images], return_tensors="pt")
    torch.testing.assert_close(to_model(torch.from_numpy(drawn)), made["pixel_values"], atol=1e-6, rtol=0)
    assert len(digest) == 64


def test_texts_in_parts_are_texts_at_once() -> None:
    torch.manual_seed(0)
    model = make_model(10.0).eval()
    captions = [describe(split("val").scenes[number], seed=number, keep=70) for number in range(11)]
    tokens = make_tokenizer()(captions, padding=True, return_tensors="pt")
    with torch.inference_mode():
        whole = torch.nn.functional.normalize(model.get_text_features(**tokens).pooler_output, dim=-1)
        torch.testing.assert_close(text_vectors(model, tokens), whole, atol=1e-5, rtol=0)


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


def test_a_saved_model_is_a_clip_folder(tmp_path: Path) -> None:
    from submissions.encoders.loading import load_encoder

    torch.manual_seed(0)
    model = make_model(10.0).eval()
    save(model, tmp_path / "clip")
    encoder = load_encoder(tmp_path / "clip", device="cpu")
    drawn, _ = pictures.drawn([split("val").scenes[1]])
    images, texts = results.encode(model, drawn, ["a blue star"])
    np.testing.assert_allclose(encoder.encode_images([picture("val-000001")]), images, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(["a blue star"]), texts, atol=1e-5)


def test_held_out_results_of_an_untrained_model() -> None:
    torch.manual_seed(0)
    found = split("val")
    rows = found.queries[:5]
    images = [image for row in rows for image in row["subset_image_ids"]]
    scenes = dict(zip(found.image_ids, found.scenes, strict=True))
    values = results.held_out_results(
        make_model(10.0).eval(), {image: scenes[image] for image in images}, rows
    )
    recalls = [values[name] for name in ("image_text_sum", "image_only", "text_only", "description")]
    assert all(0 <= value <= 1 for value in recalls)
    assert 0 < values["image_mean"] <= 1.000001


# The command


def test_a_trained_encoder_is_not_overwritten(tmp_path: Path) -> None:
    write_recipe(tmp_path, {"seed": 0})
    with pytest.raises(
        FileExistsError, match=r"a trained encoder is in it already\. Fix: name another folder"
    ):
        train_shapes(tmp_path, Order(1, 0, 1))


def test_the_command_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_recipe(tmp_path, {"seed": 0})
    monkeypatch.setattr("sys.argv", ["shapes_encoder", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="a trained encoder is in it already"):
        main()


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
