"""A board's table in other forms: CSV and Parquet with the same columns and values, LaTeX, and BibTeX.

They hold the entries. Published results, which never stand among entries, are a CSV file of their own.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cir_datasets.common.tables import guarded, render
from cir_datasets.common.terminal import Cell, Table
from cir_datasets.common.yaml import package_yaml
from leaderboard.boards import Board
from leaderboard.intake import method_kinds
from leaderboard.pages.labels import metric_value
from leaderboard.pages.published_rows import rows_for
from leaderboard.standings import UNVERIFIED, block_mark
from leaderboard.standings.views import compared_rows, method_name
from submissions.comparison.keys import shared_text

_ENDS = {"interval_low": 0, "interval_high": 1}


def _columns() -> Any:
    """The columns that every board has."""
    return package_yaml("leaderboard", "web/table_columns.yaml")


def columns(metrics: Sequence[str]) -> dict[str, str]:
    """Names and types of a table's columns: the entry, its method, the metrics, where it comes from.

    Args:
        metrics: names of the metrics.

    Example:
        >>> list(columns(["recall@10"]))[:6]
        ['rank', 'group', 'name', 'block', 'baseline', 'is_oracle']
    """
    # Lists become one text.
    method = {name: "string" if kind == "array" else kind for name, kind in method_kinds().items()}
    name = method.pop("name")
    table = _columns()
    first = list(table["first"].items())
    return {
        **dict([*first[:2], ("name", name), *first[2:], *((m, "number") for m in metrics), *method.items()]),
        **table["reference"],
        **table["last"],
    }


def as_csv(view: Mapping[str, Any]) -> bytes:
    """A board's table as CSV (RFC 4180, UTF-8); an apostrophe stands before text that looks like a formula.

    Args:
        view: from `table_view`.
    """
    names = columns(_metrics(view))
    return _csv([list(names), *([_value(row, name) for name in names] for row in view["rows"])])


def as_published_csv(board: Board) -> bytes:
    """The published rows of a board as CSV (RFC 4180, UTF-8), in the order of its page; numbers as printed.

    Args:
        board: the board.
    """
    metrics = list(board.labels)
    lines: list[list[Any]] = [[*_columns()["published"], *metrics]]
    for line in rows_for(board):
        row = line.row
        derived = ", ".join(metric for metric, each in line.numbers.items() if each.is_derived)
        values: list[Any] = [row.method, row.backbone, row.year, row.paper.cite, row.table.name, row.row]
        values += [row.paper.url, line.benchmark, bool(line.other_split), row.table.protocol]
        values += [" ".join(line.remarks), derived]
        values += [line.numbers[metric].text if metric in line.numbers else None for metric in metrics]
        lines.append(values)
    return _csv(lines)


def as_parquet(view: Mapping[str, Any]) -> bytes:
    """A board's table as Parquet; the file's metadata holds the board without its rows as `board`.

    Args:
        view: from `table_view`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    names = columns(_metrics(view))
    rows = [{name: _value(row, name) for name in names} for row in view["rows"]]
    board = {key: value for key, value in view.items() if key != "rows"}
    fields = [(name, types[kind]) for name, kind in names.items()]
    schema = pa.schema(fields, metadata={"board": json.dumps(board)})
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), written)
    return written.getvalue()


_LATEX_NEEDS = r"% \usepackage{booktabs,graphicx}; names beyond Latin need XeLaTeX or LuaLaTeX, and a font."


def as_latex(board: Board, view: Mapping[str, Any]) -> bytes:
    """A board's table as LaTeX with the columns of its page; it needs the packages booktabs and graphicx.

    Args:
        board: the board.
        view: from `table_view`.
    """
    heads = ("Method", "Group", board.primary_label, *(column.label for column in board.columns))
    rows, rules, group = [], [], None
    for above, row in enumerate(view["rows"]):
        if above and row["block"] != view["rows"][above - 1]["block"]:
            rules.append(above)
            group = None
        if row["group"] is not None:
            if group not in (None, row["group"]):
                rules.append(above)
            group = row["group"]
        values = [Cell(metric_value(board, board.primary, row["main"]), row["main"])]
        for column in board.columns:
            value = row["metrics"].get(column.metric)
            values.append(Cell("-" if value is None else metric_value(board, column.metric, value), value))
        place = Cell("-" if row["group"] is None else str(row["group"]), row["group"])
        rows.append((Cell(_marked(row)), place, *values))
    signatures = [row["signature"] for row in compared_rows(view["rows"]) or view["rows"][:1]]
    notes = [f"Signature: {shared_text(signatures)}"] if signatures else []
    # A note for each block, from the top; the first says nothing.
    notes += filter(None, view["blocks"].values())
    notes += [UNVERIFIED] if any(row["reference_evidence"]["unverified"] for row in view["rows"]) else []
    table = Table(board.title, heads, tuple(rows), tuple(notes), rules=tuple(rules))
    return f"{_LATEX_NEEDS}\n{render([table], 'latex')}\n".encode()


def as_bibtex(board: Board, view: Mapping[str, Any], site: str, server: str) -> bytes:
    """The entries of a board as BibTeX, one each.

    Args:
        board: the board.
        view: from `table_view`.
        site: what the server calls itself.
        server: its address, or empty where it is not known.
    """
    from leaderboard.pages.citation import citation

    entries = [citation(board, row, site, server)["bibtex"] for row in view["rows"]]
    return "".join(f"{entry}\n\n" for entry in entries).encode()


def _marked(row: Mapping[str, Any]) -> str:
    """A method's name, and that it is an oracle or a baseline where the name does not say it; its marks."""
    name = method_name(row)
    kind = "oracle" if row["is_oracle"] else "baseline" if row["baseline"] else ""
    is_said = not kind or re.search(rf"\b{kind}\b", name, re.IGNORECASE)
    marks = [
        "" if is_said else kind,
        block_mark(row["block"], row["reference_evidence"]["used"]),
        "reference unverified" if row["reference_evidence"]["unverified"] else "",
    ]
    return " ".join([name, *(f"({mark})" for mark in marks if mark)])


def _metrics(view: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for row in view["rows"] for name in row["metrics"]))


def _value(row: Mapping[str, Any], name: str) -> Any:
    if name in _ENDS:
        return None if row["interval"] is None else row["interval"][_ENDS[name]]
    table = _columns()
    if name in table["first"] or name in table["last"]:
        return row[name]
    if name in table["reference"]:
        return row["reference_evidence"][name.removeprefix("reference_")]
    if name in row["metrics"]:
        return row["metrics"][name]
    found = row["method"].get(name)
    return ", ".join(map(str, found)) if isinstance(found, list) else found


def _csv(lines: Iterable[Sequence[Any]]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerows([*map(_cell, line)] for line in lines)
    return written.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return guarded(value)
    return repr(value)
