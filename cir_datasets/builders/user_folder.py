"""Folders of their makers: rows in JSON Lines, CSV or Parquet, and the gallery as a list of ids."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.common.row_files import NOT_UTF8, read_row_file, text_lines, unit
from cir_datasets.errors import RecordError
from cir_datasets.rows.records import Row, image_row
from cir_datasets.rows.written import id_fault, place_of, typed, written_schema

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec


class UserFolder(BenchmarkBuilder):
    """Rows of a folder's configuration."""

    def __init__(self, spec: BenchmarkSpec, files: Mapping[str, Path]) -> None:
        """Keep both, and the line that each row begins with."""
        super().__init__(spec, files)
        self._multi_turn = spec.kind == "multi_turn"
        self._extra = spec.card.extra_fields
        self._begun = array("Q")

    def schema(self) -> pa.Schema:
        """A query or session, with the further fields that the first row has."""
        return written_schema(self._multi_turn, self._extra)

    def rows(self) -> Iterator[Row]:
        """One query or session a line, in file order."""
        self._begun = array("Q")
        path = self.rows_file
        for number, fields in read_row_file(path):
            self._begun.append(number)
            if isinstance(fields, str):
                raise RecordError(f"{place_of(path, number, fields)}: {fields}")
            row, faults = typed(fields, self._multi_turn, self._extra)
            if faults:
                raise RecordError(f"{place_of(path, number, fields)}: {faults[0]}")
            yield row

    def row_origin(self, number: int) -> str:
        """File and line of a row."""
        path = self.rows_file
        line = self._begun[number - 1] if number <= len(self._begun) else number
        return f"{path}: {unit(path)} {line}"

    def images(self) -> Iterator[Row]:
        """The gallery, in the order of its list."""
        path = self.gallery_file
        for number, text in text_lines(path):
            if text is None:
                raise RecordError(f"{path}: line {number}: {NOT_UTF8}")
            row, fault = listed_image(text)
            if fault is not None:
                raise RecordError(f"{path}: line {number}: {fault}")
            yield row


def listed_image(text: str) -> tuple[Row, str | None]:
    """The image of a line of `images.txt`, and what is wrong with it, or None.

    Example:
        >>> row, fault = listed_image("cat\\tpets/cat.png")
        >>> row["image_id"], row["relative_path"], fault
        ('cat', 'pets/cat.png', None)
    """
    image_id, tab, path = text.partition("\t")
    fault = id_fault(image_id)
    if fault is not None:
        return {}, f"the image id {fault}"
    if tab and (not path.strip() or "\t" in path):
        return {}, f"{text!r}: an id is followed by one tab and a path. Fix: write the path, or no tab."
    if path.startswith("/") or ".." in path.split("/"):
        return {}, f"the path {path!r} leads out of the image folder. Fix: write it relative to that."
    return image_row(image_id, relative_path=path or None), None
