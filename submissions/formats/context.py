"""What a format's reader gets besides the file's content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from submissions.formats.budget import Budget
from submissions.rank_file.findings import Findings

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import Benchmarks


@dataclass
class ReaderContext:
    """What a format's reader gets besides the JSON value.

    Args:
        findings: collects what is wrong.
        benchmarks: resolves benchmark ids.
        expected: the benchmark id that the file must answer, or None where the file says.
        label: name of the file without ending: the method's name where a format has none.
        budget: what reading the file may cost.
        form: fields of the method block for a file whose own names no method.
    """

    findings: Findings
    benchmarks: Benchmarks
    expected: str | None
    label: str
    budget: Budget = field(default_factory=lambda: Budget(0))
    form: Mapping[str, Any] = field(default_factory=dict)
