"""The ground truth of sealed boards: read by the process that judges a file, and kept in its memory alone.

It is a file of JSON lines: a head with a random salt, then a line a query, or session. What goes wrong with
it is said without a word of what it holds, because words end in logs. The hash of the whole file, salt
included, stands in signatures: it changes with the truth, and nobody can try guesses against it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaderboard.boards import rounded
from leaderboard.errors import GroundTruthError

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row

FORMAT, FORMAT_VERSION = "cir-ground-truth", 1
LEAST_QUERIES = 30
"""Numbers of fewer queries or sessions say too much of each of them, and are not given out."""
_MAX_BYTES = 2**26
_SALT_DIGITS = 32
_FIX = "Fix: `cir challenge check` says what is wrong with it."


def as_bytes(benchmark_id: str, rows: Iterable[Row]) -> bytes:
    """The file of a ground truth.

    Args:
        benchmark_id: what it answers.
        rows: queries or sessions with their truth.
    """
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "benchmark": benchmark_id}
    lines = [{**head, "salt": secrets.token_hex(32)}, *map(_truth, rows)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def _truth(row: Row) -> dict[str, Any]:
    if "session_id" in row:
        return {"id": row["session_id"], "positives": row["ground_truth_ids"]}
    return {
        "id": row["query_id"],
        "target": row["target_image_id"],
        "positives": row["positive_image_ids"],
        "negatives": row["negative_image_ids"],
    }


def read(address: str) -> bytes:
    """The bytes of a ground truth; nothing is written anywhere.

    Args:
        address: an absolute path, or what fsspec reads: `s3://...`, `hf://...`.

    Raises:
        GroundTruthError: it cannot be read now, or is too large.
    """
    try:
        if address.startswith("/"):
            with Path(address).open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
        else:
            import fsspec

            with fsspec.open(address, "rb", **_plain(address)) as file:
                content = file.read(_MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        # Not `from error`: the libraries' words hold addresses and names of keys.
        raise GroundTruthError(
            f"the ground truth cannot be read ({type(error).__name__}). "
            "Fix: check where its board says that it lies, and who may read it."
        ) from None
    if len(content) > _MAX_BYTES:
        raise GroundTruthError(f"the ground truth has more than {_MAX_BYTES:,} bytes. {_FIX}")
    return content


def _plain(address: str) -> dict[str, Any]:
    """What keeps a file system from remembering anything beyond this reading."""
    without = {"use_listings_cache": False, "skip_instance_cache": True}
    return {**without, "default_fill_cache": False} if address.startswith("s3://") else without


def laid_over(benchmark: Benchmark, content: bytes, *, explain: bool = False) -> Benchmark:
    """A benchmark whose publisher withholds its ground truth, with that ground truth.

    Args:
        benchmark: what is public.
        content: from `read`.
        explain: whether an error names line and id and says what is wrong there: for the organiser's terminal
            alone.

    Raises:
        GroundTruthError: the file is malformed, or does not fit the benchmark.
    """
    import pyarrow as pa

    from cir_datasets.errors import FIX, RecordError
    from cir_datasets.prepared import row_schema
    from cir_datasets.rows.checks import checked_rows

    try:
        truth, lines = _parsed(benchmark, content)
        spec = _with_public_truth(benchmark.spec)
        rows = [_filled(row, truth) for row in benchmark.rows()]
        order = [lines[query] for query in benchmark.query_ids]
        checked = list(
            checked_rows(spec, rows, benchmark.gallery, lambda number: f"line {order[number - 1]}")
        )
        table = pa.Table.from_pylist(checked, schema=row_schema(benchmark.spec))
    except (_UnfitError, RecordError, pa.ArrowException) as error:
        what = error.args[0] if isinstance(error, _UnfitError) else "does not fit the benchmark"
        if not explain:
            raise GroundTruthError(f"the ground truth {what}. {_FIX}") from None
        detail = error.args[1] if isinstance(error, _UnfitError) else str(error).replace(FIX, "").strip()
        raise GroundTruthError(
            f"the ground truth {what}: {detail.rstrip('.')}. Fix: correct that, in the same form."
        ) from error
    return replace(benchmark, spec=spec, table=table, data_hash=hashlib.sha256(content).hexdigest())


class _UnfitError(ValueError):
    """A file is not the ground truth of a benchmark: what may be said to all, and to its organiser."""


def _parsed(benchmark: Benchmark, content: bytes) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """The lines by id, and their numbers in the file."""
    head, *lines = _lines(content) or [{}]
    named = tuple(head.get(name) for name in ("format", "format_version", "benchmark"))
    salt = head.get("salt")
    if named != (FORMAT, FORMAT_VERSION, benchmark.id) or not isinstance(salt, str):
        raise _UnfitError(
            f"is not one of {benchmark.id}, or has no salt",
            f"line 1 must be the head that `cir challenge new` wrote, of {benchmark.id}",
        )
    if len(salt) < _SALT_DIGITS:
        raise _UnfitError("has no salt", f"the salt in line 1 has fewer than {_SALT_DIGITS} digits")
    found: dict[str, dict[str, Any]] = {}
    numbers: dict[str, int] = {}
    once = f"does not answer each query of {benchmark.id} once"
    for number, line in enumerate(lines, start=2):
        query = line.get("id")
        wrong = next((name for name in _FIELDS if not _FIELDS[name](line.get(name))), None)
        if not isinstance(query, str) or wrong is not None:
            raise _UnfitError(
                "is malformed", f"line {number}: the field {wrong or 'id'!r} is missing or of another kind"
            )
        if query in found:
            raise _UnfitError(once, f"line {number} answers {query!r} again, after line {numbers[query]}")
        found[query], numbers[query] = line, number
    for words, ids in (
        ("no line answers", set(benchmark.query_ids) - found.keys()),
        ("the benchmark has no query", found.keys() - set(benchmark.query_ids)),
    ):
        if ids:
            where = f" (line {numbers[min(ids)]})" if min(ids) in numbers else ""
            more = f" and {len(ids) - 1:,} more" if len(ids) > 1 else ""
            raise _UnfitError(once, f"{words} {min(ids)!r}{where}{more}")
    if len(found) < LEAST_QUERIES:
        raise _UnfitError(f"has fewer than {LEAST_QUERIES} queries", f"it has {len(found)}")
    return found, numbers


def _lines(content: bytes) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _UnfitError("is malformed", f"line {number} is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise _UnfitError("is malformed", f"line {number} is not an object")
        found.append(fields)
    return found


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "target": lambda value: value is None or isinstance(value, str),
    "positives": _is_ids,
    "negatives": lambda value: value is None or _is_ids(value),
}
"""Whether the value of a field may be one; of a session there are positives alone."""


def _with_public_truth(spec: BenchmarkSpec) -> BenchmarkSpec:
    config = spec.base.config.model_copy(update={"ground_truth": "public"})
    card = spec.card.model_copy(update={"configs": {**spec.card.configs, spec.config_name: config}})
    return replace(spec, card=card)


def _filled(row: Row, truth: Mapping[str, dict[str, Any]]) -> Row:
    if "session_id" in row:
        return {**row, "ground_truth_ids": truth[row["session_id"]]["positives"]}
    found = truth[row["query_id"]]
    return {
        **row,
        "target_image_id": found.get("target"),
        "positive_image_ids": found["positives"],
        "negative_image_ids": found.get("negatives") or [],
    }


def aggregates(report: Mapping[str, Any], benchmark: Benchmark) -> dict[str, Any]:
    """A score report as it leaves the process: rounded, and without what few queries make up.

    Args:
        report: as JSON values.
        benchmark: with its ground truth.
    """
    from submissions.scoring.score_report import is_rank, main_value

    lengths = benchmark.column("num_turns") if benchmark.multi_turn else []

    def counted(name: str) -> bool:
        turn = name.partition("@turn")[2]
        return not turn or sum(length >= int(turn) for length in lengths) >= LEAST_QUERIES

    metrics = {
        name: rounded(value, "rank" if is_rank(name) else "percent")
        for name, value in report["metrics"].items()
        if counted(name)
    }
    # Of the rounded numbers: a mean of finer ones would say more than they do.
    main = main_value(report["main_metric"], metrics)
    if main is not None:
        main = rounded(main, "rank" if is_rank(report["main_metric"]) else "percent")
    signatures = {name: report["signatures"][name] for name in metrics}
    return {**report, "main": main, "metrics": metrics, "extra": {}, "signatures": signatures}
