"""A suite's members side by side: macro and micro means of everything that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from submissions.report.grouping import Group

if TYPE_CHECKING:
    from submissions.report.document import Report
    from submissions.report.grouping import Values


def means(suite_id: str, members: Sequence[Report], values: Sequence[Values]) -> dict[str, float]:
    """Macro and micro means, whichever of them the suite's own numbers are.

    Args:
        suite_id: id of the suite.
        members: in the suite's order.
        values: of each member the numbers by metric.

    Returns:
        By metric the macro mean, and as `<metric>@micro` the micro mean of those that are means over queries;
        a metric that is not known of a member has neither.
    """
    from cir_datasets.registry.suites import suite

    both = suite(suite_id).model_copy(update={"averages": ("macro", "micro")})
    ids = [member.score.benchmark for member in members]
    known = [{name: value for name, value in own.items() if value is not None} for own in values]
    queries = {member.score.benchmark: member.score.n for member in members}
    return both.mean_of(dict(zip(ids, known, strict=True)), queries)


def mean_groups(suite_id: str, members: Sequence[Report]) -> tuple[Group, ...]:
    """The rows of the macro and the micro mean below the members' rows.

    Args:
        suite_id: id of the suite.
        members: in the suite's order.
    """
    from cir_datasets.registry.suites import MICRO_SUFFIX

    found = means(suite_id, members, [member.values() for member in members])
    random = means(suite_id, members, [member.floors.get("random", {}) for member in members])
    n = sum(member.score.n for member in members)
    return tuple(
        Group(key, f"{key} mean", n, _ending(found, suffix), _ending(random, suffix))
        for key, suffix in (("macro", ""), ("micro", MICRO_SUFFIX))
    )


def _ending(values: dict[str, float], suffix: str) -> dict[str, float | None]:
    """Those with the suffix, or with none, under the members' names."""
    from submissions.scoring.score_report import member_metric

    return {
        member_metric(name): value for name, value in values.items() if name == member_metric(name) + suffix
    }
