"""CIRCO (Baldrati et al., ICCV 2023): several positives a query, gallery of COCO 2017's unlabelled images.

Image ids are COCO's numbers, 12 digits, zero-padded, everywhere. The gallery is COCO's own list
(`image_info_unlabeled2017.json`), which a user may lack.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import Record, read_json, read_records
from cir_datasets.errors import FIX, RecordError
from cir_datasets.rows.records import Row, image_row, query_row, query_schema

_DIGITS = 12


def coco_id(value: Any) -> str:
    """A COCO image id as 12 digits, from an integer, a short string or a file name.

    Raises:
        ValueError: `value` is not such an id.

    Example:
        >>> coco_id(123456), coco_id("123456"), coco_id("000000123456.jpg")
        ('000000123456', '000000123456', '000000123456')
    """
    text = value.removesuffix(".jpg") if isinstance(value, str) else str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        raise ValueError(f"{value!r} is not a COCO image id (a number of up to {_DIGITS} digits)")
    return text.zfill(_DIGITS)


class Circo(BenchmarkBuilder):
    """Rows of `circo/val` and `circo/test`."""

    def schema(self) -> pa.Schema:
        """A query with its `shared_concept`."""
        return query_schema(pa.field("shared_concept", pa.string()))

    def rows(self) -> Iterator[Row]:
        """One query a record, in file order."""
        for record in read_records(self.rows_file):
            query_id = record.id_or_integer("id")
            yield self._row(record.named(f"id {query_id}"), query_id)

    def images(self) -> Iterator[Row] | None:
        """COCO's list of unlabelled images, in its order."""
        (name,) = self.spec.config.gallery_files
        return _coco_images(self.files[name]) if name in self.files else None

    def _row(self, record: Record, query_id: str) -> Row:
        caption = record.text("relative_caption")
        withheld = self.spec.config.ground_truth == "withheld"
        positives = [] if withheld else [coco_id_in(record, value) for value in record.items("gt_img_ids")]
        return query_row(
            query_id,
            reference_image_id=coco_id_in(record, record.get("reference_img_id")),
            relative_caption=caption,
            target_image_id=None if withheld else coco_id_in(record, record.get("target_img_id")),
            positive_image_ids=positives,
            aspects=[] if withheld else record.texts("semantic_aspects"),
            shared_concept=record.text("shared_concept"),
        )


def coco_id_in(record: Record, value: Any) -> str:
    """`coco_id` of a value that a record holds.

    Raises:
        RecordError: it is no such id; the message names the record.
    """
    try:
        return coco_id(value)
    except ValueError as error:
        record.fail(f"{error}.")


def _coco_images(path: Any) -> Iterator[Row]:
    content = read_json(path, dict)
    listed = content.get("images")
    if not isinstance(listed, list):
        raise RecordError(f"{path}: the field 'images' must be a list of COCO's images. {FIX}")
    licences = {
        entry.get("id"): entry.get("name") for entry in content.get("licenses", []) if isinstance(entry, dict)
    }
    for number, fields in enumerate(listed, start=1):
        if not isinstance(fields, dict):
            raise RecordError(f"{path}: image {number} must be an object, not {fields!r}. {FIX}")
        record = Record(path, number, fields)
        image_id, file_name = coco_id_in(record, record.get("id")), record.id("file_name")
        if file_name != f"{image_id}.jpg":
            record.fail(f"the file of image {image_id} must be {image_id}.jpg, not {file_name!r}.")
        yield image_row(
            image_id,
            relative_path=f"unlabeled2017/{file_name}",
            width=record.integer("width") if "width" in fields else None,
            height=record.integer("height") if "height" in fields else None,
            license=licences.get(fields.get("license")),
        )
