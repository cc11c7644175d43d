"""What a challenge is made of: a benchmark whose truth is here, or rows of one's own in JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cir_datasets
from cir_datasets.builders.reading import Record
from cir_datasets.errors import FIX, RecordError
from cir_datasets.images.locate import image_card
from cir_datasets.rows.records import query_row
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row


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
    return Material(
        rows=benchmark.rows() if answers is None else _answered(benchmark, answers),
        images=[(image, paths.get(image)) for image in benchmark.gallery],
        reference=spec.config.reference,
        subset=spec.config.subset,
        metrics=spec.metrics,
        main=main or spec.main_metric,
        images_words=owner.images,
        image_folder=owner.image_folder,
        image_paths=owner.image_paths,
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
    with own_data():
        for record in _records(answers):
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
def own_data() -> Iterator[None]:
    """Let errors of records say what an organiser can do, whose data has no other publisher."""
    try:
        yield
    except RecordError as error:
        raise RecordError(str(error).replace(FIX, "Fix: correct that record.")) from error


def from_files(queries: Path, gallery: Path, main: str | None, reference: str) -> Material:
    """The material of rows of one's own.

    Args:
        queries: JSON lines, a query (`query_id`, `reference_image_id`, `caption`, `target_image_id`, and
            where there are such `positive_image_ids`, `negative_image_ids`, `subset_image_ids`) or a session
            (`session_id`, `turns` of `reference_image_id` and `caption`, `ground_truth_ids`) a line.
        gallery: an image id a line.
        main: the metric that ranks; None takes the usual one.
        reference: `kept` or `removed`.

    Raises:
        RecordError: a line is not such a row.
    """
    images = [line for line in _lines(gallery) if line]
    rows: list[Row] = []
    for record in _records(queries):
        with own_data():
            rows.append(_session(record) if "session_id" in record.fields else _query(record))
    sizes = {len(row.get("subset_image_ids", ())) for row in rows} - {0}
    subset = sizes.pop() if len(sizes) == 1 else None
    if rows and "session_id" in rows[0]:
        metrics, usual = ["hits@10", "final_recall@10", "hits_auc@10"], "hits_auc@10"
    else:
        metrics, usual = ["recall@1", "recall@5", "recall@10", "recall@50"], "recall@10"
        if any(len(row["positive_image_ids"]) > 1 for row in rows):
            metrics, usual = [*metrics, "map@5", "map@10"], "map@5"
        if subset is not None:
            metrics += ["recall_subset@1", "recall_subset@2", "recall_subset@3"]
    whole = [(image, None) for image in images]
    return Material(rows, list(whole), reference, subset, tuple(metrics), main or usual)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{path}: cannot be read: {error}. Fix: check the path.") from error


def _records(path: Path) -> Iterator[Record]:
    """The lines of a file of JSON lines."""
    for number, line in enumerate(_lines(path), start=1):
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise RecordError(f"{path}: line {number} is not JSON: {error}. Fix: write it so.") from error
        yield Record(path, number, fields if isinstance(fields, dict) else {})


def _ids(record: Record, name: str) -> list[str]:
    return list(record.ids(name, may_be_empty=True)) if name in record.fields else []


def _query(record: Record) -> Row:
    caption, target = record.text("caption"), record.id("target_image_id")
    return query_row(
        record.id("query_id"),
        reference_image_id=record.id("reference_image_id"),
        captions=[caption],
        relative_caption=caption,
        target_image_id=target,
        positive_image_ids=_ids(record, "positive_image_ids") or [target],
        negative_image_ids=_ids(record, "negative_image_ids"),
        subset_image_ids=_ids(record, "subset_image_ids"),
    )


def _session(record: Record) -> Row:
    found = []
    for number, turn in enumerate(record.items("turns"), start=1):
        fields = turn if isinstance(turn, dict) else {}
        one = Record(record.path, record.number, fields, f"turn {number}")
        reference = one.id("reference_image_id") if "reference_image_id" in one.fields else None
        found.append(
            {"turn": number, "reference_image_id": reference, "relative_caption": one.text("caption")}
        )
    return {
        "session_id": record.id("session_id"),
        "subset": "",
        "ground_truth_ids": record.ids("ground_truth_ids"),
        "num_turns": len(found),
        "turns": found,
    }
