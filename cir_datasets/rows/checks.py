"""What every benchmark's rows must be, whoever published them.

Records are checked always; counts (queries, gallery, sessions by number of turns) unless the caller skips
them. What is a rule of one publisher's format alone is checked by its builder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.terminal import counted
from cir_datasets.errors import FIX, WITHOUT_CHECKS, CountError, RecordError
from cir_datasets.rows.benchmark import GALLERY, SUBSET
from cir_datasets.rows.records import Row

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

_LEAST_RANKED = 2
"""Images of a query's own list: one alone is always right."""


@dataclass
class Tally:
    """How many rows there are, and how many sessions of each number of turns."""

    rows: int = 0
    turns: Counter[int] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Count a row."""
        self.rows += 1
        if "turns" in row:
            self.turns[len(row["turns"])] += 1


def checked_images(images: Iterable[Row], origin: Path | str) -> Iterator[Row]:
    """The images of a gallery, each with an id and (where it is known) a path that no other has.

    Args:
        images: rows of the manifest, in file order.
        origin: the file that they come from, for messages.

    Raises:
        RecordError: an id is empty, or an id or a path occurs twice; the message names file and record.
    """
    seen: dict[str, int] = {}
    paths: dict[str, int] = {}
    for number, image in enumerate(images, start=1):
        image_id = image["image_id"]
        if not image_id or image_id in seen:
            what = (
                f"image {image_id!r} occurs a second time (first in record {seen[image_id]})"
                if image_id
                else "no id"
            )
            raise RecordError(f"{origin}: record {number}: {what}. {FIX}")
        seen[image_id] = number
        path = image["relative_path"]
        if path is not None and paths.setdefault(path, number) != number:
            raise RecordError(
                f"{origin}: record {number}: image {image_id!r} has the path {path!r} of another (first in "
                f"record {paths[path]}). {FIX}"
            )
        yield image


def checked_rows(
    spec: BenchmarkSpec, rows: Iterable[Row], gallery: Iterable[str] | None, origin: Callable[[int], str]
) -> Iterator[Row]:
    """The rows: each with an id of its own, truth that fits it, and every image in the gallery.

    Of every query: the target is a positive and the reference is not, no image is both a positive and a hard
    negative or is listed twice, aspects are those that the card names. Of every session: turns are numbered
    1, 2, 3, and no turn's reference is a ground truth. A query or session whose truth is public has some.

    Args:
        spec: the benchmark.
        rows: all its queries or sessions, in file order.
        gallery: image ids, or None where they cannot be checked.
        origin: says in which file and record the row of a number lies, for messages.

    Raises:
        RecordError: the message names file, record and fix.
    """
    members = None if gallery is None else frozenset(gallery)
    id_name = "session_id" if spec.kind == "multi_turn" else "query_id"
    # In the order of the rows, so that a place is a number: a million numbers beside them would take memory.
    seen: dict[str, None] = {}
    for number, row in enumerate(rows, start=1):
        fault = next(row_faults(spec, row, members), None)
        if row[id_name] in seen:
            earlier = list(seen).index(row[id_name]) + 1
            here, first = origin(number).rpartition(": "), origin(earlier).rpartition(": ")
            place = first[2] if here[0] == first[0] else ": ".join(first[::2])
            fault = f"its id occurs a second time (first in {place})"
        if fault is not None:
            fix = FOLDER_FIX if spec.card.in_folder else FIX
            raise RecordError(f"{origin(number)} ({id_name} {row[id_name]}): {fault}. {fix}")
        seen[row[id_name]] = None
        yield row


def check_counts(
    spec: BenchmarkSpec,
    tally: Tally,
    gallery_size: int | None,
    origin: Path | str,
    gallery_origin: Path | str,
) -> None:
    """There are as many queries, images and sessions of each length as the card says.

    Args:
        spec: the benchmark.
        tally: the rows that were read.
        gallery_size: images of the gallery, or None where its list is not available.
        origin: the file that the rows come from.
        gallery_origin: the file that the gallery's list comes from.

    Raises:
        CountError: what was counted, what the card says, and how to go on.
    """
    config = spec.config
    noun = "sessions" if spec.kind == "multi_turn" else "queries"
    _compare(spec, noun, tally.rows, config.queries, origin)
    if gallery_size is not None:
        _compare(spec, "gallery images", gallery_size, config.gallery, gallery_origin)
    if config.turns is not None:
        for turns in sorted(tally.turns.keys() | config.turns.keys()):
            _compare(
                spec, f"sessions of {turns} turns", tally.turns[turns], config.turns.get(turns, 0), origin
            )


def _compare(spec: BenchmarkSpec, what: str, found: int, expected: int | None, origin: Path | str) -> None:
    if expected is not None and found != expected:
        raise CountError(
            f"{spec.id}: {origin}: {found:,} {what}, but the card says {expected:,}. Fix: get the "
            f"publisher's files again; to use other files knowingly, {WITHOUT_CHECKS}"
        )


FOLDER_FIX = "Fix: correct that row."
"""How a message about a row ends whose file is the user's own."""


def row_faults(spec: BenchmarkSpec, row: Row, members: frozenset[str] | None) -> Iterator[str]:
    """What is wrong with a row taken by itself.

    Args:
        spec: the benchmark.
        row: a query or session.
        members: image ids of the gallery, or None where they cannot be checked.
    """
    if spec.kind == "multi_turn":
        faults = [session_fault(row)]
    else:
        faults = [
            _truth_fault(spec, row),
            _aspects_fault(spec, row),
            _subset_fault(spec, row),
            _query_gallery_fault(spec, row),
        ]
    yield from filter(None, (*faults, _repeated(row)))
    if members is not None:
        outside = "reference" if spec.per_query else None
        for role, image_id in _images_of(row):
            if image_id not in members and role != outside:
                yield f"its {role} {image_id!r} is not in the gallery ({len(members):,} images)"


def session_fault(row: Row) -> str | None:
    """What is wrong with a session taken by itself; whatever makes sessions asks here, too.

    Args:
        row: with `num_turns`, `turns` and `ground_truth_ids`.

    Returns:
        The first fault: its number of turns, their order, a reference that is a ground truth; None without.

    Example:
        >>> turn = {"turn": 1, "reference_image_id": "a"}
        >>> session_fault({"num_turns": 1, "turns": [turn], "ground_truth_ids": ["a"]})
        "the reference of turn 1, 'a', is a ground truth"
    """
    numbers = [turn["turn"] for turn in row["turns"]]
    if row["num_turns"] != len(numbers):
        return f"num_turns is {row['num_turns']}, but it has {counted(len(numbers), 'turn')}"
    if numbers != list(range(1, len(numbers) + 1)):
        return f"its turns are out of order: {numbers}; they count 1, 2, 3, ..."
    for turn in row["turns"]:
        if turn["reference_image_id"] in row["ground_truth_ids"]:
            return f"the reference of turn {turn['turn']}, {turn['reference_image_id']!r}, is a ground truth"
        if turn["reference_image_id"] == turn.get("target_image_id", ""):
            return f"the reference of turn {turn['turn']}, {turn['reference_image_id']!r}, is its own target"
    last = row["turns"][-1].get("target_image_id")
    if last is not None and [last] != row["ground_truth_ids"]:
        return f"its last turn's target is {last!r}, its ground truth {row['ground_truth_ids']}"
    return None


def _repeated(row: Row) -> str | None:
    """Which list of ground truth names an image twice, or None."""
    for name in ("ground_truth_ids", "positive_image_ids", "negative_image_ids"):
        ids = row.get(name, ())
        if len(set(ids)) != len(ids):
            return f"its {name} name an image twice: {ids}"
    return None


def _truth_fault(spec: BenchmarkSpec, row: Row) -> str | None:
    reference, target = row["reference_image_id"], row["target_image_id"]
    positives = row["positive_image_ids"]
    if spec.config.ground_truth == "public" and not positives:
        return "it has no positive, and the ground truth is public"
    if reference in positives:
        if spec.config.reference == "removed":
            return f"its reference {reference!r} is a positive, but is removed from the ranking"
        return f"its reference {reference!r} is {'its target' if reference == target else 'a positive'}"
    both = set(positives).intersection(row["negative_image_ids"])
    if both:
        return f"image {min(both)!r} is both a positive and a hard negative"
    if target is not None and target not in positives:
        return f"its target {target!r} is not among its positives {positives}"
    return None


def _aspects_fault(spec: BenchmarkSpec, row: Row) -> str | None:
    aspects, known = row["aspects"], spec.card.report.aspect_names
    unknown = [aspect for aspect in aspects if known and aspect not in known]
    if unknown:
        return f"it has the aspect {unknown[0]!r}, which is not one of {', '.join(known)}"
    if len(set(aspects)) != len(aspects):
        return f"it has an aspect twice: {aspects}"
    return None


def _subset_fault(spec: BenchmarkSpec, row: Row) -> str | None:
    subset, size = row["subset_image_ids"], spec.config.subset
    if size is None:
        return None
    if len(subset) != size or len(set(subset)) != size:
        return f"its subset must hold {size} different images, not {subset}"
    for role in ("reference_image_id", "target_image_id"):
        if row[role] is not None and row[role] not in subset:
            return f"its {role} {row[role]!r} is not in its subset {subset}"
    return None


def _query_gallery_fault(spec: BenchmarkSpec, row: Row) -> str | None:
    """Why the list of images that the query ranks cannot be, or None."""
    listed = row.get(GALLERY)
    if not spec.per_query:
        return f"it has {GALLERY}, and the card does not say `gallery: per_query`" if listed else None
    ranked = set(listed or ())
    if len(ranked) < len(listed or ()):
        twice = next(image for image, count in Counter(listed or ()).items() if count > 1)
        return f"its {GALLERY} name {twice!r} twice"
    if spec.config.reference == "removed":
        ranked.discard(row["reference_image_id"])
    if len(ranked) < _LEAST_RANKED:
        beside = " beside the reference" if len(ranked) < len(listed or ()) else ""
        return f"its {GALLERY} must name {_LEAST_RANKED} images or more to rank{beside}, not {listed}"
    for role in ("positive", "negative"):
        for image_id in row[f"{role}_image_ids"]:
            if image_id not in ranked:
                return f"its {role} {image_id!r} is not in its {GALLERY}"
    return None


def _images_of(row: Row) -> Iterator[tuple[str, str]]:
    """Every image that a row names, with its role."""
    if "session_id" in row:
        for turn in row["turns"]:
            if turn["reference_image_id"] is not None:
                yield f"reference of turn {turn['turn']}", turn["reference_image_id"]
            if turn.get("target_image_id") is not None:
                yield f"target of turn {turn['turn']}", turn["target_image_id"]
        yield from (("ground truth", image_id) for image_id in row["ground_truth_ids"])
        return
    for role in ("reference", "target"):
        if row[f"{role}_image_id"] is not None:
            yield role, row[f"{role}_image_id"]
    lists = (
        ("positive", "positive_image_ids"),
        ("hard negative", "negative_image_ids"),
        ("subset member", SUBSET),
        ("gallery member", GALLERY),
    )
    for role, name in lists:
        for image_id in row.get(name, ()):
            if role != "positive" or image_id != row["target_image_id"]:  # the target is said already
                yield role, image_id
