"""Errors of the datasets room, all below `DatasetError`."""

from __future__ import annotations

from cir_metrics.errors import CirError


class DatasetError(CirError):
    """Base of the errors of `cir_datasets`."""


class CardError(DatasetError, ValueError):
    """A benchmark card is malformed or contradicts itself."""


class SourceError(DatasetError):
    """A publisher's file cannot be found or fetched."""

    exit_code = 2


class IntegrityError(SourceError, ValueError):
    """A file is not the one that the card pins: its size or sha256 differs."""

    exit_code = 1


class RecordError(DatasetError, ValueError):
    """A publisher's file holds a record that breaks the format; the message names file and record."""


class CountError(DatasetError, ValueError):
    """The rows are not as many as the card says."""


class UnpinnedDataWarning(UserWarning):
    """A local file is not the one that the card pins: it is used, and everything computed from it says so."""
