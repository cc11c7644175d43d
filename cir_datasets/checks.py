"""What every benchmark's rows must be, whoever published them.

Records are checked always; counts (queries, gallery, sessions by number of turns) unless the caller skips
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from cir_datasets.errors import CountError, RecordError
from cir_datasets.records import Row

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

_FIX = "Fix: get the publisher's file again, or correct that record."


def check_images(images: Sequence[Row], origin: Path | str) -> None:
    """Every image of a gallery has an id, once.

    Raises:
        RecordError: an id is empty or occurs twice; the message names file and record.
    """
    seen: dict[str, int] = {}
    for number, image in enumerate(images, start=1):
        image_id = image["image_id"]
        if not image_id or image_id in seen:
            what = (
                f"image {image_id!r} occurs a second time (first in record {seen[image_id]})"
                if image_id
                else "no id"
            )
            raise RecordError(f"{origin}: record {number}: {what}. {_FIX}")
        seen[image_id] = number


def check_rows(
    spec: BenchmarkSpec, rows: Sequence[Row], gallery: Iterable[str] | None, origin: Path | str
) -> None:
    """Ids occur once, turns are in order, and every image is in the gallery (where its list is at hand).

    Args:
        spec: the benchmark.
        rows: all its queries or sessions, in file order.
        gallery: image ids, or None where they cannot be checked.
        origin: the file that the rows come from, for messages.

    Raises:
        RecordError: the message names file, record and fix.
    """
    members = None if gallery is None else frozenset(gallery)
    id_name = "session_id" if spec.kind == "multi_turn" else "query_id"
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{origin}: record {number} ({id_name} {row[id_name]})"
        if row[id_name] in seen:
            _fail(where, f"its id occurs a second time (first in record {seen[row[id_name]]})")
        seen[row[id_name]] = number
        if spec.kind == "multi_turn":
            _check_turns(row, where)
        else:
            _check_query(spec, row, where)
        if members is not None:
            for role, image_id in _images_of(row):
                if image_id not in members:
                    _fail(where, f"its {role} {image_id!r} is not in the gallery ({len(members):,} images)")


def check_counts(
    spec: BenchmarkSpec, rows: Sequence[Row], gallery_size: int | None, origin: Path | str
) -> None:
    """There are as many queries, images and sessions of each length as the card says.

    Raises:
        CountError: what was counted, what the card says, and how to go on.
    """
    config = spec.config
    noun = "sessions" if spec.kind == "multi_turn" else "queries"
    _compare(spec, noun, len(rows), config.queries, origin)
    if gallery_size is not None:
        _compare(spec, "gallery images", gallery_size, config.gallery, origin)
    if config.turns is not None:
        found = Counter(len(row["turns"]) for row in rows)
        for turns in sorted(found.keys() | config.turns.keys()):
            _compare(spec, f"sessions of {turns} turns", found[turns], config.turns.get(turns, 0), origin)


def _compare(spec: BenchmarkSpec, what: str, found: int, expected: int | None, origin: Path | str) -> None:
    if expected is not None and found != expected:
        raise CountError(
            f"{spec.id}: {origin}: {found:,} {what}, but the card says {expected:,}. Fix: get the "
            "publisher's files again; to use other files knowingly pass verification_mode='no_checks' "
            "(--no-checks), and scores will say so."
        )


def _check_turns(row: Row, where: str) -> None:
    numbers = [turn["turn"] for turn in row["turns"]]
    if row["num_turns"] != len(numbers):
        _fail(where, f"num_turns is {row['num_turns']}, but there are {len(numbers)} turns")
    if numbers != list(range(1, len(numbers) + 1)):
        _fail(where, f"its turns are out of order: {numbers}; they count 1, 2, 3, ...")


def _check_query(spec: BenchmarkSpec, row: Row, where: str) -> None:
    subset, size = row["subset_image_ids"], spec.config.subset
    if size is None:
        return
    if len(subset) != size or len(set(subset)) != size:
        _fail(where, f"its subset must hold {size} different images, not {subset}")
    for role in ("reference_image_id", "target_image_id"):
        if row[role] is not None and row[role] not in subset:
            _fail(where, f"its {role} {row[role]!r} is not in its subset {subset}")


def _images_of(row: Row) -> Iterator[tuple[str, str]]:
    """Every image that a row names, with its role."""
    if "session_id" in row:
        for turn in row["turns"]:
            if turn["reference_image_id"] is not None:
                yield f"reference of turn {turn['turn']}", turn["reference_image_id"]
        yield from (("ground truth", image_id) for image_id in row["ground_truth_ids"])
        return
    for role in ("reference", "target"):
        if row[f"{role}_image_id"] is not None:
            yield role, row[f"{role}_image_id"]
    for role, field in (("positive", "positive"), ("hard negative", "negative"), ("subset member", "subset")):
        yield from ((role, image_id) for image_id in row[f"{field}_image_ids"])


def _fail(where: str, what: str) -> NoReturn:
    raise RecordError(f"{where}: {what}. {_FIX}")
