"""Values worked out by hand, through the evaluate modules; fractions are written as such in the files."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import cir_metrics
from cir_metrics.catalogue import METRICS

FILES = sorted(Path(__file__).parent.glob("metrics_*.json"))
GOLDEN = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
CASES = [(stem, case) for stem, golden in GOLDEN.items() for case in golden["cases"]]


@pytest.mark.parametrize(("stem", "case"), CASES, ids=[f"{stem}-{case['name']}" for stem, case in CASES])
def test_a_module_computes_the_stored_values(stem: str, case: dict[str, Any], tmp_path: Path) -> None:
    import evaluate

    golden = GOLDEN[stem]
    module = evaluate.load(golden["module"], keep_in_memory=True, cache_dir=str(tmp_path))
    values = module.compute(
        predictions=case["predictions"], references=case["references"], **golden["keywords"]
    )
    expected = {name: float(Fraction(text)) for name, text in case["expected"].items()}
    assert values == pytest.approx(expected, abs=golden["tolerance"], rel=0)


def test_every_metric_and_variant_has_a_golden_file_that_says_where_from() -> None:
    covered = {
        (golden["module"], golden["keywords"].get("variant", "equation")) for golden in GOLDEN.values()
    }
    assert covered == {(name, variant) for name, entry in METRICS.items() for variant in entry.variants}
    assert all(golden["from"] and case["working"] for golden in GOLDEN.values() for case in golden["cases"])


@pytest.mark.parametrize(
    ("string", "equation", "released_code"),
    [
        ("P", 1.0, 0.0),
        ("NP", 0.25, 0.5),
        ("NNNP", 0.125, 0.3333),
        ("PNP", 0.7222, 0.5),
        ("NPNP", 0.25, None),
        ("NPPN", 0.2361, None),
    ],
)
def test_toy_strings_as_the_card_prints_them(
    string: str, equation: float, released_code: float | None
) -> None:
    ranking = [f"{letter}{place}" for place, letter in enumerate(string)]
    positives = [image for image in ranking if image.startswith("P")]
    reference = {"positives": positives, "negatives": [image for image in ranking if image.startswith("N")]}
    values = {
        variant: cir_metrics.evaluate_single_turn(
            ["pnr_map@5"], [ranking], [reference], variants={"pnr_map": variant}
        )
        for variant in ("equation", "released_code")
    }
    assert round(values["equation"].values["pnr_map@5"], 4) == equation
    if released_code is not None:
        assert round(values["released_code"].values["pnr_map@5"], 4) == released_code
