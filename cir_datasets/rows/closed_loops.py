"""CIRR's closed loops (supplement D), in a file of its own: dialogues and statistics are made of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def closed_loop(targets: Mapping[str, Collection[str]], members: Collection[str]) -> list[str] | None:
    """A directed cycle of pairs that leads through all images of a subset, each once.

    Args:
        targets: by reference image the target images of its pairs.
        members: the images of the subset, two or more.

    Returns:
        The images in the order of the cycle, the first of `members` first; None where there is no such
        cycle. Of several it is the one whose pairs come first in `targets`.

    Example:
        >>> closed_loop({"a": ["c", "b"], "b": ["c"], "c": ["a"]}, ["b", "a", "c"])
        ['b', 'c', 'a']
        >>> closed_loop({"a": ["b"], "b": ["a"]}, ["a", "b", "c"]) is None
        True
    """
    first, wanted = next(iter(members)), set(members)

    def ending(path: list[str]) -> list[str] | None:
        reached = targets.get(path[-1], ())
        if len(path) == len(wanted):
            return path if first in reached else None
        ways = (ending([*path, image]) for image in reached if image in wanted and image not in path)
        return next(filter(None, ways), None)

    return ending([first])
