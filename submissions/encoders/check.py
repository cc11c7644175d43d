"""What an encoder gives, checked before it is used: it may be a stranger's, and a model may overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from submissions.errors import EncoderError

if TYPE_CHECKING:
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
