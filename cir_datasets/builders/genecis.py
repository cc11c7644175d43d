"""GeneCIS (Vaze et al., CVPR 2023), the two tasks on objects: each query ranks images of its own.

An image is a whole picture of COCO's validation images of 2017, and its id COCO's number in 12 digits.
The tasks on attributes ask for crops of Visual Genome by instance boxes, which are other pictures; they
are not read here. The released lists have the target in front, so that an evaluation that keeps the
order of equal scores finds it whatever the scores are; a list here is sorted by id. An image that a list
holds twice stands in it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.circo import coco_id_in
from cir_datasets.builders.reading import Record, read_records
from cir_datasets.rows.benchmark import GALLERY, union_of
from cir_datasets.rows.records import GALLERY_FIELD, Row, image_row, query_row, query_schema

_NUMBER = "val_image_id"


class Genecis(BenchmarkBuilder):
    """Rows of `genecis/focus_object` and `genecis/change_object`."""

    def schema(self) -> pa.Schema:
        """A query with its own gallery."""
        return query_schema(GALLERY_FIELD)

    def rows(self) -> Iterator[Row]:
        """One query a record, in file order; rows that the publisher repeats stay queries of their own."""
        for record in read_records(self.rows_file):
            yield self._row(record)

    def images(self) -> Iterator[Row]:
        """The images of all lists, sorted by id: in the file's order each query's target would come first."""
        for image_id in union_of(row[GALLERY] for row in self.rows()):
            yield image_row(image_id, relative_path=f"val2017/{image_id}.jpg")

    def _row(self, record: Record) -> Row:
        target = _image(record, record.get("target"))
        others = [_image(record, image) for image in record.items("gallery")]
        condition = record.text("condition")
        return query_row(
            f"{self.spec.config_name}_{record.number - 1:04d}",
            reference_image_id=_image(record, record.get("reference")),
            relative_caption=condition,
            target_image_id=target,
            **{GALLERY: union_of([[target], others])},
        )


def _image(record: Record, image: Any) -> str:
    """The id of an image, which is a picture as it is."""
    if not isinstance(image, dict) or _NUMBER not in image:
        record.fail(f"an image must be an object with a {_NUMBER!r}, not {image!r}.")
    if set(image) != {_NUMBER}:
        more = ", ".join(sorted(set(image) - {_NUMBER}))
        record.fail(f"an image holds {more}, and these tasks have whole pictures: a crop is another image.")
    return coco_id_in(record, image[_NUMBER])
