"""Deprecated, and gone with 0.2: use the modules of `submissions.encoders` and `submissions.embeddings`."""

import warnings

from submissions.embeddings.embed import embed_gallery
from submissions.embeddings.pictures import Pictures, pictures_of
from submissions.embeddings.store import Embeddings, EmbeddingStore
from submissions.encoders.loading import load_encoder
from submissions.encoders.protocol import Encoder, Identity

__all__ = [
    "EmbeddingStore",
    "Embeddings",
    "Encoder",
    "Identity",
    "Pictures",
    "embed_gallery",
    "load_encoder",
    "pictures_of",
]

warnings.warn(
    "submissions.retrieval is deprecated and goes with 0.2. Fix: import from submissions.encoders.loading "
    "and protocol, and from submissions.embeddings.embed, pictures and store.",
    DeprecationWarning,
    stacklevel=2,
)
