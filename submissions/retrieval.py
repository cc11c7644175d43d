"""Encoders, and the embeddings of whole galleries: load, embed, store and read them again."""

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
