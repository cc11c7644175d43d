"""Train Pic2Word's mapping network on pictures alone: no captions, no triplets.

A picture's pseudo word [*] is good when the text "a photo of [*]" lies where the picture lies. Picture and
text encoder stay as they are; the pictures' vectors are computed once and kept in the embedding store.

L = (CE(s V T^t) + CE(s T V^t)) / 2, V and T the vectors of pictures and of their texts, s the encoder's scale

Source: Saito et al., CVPR 2023, arXiv:2302.03084, section 3.2. Unlike the authors' release, the network reads
vectors of length 1, which is what the store holds.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cir_metrics.errors import CallError
from submissions.methods.heads.checkpoints import save_head
from submissions.training.loop import SAVE_SECONDS, Plan, Trained, finished, forget, train

if TYPE_CHECKING:
    from torch import Tensor

    from submissions.embeddings.pictures import Pictures
    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder

KIND = "pic2word"

PLAN = Plan(steps=1000, batch_size=256, learning_rate=1e-3)
"""What suits an encoder of the size of the shipped one; for a ViT-L/14 the paper takes a rate of 1e-4."""


def train_pic2word(
    encoder: Encoder,
    pictures: Pictures,
    folder: str | Path,
    *,
    plan: Plan = PLAN,
    hidden_size: int = 512,
    dropout: float = 0.1,
    store: EmbeddingStore | None = None,
    save_seconds: float = SAVE_SECONDS,
) -> Trained:
    """Train a mapping network and write it; stopped and called again, it goes on.

    Args:
        encoder: of the CLIP family, from `load_encoder`.
        pictures: what to train on: a benchmark's (`pictures_of`), or a folder's (`pictures_in`).
        folder: where the checkpoint goes.
        plan: how it is trained.
        hidden_size: width of the network.
        dropout: share of its units left out in training, in [0, 1).
        store: where the pictures' vectors are kept; None is the store in the cache.
        save_seconds: seconds between two states of an unfinished training.

    Raises:
        CallError: a number is out of range.
        CheckpointError: the folder holds another training.
        EncoderError: the encoder is not a CLIP.
        MissingImagesError: pictures are missing.
    """
    import torch
    from torch import nn

    from submissions.embeddings.embed import embed_gallery
    from submissions.methods.heads.mapping_network import MappingNetwork
    from submissions.methods.heads.pseudo_words import PseudoWords

    root = Path(folder).expanduser()
    plan.check()
    if not 0 <= dropout < 1:
        raise CallError(f"dropout={dropout}; it is from 0 to below 1. Fix: 0.1 is the paper's.")
    words = PseudoWords(encoder)
    settings: dict[str, Any] = {
        "pictures": pictures.name,
        "pictures_digest": pictures.digest,
        "encoder": asdict(encoder.identity),
        "hidden_size": hidden_size,
        "dropout": dropout,
    }
    earlier = finished(root, {**settings, **asdict(plan)})
    if earlier is not None:
        return earlier
    vectors = embed_gallery(encoder, pictures, store=store).vectors
    sizes: dict[str, Any] = {
        "vector_size": encoder.identity.dimensions,
        "token_size": words.token_size,
        "hidden_size": hidden_size,
        "dropout": dropout,
    }
    device = words.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        network = MappingNetwork(**sizes).to(device)
    scale = words.scale

    def loss_of(rows: NDArray[np.int64]) -> Tensor:
        seen = torch.from_numpy(np.array(vectors[rows])).to(device)
        read = words.encode(network(seen), [""] * len(rows))
        alike = scale * seen @ read.T
        places = torch.arange(len(rows), device=device)
        cross = nn.functional.cross_entropy
        return (cross(alike, places) + cross(alike.T, places)) / 2

    done = train(
        network,
        loss_of,
        count=len(vectors),
        plan=plan,
        folder=root,
        settings=settings,
        label=f"pic2word: training on {pictures.name}",
        save_seconds=save_seconds,
    )
    training = {**settings, **asdict(plan), "first_loss": done.first_loss, "last_loss": done.last_loss}
    save_head(root, KIND, network, sizes=sizes, encoder=encoder.identity, training=training)
    forget(root)
    return done
