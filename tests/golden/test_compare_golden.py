"""Every output format of `cir compare` as it is written, and its numbers beside scipy and a hand count.

`python tests/golden/test_compare_golden.py` writes the files anew from the invented methods of
`tests/fixtures/benchmark_world`; look at what changed before you commit it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "compare"
ENDINGS = {"table": "txt", "json": "json", "csv": "csv", "latex": "tex", "markdown": "md"}
MADE_BY = re.compile(r"\bv:[^\s\"]+")


def comparison() -> Any:
    import benchmark_world

    import submissions

    benchmark = benchmark_world.cirr(queries=30)
    files = benchmark_world.three_methods(benchmark)
    reports = [
        submissions.score(json.dumps(made).encode(), benchmark, name=name) for name, made in files.items()
    ]
    return submissions.compare(reports, draws=2_000)


def written(format: str) -> str:
    """The text of a format; the package's version stands as `v:*`."""
    return MADE_BY.sub("v:*", comparison().text(format)) + "\n"


@pytest.mark.parametrize("format", list(ENDINGS))
def test_every_format_is_written_like_this(format: str) -> None:
    assert written(format) == (FOLDER / f"three_methods.{ENDINGS[format]}").read_text(encoding="utf-8")


def test_the_numbers_are_those_of_scipy_and_of_counting() -> None:
    from scipy import stats

    document = json.loads((FOLDER / "three_methods.json").read_text(encoding="utf-8"))
    ours_theirs, ours_base, theirs_base = (pair["metrics"] for pair in document["pairs"])
    # Ours hits 28 of 30 at 1 and at 5, Theirs the first 12 of them.
    found = ours_theirs["recall@5"]
    assert (found["wins"], found["ties"], found["losses"]) == (16, 14, 0)
    assert found["difference"] == pytest.approx(16 / 30, abs=1e-12)
    assert found["p"] == pytest.approx(stats.binomtest(16, 16).pvalue, rel=1e-9)
    # Baseline hits the first 11 at 1 and the last, Theirs the first 12: one each way.
    found = theirs_base["recall@1"]
    assert (found["wins"], found["ties"], found["losses"], found["p"]) == (1, 28, 1, 1.0)
    # Baseline has the twelfth query at rank 7: within 10.
    assert (theirs_base["recall@10"]["wins"], theirs_base["recall@10"]["losses"]) == (0, 1)
    # Recall_subset@1: Theirs misses the first 10 that Ours hits, and hits the last 6 that Ours misses.
    found = ours_theirs["recall_subset@1"]
    assert (found["wins"], found["ties"], found["losses"]) == (10, 14, 6)
    assert found["p"] == pytest.approx(stats.binomtest(10, 16).pvalue, rel=1e-9)
    # The main metric averages the two. Against Theirs all differences but zero are halves.
    main = (np.repeat([0, 1, 0], [12, 16, 2]) + np.repeat([1, 0, -1], [10, 14, 6])) / 2
    found = ours_theirs["mean(recall@5, recall_subset@1)"]
    assert found["difference"] == pytest.approx(main.mean(), abs=1e-12)
    assert found["p"] == pytest.approx(stats.binomtest(22, 24).pvalue, rel=1e-9)
    # Against Baseline some are ones, so that changes of sign are sampled.
    main = (np.repeat([0, 1, 0, -1], [11, 17, 1, 1]) + np.repeat([1, 0, -1], [15, 9, 6])) / 2
    found = ours_base["mean(recall@5, recall_subset@1)"]
    assert (found["test"], found["difference"]) == ("sampled", pytest.approx(main.mean(), abs=1e-12))
    other = stats.permutation_test((main,), np.sum, permutation_type="samples", n_resamples=20_000, rng=3)
    assert found["p"] == pytest.approx(other.pvalue, abs=4 * np.sqrt(other.pvalue / 2_000))
    low, high = found["interval"]
    peer = stats.bootstrap((main,), np.mean, method="percentile", n_resamples=20_000, rng=4)
    # Means of halves over 30 queries move in steps of 1/60, and 2,000 draws may fall one step beside.
    assert low == pytest.approx(peer.confidence_interval.low, abs=1.01 / 60)
    assert high == pytest.approx(peer.confidence_interval.high, abs=1.01 / 60)


def test_holm_covers_metrics_and_pairs() -> None:
    document = json.loads((FOLDER / "three_methods.json").read_text(encoding="utf-8"))
    tests = [found for pair in document["pairs"] for found in pair["metrics"].values()]
    assert document["test"]["tests"] == len(tests) == 8 * 3
    ranked = sorted(tests, key=lambda found: found["p"])
    largest = 0.0
    for step, found in enumerate(ranked):
        largest = max(largest, min(1.0, (len(tests) - step) * found["p"]))
        assert found["p_holm"] == pytest.approx(largest, rel=1e-12)
        assert found["significant"] == (found["p_holm"] <= 0.05)


def test_the_latex_tables_compile(tmp_path: Path) -> None:
    latex = shutil.which("pdflatex")
    if latex is None:
        pytest.skip("pdflatex is not installed: no LaTeX table is compiled")
    body = (FOLDER / "three_methods.tex").read_text(encoding="utf-8")
    (tmp_path / "tables.tex").write_text(
        "\\documentclass{article}\n\\usepackage[landscape,margin=10mm]{geometry}\n"
        f"\\usepackage{{booktabs,graphicx}}\n\\begin{{document}}\n{body}\\end{{document}}\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [latex, "-interaction=nonstopmode", "-halt-on-error", "tables.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "tables.pdf").stat().st_size > 10_000


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / "fixtures"), str(Path(__file__).parents[2])]
    FOLDER.mkdir(exist_ok=True)
    for name, ending in ENDINGS.items():
        (FOLDER / f"three_methods.{ending}").write_text(written(name), encoding="utf-8")
