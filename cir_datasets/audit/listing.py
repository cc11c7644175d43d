"""What there is, a row each: what `cir datasets list` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cir_datasets import registry
from cir_datasets.common.terminal import fitted
from cir_datasets.errors import OverlayError
from cir_datasets.registry import broken
from cir_datasets.registry.overlays import overlay_ids
from cir_datasets.registry.suites import suite, suite_ids
from cir_metrics.errors import UnknownNameError

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

LIST_COLUMNS = ("id", "queries", "gallery", "turns", "reference", "main_metric", "license", "status")


def listed() -> list[dict[str, Any]]:
    """One row a benchmark, a registered overlay and a suite, with `LIST_COLUMNS` and `benchmarks` as keys.

    Counts that are not published are None, and so is a suite's gallery: each member has its own. `benchmarks`
    are a suite's members, and None otherwise. An overlay whose file cannot be used is listed as broken.
    """
    rows = [_row(registry.spec(benchmark_id)) for benchmark_id in registry.benchmark_ids()]
    rows += [_broken_row(name, "folder that cannot be used, see `cir datasets show`") for name in broken()]
    rows += [_overlay_row(found) for found in overlay_ids()]
    return rows + [_suite_row(found) for found in suite_ids()]


def list_text(rows: Sequence[dict[str, Any]]) -> str:
    """The rows of `listed` as two aligned tables with a head line: the suites have one of their own."""
    cells = [[column.upper().replace("_", " ") for column in LIST_COLUMNS]]
    cells += [
        [_cell(row[column]).replace("_", " " if column == "status" else "_") for column in LIST_COLUMNS]
        for row in rows
        if row["benchmarks"] is None
    ]
    suites = [["SUITE", "QUERIES", "TURNS", "MAIN METRIC", "MEMBERS"]]
    suites += [
        [row["id"], _cell(row["queries"]), row["turns"], row["main_metric"], _members(row)]
        for row in rows
        if row["benchmarks"] is not None
    ]
    return f"{fitted(cells)}\n\n{fitted(suites)}"


def _members(row: dict[str, Any]) -> str:
    """How many members a suite has, and as many of their names as a line has room for."""
    configs = [member.partition("/")[2] for member in row["benchmarks"]]
    shown = ", ".join(configs[:_SHOWN_MEMBERS])
    more = ", ..." if len(configs) > _SHOWN_MEMBERS else ""
    return f"{len(configs)}: {shown}{more}"


_SHOWN_MEMBERS = 6


def _row(spec: BenchmarkSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "queries": spec.config.queries,
        "gallery": spec.config.gallery,
        "turns": spec.turns,
        "reference": spec.config.reference,
        "main_metric": spec.main_metric,
        "license": spec.card.license.annotations,
        "status": spec.card.status,
        "benchmarks": None,
    }


def _overlay_row(overlay_id: str) -> dict[str, Any]:
    try:
        return _row(registry.spec(overlay_id)) | {"status": "overlay"}
    except (OverlayError, UnknownNameError):
        return _broken_row(overlay_id, "broken overlay, see `cir datasets show`")


def _broken_row(name_or_id: str, status: str) -> dict[str, Any]:
    blank: dict[str, Any] = dict.fromkeys((*LIST_COLUMNS, "benchmarks"))
    return blank | {"id": name_or_id, "status": status}


def _suite_row(suite_id: str) -> dict[str, Any]:
    found = suite(suite_id)
    specs = [registry.spec(member) for member in found.benchmarks]
    lengths = [int(part) for spec in specs for part in spec.turns.split("-") if part]
    shortest, longest = min(lengths, default="-"), max(lengths, default="-")
    return {
        "id": found.id,
        "queries": registry.queries_of(suite_id),
        "gallery": None,
        "turns": str(longest) if shortest == longest else f"{shortest}-{longest}",
        "reference": _common(spec.config.reference for spec in specs),
        "main_metric": found.main_metric,
        "license": _common(spec.card.license.annotations for spec in specs),
        "status": "suite",
        "benchmarks": list(found.benchmarks),
    }


def _common(values: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(values))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)
