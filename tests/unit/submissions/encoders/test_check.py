"""What an encoder gives is checked: texts, and references outside the gallery."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world import small_shapes
from benchmark_world.encoders import PlainEncoder

from cir_datasets.rows.benchmark import Benchmark
from submissions import make_rank_file
from submissions.embeddings.store import EmbeddingStore
from submissions.errors import EncoderError
from submissions.methods.composing import unit

WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (
        lambda v: v * np.nan,
        "gave values that are not finite for {what}. Fix: use --dtype float32 or bfloat16",
    ),
    (lambda v: v * np.inf, "gave values that are not finite for {what}."),
    (lambda v: v * 2, "gave a vector of length 2 for one of {count} {what}, not of length 1."),
    (lambda v: v * 0, "gave a vector of length 0 for one of {count} {what}, not of length 1."),
    (lambda v: v[:-1], "gave an array of shape ({fewer}, 12) and type float32 for {count} {what}."),
    (lambda v: v[:, :-1], "gave an array of shape ({count}, 11) and type float32 for {count} {what}."),
    (lambda v: v.astype(int), "gave an array of shape ({count}, 12) and type int64 for {count} {what}."),
    (lambda v: None, "gave NoneType for {count} {what}. Fix: it gives float32 of shape ({count}, 12)"),
    (lambda v: v.tolist(), "gave list for {count} {what}."),
]


class Damaged(PlainEncoder):
    """An encoder of which texts, or images that are encoded after the gallery, come out wrong."""

    def __init__(self, damage: Callable[[Any], Any], texts: bool) -> None:
        super().__init__("damaged")
        self.damage, self.of_texts = damage, texts

    def encode_texts(self, texts: Sequence[str]) -> Any:
        found = super().encode_texts(texts)
        return self.damage(found) if self.of_texts else found

    def encode_images(self, images: Sequence[Any]) -> Any:
        found = super().encode_images(images)
        return found if self.of_texts or len(images) > 1 else self.damage(found)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    return functools.partial(make_rank_file, store=EmbeddingStore(tmp_path / "store"), workers=0)


@pytest.mark.parametrize(("damage", "said"), WRONG)
def test_damaged_vectors_of_texts_are_refused_with_the_encoders_name(
    run: Any, damage: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(EncoderError) as caught:
        run(small_shapes(), "text_only", encoder=Damaged(damage, texts=True))
    words = said.format(what="texts", count=6, fewer=5)
    assert str(caught.value).startswith("the encoder damaged ")
    assert words in str(caught.value)


def test_texts_in_double_precision_are_taken(run: Any) -> None:
    double = run(small_shapes(), "text_only", encoder=Damaged(lambda v: v.astype(np.float64), texts=True))
    assert double.rankings == run(small_shapes(), "text_only", encoder=PlainEncoder()).rankings


@pytest.mark.parametrize(("damage", "said"), WRONG)
def test_damaged_vectors_of_references_outside_the_gallery_are_refused(
    run: Any, damage: Callable[[Any], Any], said: str
) -> None:
    inside = small_shapes(rows=1)
    reference = inside.rows()[0]["reference_image_id"]
    benchmark = Benchmark.from_rows(
        inside.spec, inside.rows(), [image for image in inside.gallery or () if image != reference]
    )
    with pytest.raises(EncoderError) as caught:
        run(benchmark, "image_only", encoder=Damaged(damage, texts=False))
    words = said.format(what="images", count=1, fewer=0)
    assert words in str(caught.value)


def test_what_is_not_finite_is_never_taken_for_nothing() -> None:
    """A row of zeros says nothing about the target, which a damaged row must not."""
    rows = np.array([[np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0], [3.0, 4.0]])
    with np.errstate(invalid="ignore"):
        found = unit(rows)
    assert np.isnan(found[:2]).any(axis=1).all()
    assert found[2:].tolist() == [[0.0, 0.0], [np.float32(0.6), np.float32(0.8)]]
