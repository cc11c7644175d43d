"""What two signatures say of their numbers: whether they may be compared, and where not.

What a signature is, and how it prints, stands in `cir_metrics.catalogue`. Signatures have a format, which is
part of the key. Format 1 (until version 0.1.0) hashed the data without each query's single target, and called
the ties of lists `last`; format 2 repeated what the protocol says of the reference, whatever the lists held.
Their signatures are read, and equal no others.
"""

from __future__ import annotations

from cir_metrics.catalogue import Signature as Signature

_ABSENT = {"dialogue": "none", "ranked": "the gallery", "repaired": "none"}
"""Parts that stand in a key only where there is something to say, and what is meant where they do not."""

_REDEFINED = {2: ("data", "ties"), 3: ("ref",)}
"""By format the parts that meant something else before it, so that they are not compared."""

_TENFOLD = 10
_ENOUGH = 10
"""Lists with the reference that a share must let expect before another share counts as different."""


def differences(first: Signature, second: Signature) -> list[str]:
    """Which parts of two comparability keys differ, one line a part; empty when the numbers are comparable.

    Of two formats that is said first, and parts that mean something else in the one than in the other are
    left out.

    Args:
        first: one number's signature.
        second: the other's.

    Returns:
        Lines such as `ref: kept against removed`.

    Example:
        >>> one = Signature.of("map@5", benchmark="circo/val", benchmark_version=1, data_hash="4f1c",
        ...     gallery_hash=None, gallery_size=None, reference="kept", n=220)
        >>> two = Signature.of("map@5", benchmark="circo/val", benchmark_version=2, data_hash="4f1c",
        ...     gallery_hash=None, gallery_size=None, reference="kept", n=220)
        >>> differences(one, two)
        ['benchmark: circo/val#1 against circo/val#2']
    """
    left, right = ({"sig": "1"} | each._parts() for each in (first, second))
    older, newer = sorted((first.format, second.format))
    redefined = {part for format in range(older + 1, newer + 1) for part in _REDEFINED[format]}
    lines = []
    for name in dict.fromkeys((*left, *right)):
        one, other = (parts.get(name, _ABSENT.get(name)) for parts in (left, right))
        if one != other and name not in redefined:
            lines.append(f"{name}: {one} against {other}")
    return lines


def shares_differ(first: tuple[int, int] | None, second: tuple[int, int] | None) -> bool:
    """Whether the one file's lists hold the reference ten times as often as the other's, by more than chance.

    Two files of one protocol may differ so by what the methods think of the reference, or because one of
    them took it out: the numbers alone do not say.

    Args:
        first: lists that hold it and lists looked at (`Signature.reference_held`), or None.
        second: the other's.

    Returns:
        False where either was not looked at, or where too few lists were to say so.

    Example:
        >>> shares_differ((2017, 2017), (0, 2017)), shares_differ((3, 2017), (0, 2017))
        (True, False)
    """
    if first is None or second is None or not (first[1] and second[1]):
        return False
    (held, lists), (few, others) = sorted((first, second), key=lambda pair: pair[0] / pair[1], reverse=True)
    return held * others >= _TENFOLD * few * lists and held * min(lists, others) >= _ENOUGH * lists
