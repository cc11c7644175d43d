"""CIRR (Liu et al., ICCV 2021): captions, auxiliary captions joined in by pair id, subsets of six.

The target is `target_hard`. `target_soft` (a score for every image that is right to some degree) is kept as a
field of its own and judges nothing. The subset is the publisher's, reference included; the metric drops it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import Record, read_json, read_records
from cir_datasets.errors import FIX, RecordError
from cir_datasets.rows.records import Row, image_row, query_row, query_schema

_AUXILIARY = ("0", "1", "2", "3")
"""Keys of `caption_extend`: four questions that the annotators answered besides the caption."""


class Cirr(BenchmarkBuilder):
    """Rows of `cirr/train`, `cirr/val` and `cirr/test1`."""

    def schema(self) -> pa.Schema:
        """A query with `subset_id`, `target_soft` and `auxiliary_captions`."""
        return query_schema(
            pa.field("subset_id", pa.int64()),
            pa.field(
                "target_soft", pa.list_(pa.struct([("image_id", pa.string()), ("score", pa.float64())]))
            ),
            pa.field("auxiliary_captions", pa.list_(pa.string())),
        )

    def rows(self) -> Iterator[Row]:
        """One query a pair id, in the order of the caption file."""
        captions, extended = (self.files[name] for name in self.spec.config.files)
        auxiliary = _by_pair_id(extended)
        asked: set[str] = set()
        for record in read_records(captions):
            pair_id = str(record.integer("pairid"))
            asked.add(pair_id)
            yield self._row(record.named(f"pairid {pair_id}"), auxiliary.get(pair_id))
        for pair_id, record in auxiliary.items():
            if pair_id not in asked:
                record.fail(f"{captions.name} has no query of that pair id.")

    def images(self) -> Iterator[Row]:
        """The split file's images, in its order."""
        (name,) = self.spec.config.gallery_files
        path = self.files[name]
        for image_id, relative_path in read_json(path, dict).items():
            if not isinstance(relative_path, str):
                raise RecordError(
                    f"{path}: image {image_id!r}: its path must be a string, not {relative_path!r}. {FIX}"
                )
            if PurePosixPath(relative_path).stem != _image_id(image_id):
                raise RecordError(
                    f"{path}: image {image_id!r}: its path {relative_path!r} is of another image. {FIX}"
                )
            yield image_row(_image_id(image_id), relative_path=relative_path.removeprefix("./"))

    def _row(self, record: Record, auxiliary: Record | None) -> Row:
        query_id = str(record.integer("pairid"))
        reference = _image_id(record.id("reference"))
        caption = record.text("caption")
        img_set = record.object("img_set")
        withheld = self.spec.config.ground_truth == "withheld"
        target = None if withheld else _image_id(record.id("target_hard"))
        return query_row(
            query_id,
            reference_image_id=reference,
            relative_caption=caption,
            target_image_id=target,
            subset_image_ids=[_image_id(member) for member in img_set.texts("members")],
            subset_id=img_set.integer("id"),
            target_soft=[] if withheld else _target_soft(record.object("target_soft")),
            auxiliary_captions=_joined(record, reference, auxiliary),
        )


def _by_pair_id(path: Path) -> dict[str, Record]:
    """The records of the auxiliary file by pair id."""
    found: dict[str, Record] = {}
    for record in read_records(path):
        pair_id = str(record.integer("pairid"))
        if pair_id in found:
            record.fail(f"pair id {pair_id} occurs a second time (first in record {found[pair_id].number}).")
        found[pair_id] = record.named(f"pairid {pair_id}")
    return found


def _joined(record: Record, reference: str, auxiliary: Record | None) -> list[str]:
    """The four auxiliary captions of a query."""
    if auxiliary is None:
        record.fail("the file of auxiliary captions has no record of that pair id.")
    if _image_id(auxiliary.id("reference")) != reference:
        auxiliary.fail(f"its reference is {auxiliary.id('reference')!r}, but the query's is {reference!r}.")
    answers = auxiliary.object("caption_extend")
    if sorted(answers.fields) != list(_AUXILIARY):
        auxiliary.fail(
            f"caption_extend must have the keys {', '.join(_AUXILIARY)}, not {sorted(answers.fields)}."
        )
    return [answers.text(key) for key in _AUXILIARY]


def _image_id(name: str) -> str:
    return name.removesuffix(".png")


def _target_soft(scores: Record) -> list[Row]:
    for image_id, score in scores.fields.items():
        if not isinstance(score, int | float) or isinstance(score, bool):
            scores.fail(f"the score of {image_id!r} must be a number, not {score!r}.")
    return [{"image_id": _image_id(name), "score": float(score)} for name, score in scores.fields.items()]
