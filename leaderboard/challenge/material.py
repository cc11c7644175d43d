"""What a challenge is made of: a benchmark whose truth is here, or rows of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cir_datasets
from cir_datasets.builders.reading import Record
from cir_datasets.builders.user_folder import listed_image
from cir_datasets.common.row_files import NOT_UTF8, Tallied, read_row_file, text_lines
from cir_datasets.errors import FIX, RecordError
from cir_datasets.images.locate import image_card
from cir_datasets.registry.folder_card import usual_metrics
from cir_datasets.rows.written import place_of, typed
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row


_NAMES = {"caption": "relative_caption"}


@dataclass(frozen=True)
class Material:
    """What a challenge is made of.

    Args:
        rows: queries or sessions with their truth.
        images: id and relative path (or None) of each image of the gallery.
        reference: whether the protocol keeps the reference in the ranking or removes it.
        subset: size of the queries' subsets, or None.
        metrics: what is scored.
        main: the metric that ranks.
        images_words: how a participant gets the pictures.
        image_folder: their folder below `CIR_IMAGES`, or None.
        image_paths: where one lies below that, or None for the usual places.
    """

    rows: list[Row]
    images: list[tuple[str, str | None]]
    reference: str
    subset: int | None
    metrics: tuple[str, ...]
    main: str
    images_words: str = "The organisers say where the pictures are had. Scoring needs none."
    image_folder: str | None = None
    image_paths: tuple[str, ...] | None = None

    @property
    def per_query(self) -> bool:
        """Whether each query ranks a list of its own."""
        return bool(self.rows) and bool(self.rows[0].get("gallery_image_ids"))

    @property
    def multi_turn(self) -> bool:
        """Whether a row is a session."""
        return bool(self.rows) and "session_id" in self.rows[0]

    @property
    def id_field(self) -> str:
        """The field of a row's id."""
        return "session_id" if self.multi_turn else "query_id"


def from_benchmark(benchmark_id: str, main: str | None, answers: Path | None = None) -> Material:
    """The material of a benchmark, or of an overlay of one.

    Args:
        benchmark_id: its id.
        main: the metric that ranks; None takes the benchmark's.
        answers: the ground truth that its publisher withholds, as `_answered` reads it.

    Raises:
        CallError: its ground truth or its gallery is not here, or the ground truth is here twice.
        RecordError: the answers are malformed, or not those of its queries.
    """
    benchmark = cir_datasets.load(benchmark_id)
    spec, withheld = benchmark.spec, benchmark.ground_truth_withheld
    if benchmark.gallery is None or (withheld and answers is None):
        raise CallError(
            f"{benchmark_id}: its ground truth or its gallery is not here. Fix: name one that has both, or "
            "where you have what its publisher withholds, give it with --answers FILE."
        )
    if answers is not None and not withheld:
        raise CallError(f"{benchmark_id}: its ground truth is public. Fix: leave --answers out.")
    owner = image_card(spec)
    paths = {row["image_id"]: row["relative_path"] for row in cir_datasets.image_manifest(benchmark_id)}
    # Where the pictures of a folder lie is a place on its maker's disk.
    local = owner.in_folder
    return Material(
        rows=benchmark.rows() if answers is None else _answered(benchmark, answers),
        images=[(image, paths.get(image)) for image in benchmark.gallery],
        reference=spec.config.reference,
        subset=spec.config.subset,
        metrics=spec.metrics,
        main=main or spec.main_metric,
        image_paths=owner.image_paths,
        images_words=Material.images_words if local else owner.images,
        image_folder=None if local else owner.image_folder,
    )


def _answered(benchmark: Benchmark, answers: Path) -> list[Row]:
    """The rows of a benchmark whose ground truth is withheld, with that ground truth.

    Args:
        benchmark: what is public of it.
        answers: JSON lines: a line a query (`query_id`, `target_image_id`, and where there are such
            `positive_image_ids`, `negative_image_ids`), or a session (`session_id`, `ground_truth_ids`).

    Raises:
        RecordError: a line is malformed, or the lines do not answer each query once.
    """
    field, known = "session_id" if benchmark.multi_turn else "query_id", set(benchmark.query_ids)
    found: dict[str, Row] = {}
    with private_data_home():
        for number, fields in _read(answers):
            record = Record(
                answers, number, {name: each for name, each in fields.items() if each is not None}
            )
            query = record.id(field)
            if query in found or query not in known:
                why = "is there twice" if query in found else f"is not of {benchmark.id}"
                raise RecordError(f"{answers}: line {record.number}: {query!r} {why}. {FIX}")
            if benchmark.multi_turn:
                found[query] = {"ground_truth_ids": record.ids("ground_truth_ids")}
            else:
                target = record.id("target_image_id")
                found[query] = {
                    "target_image_id": target,
                    "positive_image_ids": _ids(record, "positive_image_ids") or [target],
                    "negative_image_ids": _ids(record, "negative_image_ids"),
                }
    missing = [query for query in benchmark.query_ids if query not in found]
    if missing:
        raise RecordError(
            f"{answers}: {len(missing):,} of {len(benchmark):,} queries of {benchmark.id} have no line, "
            f"{missing[0]!r} first. Fix: answer each of them."
        )
    return [{**row, **found[row[field]]} for row in benchmark.rows()]


@contextmanager
def private_data_home() -> Iterator[None]:
    """Let errors of records say what an organiser can do, whose data has no other publisher."""
    try:
        yield
    except RecordError as error:
        raise RecordError(str(error).replace(FIX, "Fix: correct that record.")) from error


def from_files(queries: Path, gallery: Path, main: str | None, reference: str) -> Material:
    """The material of rows of one's own.

    Args:
        queries: rows as in a folder of one's own (`docs/your_benchmark.md`), each query or turn with one
            caption; a caption may be called `caption`, too.
        gallery: an image id a line, and where it is wanted a tab and the path of its picture.
        main: the metric that ranks; None takes the usual one.
        reference: `kept` or `removed`.

    Raises:
        RecordError: a line is not such a row.
    """
    images = []
    for number, text in text_lines(gallery):
        image, fault = ({}, NOT_UTF8) if text is None else listed_image(text)
        if fault is not None:
            raise RecordError(f"{gallery}: line {number}: {fault}")
        images.append((image["image_id"], image["relative_path"]))
    rows: list[Row] = []
    first = Tallied()
    for number, fields in _read(queries):
        named = _named(fields)
        first.first = first.first or named
        row, faults = typed(named, first.multi_turn, first.extra)
        fault = faults[0] if faults else _sealing_fault(row)
        if fault is not None:
            raise RecordError(f"{place_of(queries, number, named)}: {fault}")
        rows.append(row)
    sizes = {len(row.get("subset_image_ids", ())) for row in rows} - {0}
    subset = sizes.pop() if len(sizes) == 1 else None
    several_right = any(len(row.get("positive_image_ids", ())) > 1 for row in rows)
    metrics, usual = usual_metrics(first.multi_turn, subset, several_right)
    return Material(rows, images, reference, subset, metrics, main or usual)


def _sealing_fault(row: Row) -> str | None:
    """Why a row that a folder may hold is not one of a challenge, or None."""
    if any(each["relative_caption"] is None for each in row.get("turns", (row,))):
        return "it has several captions. Fix: write one, as relative_caption."
    if "turns" not in row and row["target_image_id"] is None:
        return "target_image_id is missing. Fix: add it."
    return None


def _read(path: Path) -> Iterator[tuple[int, Row]]:
    for number, fields in read_row_file(path):
        if isinstance(fields, str):
            raise RecordError(f"{place_of(path, number, fields)}: {fields}")
        yield number, fields


def _named(fields: Row) -> Row:
    """Fields of a row or a turn, with `relative_caption` where they say `caption`."""
    found = {_NAMES.get(name, name): value for name, value in fields.items() if value is not None}
    if isinstance(found.get("turns"), list):
        found["turns"] = [_named(turn) if isinstance(turn, dict) else turn for turn in found["turns"]]
    return found


def _ids(record: Record, name: str) -> list[str]:
    return list(record.ids(name, may_be_empty=True)) if name in record.fields else []
