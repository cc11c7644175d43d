"""One place for users of what `submissions.encoders` and `submissions.embeddings` hold (docs/python_api.md)."""

from submissions.embeddings.embed import embed_gallery
from submissions.embeddings.pictures import Pictures, pictures_of
from submissions.embeddings.store import Embeddings, EmbeddingStore
from submissions.encoders.protocol import Encoder, Identity, load_encoder

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
