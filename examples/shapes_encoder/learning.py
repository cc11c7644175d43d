"""What is learned from a lesson, and the training of the model.

The loss is contrastive, and knows which captions are true of which pictures: CLIP's (Radford et al., Learning
Transferable Visual Models From Natural Language Supervision, ICML 2021), with several positives a row as in
supervised contrastive learning (Khosla et al., NeurIPS 2020: the mean of the positives' logarithms).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from cir_datasets.shapes import Draws, Scene
from examples.shapes_encoder.lessons import Lesson, Lessons, Saying
from examples.shapes_encoder.model import make_model, make_tokenizer
from examples.shapes_encoder.pictures import Pixels
from submissions.training import Plan, Trained, train

_PARTS = 3
"""Texts go through the model in so many parts, short ones first: most are short, and padding costs as much as
words."""


@dataclass(frozen=True)
class TrainingSettings:
    """What decides a training, beside the plan and the pictures.

    Args:
        saying: what lessons say.
        scale: what cosines are multiplied with at the start, and at most.
        composed_weight: of references and relative captions in the loss.
        offset_weight: of the means of pictures and texts in the loss.
    """

    saying: Saying = field(default_factory=Saying)
    scale: tuple[float, float] = (10.0, 50.0)
    composed_weight: float = 1.0
    offset_weight: float = 0.5

    def to_dict(self) -> dict[str, Any]:
        """As JSON, which knows lists and no tuples."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found


def prepare_torch(seed: int, threads: int) -> None:
    """Seed torch, fix its threads, and allow only operations that give the same result twice."""
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)


def learn(
    scenes: Sequence[Scene],
    pictures: Pixels,
    plan: Plan,
    settings: TrainingSettings,
    *,
    folder: Path,
    depends: dict[str, Any],
) -> tuple[Any, Trained]:
    """Train a model from nothing, or go on where a training was stopped; call `prepare_torch` first.

    Args:
        scenes: what is learned from.
        pictures: theirs, uint8, shape (scenes, 3, side, side).
        plan: how; `batch_size` counts walks.
        settings: the rest of the recipe.
        folder: where the state of an unfinished training is kept.
        depends: what else the result depends on, such as the hash of the pictures.

    Returns:
        The model, in evaluation mode, and how it went.
    """
    model = make_model(settings.scale[0])
    tokenizer = make_tokenizer()
    lessons = Lessons(scenes, settings.saying)

    def loss_of(rows: NDArray[np.int64]) -> Tensor:
        # The training seeds torch anew at each step, which is what makes it go on as if never stopped.
        lesson = lessons.lesson(rows.tolist(), Draws("lesson", int(torch.randint(1 << 31, ()))))
        images = image_vectors(model, torch.from_numpy(pictures[lesson.pictures]))
        tokens = tokenizer(lesson.captions, padding=True, return_tensors="pt")
        return lesson_loss(lesson, images, text_vectors(model, tokens), model.logit_scale.exp(), settings)

    trained = train(
        model,
        loss_of,
        count=len(scenes),
        plan=plan,
        folder=folder,
        settings={**depends, **settings.to_dict()},
        label="shapes encoder: training",
    )
    return model, trained


def lesson_loss(
    lesson: Lesson, images: Tensor, texts: Tensor, scale: Tensor, settings: TrainingSettings
) -> Tensor:
    """What is to be made small: captions find pictures, references with relative captions find targets.

    L = contrastive(images, texts) + a * contrastive(images, |reference + relative caption|) + b * offset

    Args:
        lesson: what is true.
        images: vectors of its pictures, of length 1, shape (pictures, d).
        texts: vectors of its captions, of length 1, shape (captions, d).
        scale: what cosines are multiplied with; held below the settings' most.
        settings: a and b, `composed_weight` and `offset_weight`.
    """
    scale = scale.clamp(max=settings.scale[1])
    loss = contrastive_loss(images, texts, torch.from_numpy(lesson.true), scale)
    loss = loss + settings.offset_weight * offset(images, texts)
    relative = len(lesson.references)
    if not relative:
        return loss
    queries = normalize(images[torch.from_numpy(lesson.references)] + texts[-relative:], dim=-1)
    composed = contrastive_loss(images, queries, torch.from_numpy(lesson.targets), scale)
    return loss + settings.composed_weight * composed


def contrastive_loss(images: Tensor, texts: Tensor, true: Tensor, scale: Tensor) -> Tensor:
    """Cross entropy in both directions, every true pair of a row being equally right.

    L = -1/2 * mean over captions c of mean over p in P(c) of log softmax_p(scale * c . images)
        -1/2 * mean over pictures i with captions of mean over c in C(i) of log softmax_c(scale * i . texts)

    Args:
        images: vectors of length 1, shape (n, d).
        texts: vectors of length 1, shape (m, d).
        true: whether each caption is true of each picture, bool, shape (m, n); each caption is true of one.
        scale: what cosines are multiplied with.

    Returns:
        The loss, one number.

    Example:
        >>> import torch
        >>> same = torch.eye(2)
        >>> round(float(contrastive_loss(same, same, same.bool(), torch.tensor(1.0))), 4)
        0.3133
    """
    scores = scale * texts @ images.T
    weights = true.to(scores.dtype)
    by_text = (log_softmax(scores, dim=1) * weights).sum(1) / weights.sum(1)
    by_image = (log_softmax(scores, dim=0) * weights).sum(0) / weights.sum(0).clamp(min=1)
    return -(by_text.mean() + by_image.mean()) / 2


def offset(images: Tensor, texts: Tensor) -> Tensor:
    """How far pictures and texts lie from the origin as wholes: the squared lengths of both means, added.

    Small means leave no gap between the two kinds of vectors, so that their sum says as much of one as of the
    other.

    Args:
        images: vectors of length 1, shape (n, d).
        texts: vectors of length 1, shape (m, d).
    """
    return images.mean(0).square().sum() + texts.mean(0).square().sum()


def to_model(pictures: Tensor) -> Tensor:
    """Bytes to what the image processor makes of them: -1 to 1."""
    return (pictures.float() / 255 - 0.5) / 0.5


def image_vectors(model: Any, pictures: Tensor) -> Tensor:
    """Vectors of length 1 of pictures, uint8, shape (n, 3, side, side)."""
    return normalize(model.get_image_features(pixel_values=to_model(pictures)).pooler_output, dim=-1)


def text_vectors(model: Any, tokens: Any) -> Tensor:
    """Vectors of length 1 of tokenized texts, padded on the right."""
    lengths = tokens["attention_mask"].sum(1)
    order = torch.argsort(lengths, stable=True)
    found = []
    for part in order.chunk(_PARTS):
        longest = int(lengths[part].max())
        features = model.get_text_features(
            input_ids=tokens["input_ids"][part, :longest],
            attention_mask=tokens["attention_mask"][part, :longest],
        )
        found.append(normalize(features.pooler_output, dim=-1))
    return torch.cat(found)[torch.argsort(order)]
