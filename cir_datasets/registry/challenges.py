"""Challenges: benchmarks that an organiser makes, with queries and gallery that all may see and no truth.

The public part of the challenge `autumn` is a folder `<home>/autumn`, where the home is `CIR_CHALLENGES` or
`challenges` in the user's data folder: a card (`card.yaml`) with one configuration, `test`, the files that it
names, and their hashes (`files.json`). Whoever puts that folder there, organiser or participant, has the
benchmark `autumn/test`. Its ground truth is withheld; scores carry hashes of the data, so that two challenges
of one name are never taken for one another.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.paths import challenge_home, is_name
from cir_datasets.common.yaml import read_model
from cir_datasets.errors import CardError

if TYPE_CHECKING:
    from cir_datasets.registry.schema import Card

CONFIG = "test"
"""The one configuration of a challenge."""
CARD_FILE, PINS_FILE = "card.yaml", "files.json"


def challenge_names() -> tuple[str, ...]:
    """Names of the challenges that are known here, sorted."""
    home = challenge_home()
    cards = home.glob(f"*/{CARD_FILE}") if home.is_dir() else ()
    return tuple(sorted(path.parent.name for path in cards if is_name(path.parent.name)))


def is_challenge(benchmark_id: str) -> bool:
    """Whether an id is that of a challenge that is known here.

    Example:
        >>> is_challenge("cirr/val")
        False
    """
    name, _, config = benchmark_id.partition("/")
    return config == CONFIG and challenge_card(name) is not None


def challenge_card(name: str) -> Card | None:
    """The card of a challenge, or None where none of that name is known here.

    Raises:
        CardError: the card is malformed.
    """
    if not is_name(name):  # before it becomes part of a path: names come from uploaded files, too
        return None
    path = challenge_home() / name / CARD_FILE
    return read_card(path) if path.is_file() else None


def read_card(path: Path) -> Card:
    """The card of a challenge's folder.

    Args:
        path: the card.

    Raises:
        CardError: it is malformed, is not a challenge's, or has another name than its folder.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise CardError(f"{path}: {error.strerror}. Fix: name the folder of a challenge.") from error
    return _read(path, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed_at: int, size: int) -> Card:
    """The card, read again when the file's time or size has changed."""
    from cir_datasets.registry.schema import Card

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CardError(f"{path}: cannot be read: {error}. Fix: get the challenge's folder again.") from error
    card = read_model(Card, text, str(path), CardError)
    if card.source.publisher != "challenge" or tuple(card.configs) != (CONFIG,):
        raise CardError(f"{path}: is not the card of a challenge. Fix: get the challenge's folder again.")
    if card.configs[CONFIG].ground_truth != "withheld":
        raise CardError(f"{path}: a challenge's ground truth is withheld. Fix: write ground_truth: withheld.")
    if card.name != path.parent.name:
        raise CardError(f"{path}: its name is {card.name!r}. Fix: name the folder after it.")
    return card
