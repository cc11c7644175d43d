"""Train the concatenation baseline's perceptron on triplets: reference, caption, target.

The encoder stays as it is; only the perceptron learns. The vectors of pictures and captions are computed
once, so that a training takes a minute where the paper's, which trains its encoders too, takes hours.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from submissions.methods.concat import Concat
from submissions.methods.heads.checkpoints import save_head
from submissions.training.earlier import check_sizes, earlier_head
from submissions.training.loop import SAVE_SECONDS, Lesson, Trained, seeded, train_head
from submissions.training.old_calls import takes_old_calls
from submissions.training.training_options import ConcatTraining
from submissions.training.triplets import depends_on, load_triplets

if TYPE_CHECKING:
    from torch import Tensor

    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder, Vectors


@takes_old_calls(ConcatTraining)
def train_concat(
    training: ConcatTraining, *, store: EmbeddingStore | None = None, save_seconds: float = SAVE_SECONDS
) -> Trained:
    """Train the perceptron and write it; stopped and called again, it goes on.

    Args:
        training: all options.
        store: where the pictures' vectors are kept; None is the store in the cache.
        save_seconds: seconds between two states of an unfinished training.

    Raises:
        CallError: the ground truth is withheld.
        CheckpointError: the folder holds another training.
        UnknownNameError: no benchmark or rule has that name.
        CaptionRuleError: a query has several captions and no rule was given.
        MissingImagesError: pictures are missing.
    """
    encoder = training.loaded()
    size = encoder.identity.dimensions
    earlier, begun = earlier_head(training, Concat, encoder)
    sizes = {"vector_size": size, "hidden_size": training.hidden_size or 2 * size}
    if earlier is not None:
        sizes = dict(earlier.sizes)
        check_sizes({"hidden_size": training.hidden_size}, sizes)
    examples = training.call(load_triplets, benchmark_id=training.benchmark)
    settings = {
        **depends_on(training, examples, encoder.identity),
        "loss": training.loss,
        "hidden_size": sizes["hidden_size"],
        **begun,
    }

    def begin() -> Lesson:
        import torch

        from submissions.embeddings.embed import embed_gallery
        from submissions.methods.heads.concat import ConcatHead, batch_softmax_loss, soft_triplet_loss

        pictures = examples.vectors(lambda part: embed_gallery(encoder, part, store=store).vectors)
        captions = _text_vectors(encoder, examples.captions)
        with seeded(training.seed):
            head = ConcatHead(**sizes) if earlier is None else earlier.module(ConcatHead)
            head.requires_grad_(True)
        loss = soft_triplet_loss if training.loss == "soft_triplet" else batch_softmax_loss

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            made = head(
                torch.from_numpy(pictures[examples.references[rows]]),
                torch.from_numpy(captions[examples.texts[rows]]),
            )
            targets = torch.from_numpy(pictures[examples.targets[rows]])
            rivals = torch.from_numpy(examples.rivals(rows))
            return loss(head.log_scale.exp() * made @ targets.T, rivals)

        save = functools.partial(
            save_head, training.folder, "concat", head, sizes=sizes, encoder=encoder.identity
        )
        return Lesson(head, loss_of, np.bincount(examples.members).tolist(), save)

    label = f"concat: training on {training.benchmark}"
    return train_head(training.folder, training, settings, label, begin, save_seconds)


def _text_vectors(encoder: Encoder, captions: list[str]) -> Vectors:
    """Vectors of captions; an empty one is zeros, as a method gives it."""
    found = np.zeros((len(captions), encoder.identity.dimensions), dtype=np.float32)
    said = [row for row, caption in enumerate(captions) if caption.strip()]
    found[said] = encoder.encode_texts([captions[row] for row in said])
    return found
