"""Tables as papers print them: layouts, joining of files, marks, published rows, and what is refused."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from benchmark_world import reports
from programs import run_program
from says import says
from typer.testing import CliRunner

from cir_datasets.errors import CardError
from cir_datasets.registry import spec
from cir_datasets.registry.suites import suite
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CallError, SettingError, UnknownNameError
from leaderboard.cli import build
from submissions import ComparisonError, RefusedError, paper_table, score
from submissions.papers.table import standing_out
from submissions.scoring.score_report import ScoreReport

CATEGORIES = ("dress", "shirt", "toptee")


def fashioniq() -> dict[str, Any]:
    return {f"fashioniq/{name}_val": worlds.fashioniq(name) for name in CATEGORIES}


def runs(method: str, hits: int, benchmarks: dict[str, Any]) -> list[dict[str, Any]]:
    """A rank file a category; the first `hits` queries have their target first, the others nowhere."""
    made = worlds.fashioniq_bundle(list(benchmarks.values()))["runs"]
    for run, benchmark in zip(made, benchmarks.values(), strict=True):
        run["method"] = {"name": method}
        rows = zip(benchmark.query_ids, benchmark.column("target_image_id"), strict=True)
        for number, (query, target) in enumerate(rows):
            others = [image for image in benchmark.gallery if image != target][:50]
            run["rankings"][query] = ([target, *others] if number < hits else others)[: len(others)]
    return list(made)


def scores(method: str, hits: int, benchmarks: dict[str, Any], ending: str = "json") -> list[ScoreReport]:
    return [
        score(json.dumps(run).encode(), benchmarks, name=f"{method}-{name}.{ending}")
        for name, run in zip(CATEGORIES, runs(method, hits, benchmarks), strict=True)
    ]


@pytest.fixture(scope="module")
def world() -> dict[str, Any]:
    return fashioniq()


@pytest.fixture(scope="module")
def two(world: dict[str, Any]) -> list[ScoreReport]:
    return [*scores("Ours", 3, world), *scores("Theirs", 1, world)]


def cells(made: Any, place: int = 0) -> dict[str, dict[str, str]]:
    table = made.tables()[place]
    heads = table.columns
    return {row[0].text: {h: c.text for h, c in zip(heads, row, strict=True)} for row in table.rows}


def test_files_of_one_method_are_joined_and_have_the_papers_averages(two: list[ScoreReport]) -> None:
    made = paper_table(two, "fashioniq")
    assert [method.method for method in made.methods] == ["Ours", "Theirs"]
    assert made.benchmark == "fashioniq/val"
    heads = made.tables()[0].columns
    assert heads[1:7] == tuple(f"{c} R@{k}" for c in ("Dress", "Shirt", "Toptee") for k in (10, 50))
    assert heads[7:] == ("Avg R@10", "Avg R@50", "(R@10 + R@50)/2")
    assert {**cells(made)["Ours"], "Method": ""} == {"Method": "", **dict.fromkeys(heads[1:], "75.00")}


def test_circos_table_has_the_four_cutoffs_of_zerosights_table_10() -> None:
    benchmark = worlds.circo()
    first = worlds.circo_document(benchmark)
    last = {name: images[::-1] for name, images in first["rankings"].items()}
    documents = [first, {**first, "method": {"name": "Reversed"}, "rankings": last}]
    found = [score(json.dumps(each).encode(), benchmark) for each in documents]
    made = paper_table(found, "circo")
    assert made.tables()[0].columns == ("Method", "mAP@k k=5", "mAP@k k=10", "mAP@k k=25", "mAP@k k=50")
    assert list(cells(made)["toy"].values())[1:] == ["100.00"] * 4
    # Positives at places 48 to 50: (1/48 + 2/49 + 3/50) / 3.
    assert list(cells(made)["Reversed"].values())[1:] == ["0.00", "0.00", "0.00", "4.05"]


def of_circled(method: str, missed: str) -> ScoreReport:
    """A bundle's score: every session is answered at its first turn, those of one subset never."""
    benchmarks, made = {}, []
    for member in suite("circled").benchmarks:
        rows = [worlds.session("s0", 2, "im7"), worlds.session("s1", 3, "im8")]
        known = [f"im{number}" for number in range(30)]
        benchmarks[member] = Benchmark.from_rows(spec(member), rows, known)
        run = worlds.circled_document(benchmarks[member]) | {"method": {"name": method}}
        if member == missed:
            run["rankings"] = {row["session_id"]: [known[10:20]] * row["num_turns"] for row in rows}
        made.append(run)
    document = {"format": "cir-rank-bundle", "suite": "circled", "runs": made}
    return score(json.dumps(document).encode(), benchmarks)


def test_circleds_tables_are_a_member_by_turn_then_final_recall_and_auc_by_subset() -> None:
    made = paper_table([of_circled("All", ""), of_circled("But one", "circled/cirr_val")], "circled")
    tables = made.tables()
    assert len(tables) == 11
    turns = ("Hits@10 Turn 1", "Hits@10 Turn 2", "Hits@10 Turn 3", "Final Recall@10", "AUC")
    assert [table.columns for table in tables[:9]] == [("Method", *turns)] * 9
    titles = [table.title.partition(" (")[0] for table in tables[9:]]
    assert titles == ["CIRCLED, Final Recall@10", "CIRCLED, AUC over Hits@10"]
    codes = ("fdt", "fdv", "fst", "fsv", "ftt", "ftv", "crt", "crv", "cov", "Mean")
    for place in (9, 10):
        assert tables[place].columns == ("Method", *codes)
        assert list(cells(made, place)["All"].values())[1:] == ["100.00"] * 10
        missed = {"Method": "But one", "crv": "0.00", "Mean": "88.89"}
        assert cells(made, place)["But one"] == {**dict.fromkeys(codes, "100.00"), **missed}
    assert list(cells(made, 7)["But one"].values())[1:] == ["0.00"] * 5


def test_fisds_table_has_the_aspects_of_its_table_1_and_their_average() -> None:
    benchmarks, made = {}, []
    for number, member in enumerate(suite("fisd").benchmarks):
        known = [f"p{place}" for place in range(12)]
        benchmarks[member] = Benchmark.from_rows(spec(member), [worlds.query("q0", "p0", "p1")], known)
        ranked = [*known[1:], "p0"] if number % 2 else known[::-1]
        run = worlds.circo_document(benchmarks[member]) | {"rankings": {"q0": ranked}}
        made.append(run)
    document = {"format": "cir-rank-bundle", "suite": "fisd", "runs": made}
    table = paper_table([score(json.dumps(document).encode(), benchmarks)], "fisd")
    aspects = ("Cardinality", "Addition", "Negation", "Change", "Background", "Complex Inst.", "Average")
    assert table.tables()[0].columns == ("Method", *(f"{aspect} Recall@1" for aspect in aspects))
    values = list(cells(table)["toy"].values())[1:]
    assert values == ["0.00", "100.00", "0.00", "100.00", "0.00", "100.00", "50.00"]


def test_a_bundle_has_the_row_of_its_three_files(world: dict[str, Any], two: list[ScoreReport]) -> None:
    document = {"format": "cir-rank-bundle", "suite": "fashioniq/val", "runs": runs("Ours", 3, world)}
    bundle = score(json.dumps(document).encode(), world, name="bundle.json")
    assert cells(paper_table([bundle], "fashioniq")) == cells(paper_table(two[:3], "fashioniq"))


def test_best_and_second_stand_out_and_what_is_printed_alike_shares_the_mark() -> None:
    assert standing_out("recall@1", ["1.00", "3.00", "3.00", "2.00", None]) == ({1, 2}, {3})
    assert standing_out("mean_rank", ["1.50", "3.00"]) == ({0}, {1})
    assert standing_out("recall@1", ["2.00", "2.00"]) == (set(), set())


def test_published_rows_stand_below_with_their_source_and_take_no_part(two: list[ScoreReport]) -> None:
    made = paper_table(two, "fashioniq", published=["TIRG", "cirr-2-7"])
    (table,) = made.tables()
    assert made.further == ()
    assert [row[-1].text for row in table.rows] == [
        "computed here",
        "computed here",
        "as reported: Liu et al., ICCV 2021, Table 4, row 3",
        "as reported: Liu et al., ICCV 2021, Table 4, row 7",
    ]
    assert [row[1].text for row in table.rows[2:]] == ["8.10", "14.87"]
    assert not any(cell.bold or cell.underline for row in table.rows[2:] for cell in row)
    assert table.rules == (2,)


@pytest.mark.parametrize(
    ("kind", "name", "others"),
    [
        ("fashioniq", "TIRG", ["cirr-2-7"]),
        ("fashioniq", "cirr:TIRG", ["cirr-2-7"]),
        ("cirr", "SPRC", ["qure-1-6"]),
        ("cirr", "SPRC (retrained)", []),
        ("zerosight", "LinCIR (ViT-L/14)", ["zerosight-4-15"]),
        ("circo", "CIReVL", [f"zerosight-{place}" for place in ("4-9", "4-17", "5-4", "5-13", "5-18")]),
    ],
)
def test_a_row_asked_for_by_name_is_one_and_its_others_are_named(
    kind: str, name: str, others: list[str]
) -> None:
    made = paper_table([], kind, published=[name])
    (table,) = made.tables()
    assert len(table.rows) == 1
    assert table.rows[0][0].text.startswith(name.rpartition(":")[2])
    assert [row for sentence in made.further for row in re.findall(r"\((\w+-\d+-\d+)\)", sentence)] == others
    both = paper_table([], kind, published=[name, *others])
    assert (len(both.tables()[0].rows), both.further) == (1 + len(others), ())


@pytest.mark.parametrize("format", ["latex", "markdown", "table", "csv"])
def test_a_table_without_its_source_column_names_sources_below(format: str, two: list[ScoreReport]) -> None:
    made = paper_table(two, "fashioniq", published=["TIRG", "CIRPLANT (init. OSCAR)"], source=False)
    (table,) = made.tables()
    assert table.columns[-1] == "(R@10 + R@50)/2"
    assert [row[0].text for row in table.rows] == ["Ours", "Theirs", "TIRG", "CIRPLANT (init. OSCAR)"]
    below = [note.partition(" as reported in Liu et al., ICCV 2021, Table 4 ") for note in table.notes]
    assert [name for name, stated, _ in below if stated] == ["TIRG", "CIRPLANT (init. OSCAR)"]
    assert "Source" not in made.text(format)


def test_published_rows_of_the_test_split_say_so() -> None:
    made = paper_table([reports.scored("cirr_like")], "cirr", published=["CIRPLANT (init. OSCAR)"])
    last = made.tables()[0].rows[-1]
    assert last[-1].text == "as reported on cirr/test1: Liu et al., ICCV 2021, Table 3, row 15"
    assert " ".join(cell.text for cell in last[1:-1]) == "19.55 52.55 68.39 92.38 39.20 63.03 79.49 45.88"


def test_the_released_pnr_map_never_stands_in_the_column_of_the_equation() -> None:
    columns = paper_table([], "zerosight", published=["LinCIR"]).tables()[0].columns
    assert "PNR-mAP@k (released code) k=5" in columns
    assert "PNR-mAP@k k=5" not in columns


def test_rows_of_ones_own_file(tmp_path: Path, two: list[ScoreReport]) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "cite: Me\ntitle: Mine\nurl: null\ntables:\n  - table: T1\n    protocol: as theirs\n"
        "    columns: {fashioniq/val: [recall@10]}\n    rows: [{method: M, values: '12.30'}]\n"
    )
    assert cells(paper_table(two, "fashioniq", published=[str(own)]))["M"]["Avg R@10"] == "12.30"
    own.write_text(own.read_text().replace("'12.30'", "'12.30 7'"))
    with pytest.raises(CardError) as caught:
        paper_table(two, "fashioniq", published=[str(own)])
    says(caught, "own.yaml", "M: 2 numbers for 1 columns")


def test_significance_covers_the_whole_table_and_raises_letters(world: dict[str, Any]) -> None:
    made = paper_table(
        [*scores("Ours", 4, world), *scores("Theirs", 0, world)], "fashioniq", significance=True
    )
    (table,) = made.tables()
    assert [row[0].superscript for row in table.rows] == ["a", "b"]
    # Four queries a category: only a mean over the twelve can be told apart by exact tests, of 9 in all.
    assert [cell.superscript for cell in table.rows[0][1:]] == [""] * 6 + ["b"] * 3
    assert any("Holm's correction over 9 tests" in note for note in table.notes)


def test_sessions_have_a_column_a_turn() -> None:
    made = paper_table([reports.scored("shapes_multiturn_val")], "shapes")
    heads = made.tables()[0].columns
    assert heads[1:] == (*(f"Hits@10 Turn {n}" for n in range(1, 7)), "Final Recall@10", "AUC")


def test_csv_has_fractions_and_json_their_sources(two: list[ScoreReport]) -> None:
    made = paper_table(two, "fashioniq", published=["TIRG"])
    rows = list(csv.DictReader(io.StringIO(made.text("csv"))))
    assert [rows[0]["Dress R@10"], rows[2]["Dress R@10"]] == ["0.75", "0.081"]
    found = json.loads(made.text("json"))
    assert found["reported"][0]["source"] == "Liu et al., ICCV 2021, Table 4, row 3"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here")
def test_latex_compiles_with_heads_above_heads(tmp_path: Path, two: list[ScoreReport]) -> None:
    shown = paper_table(two, "fashioniq", published=["all"]).text("latex")
    assert r"\multicolumn{2}{c}{Dress}" in shown
    assert r"\cmidrule(lr){2-3}" in shown
    assert shown.count(r"\midrule") == 2
    (tmp_path / "a.tex").write_text(
        "\\documentclass{article}\n\\usepackage[landscape,margin=5mm]{geometry}\n\\usepackage{booktabs,graphicx}\n"
        "\\begin{document}\n" + shown + "\n\\end{document}\n",
        encoding="utf-8",
    )
    run_program(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"], cwd=tmp_path)


def both(two: list[ScoreReport], world: dict[str, Any]) -> list[ScoreReport]:
    return two


def misspelt(two: list[ScoreReport], world: dict[str, Any]) -> list[ScoreReport]:
    return [*(dataclasses.replace(each, method="Our") for each in two[:2]), *two[2:]]


def of_two_protocols(two: list[ScoreReport], world: dict[str, Any]) -> list[ScoreReport]:
    return [reports.scored("shapes_val"), reports.scored("shapes_multiturn_val")]


def on_other_data(two: list[ScoreReport], world: dict[str, Any]) -> list[ScoreReport]:
    larger = {**world, "fashioniq/dress_val": worlds.fashioniq("dress", queries=5)}
    return [*two[:3], *scores("Theirs", 1, larger)]


REFUSED: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (lambda two, _: two[:2], {}, CallError, "method 'Ours' ... Ours-shirt.json ... fashioniq/toptee_val"),
    (misspelt, {}, CallError, "mean 'Ours'? ... with --name Ours-dress.json='Ours' --name"),
    (
        lambda two, world: [*two, *scores("Ours", 0, world, "other.json")],
        {},
        CallError,
        "Ours-dress.json and Ours-dress.other.json ... 'Ours' ... --name",
    ),
    (lambda two, _: [*two, two[0]], {}, CallError, "Ours-dress.json ... twice ... Fix: name the file once"),
    (both, {"kind": "cirr"}, CallError, "Ours-dress.json: it answers fashioniq/dress_val ... use --for"),
    (both, {"kind": "fashionqi"}, UnknownNameError, "no table for 'fashionqi' ... Did you mean 'fashioniq'?"),
    (lambda *_: [b'{"format":'], {}, RefusedError, "malformed ... Fix: "),
    (of_two_protocols, {"kind": "shapes"}, ComparisonError, "shapes/val and shapes/multiturn_val ... Fix:"),
    (both, {"kind": None, "benchmark": "genecis/focus_object"}, CallError, "no table ... Fix: cir"),
    (lambda *_: [], {}, CallError, "needs a list of rank files ... Fix: name the files"),
    (both, {"published": ["TRIG"]}, UnknownNameError, "'TRIG' ... 'TIRG'? ... --for fashioniq --published"),
    (both, {"published": ["LamRA-Ret"]}, UnknownNameError, "are of mmeb/cirr, mmeb/fashioniq ... Fix: leave"),
    (lambda two, _: two[:3], {"significance": True}, CallError, "two methods or more ... Fix: "),
    (both, {"alpha": 1.0}, SettingError, "alpha=1.0 ... Fix: use 0.05"),
    (both, {"names": {"x.json": "X"}}, CallError, "x.json, which is not among the files ... Fix: "),
    (on_other_data, {}, ComparisonError, "data (fashioniq/dress_val) ... Fix: score both on the same data"),
]


def test_files_are_joined_only_to_a_method_that_lacks_them(two: list[ScoreReport]) -> None:
    with pytest.raises(
        CallError, match=r"Fix: hand in a file for fashioniq/toptee_val whose method is named so\.$"
    ):
        paper_table([*two[:2], *two[3:]], "fashioniq")


@pytest.mark.parametrize(("files", "options", "error", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_what_cannot_be_a_table_is_refused_with_place_and_fix(
    files: Any,
    options: dict[str, Any],
    error: type[Exception],
    text: str,
    two: list[ScoreReport],
    world: dict[str, Any],
) -> None:
    with pytest.raises(error) as caught:
        paper_table(files(two, world), **{"kind": "fashioniq", "benchmark": world, **options})
    says(caught, text)


def test_the_command_prints_published_rows_without_any_file() -> None:
    done = CliRunner().invoke(
        build(), ["table", "--for", "fisd", "--published", "all", "--format", "markdown"]
    )
    assert done.exit_code == 0, done.output
    assert "| SPN4CIR | 58.50 | 69.50 | 13.00 | 77.00 | 56.00 | 61.00 | 55.83 |" in done.output
