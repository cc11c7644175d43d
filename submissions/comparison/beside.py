"""What a number is made of: the queries that the text alone solves, the picture alone, both, or neither.

A method that composes earns most of its number on queries that one modality solves by itself. What composing
adds is seen on the others: queries are split by two further rank files, of a method that reads the text alone
and of one that sees the picture alone.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from cir_metrics.catalogue import parse_metric
from cir_metrics.errors import CallError
from cir_metrics.resampling import DRAWS, LEVEL, SEED, bootstrap_means, percentile_interval
from cir_metrics.sums import FloatArray, exact_mean
from submissions.comparison.keys import check_comparable
from submissions.report import Report
from submissions.report.grouping import Grouping, grouped
from submissions.scoring.intervals import Intervals

if TYPE_CHECKING:
    from submissions.scoring.score_report import ScoreReport

_HITS = frozenset({"recall_at_k", "recall_subset", "final_recall"})
"""Metrics that are 1 or 0 for each query or session."""
_SOLVERS = ("both", "text", "image", "neither", "all")


def beside(
    report: Report,
    text: ScoreReport,
    image: ScoreReport,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    level: float = LEVEL,
) -> Report:
    """A report with one grouping more a hit metric: queries by which single modality solves them.

    A method solves a query, or a session, where the metric is 1: the target stands within the first K. Of a
    group g of n_g of the n queries the share n_g / n and the metric m_g of the report's own method are given,
    with percentile bootstrap intervals over all queries, in each draw of which both are taken anew:
    sum_g (n_g / n) * m_g is the metric over all. Metrics that are no hits, such as mAP, have no groups.

    Args:
        report: of the method that composes; its metrics are split, those that were selected alone.
        text: score of a method that reads the text alone, on the same benchmark or suite.
        image: score of one that sees the reference image alone.
        draws: number of draws, 1 or more.
        seed: 0 or more.
        level: share of the draws that an interval holds, above 0 and below 1.

    Returns:
        The report; `groupings["beside:recall@10"]` and so on, of a suite those of its members.

    Raises:
        ComparisonError: the three answer different questions, or one misses queries that another has.
        CallError: no metric is a hit, or the scores are of dialogues or hold no values per query.
        InputError: draws, seed or level are out of range.

    Example:
        >>> from submissions import full_report, make_rank_file, score
        >>> names = "image_text_sum_pixels", "text_only_pixels", "image_only_pixels"
        >>> ours, text, image = (score(make_rank_file("shapes/val", name)) for name in names)
        >>> split = beside(full_report(ours), text, image, draws=100).groupings["beside:recall@10"]
        >>> [group.key for group in split.groups], sum(group.n for group in split.groups)
        (['both', 'text', 'image', 'neither'], 300)
    """
    check_comparable([report.score, text, image])
    names = tuple(f"{key}: {each.method}" for key, each in (("text", text), ("image", image)))
    parts = []
    runs = zip(report.members or (report,), text.parts, image.parts, strict=True)
    for part, *others in runs:
        if any(each.missing for each in (part.score, *others)):
            raise CallError("queries without a ranking are in no group. Fix: rank all of them in each file.")
        found = _groupings(part, others, names, Intervals({}, part.unit, draws, seed, level))
        parts.append(dataclasses.replace(part, groupings={**part.groupings, **found}))
    if not any(name.startswith("beside:") for part in parts for name in part.groupings):
        raise CallError(
            f"no metric of {report.score.file} is 1 or 0 for each query in all three files. "
            "Fix: name one, as  --metric recall@10  ."
        )
    return dataclasses.replace(report, members=tuple(parts)) if report.members else parts[0]


def _groupings(
    part: Report, others: list[ScoreReport], names: tuple[str, ...], how: Intervals
) -> dict[str, Grouping]:
    ours, text, image = (_values(score) for score in (part.score, *others))
    found = {}
    for metric in part.values():
        if parse_metric(metric)[0] not in _HITS or not all(metric in each for each in (ours, text, image)):
            continue
        by_text, by_image = text[metric] > 0, image[metric] > 0
        either = by_text & by_image, by_text & ~by_image, ~by_text & by_image, ~by_text & ~by_image
        member = np.stack([*either, np.ones_like(by_text)], 1)
        called = dict(zip(_SOLVERS, ("both", *names, "neither", f"all {part.unit}"), strict=True))
        held, key = member.astype(np.float64), part.score.benchmark
        columns = np.concatenate([held, held * ours[metric][:, None]], axis=1)
        drawn = bootstrap_means(columns, draws=how.draws, seed=how.seed, key=key)
        groups = []
        for place, group in enumerate(grouped({metric: ours[metric]}, {}, member, called)):
            shares, hits = drawn[:, place], drawn[:, len(called) + place]
            values = {"share": exact_mean(held[:, place]), **_ends("share ", shares, how.level)}
            values |= {**group.values, **_ends("", hits[shares > 0] / shares[shares > 0], how.level)}
            groups.append(dataclasses.replace(group, values=values))
        note = f"Solved: {metric} is 1. {how.note()}"
        title = f"{metric} by what solves the {'session' if part.unit == 'sessions' else 'query'} alone"
        found[f"beside:{metric}"] = Grouping(
            title, "solver", part.unit, tuple(groups[:-1]), (groups[-1],), (note,)
        )
    return found


def _values(score: ScoreReport) -> dict[str, FloatArray]:
    """Values a query of the score's metrics and of the card's further ones."""
    evidence = score.evidence
    if evidence is None or evidence.rounds is not None:
        raise CallError(f"{score.file}: only scores of rank files are split. Fix: take submissions.score's.")
    return {**evidence.card_values(())[0], **evidence.values}


def _ends(head: str, draws: FloatArray, level: float) -> dict[str, float | None]:
    """Both ends of an interval; None where no draw holds a query of the group."""
    low, high = map(float, percentile_interval(draws, level)) if len(draws) else (None, None)
    return {f"{head}low": low, f"{head}high": high}
