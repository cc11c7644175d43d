"""Tables in forms for files: CSV, Markdown, LaTeX and JSON; CSV and JSON give numbers in full precision."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cir_datasets.common.terminal import Cell, Table, check_format, printable, tables_text

_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?")
_LONG = ("table", "row", "name", "column", "value", "text", "mark")
_LINE = 60
"""Characters that surely fit on a line of an article."""
_FITTED = (r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{", "}")
"""Around a table that may be wider than a line; needs the package graphicx."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{each: "\\" + each for each in "&%$#_{}"},
    # Behind `\\` both would be read as arguments of the line's end.
    **{each: f"{{{each}}}" for each in "[]*"},
}
# A text with apostrophes of its own before a formula gets one more: `unguarded` takes one off.
_FORMULA = re.compile(r"'*\s*[=+\-@＝＋－＠]|'*[\t\r\n]")


def render(tables: Sequence[Table], format: str) -> str:
    """Tables as text, without a line feed at the end.

    Args:
        tables: one or several; they follow each other.
        format: one of `FORMATS`. CSV has one header whatever the number of tables: one table gives its own
            columns (numbers in full precision, notes left out), several give the long form `table, row, name,
            column, value, text, mark`, a line a cell and a line a note (its `column` is `note`). LaTeX needs
            the package booktabs, and graphicx for a table that is shrunk to the width of a line.

    Raises:
        UnknownNameError: there is no such format.

    Example:
        >>> row = (Cell("CLIP_sum"), Cell("49.83", 0.4983, "a"))
        >>> scores = Table("Scores", ("method", "recall@5"), (row,))
        >>> print(render([scores], "csv"))
        method,recall@5
        CLIP_sum,0.4983
    """
    check_format(format)
    writers: dict[str, Callable[[Sequence[Table]], str]] = {
        "table": tables_text,
        "json": lambda tables: json.dumps([_document(t) for t in tables], ensure_ascii=False, indent=2),
        "csv": _csv,
        "latex": lambda tables: "\n\n".join(map(_latex, tables)),
        "markdown": lambda tables: "\n\n".join(map(_markdown, tables)),
    }
    return writers[format](tables)


def render_or_json(
    format: str, tables: Callable[[], Iterable[Table]], values: Callable[[], Mapping[str, Any]]
) -> str:
    """A report in any of `FORMATS`: its tables as text, or for `json` its values; only what is shown is made.

    Args:
        format: one of `FORMATS`.
        tables: makes the tables.
        values: makes the JSON values.

    Raises:
        UnknownNameError: there is no such format.

    Example:
        >>> print(render_or_json("json", list, lambda: {"recall@5": 0.5}))
        {
          "recall@5": 0.5
        }
    """
    check_format(format)
    if format == "json":
        return json.dumps(values(), ensure_ascii=False, indent=2)
    return render(list(tables()), format)


TOTAL = "total"
"""What the row of all is called."""


def pooled(names: Sequence[str], sources: Sequence[str]) -> list[tuple[str, list[int]]]:
    """The rows of a table over several benchmarks: a row each, a row a source, and a row of all.

    A source of one benchmark has that one's row, and the only source has the row of all.

    Args:
        names: of the benchmarks.
        sources: of each the dataset that it belongs to, or what else is pooled.

    Returns:
        What each row is called, and the places of what it puts together.

    Example:
        >>> pooled(["cirr/val", "fisd/addition", "fisd/negation"], ["cirr", "fisd", "fisd"])[2:]
        [('fisd/negation', [2]), ('fisd', [1, 2]), ('total', [0, 1, 2])]
    """
    by_source: dict[str, list[int]] = {}
    for place, source in enumerate(sources):
        by_source.setdefault(source, []).append(place)
    found = [(name, [place]) for place, name in enumerate(names)]
    if len(by_source) > 1:
        found += [(source, places) for source, places in by_source.items() if len(places) > 1]
    return found + ([(TOTAL, [*range(len(names))])] if len(names) > 1 else [])


def _document(table: Table) -> dict[str, object]:
    return {
        "title": table.title,
        "columns": list(table.columns),
        "rows": [[_cell_document(cell) for cell in row] for row in table.rows],
        "notes": list(table.notes),
    }


def _cell_document(cell: Cell) -> dict[str, object]:
    shown = asdict(cell)
    return shown if cell.underline else {name: shown[name] for name in shown if name != "underline"}


def _csv(tables: Sequence[Table]) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    if len(tables) == 1:
        (table,) = tables
        numeric = table.numeric()
        writer.writerow(map(_spreadsheet, table.columns))
        for row in table.rows:
            writer.writerow(
                _value(cell) if place in numeric else _spreadsheet(cell.text)
                for place, cell in enumerate(row)
            )
        return written.getvalue().rstrip("\n")
    writer.writerow(_LONG)
    for table in tables:
        for number, row in enumerate(table.rows, start=1):
            for head, cell in zip(table.columns[1:], row[1:], strict=True):
                mark = ("*" if cell.bold else "") + ("_" if cell.underline else "") + cell.superscript
                texts = (table.title, number, row[0].text, head, _value(cell), cell.text, mark)
                writer.writerow(each if isinstance(each, int) else _spreadsheet(each) for each in texts)
        for note in table.notes:
            writer.writerow((_spreadsheet(table.title), "", "", "note", "", _spreadsheet(note), ""))
    return written.getvalue().rstrip("\n")


def _value(cell: Cell) -> str:
    """A number as short as it can be without losing anything; empty where there is none."""
    if cell.value is None:
        return ""
    value = float(cell.value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _spreadsheet(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe stands before what begins like one."""
    text = printable(text)
    return text if text == "-" or _NUMBER.fullmatch(text) else guarded(text)


def _markdown(table: Table) -> str:
    head = list(map(_escape_markdown, table.columns))
    rows = [list(map(_markdown_cell, row)) for row in table.rows]
    for above in sorted(table.rules, reverse=True):
        rows.insert(above, [""] * len(head))
    lines = [f"### {_escape_markdown(table.title)}", "", *markdown_rows(head, rows, right=table.numeric())]
    for note in table.notes:
        lines += ["", _escape_markdown(note)]
    return "\n".join(lines)


def markdown_rows(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Container[int]) -> list[str]:
    """The lines of a table in Markdown.

    Args:
        head: heads of the columns.
        rows: cells, escaped already.
        right: places of the columns that are set to the right.

    Example:
        >>> markdown_rows(["id", "queries"], [["a/b", "7"]], right=[1])
        ['| id | queries |', '| --- | ---: |', '| a/b | 7 |']
    """
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def _markdown_cell(cell: Cell) -> str:
    text = _escape_markdown(cell.text)
    text = f"**{text}**" if cell.bold and text else text
    text = f"<u>{text}</u>" if cell.underline and text else text
    return f"{text}<sup>{_escape_markdown(cell.superscript)}</sup>" if cell.superscript else text


def _escape_markdown(text: str) -> str:
    """Pipes, HTML and emphasis as plain characters; an underscore within a word is plain already."""
    text = re.sub(r"([\\|<`*\[\]~])", r"\\\1", printable(text))
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)


def _latex(table: Table) -> str:
    right = table.numeric()
    columns = "".join("r" if place in right else "l" for place in range(len(table.columns)))
    before, after = _FITTED if _characters(table) > _LINE else ("", "")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape_latex(table.title)}}}",
        rf"{before}\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        *_latex_heads(table),
        r"\midrule",
        *_latex_rows(table),
        r"\bottomrule",
        rf"\end{{tabular}}{after}",
    ]
    if table.notes:
        lines += [r"\par\smallskip\footnotesize\raggedright", "\n\n".join(map(_escape_latex, table.notes))]
    return "\n".join([*lines, r"\end{table}"])


def _characters(table: Table) -> int:
    """The width of a table's rows in characters, with two between columns."""
    spans = sum(len(head) + 1 for head, width in table.spans for _ in range(width) if head)
    heads = sum(len(head) + 2 for head in table.columns) - spans
    widths = [sum(len(cell.text) + 2 for cell in row) for row in table.rows]
    return max([heads, *widths])


def _latex_heads(table: Table) -> list[str]:
    """The heads; where there are spans, these above and the rest of each head below its span."""
    if not table.spans:
        return [" & ".join(map(_escape_latex, table.columns)) + r" \\"]
    above, rules, below = [], [], []
    place = 0
    for head, width in table.spans:
        heads = table.columns[place : place + width]
        if head:
            above.append(rf"\multicolumn{{{width}}}{{c}}{{{_escape_latex(head)}}}")
            rules.append(rf"\cmidrule(lr){{{place + 1}-{place + width}}}")
        else:
            above += [""] * width
        below += [_escape_latex(each.removeprefix(head).strip()) for each in heads]
        place += width
    return [" & ".join(above) + r" \\", "".join(rules), " & ".join(below) + r" \\"]


def _latex_rows(table: Table) -> list[str]:
    lines = []
    for number, row in enumerate(table.rows):
        if number in table.rules:
            lines.append(r"\midrule")
        lines.append(" & ".join(map(_latex_cell, row)) + r" \\")
    return lines


def _latex_cell(cell: Cell) -> str:
    if cell.text == "-":
        text = "--"
    elif cell.text.startswith("-") and _NUMBER.fullmatch(cell.text):
        text = f"$-${_escape_latex(cell.text[1:])}"
    else:
        text = _escape_latex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.bold else text
    text = rf"\underline{{{text}}}" if cell.underline else text
    return f"{text}$^{{{_escape_latex(cell.superscript)}}}$" if cell.superscript else text


def _escape_latex(text: str) -> str:
    escaped = "".join(_LATEX.get(each, each) for each in printable(text))
    return escaped.replace("--", "-{}-").replace("--", "-{}-")


def count(value: int | None) -> str:
    """A count with thousands apart, `-` where it is not known.

    Example:
        >>> count(22608), count(None)
        ('22,608', '-')
    """
    return "-" if value is None else f"{value:,}"


def guarded(text: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would take for a formula.

    Example:
        >>> guarded("=1+1"), guarded("a star"), guarded("'=1")
        ("'=1+1", 'a star', "''=1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given.

    Example:
        >>> unguarded("'=1+1"), unguarded("'t was a star")
        ('=1+1', "'t was a star")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
