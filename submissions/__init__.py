"""Rank files: what a method answers, read, validated, scored and converted.

`read`, `write`, `validate`, `score`, `convert` are what the `cir` commands of the same names call.
Everything is imported when it is first used, so that `import submissions` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submissions.comparison.comparing import compare
    from submissions.comparison.result import Comparison
    from submissions.conversion import convert
    from submissions.errors import (
        ComparisonError,
        ConversionError,
        FusionError,
        RefusedError,
        SubmissionError,
        WithheldError,
    )
    from submissions.findings import Finding
    from submissions.fusion import fuse
    from submissions.methods import baselines, make_bundle, make_rank_file, method_names, run_baselines
    from submissions.parsing import read
    from submissions.rank_file import FORMAT, Method, RankBundle, RankFile, write
    from submissions.report import full_report
    from submissions.score_report import ScoreReport
    from submissions.scoring import score
    from submissions.validation import ValidationReport, validate

_HOMES = {
    "FORMAT": "rank_file",
    "Comparison": "comparison.result",
    "ComparisonError": "errors",
    "ConversionError": "errors",
    "Finding": "findings",
    "FusionError": "errors",
    "Method": "rank_file",
    "RankBundle": "rank_file",
    "RankFile": "rank_file",
    "RefusedError": "errors",
    "ScoreReport": "score_report",
    "SubmissionError": "errors",
    "ValidationReport": "validation",
    "WithheldError": "errors",
    "baselines": "methods",
    "compare": "comparison.comparing",
    "convert": "conversion",
    "full_report": "report",
    "fuse": "fusion",
    "make_bundle": "methods",
    "make_rank_file": "methods",
    "method_names": "methods",
    "read": "parsing",
    "run_baselines": "methods",
    "score": "scoring",
    "validate": "validation",
    "write": "rank_file",
}
_ROOMS = ("comparison", "intervals", "language", "methods", "report", "retrieval")

__all__ = [
    "FORMAT",
    "Comparison",
    "ComparisonError",
    "ConversionError",
    "Finding",
    "FusionError",
    "Method",
    "RankBundle",
    "RankFile",
    "RefusedError",
    "ScoreReport",
    "SubmissionError",
    "ValidationReport",
    "WithheldError",
    "baselines",
    "compare",
    "convert",
    "full_report",
    "fuse",
    "make_bundle",
    "make_rank_file",
    "method_names",
    "read",
    "run_baselines",
    "score",
    "validate",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"submissions.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"submissions.{name}")
    raise AttributeError(f"module 'submissions' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
