"""Tables in every format: alignment, escaping, what a spreadsheet would execute, and LaTeX that compiles."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from programs import run_program
from says import says

from cir_datasets.common.tables import render
from cir_datasets.common.terminal import FORMATS, Cell, Table
from cir_metrics.errors import CallError, UnknownNameError

HOSTILE = "=a_b|c & 100% {x} #1 $y ~ ^ \\ <b> [z] *w* --metric `q`\n\x1b[31m"
TABLE = Table(
    title="Scores of _x_ & y",
    columns=("method", "recall_subset@5", "n"),
    rows=(
        (Cell(HOSTILE), Cell("49.83", 0.49831234567890123, "ab", bold=True), Cell("1,000", 1000.0)),
        (Cell("[B]"), Cell("-"), Cell("-5", -5.0)),
        (Cell("*C"), Cell("7.10", 0.071, "a"), Cell("0", 0)),
    ),
    notes=("a: beats 50 % of | the others",),
)
PLAIN = Table("Other", ("name", "value"), ((Cell("x"), Cell("1.00", 0.01)),))


def test_the_terminal_keeps_digits_in_line_and_marks_behind_them() -> None:
    small = Table(
        "T",
        ("m", "score"),
        ((Cell("a"), Cell("9.83", 0.0983, "ab", bold=True)), (Cell("bb"), Cell("10.00", 0.1))),
    )
    assert render([small], "table") == "T\nm       score\na    9.83*^ab\nbb  10.00"


def test_control_characters_of_a_foreign_name_do_not_reach_the_terminal() -> None:
    for each in FORMATS:
        shown = render([TABLE], each)
        assert "\x1b" not in shown
    assert len(render([TABLE], "table").splitlines()) == 1 + 1 + 3 + 1


def test_csv_of_one_table_has_its_columns_and_full_precision() -> None:
    rows = list(csv.reader(io.StringIO(render([TABLE], "csv"))))
    assert rows[0] == ["method", "recall_subset@5", "n"]
    assert float(rows[1][1]) == 0.49831234567890123
    assert [row[1:] for row in rows[2:]] == [["", "-5"], ["0.071", "0"]]


def test_csv_of_several_tables_is_long_with_one_header() -> None:
    rows = list(csv.DictReader(io.StringIO(render([TABLE, PLAIN], "csv"))))
    assert len(rows) == 3 * 2 + 1 + 1
    assert {row["table"] for row in rows} == {"Scores of _x_ & y", "Other"}
    assert rows[0] | {"name": ""} == {
        "table": "Scores of _x_ & y",
        "row": "1",
        "name": "",
        "column": "recall_subset@5",
        "value": "0.4983123456789012",
        "text": "49.83",
        "mark": "*ab",
    }
    assert [row["text"] for row in rows if row["column"] == "note"] == ["a: beats 50 % of | the others"]


def test_pandas_reads_the_long_form_with_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(render([TABLE, PLAIN], "csv")))
    assert frame["value"].dtype == "float64"
    assert frame.loc[frame["table"] == "Other", "value"].tolist() == [0.01]


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "=", "-1-1"])
def test_what_a_spreadsheet_would_execute_is_text(text: str) -> None:
    table = Table(text, (text, text), ((Cell(text), Cell(text)),), (text,))
    for shown in (render([table], "csv"), render([table, PLAIN], "csv")):
        for row in csv.reader(io.StringIO(shown)):
            assert not any(cell[:1] in tuple("=+@") or cell.startswith(("-c", "-1")) for cell in row), row


def test_numbers_and_missing_values_are_not_formulas() -> None:
    table = Table("T", ("name", "value"), ((Cell("-"), Cell("-3.5", -3.5)), (Cell("-7"), Cell("-"))))
    assert render([table], "csv") == "name,value\n-,-3.5\n-7,"


def test_markdown_keeps_every_cell_in_its_column() -> None:
    lines = render([TABLE], "markdown").splitlines()
    assert lines[0] == r"### Scores of \_x\_ & y"
    assert lines[2:4] == ["| method | recall_subset@5 | n |", "| --- | ---: | ---: |"]
    for line in lines[2:7]:
        assert len(re.findall(r"(?<!\\)\|", line)) == 4
    assert r"**49.83**<sup>ab</sup>" in lines[4]
    assert r"\<b>" in lines[4]
    assert lines[-1] == r"a: beats 50 % of \| the others"


def test_latex_escapes_special_characters_and_sets_the_best_in_bold() -> None:
    shown = render([TABLE], "latex")
    assert r"\begin{tabular}{lrr}" in shown
    assert r"\textbf{49.83}$^{ab}$ & 1,000 \\" in shown
    assert r"{[}B{]} & -- & $-$5 \\" in shown
    assert r"\textbackslash{} \textless{}b\textgreater{} {[}z{]} {*}w{*} -{}-metric" in shown


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_latex_compiles_in_a_small_article_and_a_wide_table_fits_its_line(tmp_path: Path) -> None:
    wide = Table("Wide", tuple("abcdefghijkl"), (tuple(Cell("a long cell") for _ in range(12)),))
    (tmp_path / "a.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\begin{document}\n"
        + render([TABLE, PLAIN, wide], "latex")
        + "\n\\end{document}\n",
        encoding="utf-8",
    )
    done = run_program(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"], cwd=tmp_path)
    assert (tmp_path / "a.pdf").stat().st_size > 0
    assert "Overfull" not in done.stdout


def test_json_holds_texts_and_values() -> None:
    (shown,) = json.loads(render([PLAIN], "json"))
    assert shown["rows"][0][1] == {"text": "1.00", "value": 0.01, "superscript": "", "bold": False}


def test_an_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        render([PLAIN], "latx")
    says(caught, "no format 'latx'", "Did you mean 'latex'?", "table, json, csv, latex, markdown")


def test_a_row_that_does_not_fit_the_head_is_refused() -> None:
    with pytest.raises(CallError) as caught:
        Table("T", ("a", "b"), ((Cell("x"),),))
    says(caught, "table 'T'", "row 1 has 1 cells, the head has 2", "Fix: give every row a cell a column")
