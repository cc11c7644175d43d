"""Errors of the submissions room, all below `SubmissionError`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cir_metrics.errors import CallError, CirError


class SubmissionError(CirError):
    """Base of the errors of `submissions`."""


class MissingFileError(CallError):
    """The file that the call names does not exist."""


class WithheldError(SubmissionError):
    """The benchmark's ground truth is not public, so that nothing can be scored here."""


class ConversionError(SubmissionError, ValueError):
    """A rank file cannot be written in the format that was asked for."""


class ComparisonError(SubmissionError, ValueError):
    """The scores of two files answer different questions, so that they are not put side by side."""


class LayoutError(SubmissionError, ValueError):
    """A file that describes a paper's table is malformed."""


class FusionError(SubmissionError, ValueError):
    """Rank files do not answer the same queries, so that they cannot be fused."""


class MethodError(CallError):
    """A method cannot rank the benchmark that was asked for."""


class CheckpointError(SubmissionError, ValueError):
    """A checkpoint is missing, damaged, of another kind, or made for another encoder."""


class EncoderError(SubmissionError, ValueError):
    """An encoder cannot be loaded, or cannot turn these images or texts into vectors."""


class StoreError(SubmissionError):
    """The embedding store cannot be read or written."""


class LanguageError(SubmissionError, ValueError):
    """A language backend cannot be used, or leaves questions without an answer; what was answered is kept.

    Args:
        message: what is wrong, which questions, and the fix.
        failed: what each question without an answer is about (a picture's id, the start of a text), and why.
        answers: the answers in the order of the questions, texts or forms, None where there is none; empty
            where nothing was asked.
        final: whether every further question would fare the same, as with a key that is refused.
    """

    def __init__(
        self,
        message: str,
        failed: Sequence[tuple[str, str]] = (),
        answers: Sequence[Any] = (),
        *,
        final: bool = False,
    ) -> None:
        """See the class."""
        super().__init__(message)
        self.failed = tuple(failed)
        self.answers = tuple(answers)
        self.final = final


class TruncationWarning(UserWarning):
    """Texts were longer than an encoder reads, and were cut off."""
