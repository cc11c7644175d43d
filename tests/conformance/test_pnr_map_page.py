"""Every number of docs/pnr_map.md is worked out again from the page's own figures and from the package."""

from __future__ import annotations

import doctest
import re
from fractions import Fraction
from pathlib import Path

import pytest
from metrics_twins import average_precision, pnr_average_precision
from typer.testing import CliRunner

import cir_datasets
import submissions
from cir_datasets.common.yaml import parse_yaml
from cir_metrics.catalogue import Signature
from leaderboard.cli import build

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pnr_map.md"
TEXT = PAGE.read_text(encoding="utf-8")
VARIANTS = ("equation", "released_code")
DATA = Path(cir_datasets.__file__).parent / "published_results"
NAMES = (("map@", ""), ("pnr_map@", ":released_code"))
SHOWN = ("mAP@25", "mAP@50", "PNR-mAP@25", "PNR-mAP@50")


def tables() -> list[list[dict[str, str]]]:
    """The page's tables, a dict a row; a heading that comes twice has its place behind it."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", TEXT, flags=re.MULTILINE):
        head, _, *body = [
            [cell.strip() for cell in line.strip()[1:-1].split("|")] for line in block.splitlines()
        ]
        names = [f"{name} {place}" if head.count(name) > 1 else name for place, name in enumerate(head)]
        found.append([dict(zip(names, row, strict=True)) for row in body])
    return found


def value(expression: str) -> Fraction:
    """The exact value of such as `(1 + 4/9) / 2 = 0.7222`; what stands right of `=` must round to it."""
    left, *right = expression.split("=")
    assert re.fullmatch(r"[\d\s+/()]+", left), expression
    exact = Fraction(eval(re.sub(r"(\d+)", r"Fraction(\1)", left), {"Fraction": Fraction}))
    for shown in right:
        digits = shown.strip()
        if "/" in digits or digits.isdigit():
            assert Fraction(digits) == exact, expression
        else:
            assert round(float(exact), 4) == float(digits), expression
    return exact


def twin(string: str, variant: str) -> Fraction:
    ids = [f"{letter}{place}" for place, letter in enumerate(string)]
    positives, negatives = ([each for each in ids if each[0] == letter] for letter in "PN")
    return pnr_average_precision(ids, positives, negatives, 50, variant)


def test_the_examples_of_the_pnr_map_page_run() -> None:
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert (outcome.attempted >= 8, outcome.failed) == (True, 0)


def test_steps_are_the_definitions_and_add_up_to_the_values() -> None:
    steps = [row for table in tables() for row in table if "rank j" in row]
    summed = {
        row["string"]: row for table in tables() for row in table if "string" in row and "rank j" not in row
    }
    assert {row["string"] for row in steps} == set(summed) == {"P", "NP", "NNNP", "PNP", "NPNP", "NPPN"}
    for string in summed:
        own = [row for row in steps if row["string"] == string]
        assert [int(row["rank j"]) for row in own] == [j for j, x in enumerate(string, start=1) if x == "P"]
        totals = dict.fromkeys(VARIANTS, Fraction(0))
        for row in own:
            j = int(row["rank j"])
            before = [x for x in range(1, j) if string[x - 1] == "N"]
            assert row["N_x"] == (", ".join(map(str, before)) or "none")
            precision = Fraction(string[:j].count("P"), j)
            assert value(row["precision"]) == precision
            expected = {"equation": Fraction(1), "released_code": Fraction(int(j > 1))}
            if before:
                expected["equation"] = sum(Fraction(x, j) for x in before) / len(before)
                expected["released_code"] = 1 + sum(Fraction(x - 1, j - 1) for x in before) / len(before)
            cells = list(row.items())[4:]
            for variant, (weight, term) in zip(
                VARIANTS, zip(cells[::2], cells[1::2], strict=True), strict=False
            ):
                assert weight[0] == f"w, {variant}"
                assert value(weight[1]) == expected[variant]
                assert value(term[1]) == expected[variant] * precision
                totals[variant] += value(term[1])
        for variant in VARIANTS:
            if f"`{variant}`" in summed[string]:
                shown = value(summed[string][f"`{variant}`"])
                assert shown == totals[variant] / string.count("P") == twin(string, variant)


def test_map_rises_where_pnr_map_falls() -> None:
    rise = re.search(r"mAP rises from ([\d.]+) to ([\d.]+)", TEXT)
    shown = [float(each) for each in rise.groups()]
    exact = [average_precision(list("NXNY"), ["X", "Y"], 50), average_precision(list("NXYN"), ["X", "Y"], 50)]
    assert shown == [round(float(each), 4) for each in exact]


def published_rows() -> list[dict[str, str]]:
    """ZeroSight's Table 2 as the package has it, in the columns of the page."""
    document = parse_yaml((DATA / "zerosight.yaml").read_text(encoding="utf-8"))
    (found,) = [each for each in document["tables"] if each["table"] == "Table 2"]
    (columns,) = found["columns"].values()
    places = [columns.index(f"{name}{k}{end}") for name, end in NAMES for k in (25, 50)]
    return [
        {
            "method": row["method"],
            "backbone": row["backbone"],
            **dict(zip(SHOWN, (row["values"].split()[place] for place in places), strict=True)),
        }
        for row in found["rows"]
    ]


def test_gaps_of_the_published_rows_shrink_as_the_page_says() -> None:
    (shown,) = [table for table in tables() if "gap@25" in table[0]]
    rows = published_rows()
    for row in shown:
        assert {name: row[name] for name in ("method", "backbone", *SHOWN)} in rows
        for k in (25, 50):
            assert Fraction(row[f"mAP@{k}"]) - Fraction(row[f"PNR-mAP@{k}"]) == Fraction(row[f"gap@{k}"])
    shrinkage, shares = [], []
    for row in rows:
        gaps = [Fraction(row[f"mAP@{k}"]) - Fraction(row[f"PNR-mAP@{k}"]) for k in (25, 50)]
        assert gaps[1] < gaps[0]
        shrinkage.append(gaps[0] - gaps[1])
        shares.append((gaps[0] - gaps[1]) / gaps[0])
    low, high = min(shrinkage), max(shrinkage)
    assert f"shrinks in all {len(rows)} rows, by {float(low):.2f} to {float(high):.2f} points" in TEXT
    assert low > Fraction("0.02")
    worst = rows[shares.index(max(shares))]
    assert (worst["method"], worst["backbone"]) == ("SEARLE", "ViT-G/14")
    assert 1 / 3 < 2 * max(shares) < 0.4, "they must hold twice the share by which the gap shrinks"


def test_the_command_and_the_signatures_are_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_DATA_HOME", "")
    submissions.write(submissions.make_rank_file("shapes/val", "image_only_pixels"), tmp_path / "run.json")
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"\$ cir (score .*)", TEXT)
    # Shapes' board looks at fewer places than ZeroSight's.
    words = command.replace("@50", "@10").split()
    done = CliRunner().invoke(build(), [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert '"pnr_map@10:released_code"' in done.stdout
    known = {"benchmark": "x/y", "benchmark_version": 1, "data_hash": "0" * 64, "n": 1}
    for variant, shown in (("equation", "metric:1"), ("released_code", "metric:1:released_code")):
        signature = Signature.of(
            "pnr_map@50", variant=variant, gallery_hash=None, gallery_size=None, reference="kept", **known
        )
        assert f" | {shown} | " in str(signature)
        assert f"`{shown}`" in TEXT
