"""CIRCLED: multi-turn sessions made from FashionIQ, CIRR and CIRCO; the publisher's field names are kept.

The publisher ships no gallery lists: a configuration ranks the gallery of the official split it was made
from, where that list is available. Nor does it say which query a session began with: `source_query_id` is
looked up in the rows of that split, where they are here, by turn 1's reference and caption and by the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder, builder_class
from cir_datasets.builders.circo import coco_id_in
from cir_datasets.builders.reading import Record, read_records
from cir_datasets.rows.benchmark import SOURCE_QUERY
from cir_datasets.rows.records import Row, session_schema


class Circled(BenchmarkBuilder):
    """Rows of all nine subsets."""

    def schema(self) -> pa.Schema:
        """CIRCLED's own session, and the query that it began with."""
        return session_schema().append(pa.field(SOURCE_QUERY, pa.string()))

    def rows(self) -> Iterator[Row]:
        """One session a record, in file order."""
        queries = self._source_queries()
        for record in read_records(self.rows_file):
            row = self._row(record.named(f"session_id {record.id('session_id')}"))
            yield {**row, SOURCE_QUERY: None if queries is None else queries.of(row)}

    def _source_queries(self) -> SourceQueries | None:
        """The queries of the source benchmark, or None where its rows are not available."""
        source = self.gallery_source
        if source is None or not all(name in self.files for name in source.config.files):
            return None
        return SourceQueries(builder_class(source.card.name)(source, self.files).rows())

    def images(self) -> Iterator[Row] | None:
        """The gallery of the source benchmark, or None where its list is not available."""
        source = self.gallery_source
        if source is None or not all(name in self.files for name in source.config.gallery_files):
            return None
        return builder_class(source.card.name)(source, self.files).images()

    def _row(self, record: Record) -> Row:
        subset = record.id("subset")
        if subset != self.spec.config_name:
            record.fail(f"its subset is {subset!r}, but this file is {self.spec.config_name!r}.")
        turns = []
        for number, fields in enumerate(record.items("turns"), start=1):
            if not isinstance(fields, dict):
                record.fail(f"turn {number} must be an object, not {fields!r}.")
            turn = Record(record.path, record.number, fields, f"{record.label}, turn {number}")
            turns.append(
                {
                    "turn": turn.integer("turn"),
                    "reference_image_id": self._image_id(turn, turn.id("reference_image_id")),
                    "relative_caption": turn.text("relative_caption"),
                }
            )
        return {
            "session_id": record.id("session_id"),
            "subset": subset,
            "ground_truth_ids": self._merged(record, record.texts("ground_truth_ids")),
            "num_turns": record.integer("num_turns"),
            "turns": turns,
        }

    def _merged(self, record: Record, names: list[str]) -> list[str]:
        """Ids of images: two spellings of one (`1.jpg`, `000000000001`) merge, a repeated one stays."""
        ids = [self._image_id(record, name) for name in names]
        return ids if len(set(names)) < len(names) else list(dict.fromkeys(ids))

    def _image_id(self, record: Record, name: str) -> str:
        bare = name.removesuffix(".jpg").removesuffix(".png")
        return coco_id_in(record, bare) if self.spec.config_name.startswith("circo_") else bare


class SourceQueries:
    """The queries of a benchmark that sessions were made of, by reference and caption.

    Args:
        rows: its queries; each of a query's captions may have begun a session.

    Example:
        >>> query = {"query_id": "7", "reference_image_id": "a", "captions": ["is red", "is  long "],
        ...          "positive_image_ids": ["b"]}
        >>> session = {"ground_truth_ids": ["b"],
        ...            "turns": [{"reference_image_id": "a", "relative_caption": "is long"}]}
        >>> queries = SourceQueries([query])
        >>> queries.of(session), queries.of({**session, "ground_truth_ids": ["c"]})
        ('7', None)
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        """Take the queries."""
        self._found: dict[tuple[str | None, str], list[tuple[str, frozenset[str]]]] = {}
        for row in rows:
            targets = frozenset(row["positive_image_ids"])
            for caption in row["captions"] or (row["relative_caption"],):
                key = row["reference_image_id"], _plain(caption or "")
                self._found.setdefault(key, []).append((row["query_id"], targets))

    def of(self, session: Row) -> str | None:
        """The id of the first query with the session's turn 1 and one of its targets; None without."""
        first = session["turns"][0] if session["turns"] else {}
        key = first.get("reference_image_id"), _plain(first.get("relative_caption") or "")
        return next(
            (
                query
                for query, targets in self._found.get(key, ())
                if targets & {*session["ground_truth_ids"]}
            ),
            None,
        )


def _plain(caption: str) -> str:
    """A caption without the blanks that files differ in."""
    return " ".join(caption.split())
