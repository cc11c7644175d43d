"""Retrieval: images and texts to vectors, vectors to rankings, rankings to a rank file.

Nothing heavy is imported here; torch, transformers, Pillow and faiss are imported where they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submissions.retrieval.embedding import embed_gallery
    from submissions.retrieval.encoders import Encoder, Identity, load_encoder
    from submissions.retrieval.pictures import Pictures, pictures_of
    from submissions.retrieval.store import Embeddings, EmbeddingStore

_HOMES = {
    "EmbeddingStore": "store",
    "Embeddings": "store",
    "Encoder": "encoders",
    "Identity": "encoders",
    "Pictures": "pictures",
    "embed_gallery": "embedding",
    "load_encoder": "encoders",
    "pictures_of": "pictures",
}

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"submissions.retrieval.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'submissions.retrieval' has no attribute {name!r}")
