"""What encoders and language backends share when they load or save models of transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import missing_extra

if TYPE_CHECKING:
    from cir_metrics.errors import CirError

NO_FOREIGN_CODE: dict[str, Any] = {"trust_remote_code": False}
"""Said at every load: unsaid, transformers asks at a terminal whether to run a repository's code."""


def libraries(what: str) -> tuple[Any, Any]:
    """The modules torch and transformers.

    Args:
        what: what needs them.

    Raises:
        MissingExtraError: one is not installed.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise missing_extra(what, str(error.name), "retrieval") from error
    return torch, transformers


def device_of(name: str, refusal: type[CirError]) -> Any:
    """A device of torch that can be used.

    Args:
        name: `auto` (a GPU where there is one), `cpu`, `cuda`, `cuda:1`, `mps`.
        refusal: the error's class.

    Raises:
        CirError: of that class; there is no such device, or it cannot be used.
    """
    import torch

    if name == "auto":
        usable = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        name = next(each for each, there in usable.items() if there)
    try:
        found = torch.device(name)
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise refusal(
            f"device {name!r} cannot be used: {reason}. Fix: use auto or cpu, or a device of this machine."
        ) from error
    return found


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers' own bars and notes off the screen."""
    logging = transformers.utils.logging
    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()


def update_with(whole: Any, path: Path) -> None:
    """Add a file's content to a hash of hashlib."""
    with path.open("rb") as file:
        hashlib.file_digest(file, lambda: whole)
