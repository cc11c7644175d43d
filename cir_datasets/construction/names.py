"""Names of benchmarks that are made: given, or made from that of their folder, and nobody else's."""

from __future__ import annotations

import re
from pathlib import Path

from cir_datasets.common.paths import NAME_RULE, is_name
from cir_datasets.registry import packaged_names
from cir_datasets.registry.challenges import challenge_names
from cir_metrics.errors import CallError


def check_name(name: str) -> None:
    """Refuse what no folder can be called; said before any work, since the card is written last.

    Raises:
        CallError: it is not a name, or that of a benchmark of this package or of a challenge.

    Example:
        >>> check_name("cirr")
        Traceback (most recent call last):
        cir_metrics.errors.CallError: a benchmark cannot be called 'cirr', which is ... Fix: ...
    """
    if not is_name(name):
        raise CallError(f"a benchmark cannot be called {name!r}. Fix: choose a name of {NAME_RULE}.")
    for taken, what in (
        (packaged_names(), "a benchmark of this package"),
        (challenge_names(), "a challenge that is known here"),
    ):
        if name in taken:
            raise CallError(
                f"a benchmark cannot be called {name!r}, which is {what}. Fix: choose another name."
            )


def made_name(given: str | None, folder: Path, first: str) -> str:
    """The name of the benchmark that a pipeline writes.

    Args:
        given: the user's choice; None takes the folder's.
        folder: where the benchmark is written.
        first: what comes first where the folder's name does not begin with a letter.

    Raises:
        CallError: as for `check_name`.

    Example:
        >>> made_name(None, Path("/data/My triplets-2"), "fisd"), made_name(None, Path("/data/2026"), "fisd")
        ('my_triplets_2', 'fisd_2026')
    """
    name = given
    if name is None:
        name = re.sub(r"[^a-z0-9]+", "_", folder.expanduser().absolute().name.lower()).strip("_")
        name = name if name[:1].isalpha() else f"{first}_{name}".rstrip("_")
    check_name(name)
    return name
