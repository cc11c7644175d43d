"""What a report looks like in every format. The files were read by a person before they were put here.

From: `python tests/golden/test_reports_golden.py` (with tests/fixtures on PYTHONPATH) at the commit that put
them here; rank files of `image_text_sum` on shapes, and the invented ones of `benchmark_world.reports`, whose
numbers tests/unit/submissions/report/test_reports.py works out by hand.
The package's version is written VERSION.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmark_world import reports

from cir_datasets.common.terminal import FORMATS
from cir_metrics.catalogue import package_version
from submissions.report import full_report

FOLDER = Path(__file__).parent / "reports"
CASES = ("shapes_val", "shapes_multiturn_val", "circo_like", "cirr_like")
ENDINGS = {"table": "txt", "json": "json", "csv": "csv", "latex": "tex", "markdown": "md"}


def rendered(case: str) -> dict[str, str]:
    report = full_report(reports.scored(case))
    version = package_version()
    texts = {}
    for name in FORMATS:
        text = report.render(name).replace(f"v:{version}", "v:VERSION")
        texts[name] = text.replace(f'"package_version": "{version}"', '"package_version": "VERSION"') + "\n"
    return texts


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    name: str = request.param
    return name, rendered(name)


@pytest.mark.parametrize("name", FORMATS)
def test_the_report_is_the_golden_one(case: tuple[str, dict[str, str]], name: str) -> None:
    golden = (FOLDER / f"{case[0]}.{ENDINGS[name]}").read_text(encoding="utf-8")
    if name == "json":
        assert json.loads(case[1][name]) == json.loads(golden)
    assert case[1][name] == golden


def test_no_golden_file_is_left_over() -> None:
    expected = {f"{case}.{ending}" for case in CASES for ending in ENDINGS.values()}
    assert {path.name for path in FOLDER.iterdir()} == expected


if __name__ == "__main__":
    for each in CASES:
        for kind, written in rendered(each).items():
            (FOLDER / f"{each}.{ENDINGS[kind]}").write_text(written, encoding="utf-8")
