"""Train Pic2Word's mapping network on pictures alone: no captions, no triplets.

A picture's pseudo word [*] is good when the text "a photo of [*]" lies where the picture lies. Picture and
text encoder stay as they are; the pictures' vectors are computed once and kept in the embedding store.

L = (CE(s V T^t) + CE(s T V^t)) / 2, V and T the vectors of pictures and of their texts, s the encoder's scale

Source: Saito et al., CVPR 2023, arXiv:2302.03084, section 3.2. Unlike the authors' release, the network reads
vectors of length 1, which is what the store holds.
"""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import CallError
from submissions.errors import CheckpointError
from submissions.methods.heads.checkpoints import save_head
from submissions.methods.pic2word import Pic2Word
from submissions.training.earlier import check_sizes, earlier_head
from submissions.training.loop import SAVE_SECONDS, Lesson, Trained, seeded, train_head
from submissions.training.old_calls import takes_old_calls
from submissions.training.training_options import Pic2WordTraining
from submissions.training.triplets import joint_hash

if TYPE_CHECKING:
    from torch import Tensor

    from submissions.embeddings.pictures import Pictures
    from submissions.embeddings.store import EmbeddingStore


@takes_old_calls(Pic2WordTraining, second="pictures")
def train_pic2word(
    training: Pic2WordTraining,
    pictures: Pictures | None = None,
    *,
    store: EmbeddingStore | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Trained:
    """Train a mapping network and write it; stopped and called again, it goes on.

    Args:
        training: all options; the encoder is of the CLIP family.
        pictures: what to train on in place of the benchmarks' galleries or the folder of images.
        store: where the pictures' vectors are kept; None is the store in the cache.
        save_seconds: seconds between two states of an unfinished training.

    Raises:
        CallError: there is nothing to train on.
        CheckpointError: the folder holds another training.
        EncoderError: the encoder is not a CLIP.
        MissingImagesError: pictures are missing.
    """
    from submissions.methods.heads.pseudo_words import PseudoWords

    shown = [pictures] if pictures else _pictures(training)
    encoder = training.loaded()
    words = PseudoWords(encoder)
    earlier, begun = earlier_head(training, Pic2Word, encoder)
    if earlier is not None:
        if earlier.training.get("input") is not None:
            raise CheckpointError(
                f"{training.from_checkpoint}: reads images that are not brought to length 1, and a training "
                "here gives it such. Fix: go on from a folder that `cir train pic2word` wrote."
            )
        check_sizes({"hidden_size": training.hidden_size, "dropout": training.dropout}, earlier.sizes)
    name = shown[0].name if len(shown) == 1 else training.benchmark
    settings = {
        "pictures": name,
        **({"members": [part.name for part in shown]} if len(shown) > 1 else {}),
        "pictures_digest": joint_hash([part.digest for part in shown]),
        "encoder": asdict(encoder.identity),
        "hidden_size": training.hidden_size,
        "dropout": training.dropout,
        **begun,
    }

    def begin() -> Lesson:
        import torch
        from torch import nn

        from submissions.embeddings.embed import embed_gallery
        from submissions.methods.heads.mapping_network import MappingNetwork

        galleries = [embed_gallery(encoder, part, store=store).vectors for part in shown]
        vectors = np.concatenate(galleries)
        sizes: dict[str, Any] = {
            "vector_size": encoder.identity.dimensions,
            "token_size": words.token_size,
            "hidden_size": training.hidden_size,
            "dropout": training.dropout,
        }
        device, scale = words.device, words.scale
        with seeded(training.seed):
            network = MappingNetwork(**sizes) if earlier is None else earlier.module(MappingNetwork)
            network.requires_grad_(True).to(device)

        def loss_of(rows: NDArray[np.int64]) -> Tensor:
            seen = torch.from_numpy(np.array(vectors[rows])).to(device)
            read = words.encode(network(seen), [""] * len(rows))
            alike = scale * seen @ read.T
            places = torch.arange(len(rows), device=device)
            cross = nn.functional.cross_entropy
            return (cross(alike, places) + cross(alike.T, places)) / 2

        save = functools.partial(
            save_head, training.folder, "pic2word", network, sizes=sizes, encoder=encoder.identity
        )
        return Lesson(network, loss_of, [len(gallery) for gallery in galleries], save)

    label = f"pic2word: training on {name}"
    return train_head(training.folder, training, settings, label, begin, save_seconds)


def _pictures(training: Pic2WordTraining) -> list[Pictures]:
    """The gallery of a benchmark or of each member of a suite, or all pictures below a folder."""
    import cir_datasets
    from cir_datasets.registry import members_of
    from submissions.embeddings.pictures import pictures_in, pictures_of

    if training.benchmark is not None:
        members = map(cir_datasets.load, members_of(training.benchmark))
        return [pictures_of(member, images=training.images) for member in members]
    if training.images is None:
        raise CallError("nothing to train on. Fix: add --images FOLDER or --benchmark NAME.")
    return [pictures_in(training.images)]
