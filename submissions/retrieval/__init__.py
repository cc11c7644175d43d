"""Retrieval: images and texts to vectors, vectors to rankings, rankings to a rank file.

Nothing heavy is imported here; torch, transformers, Pillow and faiss are imported where they are used.
"""

from __future__ import annotations
