"""Parquet: the native form as a table, one row a query, image ids encoded by a dictionary.

The columns are those of a query's line in JSON Lines (`lines.py`): `query_id`, `ranking` or, for sessions,
`rankings`, and `subset_ranking`. The header is JSON under the key `cir-rank-file` of the schema's metadata.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from cir_datasets.common.parquet import (
    ParquetError,
    ParquetLimits,
    bytes_of_copies,
    parquet_schema,
    read_parquet,
)
from cir_datasets.rows import list_lengths, numbers
from submissions.errors import SubmissionError
from submissions.formats import native
from submissions.formats.lines import QUERY, RANKING, SUBSET, TURNS, header_of, is_by_turn
from submissions.formats.native import ReaderContext, parse_json
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import Budget
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, shown
from submissions.rank_file.model import PARQUET, RANK_FILE, SECTIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from submissions.formats.native import UncheckedFile
    from submissions.rank_file.model import RankFile

NAME = PARQUET
KEY = b"cir-rank-file"
"""Key of the schema's metadata that holds the header."""

_NAMES = (QUERY, RANKING, TURNS, SUBSET)
_SHAPES = {QUERY: "string", RANKING: "list<string>", TURNS: "list<list<string>>", SUBSET: "list<string>"}
_PADDING = 1_000
"""Rows that are there again at most: each is compared."""
_DEPTHS = {QUERY: 0, RANKING: 1, TURNS: 2, SUBSET: 1}
_MAX_DICTIONARY = 2**30
"""Bytes."""
_BYTES_A_VALUE = 4
"""The shortest image id in JSON, with its quotes and comma: Parquet may name as many as JSON could."""


def parse(content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read a rank file in Parquet.

    Args:
        content: the file's bytes.
        context: findings, benchmarks, and what was asked for.

    Returns:
        What could be read, or None where the file is damaged, or not a rank file.
    """
    findings = context.findings
    table = read_table(content, findings, context.budget, _is_schema)
    if table is None:
        return None
    header = _header(table.schema, findings)
    sections = rankings_of(table, findings, context.budget)
    if header is None or sections is None:
        return None
    return native.parse({**header, "format": RANK_FILE, **sections}, context)


def dump(rank_file: RankFile) -> bytes:
    """The rank file in Parquet, compressed with zstd.

    Args:
        rank_file: what to write.

    Raises:
        SubmissionError: an id is not a string.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rankings, subsets = rank_file.rankings, rank_file.subset_rankings or {}
    queries = [*rankings, *(query for query in subsets if query not in rankings)]
    of_rankings = TURNS if is_by_turn(rankings) else RANKING
    # Query ids occur once each: a dictionary would only repeat them.
    one = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    types = {QUERY: pa.string(), RANKING: one, SUBSET: one, TURNS: pa.list_(one)}
    sections = {of_rankings: rankings} if rankings or not subsets else {}
    sections |= {SUBSET: subsets} if subsets else {}
    header = orjson.dumps(header_of(rank_file))
    schema = pa.schema([(name, types[name]) for name in (QUERY, *sections)], metadata={KEY: header})
    try:
        columns = [pa.array(queries, types[QUERY])]
        for name, answers in sections.items():
            if not isinstance(answers, Columns):
                answers = Columns.of_lists(answers, by_turn=name == TURNS)
            columns.append(answers.to_arrow(queries))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SubmissionError(
            f"the rank file cannot be written as Parquet: {error}. Fix: use strings as ids."
        ) from error
    written = io.BytesIO()
    table = pa.Table.from_arrays(columns, schema=schema)
    # One dictionary for all ids, however many there are: they are what a reader wants distinct.
    pq.write_table(
        table,
        written,
        compression="zstd",
        row_group_size=max(1, len(table)),
        dictionary_pagesize_limit=_MAX_DICTIONARY,
    )
    return written.getvalue()


def rankings_of(table: pa.Table, findings: Findings, budget: Budget) -> dict[str, Any] | None:
    """`rankings` and `subset_rankings` as the native form has them, or None with findings.

    Args:
        table: columns `query_id`, `ranking` or `rankings`, and maybe `subset_ranking`.
        findings: collects `repeated-key` and `bad-type`.
        budget: what reading the file may cost.

    Raises:
        OverBudgetError: there are more rows, or more turns, than are read.
    """
    import numpy as np
    import pyarrow as pa

    budget.spend("lists", len(table))
    if TURNS in table.column_names:
        budget.spend("lists", int(list_lengths(table.column(TURNS)).sum()))
    queries = _query_ids(table.column(QUERY))
    counted = _answered_rows(queries, table, findings)
    if counted is None:
        return None
    if len(counted) < len(queries):
        queries, table = [queries[row] for row in counted], table.take(counted)
    answers = {name: table.column(name) for name in table.column_names if name != QUERY}
    # Not `to_numpy`, which imports pandas: 30 MiB.
    answered = {
        name: np.array(column.is_valid().to_pylist(), dtype=np.bool_) for name, column in answers.items()
    }
    of_subset = answered.get(SUBSET, np.zeros(len(queries), dtype=np.bool_))
    found: dict[str, Any] = {"rankings": dict.fromkeys(itertools.compress(queries, ~of_subset))}
    for name, column in answers.items():
        # A row without ranking is there for its subset; without either it is a mistake, said later.
        rows = of_subset if name == SUBSET else answered[name] | ~of_subset
        names = list(itertools.compress(queries, rows))
        column = column if rows.all() else column.filter(pa.array(rows))
        found["subset_rankings" if name == SUBSET else "rankings"] = _answers(names, column, name, budget)
    return found


def _query_ids(column: pa.ChunkedArray) -> list[Any]:
    import pyarrow as pa

    return column.cast(pa.string()).to_pylist() if pa.types.is_integer(column.type) else _values(column, 0)


def _answers(queries: list[str], column: pa.ChunkedArray, name: str, budget: Budget) -> Any:
    """A column's answers by query: as columns, or as lists where one of them is null or has an odd id.

    Raises:
        OverBudgetError: as lists they would take more than is read.
    """
    columns = Columns.of_arrow(queries, column, by_turn=name == TURNS)
    if columns is not None:
        return columns
    # Whatever looks at the lists one by one may copy an id at each place.
    budget.spend("copies", bytes_of_copies(column))
    return dict(zip(queries, _values(column, _DEPTHS[name]), strict=True))


def _answered_rows(queries: list[Any], table: pa.Table, findings: Findings) -> list[int] | None:
    """The rows that count, from 0: one that is there again counts once; None, with findings, on a fault."""
    first: dict[Any, int] = {}
    sound = True
    for row, query in enumerate(queries, start=1):
        if query is None:
            findings.add("bad-type", f'row {row:,}: "{QUERY}" is null; it must be a string.', cause="null")
            sound = False
        elif (before := first.setdefault(query, row)) != row:
            padded = row - len(first) <= _PADDING and table.slice(row - 1, 1) == table.slice(before - 1, 1)
            if padded:
                findings.add("repeated-query", f"row {row:,}: it is row {before:,} again.", query=query)
                continue
            message = f"row {row:,}: query {shown(query)} is answered in row {before:,} already."
            findings.add("repeated-key", message, cause="rows", value=query)
            sound = False
    return [row - 1 for row in first.values()] if sound else None


def _values(column: pa.ChunkedArray, depth: int) -> list[Any]:
    """A column as Python values: strings for depth 0, lists of them for 1, lists of lists for 2."""
    return [value for chunk in column.chunks for value in _unfolded(chunk, depth)]


def _unfolded(chunk: pa.Array, depth: int) -> list[Any]:
    import numpy as np

    if depth == 0:
        # The strings are made once; the places in the dictionary are what is repeated.
        distinct = np.array([*chunk.dictionary.to_pylist(), None], dtype=object)
        named: list[Any] = distinct[numbers(chunk.indices, null=len(distinct) - 1)].tolist()
        return named
    inner = _unfolded(chunk.values, depth - 1)
    ends, there = numbers(chunk.offsets).tolist(), chunk.is_valid().to_pylist()
    return [
        inner[start:end] if valid else None
        for start, end, valid in zip(ends[:-1], ends[1:], there, strict=True)
    ]


def read_table(
    content: bytes,
    findings: Findings,
    budget: Budget,
    sound: Callable[[pa.Schema, Findings], bool],
) -> pa.Table | None:
    """The table of a file that may be hostile; None with a finding.

    Args:
        content: the file's bytes.
        findings: collects what is wrong.
        budget: what reading them may cost.
        sound: whether the columns are right, with a finding where they are not.
    """
    values = min(budget.limit("values"), budget.max_bytes // _BYTES_A_VALUE)
    pages = min(budget.limit("pages"), budget.max_bytes)
    try:
        limits = ParquetLimits(budget.size, values, pages)
        schema = parquet_schema(content)
        if not sound(schema, findings):
            return None
        return read_parquet(content, limits, schema.names).replace_schema_metadata(schema.metadata)
    except ParquetError as error:
        code = "unreadable" if error.kind in _UNREADABLE else "too-large"
        findings.add(code, f"{error}.", depth=50, fix=_FIXES.get(error.kind, _SMALLER))
    return None


_SMALLER = (
    "rank no more images than the board uses, {depth} a list, one row a query, and let the writer choose "
    "dictionaries for the ids"
)
_AGAIN = "write it again from what it was made of, for example  cir convert RUN.json --to parquet"
_UNREADABLE = ("cut", "damaged", "encoding")
_FIXES = {
    "cut": _AGAIN,
    "damaged": _AGAIN,
    "encoding": "let the writer choose dictionaries or PLAIN; with pyarrow write without column_encoding",
    "footer": "write one row group, without statistics",
}
"""By kind of a `ParquetError`."""


def _is_schema(schema: pa.Schema, findings: Findings) -> bool:
    import pyarrow as pa

    names = schema.names
    for name in (QUERY, RANKING):
        if name not in names and not (name == RANKING and (TURNS in names or SUBSET in names)):
            findings.add("wrong-format", f'the Parquet file has no column "{name}".', fix=_COLUMNS)
            return False
    if RANKING in names and TURNS in names:
        message = f'the Parquet file has both "{RANKING}" and "{TURNS}".'
        findings.add("wrong-format", message, fix=_COLUMNS)
        return False
    sound = True
    for number, name in enumerate(names):
        if name not in _NAMES:
            message = f"the Parquet file has a column {shown(name)}, which a rank file has not."
            findings.add("bad-metadata", message, cause="columns", value=name, fix=_COLUMNS)
            sound = False
        elif names.index(name) != number:
            findings.add("repeated-key", f"the column {shown(name)} is there twice.", cause="columns")
            sound = False
        elif not is_text(kind := schema.field(number).type, _DEPTHS[name]) and not (
            name == QUERY and pa.types.is_integer(kind)
        ):
            found = shown(str(schema.field(number).type))[1:-1]
            message = f'the column "{name}" is of type {found}; it must be {_SHAPES[name]}.'
            findings.add("bad-type", message, cause=name, fix=_COLUMNS)
            sound = False
    return sound


_COLUMNS = (
    f'write the columns "{QUERY}" and "{RANKING}" (sessions: "{TURNS}"), '
    f'and "{SUBSET}" where subsets are ranked'
)


def is_text(kind: pa.DataType, depth: int) -> bool:
    """Whether a column holds texts, or lists inside each other of them, in any of Arrow's types for that."""
    import pyarrow as pa

    if depth:
        nested = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        return nested and is_text(kind.value_type, depth - 1)
    own = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(own) or pa.types.is_large_string(own))


def _header(schema: pa.Schema, findings: Findings) -> dict[str, Any] | None:
    raw = (schema.metadata or {}).get(KEY)
    if raw is None:
        message = (
            f'the Parquet schema has no metadata "{KEY.decode()}", so that the file does not say what it '
            "answers."
        )
        findings.add("wrong-format", message, fix=_HEADER)
        return None
    found = Findings(findings.file)
    header = parse_json(raw, found)
    for finding in found.listed()[:MAX_EXAMPLES]:
        findings.add(finding.code, f"the header: {finding.message}", cause="header", fix=_HEADER)
    if header is None or found.errors:
        return None
    if not isinstance(header, dict) or header.get("format") != RANK_FILE:
        kind = shown(header.get("format")) if isinstance(header, dict) else json_type(header)
        message = f'the header says {kind}; it must be an object with "format": "{RANK_FILE}".'
        findings.add("wrong-format", message, cause="header", fix=_HEADER)
        return None
    misplaced = next((key for key in SECTIONS if key in header), None)
    if misplaced is not None:
        message = f'the header holds "{misplaced}"; rankings are the table\'s rows.'
        findings.add("bad-type", message, cause="header", fix=_HEADER)
        return None
    return header


_HEADER = (
    f'put the JSON object {{{{"format": "{RANK_FILE}", "format_version": 1, "benchmark": ...}}}} under '
    f'the key "{KEY.decode()}" of the schema\'s metadata'
)
