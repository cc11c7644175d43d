"""The queries that sessions begin with, and which pictures of a gallery are one and the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import ConstructionError
from cir_datasets.statistics.counts import captions_of

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

Row = dict[str, Any]


def queries_of(benchmark: Benchmark, *, limit: int | None = None, seed: int = 0) -> list[Row]:
    """Each caption of each query as the beginning of a session; captions are stripped.

    Args:
        benchmark: of single queries with public targets.
        limit: as many are drawn by the seed; they keep their order.
        seed: of that draw.

    Returns:
        Rows of `query` (the publisher's id, with `-1`, `-2` behind it where a query has several captions),
        `reference`, `caption`, `targets`, and `annotated`, the one that was shown to the annotator.

    Raises:
        ConstructionError: the benchmark has sessions, withholds its targets, or has no list of its gallery.

    Example:
        >>> import cir_datasets
        >>> rows = queries_of(cir_datasets.load("shapes/val"), limit=2)
        >>> len(rows), sorted(rows[0])
        (2, ['annotated', 'caption', 'query', 'reference', 'targets'])
    """
    faults = {
        "its rows are sessions already": benchmark.multi_turn,
        "its targets are withheld": benchmark.ground_truth_withheld,
        "each query ranks a gallery of its own": benchmark.per_query,
    }
    for why, wrong in faults.items():
        if wrong:
            raise ConstructionError(
                f"{benchmark.id}: no sessions can be made of it: {why}. Fix: use a benchmark of single "
                "queries with public targets, such as shapes/val or cirr/val."
            )
    if benchmark.gallery is None:
        raise ConstructionError(
            f"{benchmark.id}: no sessions can be made of it: the list of its gallery is not available. "
            f"Fix: {' '.join(benchmark.spec.card.source.instructions.split())}"
        )
    found = list(_begun(benchmark))
    if not found:
        raise ConstructionError(
            f"{benchmark.id}: no query has a reference and a target. Fix: use another benchmark."
        )
    return drawn(found, "query", limit, seed)


def _begun(benchmark: Benchmark) -> Iterator[Row]:
    for row, targets in zip(benchmark.rows(), benchmark.positives, strict=True):
        if row["reference_image_id"] is None or not targets:
            continue
        captions = list(captions_of(row))
        for number, caption in enumerate(captions, start=1):
            name = row["query_id"]
            yield {
                "query": name if len(captions) == 1 else f"{name}-{number}",
                "reference": row["reference_image_id"],
                "caption": caption.strip(),
                "targets": list(dict.fromkeys(targets)),
                "annotated": row["target_image_id"] or targets[0],
            }


def drawn(rows: Sequence[Row], name: str, limit: int | None, seed: int) -> list[Row]:
    """Some rows, drawn by the seed, in their order.

    Args:
        rows: all of them.
        name: the field that names a row.
        limit: as many at most; None is all.
        seed: of the draw.

    Example:
        >>> rows = [{"session_id": str(number)} for number in range(9)]
        >>> len(drawn(rows, "session_id", 4, 0)), drawn(rows, "session_id", None, 0) == rows
        (4, True)
    """
    hashes = [hashlib.sha256(f"{seed}|{row[name]}".encode()).digest() for row in rows]
    places = sorted(range(len(rows)), key=hashes.__getitem__)
    return [rows[place] for place in sorted(places[:limit])]


def twins_of(
    gallery: Sequence[str], others: Iterable[str], fingerprint: Callable[[Sequence[str]], Sequence[str]]
) -> list[Row]:
    """The images of a gallery that are not searched, since an earlier one is the same picture.

    Args:
        gallery: image ids.
        others: ids of other splits that come before it, whose pictures count as earlier.
        fingerprint: a hash of the picture of each id.

    Returns:
        A row for each image that is not searched: `image`, and `same_as`, the first one of that picture.

    Example:
        >>> twins_of(["b", "c", "d"], ["a"], lambda ids: ["1" if each in "ac" else each for each in ids])
        [{'image': 'c', 'same_as': 'a'}]
    """
    ids = list(dict.fromkeys((*others, *gallery)))
    first: dict[str, str] = {}
    same = {image: first.setdefault(found, image) for image, found in zip(ids, fingerprint(ids), strict=True)}
    return [{"image": image, "same_as": same[image]} for image in gallery if same[image] != image]


def searched_as(targets: Iterable[str], twins: Mapping[str, str], searched: Mapping[str, int]) -> list[str]:
    """The searched images that show targets; a target without one is left out.

    Example:
        >>> searched_as(["b", "c", "x"], {"c": "b", "x": "elsewhere"}, {"a": 0, "b": 1})
        ['b']
    """
    first = (twins.get(target, target) for target in targets)
    return list(dict.fromkeys(image for image in first if image in searched))
