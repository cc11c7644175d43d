"""Multi-turn FashionIQ (Yuan and Lam, SIGIR 2021): chains of FashionIQ queries, the last with the target.

The publisher gives no session ids; ours are `{category}_{split}_{index:04d}` in file order. Everything is
kept as published: turns with one caption or three, empty captions, and the one session of a single turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import Record, read_image_ids, read_records
from cir_datasets.rows.records import Row, image_row, session_row, session_schema


class MultiturnFashioniq(BenchmarkBuilder):
    """Rows of `multiturn_fashioniq/{dress,shirt,toptee}_{train,val}`."""

    captions_field: ClassVar[str] = "captions"

    def schema(self) -> pa.Schema:
        """A session whose turns carry `captions`."""
        return session_schema(pa.field("captions", pa.list_(pa.string())))

    def rows(self) -> Iterator[Row]:
        """One session a record, in file order."""
        for record in read_records(self.rows_file):
            session_id = f"{self.spec.config_name}_{record.number - 1:04d}"
            yield self._row(record.named(f"session_id {session_id}"), session_id)

    def images(self) -> Iterator[Row]:
        """The split file's images, in its order."""
        for image_id in read_image_ids(self.gallery_file):
            # The publisher's pictures are .png or .jpg, which only the folder shows: no relative path.
            yield image_row(image_id)

    def _row(self, record: Record, session_id: str) -> Row:
        turns = [_turn(record, *each) for each in enumerate(record.items("reference"), start=1)]
        captions = [of_turn for _, of_turn in turns]
        asked = [(image, of_turn[0] if len(of_turn) == 1 else None) for image, of_turn in turns]
        return session_row(session_id, self.spec.config_name, [_target(record)], asked, captions)


def _target(record: Record) -> str:
    """The id in `[address, id]`."""
    target = record.get("target")
    if not (isinstance(target, list) and len(target) == 2 and _is_id(target[1])):
        record.fail(f"the field 'target' must be [address, image id], not {target!r}.")
    return str(target[1])


def _turn(record: Record, number: int, fields: Any) -> tuple[str, list[str]]:
    """Image and captions of a turn from `[address, captions, id]`."""
    if not (isinstance(fields, list) and len(fields) == 3 and _is_id(fields[2])):
        record.fail(f"turn {number} must be [address, captions, image id], not {fields!r}.")
    _, captions, image_id = fields
    if not (isinstance(captions, list) and captions and all(isinstance(text, str) for text in captions)):
        record.fail(f"turn {number}: its captions must be one or more strings, not {captions!r}.")
    return image_id, captions


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value != ""
