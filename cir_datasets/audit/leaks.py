"""Images that two splits share, and queries that a benchmark asks twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row


@dataclass(frozen=True)
class Leak:
    """What a benchmark shares with a train split.

    An image counts as *listed* where it is in the train split's gallery (all that is known of an image when a
    model is trained on pictures), and as *used* where a row of the train split names it.

    Args:
        train: id of the train split.
        rows: number of this benchmark's rows whose ground truth is public.
        target_listed: rows with a target that the train split lists.
        target_used: rows with a target that a row of the train split names.
        references: distinct reference images here.
        reference_listed: of those, how many the train split lists.
        reference_used: of those, how many a row of the train split names.
    """

    train: str
    rows: int
    target_listed: int
    target_used: int
    references: int
    reference_listed: int
    reference_used: int

    @property
    def any(self) -> bool:
        """Whether anything is shared."""
        return self.target_listed + self.target_used + self.reference_listed + self.reference_used > 0

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return {
            "train": self.train,
            "rows": self.rows,
            "target_listed": self.target_listed,
            "target_used": self.target_used,
            "references": self.references,
            "reference_listed": self.reference_listed,
            "reference_used": self.reference_used,
        }

    def text(self) -> str:
        """The numbers in a sentence."""
        references = (
            f"{self.reference_listed:,} of {self.references:,} reference images are "
            f"({self.reference_used:,} in its rows)"
        )
        if not self.rows:
            return f"images of {self.train}: {references}"
        if not self.target_listed:
            return f"images of {self.train}: no target; {references}"
        share = 100 * self.target_listed / self.rows
        return (
            f"{share:.1f} % of the targets ({self.target_listed:,} of {self.rows:,}) are images of "
            f"{self.train}, {self.target_used:,} in its rows; {references}"
        )


def leaks(benchmark: Benchmark, train: Benchmark) -> Leak:
    """Count what a benchmark shares with a train split.

    Args:
        benchmark: what is evaluated on.
        train: what is trained on.
    """
    used = {image for row in train.rows() for image in (*_references(row), *_targets(row))}
    listed = used | (train.gallery_set or frozenset())
    rows = benchmark.rows()
    targets = [found for row in rows if (found := _targets(row))]
    references = {image for row in rows for image in _references(row)}
    return Leak(
        train=train.id,
        rows=len(targets),
        target_listed=sum(not listed.isdisjoint(found) for found in targets),
        target_used=sum(not used.isdisjoint(found) for found in targets),
        references=len(references),
        reference_listed=len(references & listed),
        reference_used=len(references & used),
    )


def repeated(benchmark: Benchmark) -> list[list[str]]:
    """Groups of rows with the same references and captions; ids in the publisher's order."""
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for query_id, row in zip(benchmark.query_ids, benchmark.rows(), strict=True):
        parts = row.get("turns") or [row]
        asked = tuple(
            (part["reference_image_id"], part["relative_caption"], tuple(part.get("captions") or ()))
            for part in parts
        )
        groups[asked].append(query_id)
    return [ids for ids in groups.values() if len(ids) > 1]


def _references(row: Row) -> Iterator[str]:
    for part in row.get("turns") or [row]:
        if part["reference_image_id"] is not None:
            yield part["reference_image_id"]


def _targets(row: Row) -> list[str]:
    found: list[str] = row["ground_truth_ids"] if "session_id" in row else row["positive_image_ids"]
    return found
