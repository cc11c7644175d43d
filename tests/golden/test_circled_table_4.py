"""CIRCLED's nine configurations and Table 4, from a stand-in of 22,608 made-up sessions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import circled_stand_in
import pytest
from cir_here import cir

import cir_datasets

GOLDEN = json.loads((Path(__file__).parent / "circled_table_4.json").read_text(encoding="utf-8"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),  # made-up galleries
]

NINE = [row[0] for row in GOLDEN["rows"][:-1]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("circled")
    circled_stand_in.write(folder / "publishers")
    return folder


@pytest.fixture(scope="module")
def printed(home: Path) -> subprocess.CompletedProcess[str]:
    arguments = ["datasets", "stats", "circled", "--data-dir", str(home / "publishers"), "--plots", str(home)]
    return cir(*arguments, CIR_CACHE_HOME=str(home / "cache"), CIR_DATA_HOME="")


def test_stats_prints_table_4(printed: subprocess.CompletedProcess[str]) -> None:
    assert printed.returncode == 0, printed.stderr
    rows, *others = printed.stdout.split("\n\n")
    head, *lines = rows.splitlines()
    assert head.split() == " ".join(GOLDEN["head"]).split()
    assert [line.split() for line in lines] == GOLDEN["rows"]
    # Below a table may stand what its columns mean.
    totals = [[line for line in table.splitlines() if line.startswith("total ")] for table in others[:3]]
    assert [len(lines) for lines in totals] == [1, 1, 1]


def test_the_plots_are_pictures(printed: subprocess.CompletedProcess[str], home: Path) -> None:
    from PIL import Image

    for name in ("turns", "caption_length", "frequent_terms"):
        with Image.open(home / f"{name}.png") as picture:
            picture.load()
            assert min(picture.size) > 300
            assert len(set(picture.convert("L").resize((64, 64)).tobytes())) > 8


@pytest.mark.parametrize("benchmark_id", NINE)
def test_every_configuration_loads_with_its_counts_checked(
    benchmark_id: str, printed: object, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(home / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    benchmark = cir_datasets.load(benchmark_id, data_dir=home / "publishers", verification_mode="all_checks")
    row = GOLDEN["rows"][NINE.index(benchmark_id)]
    assert f"{len(benchmark):,}" == row[1]
    assert f"{len(benchmark.gallery or ()):,}" == row[2]
    assert benchmark.checks_skipped == ()


def test_the_golden_table_adds_up() -> None:
    columns = list(zip(*GOLDEN["rows"], strict=True))
    for place in (1, 2, 4, 5, 6, 7, 8):
        numbers = [int(cell.replace(",", "")) for cell in columns[place]]
        assert sum(numbers[:-1]) == numbers[-1]
    assert GOLDEN["rows"][-1][1] == "22,608"
