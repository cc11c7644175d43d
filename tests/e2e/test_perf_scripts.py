"""The scripts of perf/ run, print every bound beside its figure, and exit with 1 where one is missed.

How fast anything is is not asserted here: bounds that every machine keeps, and one that none can keep, stand
in for the scripts' own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from programs import run_program

ROOT = Path(__file__).resolve().parents[2]
LINE = re.compile(r"^(.+?) +(-?[\d.]+) +([<>]=) (-?[\d.e+]+) +(yes|NO)$", re.MULTILINE)
NEVER, ALWAYS = {"<=": "-1e9", ">=": "1e9"}, {"<=": "1e9", ">=": "-1e9"}


def load(script: str) -> ModuleType:
    """A script as a module, for its BOUNDS."""
    sys.path.insert(0, str(ROOT / "perf"))
    try:
        spec = importlib.util.spec_from_file_location(f"perf_{Path(script).stem}", ROOT / "perf" / script)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "perf"))
    return module


def run(script: str, *options: str, code: int = 0) -> str:
    done = run_program(
        [sys.executable, str(ROOT / "perf" / script), *options],
        env={**os.environ, "CIR_DATA_HOME": ""},
        code=code,
    )
    return done.stdout


def bounds(script: str) -> dict[str, str]:
    """By figure of a script whether it is bounded from above or below."""
    return {figure: str(bound).split()[0] for figure, bound in load(script).BOUNDS.items()}


def keeps_its_word(script: str, *options: str, absent: str | None = None) -> str:
    """The output of a run with bounds that are kept."""
    asked = bounds(script)
    kept = [f"--bound={figure}={ALWAYS[sign]}" for figure, sign in asked.items()]
    output = run(script, *options, *kept)
    shown = {figure: (sign, verdict) for figure, _, sign, _, verdict in LINE.findall(output)}
    absences = {
        figure for figure in asked if re.search(rf"^{re.escape(figure)} .* not measured$", output, re.M)
    }
    assert absences <= {absent}
    assert shown == {figure: (sign, "yes") for figure, sign in asked.items() if figure not in absences}
    return output


def test_a_figure_that_was_forgotten_or_is_missed_ends_a_script_with_exit_code_1() -> None:
    fresh = load("fresh.py")
    for end in ("kept", "left out", "forgotten", "missed", "failed"):
        verdict = fresh.Verdict({"a / b": fresh.at_most(2)})
        if end == "left out":
            verdict.leave_out("a / b")
        elif end != "forgotten":
            verdict.show("a / b", 3.0 if end == "missed" else 1.0)
        if end == "failed":
            verdict.fail("the ranks are the same")
        if end in ("kept", "left out"):
            verdict.end()
        else:
            with pytest.raises(SystemExit) as stopped:
                verdict.end()
            assert stopped.value.code == 1


@pytest.mark.slow
def test_the_script_of_zerosight_prints_its_ratios() -> None:
    options = ("--queries", "300", "--images", "1200", "--repeat", "1", "--loops", "1")
    # Where ranx is not installed the script says so.
    output = keeps_its_word("zerosight.py", *options, absent="ranx / ours, mAP of parsed lists")
    assert re.search(r"^loop with plain-Python weights / score +\d+\.\d\d +-$", output, re.MULTILINE)


@pytest.mark.slow
def test_the_script_of_start_times_runs() -> None:
    keeps_its_word("start.py", "--repeat", "1", "--imports", "1")


@pytest.mark.slow
def test_the_script_of_ranks_finds_the_same_ranks() -> None:
    options = ("--queries", "150", "--gallery", "400", "--dimensions", "32", "--block", "100")
    output = keeps_its_word("ranks.py", *options, "--repeat", "1", "--search")
    assert "same ranks in blocks of 64, 200, 512, 1000: yes" in output


@pytest.mark.slow
def test_the_script_of_search_finds_the_same_ranks() -> None:
    options = ("--queries", "120", "--gallery", "400", "--dimensions", "32", "--repeat", "1")
    output = keeps_its_word("search.py", *options, "--loop-queries", "3", "--numpy-queries", "20")
    assert "same ranks by search and the loop in Python: yes" in output


@pytest.mark.exhaustive
def test_the_script_of_preparing_prints_its_parts() -> None:
    output = keeps_its_word("prepare.py", "--queries", "200", "--images", "900", "--repeat", "1")
    assert re.findall(r"^(\w+) +\d+\.\d+ +\d+ +\d+\.\d+", output, re.MULTILINE) == [
        "bound",
        "prepare",
        "command",
        "load",
        "score",
    ]


@pytest.mark.exhaustive
def test_the_script_of_encoding_prints_its_parts() -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    output = keeps_its_word("encoding.py", "--model", "tiny", "--images", "100", "--repeat", "1", "--profile")
    assert "100 pictures of shapes, tiny (clip, 24 dimensions, float32" in output
    parts = re.findall(r"^(\w+) +(-?\d+\.\d+) s +-?\d+\.\d %$", output, re.MULTILINE)
    assert [name for name, _ in parts] == ["forward", "encoder", "waiting", "writing", "around"]
    (wall,) = re.findall(r"^all +(\d+\.\d+) s +[\d,]+ images/s$", output, re.MULTILINE)
    assert abs(sum(float(seconds) for _, seconds in parts) - float(wall)) < 0.01
    assert "function calls" in output


@pytest.mark.exhaustive
def test_the_script_of_multi_round_evaluation_prints_its_parts() -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    output = keeps_its_word("multiround.py", "--quick")
    assert output.startswith("60 sessions, ")
    parts = re.findall(r"^(\w+) +(\d+\.\d+) s +\d+\.\d%$", output, re.MULTILINE)
    assert {name for name, _ in parts} == {"encoder", "user", "search", "bookkeeping"}
    (wall,) = re.findall(r"^all +(\d+\.\d+) s$", output, re.MULTILINE)
    assert abs(sum(float(seconds) for _, seconds in parts) - float(wall)) < 0.05


def test_the_script_of_intervals_prints_its_parts() -> None:
    output = keeps_its_word("intervals.py", "--queries", "200", "--draws", "300", "--repeat", "1")
    head, *lines = output.splitlines()[:6]
    assert head == "200 queries, 8 metrics, 300 draws, median of 1"
    shown = [re.fullmatch(r"(.+?) +\d+\.\d\d s +\d+\.\d\d x draws alone", line) for line in lines]
    assert [match and match[1] for match in shown] == [
        "draws alone",
        "intervals of means",
        "interval of one median",
        "tests of differences",
        "plain loop (a hundredth, times 100)",
    ]


@pytest.mark.slow
def test_the_script_of_groups_finds_the_same_groups() -> None:
    options = ("--methods", "30", "--queries", "300", "--repeat", "1", "--tests", "3")
    output = keeps_its_word("groups.py", *options)
    assert "same groups with one more entry and anew: yes" in output
    tasks = re.findall(r"^(\w+) +\d+\.\d+ +\d+\.\d+ +\d+$", output, re.MULTILINE)
    assert tasks == ["groups", "entry", "product", "tests"]


@pytest.mark.exhaustive
def test_the_script_of_the_board_api_prints_its_parts() -> None:
    output = keeps_its_word("board_api.py", "--entries", "30", "--clients", "3", "--requests", "4")
    tasks = re.findall(r"^(\w+) +\d+\.\d +\d+\.\d +\d+$", output, re.MULTILINE)
    assert tasks == ["table", "unchanged", "page", "csv"]


@pytest.mark.exhaustive
def test_the_script_of_the_board_page_prints_its_parts() -> None:
    # Where Chromium is not installed the script says so.
    output = keeps_its_word(
        "board_page.py",
        "--entries",
        "60",
        "--requests",
        "4",
        "--repeat",
        "1",
        absent="first row in Chromium, median s",
    )
    tasks = re.findall(r"^(\w+) +\d+\.\d +\d+\.\d$", output, re.MULTILINE)
    assert tasks == ["same", "others", "unchanged"]


@pytest.mark.exhaustive
def test_the_script_of_intake_prints_its_parts() -> None:
    output = keeps_its_word("intake.py", "--clients", "3", "--uploads", "2", "--queries", "60")
    tasks = re.findall(r"^(\w+) +\d+\.\d +\d+\.\d +\d+$", output, re.MULTILINE)
    assert tasks == ["alone", "form", "body"]
    assert "14 submissions: {'published': 14}" in output


@pytest.mark.exhaustive
def test_the_script_of_uploads_prints_both_servers() -> None:
    output = keeps_its_word("uploads.py", "--clients", "2", "--uploads", "1", "--rounds", "1", "--mb", "0.1")
    tasks = re.findall(r"^(\w+), (\w+) +\d+\.\d +\d+\.\d +\d+\.\d$", output, re.MULTILINE)
    assert tasks == [("body", "plain"), ("body", "ours"), ("form", "plain"), ("form", "ours")]


@pytest.mark.exhaustive
def test_the_script_of_files_beside_bombs_prints_its_parts() -> None:
    output = keeps_its_word("beside_bombs.py", "--bomb", "gzip-lines", "--files", "2")
    tasks = re.findall(r"^(\w+) +\d+\.\d+ +\d+\.\d+$", output, re.MULTILINE)
    assert tasks == ["alone", "beside"]


def test_the_script_of_thresholds_shows_time_and_memory() -> None:
    output = keeps_its_word("zerosight_thresholds.py", "--frames", "2000", "--references", "50")
    assert re.search(r"^targets +\d+\.\d s$", output, re.MULTILINE)
    assert re.search(r"^peak +[\d,]+ MiB", output, re.MULTILINE)


def test_the_script_of_subsets_shows_time_beside_a_plain_product_and_ends_with_1_for_a_miss() -> None:
    options = ("--images", "1500", "--firsts", "40", "--dimensions", "32", "--repeat", "1")
    output = keeps_its_word("cirr.py", *options)
    tasks = re.findall(r"^(\w+) +\d+\.\d\d ms a first image, median of 1$", output, re.MULTILINE)
    assert tasks == ["ours", "product"]
    missed, sign = list(bounds("cirr.py").items())[-1]
    output = run("cirr.py", *options, f"--bound={missed}={NEVER[sign]}", code=1)
    assert (missed, "NO") in [(found[0], found[4]) for found in LINE.findall(output)]


@pytest.mark.slow
def test_the_script_of_scores_prints_time_and_memory() -> None:
    output = keeps_its_word("scores.py", "--queries", "200", "--images", "2000", "--repeat", "1")
    tasks = re.findall(r"^(\w+) +\d+\.\d+ +\d+\.\d+ +\d+$", output, re.MULTILINE)
    assert tasks == ["ours", "argpartition"]


@pytest.mark.slow
def test_the_script_of_bombs_prints_its_table() -> None:
    options = ("--bomb", "lines-broken", "--bomb", "parquet-overlay-of-one", "--way", "validate")
    output = keeps_its_word("bombs.py", *options, "--way", "overlay in .parquet", "--worst", "2")
    head, *rest = output.splitlines()
    assert head == "2 bombs, 3 readings, median of 1"
    rows = [match for line in rest if (match := re.fullmatch(r"([\w-]+), ([\w. ]+?) +\d+\.\d\d +\d+", line))]
    assert len(rows) == 4
    assert {match[1] for match in rows} <= {"lines-broken", "parquet-overlay-of-one-query"}


@pytest.mark.exhaustive
def test_the_script_of_construction_finds_the_ranks_of_the_published_loop() -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    output = keeps_its_word(
        "construction.py", "--benchmark", "shapes/val", "--queries", "8", "--sampled", "3"
    )
    assert output.startswith("8 sessions, ")
    same, clear = re.findall(r"^same rank at turn 1, .*: (\d+) of (\d+)$", output, re.MULTILINE)[0]
    assert same == clear


def test_a_bound_of_no_figure_is_refused() -> None:
    options = [str(ROOT / "perf" / "intervals.py"), "--bound", "intervals of modes, s=3"]
    done = run_program([sys.executable, *options], code=1)
    assert done.stderr.startswith("--bound intervals of modes, s=3: there is no such figure. There are: ")
