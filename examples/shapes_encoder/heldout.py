"""Plain composition with a trained model: what the held-out part of `shapes/train` says of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cir_datasets.shapes import describe
from cir_datasets.shapes.world import Scene
from cir_metrics.gallery import Gallery
from examples.shapes_encoder.pictures import drawn

Floats = NDArray[np.float32]

_BLOCK = 256


def encode(model: Any, pictures: NDArray[np.uint8], texts: Sequence[str]) -> tuple[Floats, Floats]:
    """Vectors of length 1 of pictures (as `drawn` gives them) and of texts."""
    import torch

    from examples.shapes_encoder.learning import image_vectors, text_vectors
    from examples.shapes_encoder.words import make_tokenizer

    tokenizer = make_tokenizer()
    images, words = [], []
    with torch.inference_mode():
        for start in range(0, len(pictures), _BLOCK):
            images.append(image_vectors(model, torch.from_numpy(pictures[start : start + _BLOCK])).numpy())
        for start in range(0, len(texts), _BLOCK):
            tokens = tokenizer(list(texts[start : start + _BLOCK]), padding=True, return_tensors="pt")
            words.append(text_vectors(model, tokens).numpy())
    return np.concatenate(images), np.concatenate(words)


def results(
    model: Any, held_out: Mapping[str, Scene], queries: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Recall@10 of queries over a gallery, the reference removed, and what explains it.

    Args:
        model: trained.
        held_out: scenes of the gallery by image id.
        queries: rows of shapes whose references and targets are in the gallery.

    Returns:
        recall@10 of `image_text_sum`, `image_only`, `text_only`; of complete captions for their own picture
        (`description`); and the lengths of the mean vectors and of their difference (`gap`).
    """
    scenes = list(held_out.values())
    pictures, _ = drawn(scenes)
    captions = [row["relative_caption"] for row in queries]
    images, texts = encode(model, pictures, [*captions, *map(describe, scenes)])
    asked, described = texts[: len(captions)], texts[len(captions) :]
    place = {image: number for number, image in enumerate(held_out)}
    references = np.array([place[row["reference_image_id"]] for row in queries])
    targets = np.array([place[row["target_image_id"]] for row in queries])
    gallery = Gallery(images)
    composed = {
        "image_text_sum": images[references] + asked,
        "image_only": images[references],
        "text_only": asked,
    }
    found = {
        name: float(np.mean(gallery.target_ranks(vectors, targets, excluded=references) <= 10))
        for name, vectors in composed.items()
    }
    found["description"] = float(np.mean(gallery.target_ranks(described, np.arange(len(images))) <= 10))
    image_mean, text_mean = images.mean(axis=0), asked.mean(axis=0)
    found["image_mean"] = float(np.linalg.norm(image_mean))
    found["text_mean"] = float(np.linalg.norm(text_mean))
    found["gap"] = float(np.linalg.norm(image_mean - text_mean))
    return found
