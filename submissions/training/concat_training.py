"""Train the concatenation baseline's perceptron on triplets: reference, caption, target.

The encoder stays as it is; only the perceptron learns. The vectors of pictures and captions are computed
once, so that a training takes a minute where the paper's, which trains its encoders too, takes hours.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.methods.heads.checkpoints import save_head
from submissions.training.loop import SAVE_SECONDS, Plan, Trained, finished, forget, train
from submissions.training.triplets import load_triplets

if TYPE_CHECKING:
    from torch import Tensor

    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder, Vectors

KIND = "concat"

LOSSES = ("soft_triplet", "batch_softmax")
"""CIRR's appendix takes the first: the second overfits there."""

PLAN = Plan(steps=1000, batch_size=256, learning_rate=1e-3)


def train_concat(
    encoder: Encoder,
    benchmark: str,
    folder: str | Path,
    *,
    plan: Plan = PLAN,
    loss: str = "soft_triplet",
    hidden_size: int | None = None,
    caption_rule: str | None = None,
    images: str | Path | None = None,
    store: EmbeddingStore | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Trained:
    """Train the perceptron and write it; stopped and called again, it goes on.

    Args:
        encoder: of `load_encoder`, or your own.
        benchmark: id of a benchmark whose ground truth is public, such as `cirr/train`.
        folder: where the checkpoint goes.
        plan: how it is trained.
        loss: `soft_triplet` or `batch_softmax`.
        hidden_size: width of the layer between; None is twice the encoder's dimensions.
        caption_rule: how several captions become text, by name; None suits benchmarks with one caption.
        images: folder of the benchmark's images; None looks below `CIR_IMAGES`, and draws shapes.
        store: where the pictures' vectors are kept; None is the store in the cache.
        save_seconds: seconds between two states of an unfinished training.

    Raises:
        CallError: a number is out of range, or the ground truth is withheld.
        CheckpointError: the folder holds another training.
        UnknownNameError: no loss, benchmark or rule has that name.
        CaptionRuleError: a query has several captions and no rule was given.
        MissingImagesError: pictures are missing.
    """
    import torch

    from submissions.embeddings.embed import embed_gallery
    from submissions.methods.heads.concat import ConcatHead, batch_softmax_loss, soft_triplet_loss

    if loss not in LOSSES:
        raise UnknownNameError(
            f"no loss {loss!r}.{did_you_mean(loss, LOSSES)} Fix: use one of {', '.join(LOSSES)}."
        )
    root = Path(folder).expanduser()
    plan.check()
    size = encoder.identity.dimensions
    sizes = {"vector_size": size, "hidden_size": 2 * size if hidden_size is None else hidden_size}
    examples = load_triplets(benchmark, caption_rule=caption_rule, images=images)
    settings: dict[str, Any] = {
        "benchmark": benchmark,
        "data_hash": examples.data_hash,
        "pictures_digest": examples.pictures.digest,
        "encoder": asdict(encoder.identity),
        "loss": loss,
        "caption_rule": caption_rule,
        "hidden_size": sizes["hidden_size"],
    }
    earlier = finished(root, {**settings, **asdict(plan)})
    if earlier is not None:
        return earlier
    # One row more, of zeros: a turn without a reference.
    pictures = _with_nothing(embed_gallery(encoder, examples.pictures, store=store).vectors)
    captions = _text_vectors(encoder, examples.captions)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        head = ConcatHead(**sizes)
    loss_function = soft_triplet_loss if loss == "soft_triplet" else batch_softmax_loss

    def loss_of(rows: NDArray[np.int64]) -> Tensor:
        made = head(
            torch.from_numpy(pictures[examples.references[rows]]),
            torch.from_numpy(captions[examples.texts[rows]]),
        )
        wanted = torch.from_numpy(pictures[examples.targets[rows]])
        rivals = torch.from_numpy(examples.rivals(rows))
        return loss_function(head.log_scale.exp() * made @ wanted.T, rivals)

    done = train(
        head,
        loss_of,
        count=len(examples.targets),
        plan=plan,
        folder=root,
        settings=settings,
        label=f"concat: training on {benchmark}",
        save_seconds=save_seconds,
    )
    training = {**settings, **asdict(plan), "first_loss": done.first_loss, "last_loss": done.last_loss}
    save_head(root, KIND, head, sizes=sizes, encoder=encoder.identity, training=training)
    forget(root)
    return done


def _text_vectors(encoder: Encoder, captions: list[str]) -> Vectors:
    """Vectors of captions; an empty one is zeros, as a method gives it."""
    found = np.zeros((len(captions), encoder.identity.dimensions), dtype=np.float32)
    said = [row for row, caption in enumerate(captions) if caption.strip()]
    found[said] = encoder.encode_texts([captions[row] for row in said])
    return found


def _with_nothing(vectors: Vectors) -> Vectors:
    """Vectors in memory, and zeros behind the last."""
    return np.concatenate([vectors, np.zeros((1, vectors.shape[1]), dtype=np.float32)])
