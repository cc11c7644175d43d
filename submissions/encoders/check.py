"""What an encoder gives, checked before it is used: it may be a stranger's, and a model may overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from submissions.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from submissions.encoders.protocol import Encoder, Vectors

_LENGTH_TOLERANCE = 1e-3


def checked_vectors(encoder: Encoder, given: object, count: int, what: str) -> Vectors:
    """An encoder's vectors, if they are what its protocol promises.

    Args:
        encoder: whose they are.
        given: what it returned.
        count: number of things that were encoded.
        what: what they are, in the plural, for the message.

    Returns:
        float32, shape (count, dimensions), rows of length 1.

    Raises:
        EncoderError: another shape, no floats, values that are not finite, or a length other than 1.
    """
    identity = encoder.identity
    wanted = (count, identity.dimensions)
    vectors = given if isinstance(given, np.ndarray) else np.empty((0,), dtype=object)
    if not np.issubdtype(vectors.dtype, np.floating) or vectors.shape != wanted:
        found = f"an array of shape {vectors.shape} and type {vectors.dtype}"
        raise EncoderError(
            f"the encoder {identity.model} gave "
            f"{found if isinstance(given, np.ndarray) else type(given).__name__} for {count} {what}. "
            f"Fix: it gives float32 of shape {wanted}, a row each."
        )
    wide = vectors.astype(np.float64)
    if not np.isfinite(wide).all():
        raise EncoderError(
            f"the encoder {identity.model} ({identity.dtype}) gave values that are not finite for {what}. "
            "Fix: use --dtype float32 or bfloat16; if they stay, the weights are damaged."
        )
    lengths = np.linalg.norm(wide, axis=1)
    wrong = np.flatnonzero(np.abs(lengths - 1) > _LENGTH_TOLERANCE)
    if wrong.size:
        raise EncoderError(
            f"the encoder {identity.model} gave a vector of length {lengths[wrong[0]]:.3g} for one "
            f"of {count} {what}, not of length 1. Fix: let the encoder bring its vectors to length 1."
        )
    return vectors.astype(np.float32, copy=False)


def encoded_texts(
    encoder: Encoder,
    texts: Sequence[str],
    batch_size: int,
    advance: Callable[[int], object] = lambda count: None,
) -> Vectors:
    """Vectors of texts, encoded batch by batch and checked: float32, shape (texts, dimensions).

    Args:
        encoder: what encodes them.
        texts: in any number.
        batch_size: texts that are encoded at once.
        advance: called with the number of texts of each batch.

    Raises:
        EncoderError: as for `checked_vectors`.
    """
    parts = [np.empty((0, encoder.identity.dimensions), dtype=np.float32)]
    for start in range(0, len(texts), batch_size):
        part = texts[start : start + batch_size]
        parts.append(checked_vectors(encoder, encoder.encode_texts(part), len(part), "texts"))
        advance(len(part))
    return np.concatenate(parts)
