"""What a trained model scores: plain composition on held-out pictures, and the boards of shapes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cir_datasets.shapes import Scene, describe
from cir_metrics import Gallery
from examples.shapes_encoder.learning import image_vectors, text_vectors
from examples.shapes_encoder.model import make_tokenizer
from examples.shapes_encoder.pictures import drawn
from submissions import make_rank_file, score
from submissions.encoders import Encoder
from submissions.scoring.intervals import intervals

Floats = NDArray[np.float32]

METHODS = ("text_only", "image_only", "image_text_sum")
QUERIES = "shapes/val"
SESSIONS = "shapes/multiturn_val"

AGGREGATIONS = ("latest", "average", "weighted", "feedback")

_BLOCK = 256
_DIGITS = 4


def encode(model: Any, pictures: NDArray[np.uint8], texts: Sequence[str]) -> tuple[Floats, Floats]:
    """Vectors of length 1 of pictures (as `drawn` gives them) and of texts."""
    tokenizer = make_tokenizer()
    images, words = [], []
    with torch.inference_mode():
        for start in range(0, len(pictures), _BLOCK):
            images.append(image_vectors(model, torch.from_numpy(pictures[start : start + _BLOCK])).numpy())
        for start in range(0, len(texts), _BLOCK):
            tokens = tokenizer(list(texts[start : start + _BLOCK]), padding=True, return_tensors="pt")
            words.append(text_vectors(model, tokens).numpy())
    return np.concatenate(images), np.concatenate(words)


def held_out_results(
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


def measured(encoder: Encoder) -> dict[str, Any]:
    """Scores with their intervals: each method on the queries, the sum by aggregation on the sessions.

    Args:
        encoder: of `load_encoder`.

    Returns:
        By benchmark, then by method (on the sessions by aggregation), then by metric the value and the ends
        of its interval, fractions rounded to four places; and in `intervals` how these were made.
    """
    with tempfile.TemporaryDirectory(prefix="shapes-encoder-") as store:
        queries = {method: _scores(encoder, Path(store), QUERIES, method) for method in METHODS}
        sessions = {
            name: _scores(encoder, Path(store), SESSIONS, "image_text_sum", aggregation=name)
            for name in AGGREGATIONS
        }
    note = {"queries": queries[METHODS[0]].pop("note"), "sessions": sessions[AGGREGATIONS[0]].pop("note")}
    for found in (*queries.values(), *sessions.values()):
        found.pop("note", None)
    return {QUERIES: queries, SESSIONS: sessions, "intervals": note}


def _scores(encoder: Encoder, store: Path, benchmark: str, method: str, **how: str) -> dict[str, Any]:
    made = make_rank_file(
        benchmark,
        method,
        encoder=encoder,
        store=store,
        workers=0,
        **how,  # type: ignore[arg-type]
    )
    report = score(made)
    ends = intervals(report)
    found: dict[str, Any] = {
        name: [round(each, _DIGITS) for each in (value, ends.values[name].low, ends.values[name].high)]
        for name, value in report.metrics.items()
    }
    return {**found, "note": ends.note()}
