"""Errors of the submissions room, all below `SubmissionError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cir_metrics.errors import CallError, CirError

if TYPE_CHECKING:
    from submissions.validation import ValidationReport


class SubmissionError(CirError):
    """Base of the errors of `submissions`."""


class MissingFileError(CallError):
    """The file that the call names does not exist."""


class RefusedError(SubmissionError, ValueError):
    """A rank file has findings that are errors; `report` holds them all.

    Args:
        what: what was refused, and why in a few words.
        report: the findings.
    """

    def __init__(self, what: str, report: ValidationReport) -> None:
        """See the class."""
        super().__init__(f"{what}\n{report.text()}")
        self.report = report


class WithheldError(SubmissionError):
    """The benchmark's ground truth is not public, so that nothing can be scored here."""


class ConversionError(SubmissionError, ValueError):
    """A rank file cannot be written in the format that was asked for."""


class ComparisonError(SubmissionError, ValueError):
    """The scores of two files answer different questions, so that they are not put side by side."""


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


class LanguageError(SubmissionError):
    """A language backend cannot be reached, or gives no answer that can be used."""
