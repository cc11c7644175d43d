"""Nine pairs of reference and target in a subset, and the dialogue paths that pairs make."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from cir_datasets.common.stages import Row
from cir_datasets.rows.records import session_row

FROM_FIRST = (2, 3, 4)
"""Targets that the first image has beside its neighbour in the loop, as counted in CIRR's val."""


def places_of_pairs(size: int) -> list[tuple[int, int]]:
    """Reference and target of a subset's pairs, by place: a loop, more for the first image.

    Example:
        >>> places_of_pairs(6)
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 2), (0, 3), (0, 4)]
    """
    loop = [(place, (place + 1) % size) for place in range(size)]
    return loop + [(0, place) for place in FROM_FIRST if place < size - 1]


def pairs_of(subset: Row) -> list[Row]:
    """The pairs of a subset: reference, target, and the other images, to which a caption must not lead."""
    members = subset["members"]
    return [
        {
            "pair": f"{subset['subset']}-{number}",
            "subset": subset["subset"],
            "split": subset["split"],
            "places": [one, two],
            "reference": members[one],
            "target": members[two],
            "others": [image for place, image in enumerate(members) if place not in (one, two)],
        }
        for number, (one, two) in enumerate(places_of_pairs(len(members)))
    ]


def paths_of(pairs: Sequence[Row]) -> list[Row]:
    """Dialogue paths: rows of pairs in which each target is the next reference.

    Within a subset a path is the closed loop, or, where pairs are missing, each longest row of two or
    more. Across subsets a path leads through the loop of one to an image that both hold and from there
    through the other's loop (figure 8); no image comes twice, and the longest such path is taken. Of the
    subsets that hold an image each leads to the next, or, where an image would come twice, the next to it.

    Args:
        pairs: those that there are, of any subsets.
    """
    loops: dict[int, dict[str, Row]] = defaultdict(dict)
    whole: dict[int, int] = {}
    for pair in pairs:
        size = len(pair["others"]) + 2
        whole[pair["subset"]] = size
        if (pair["places"][0] + 1) % size == pair["places"][1]:
            loops[pair["subset"]][pair["reference"]] = pair
    within = [_path([row]) for subset in loops for row in _runs(loops[subset], whole[subset])]
    return [*within, *_across(loops)]


def sessions_of(paths: Sequence[Row], captions: Mapping[str, str]) -> list[Row]:
    """Dialogue paths as sessions: each pair is a turn, and the last image is what is looked for.

    A turn's own target is the next turn's reference. No turn of a session refers to its ground truth, so that
    a closed loop ends a pair before it comes back.

    Args:
        paths: rows of `paths_of` of pairs that have a caption.
        captions: by pair.
    """
    found = []
    for path in paths:
        pairs = path["pairs"][:-1] if path["closed"] else path["pairs"]
        turns = [(image, captions[pair]) for image, pair in zip(path["images"], pairs, strict=False)]
        subset = "across" if len(path["subsets"]) > 1 else "within"
        found.append(session_row(path["path"], subset, [path["images"][len(turns)]], turns))
    return found


def _runs(loop: Mapping[str, Row], size: int) -> Iterator[list[Row]]:
    """The whole loop from its first image on, or its longest unbroken parts of two pairs or more."""
    ordered = sorted(loop.values(), key=lambda pair: pair["places"][0])
    if len(loop) == size:
        yield ordered
        return
    reached = {pair["target"] for pair in ordered}
    for pair in ordered:
        if pair["reference"] not in reached:
            run = [pair]
            while run[-1]["target"] in loop:
                run.append(loop[run[-1]["target"]])
            if len(run) > 1:
                yield run


def _across(loops: Mapping[int, Mapping[str, Row]]) -> Iterator[Row]:
    holding: defaultdict[str, list[int]] = defaultdict(list)
    for subset, loop in loops.items():
        for image in dict.fromkeys(
            each for pair in loop.values() for each in (pair["reference"], pair["target"])
        ):
            holding[image].append(subset)
    for image, subsets in holding.items():
        for one, two in itertools.pairwise(subsets):
            parts = _over(loops[one], loops[two], image) or _over(loops[two], loops[one], image)
            if parts:
                yield _path(parts)


def _over(one: Mapping[str, Row], two: Mapping[str, Row], image: str) -> list[list[Row]]:
    """The longest way through a loop to an image and from there through another's, or none."""
    before, after = _towards(one, image), _onwards(two, image)
    found: list[list[list[Row]]] = []
    for start in range(len(before)):
        seen = {pair["reference"] for pair in before[start:]}
        fresh = list(itertools.takewhile(lambda pair, seen=seen: pair["target"] not in seen, after))  # type: ignore[misc]
        if fresh:
            found.append([before[start:], fresh])
    return max(found, key=lambda parts: sum(map(len, parts)), default=[])


def _towards(loop: Mapping[str, Row], image: str) -> list[Row]:
    """The loop's pairs that lead to an image, from as far away as they reach without coming by it."""
    by_target = {pair["target"]: pair for pair in loop.values()}
    found: list[Row] = []
    at = image
    while at in by_target and by_target[at]["reference"] != image:
        found.append(by_target[at])
        at = by_target[at]["reference"]
    return found[::-1]


def _onwards(loop: Mapping[str, Row], image: str) -> list[Row]:
    found: list[Row] = []
    at = image
    while at in loop and loop[at]["target"] != image:
        found.append(loop[at])
        at = loop[at]["target"]
    return found


def _path(parts: Sequence[Sequence[Row]]) -> Row:
    pairs = [pair for part in parts for pair in part]
    images = [pairs[0]["reference"], *(pair["target"] for pair in pairs)]
    return {
        "path": "+".join(part[0]["pair"] for part in parts),
        "split": pairs[0]["split"],
        "subsets": [part[0]["subset"] for part in parts],
        "closed": images[0] == images[-1],
        "images": images,
        "pairs": [pair["pair"] for pair in pairs],
    }
