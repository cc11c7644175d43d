"""CIRR (Liu et al., ICCV 2021): captions, auxiliary captions joined in by pair id, subsets of six.

A dialogue is the closed loop of a subset (supplement D of the paper): the caption of each pair leads to the
reference of the next. The loop's last pair leads back to the image that the session began with, and is left
out.

The target is `target_hard`. `target_soft` (a score for every image that is right to some degree) is kept as a
field of its own and judges nothing. The subset is the publisher's, reference included; the metric drops it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path, PurePosixPath

import pyarrow as pa

from cir_datasets.builders import BenchmarkBuilder
from cir_datasets.builders.reading import Record, read_json, read_records
from cir_datasets.errors import FIX, RecordError
from cir_datasets.rows.closed_loops import closed_loop
from cir_datasets.rows.records import Row, image_row, query_row, query_schema, session_row, session_schema

_AUXILIARY = ("0", "1", "2", "3")
"""Keys of `caption_extend`: four questions that the annotators answered besides the caption."""

_OF_TURNS = ("target_image_id", "source_query_id")
"""What a dialogue's turn says beside its reference and caption."""


@dataclass(frozen=True)
class _Loop:
    """The images of a subset's closed loop, and of each the row of the pair that leads on from it."""

    subset_id: int
    images: Sequence[str]
    onward: Mapping[str, Row]

    def path(self, start: int) -> list[Row]:
        """The rows of the loop's pairs from an image on, without the one that leads back to it."""
        images = [*self.images[start:], *self.images[:start]]
        return [self.onward[image] for image in images[:-1]]


class Cirr(BenchmarkBuilder):
    """Rows of `cirr/train`, `cirr/val` and `cirr/test1`, and of the dialogues of the first two."""

    def schema(self) -> pa.Schema:
        """A query with three fields of the publisher's; or a session whose turns have targets."""
        if self.spec.kind == "multi_turn":
            return session_schema(*(pa.field(name, pa.string()) for name in _OF_TURNS))
        return query_schema(
            pa.field("subset_id", pa.int64()),
            pa.field(
                "target_soft", pa.list_(pa.struct([("image_id", pa.string()), ("score", pa.float64())]))
            ),
            pa.field("auxiliary_captions", pa.list_(pa.string())),
        )

    def rows(self) -> Iterator[Row]:
        """One query a pair id, in the order of the caption file; or one session a closed loop."""
        if self.spec.kind == "multi_turn":
            yield from self._sessions()
            return
        captions, extended = (self.files[name] for name in self.spec.config.files)
        auxiliary = _by_pair_id(extended)
        asked: set[str] = set()
        for record in read_records(captions):
            pair_id = str(record.integer("pairid"))
            asked.add(pair_id)
            record = record.named(f"pairid {pair_id}")
            row = self._row(record)
            yield {
                **row,
                "auxiliary_captions": _joined(record, row["reference_image_id"], auxiliary.get(pair_id)),
            }
        for pair_id, record in auxiliary.items():
            if pair_id not in asked:
                record.fail(f"{captions.name} has no query of that pair id.")

    def images(self) -> Iterator[Row]:
        """The split file's images, in its order."""
        path = self.gallery_file
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

    def row_origin(self, number: int) -> str:
        """Of a session its file: it is made of several records."""
        if self.spec.kind == "single_turn":
            return super().row_origin(number)
        return f"{self.rows_file}: dialogue {number}"

    def _sessions(self) -> Iterator[Row]:
        loops = self._loops()
        if not self.spec.config_name.startswith("dialogues_across_"):
            for loop in loops:
                yield self._session(f"subset_{loop.subset_id}", loop.path(0))
            return
        for first, second in combinations(loops, 2):
            shared = {*first.images} & {*second.images}
            if len(shared) == 1:
                (image,) = shared
                before = first.path((first.images.index(image) + 1) % len(first.images))
                after = second.path(second.images.index(image))
                yield self._session(f"subsets_{first.subset_id}_{second.subset_id}", [*before, *after])

    def _loops(self) -> list[_Loop]:
        """The subsets that have a closed loop, in the file's order; it begins where the publisher's does."""
        subsets: dict[int, list[Row]] = {}
        begins: dict[int, str] = {}
        for record in read_records(self.rows_file):
            named = record.named(f"pairid {record.integer('pairid')}")
            row, img_set = self._row(named), named.object("img_set")
            subsets.setdefault(row["subset_id"], []).append(row)
            if img_set.integer("reference_rank") == 0:
                begins[row["subset_id"]] = row["reference_image_id"]
        loops = []
        for subset_id, rows in subsets.items():
            pairs: dict[str, dict[str, Row]] = {}
            for row in rows:
                pairs.setdefault(row["reference_image_id"], {}).setdefault(row["target_image_id"], row)
            first = begins[subset_id] if subset_id in begins else rows[0]["reference_image_id"]
            images = closed_loop(pairs, dict.fromkeys([first, *rows[0]["subset_image_ids"]]))
            if images is not None:
                onward = {image: pairs[image][after] for image, after in pairwise([*images, images[0]])}
                loops.append(_Loop(subset_id, images, onward))
        return loops

    def _session(self, session_id: str, rows: Sequence[Row]) -> Row:
        asked = [(row["reference_image_id"], row["relative_caption"]) for row in rows]
        session = session_row(session_id, self.spec.config_name, [rows[-1]["target_image_id"]], asked)
        for turn, row in zip(session["turns"], rows, strict=True):
            turn |= dict(zip(_OF_TURNS, (row["target_image_id"], row["query_id"]), strict=True))
        return session

    def _row(self, record: Record) -> Row:
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
