"""What an optional dependency's absence is put in: one sentence that says what to install."""

from __future__ import annotations

import importlib.util

from cir_datasets.errors import missing_extra


def needs_torch(what: str) -> None:
    """Refuse to go on without torch.

    Args:
        what: what needs it.

    Raises:
        MissingExtraError: torch is not installed.
    """
    _needs("torch", what, "retrieval")


def needs_ray(what: str) -> None:
    """Refuse to go on without Ray.

    Args:
        what: what needs it.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    _needs("ray", what, "distributed")


def _needs(module: str, what: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise missing_extra(what, module, extra)
