"""The metrics: a page of all, and one each, made of the catalogue and of the metric's card."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from markupsafe import Markup

from cir_datasets.registry.schema import member_metric
from cir_metrics.catalogue import METRICS, MetricEntry, parse_metric
from cir_metrics.errors import CirError, UnknownNameError, did_you_mean
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.pages.markdown import html_of
from leaderboard.pages.site import Page, Site
from submissions.scoring.score_report import is_rank

_FIRST = ("Definition", "Equation", "The equation and the released code differ")
_TRAPS = ("Limits", "Other names, other definitions")
"""Headings of a card whose sections say where a reader or another program trips."""
_HEADINGS = {"Definition": "What it means", "Limits": "What it does not say"}


@dataclass(frozen=True)
class CardSection:
    """A section of a metric's card.

    Args:
        title: its heading.
        html: what it says.
    """

    title: str
    html: Markup


@dataclass(frozen=True)
class Use:
    """A board that uses a metric.

    Args:
        board: the board.
        ranks: whether the metric ranks it, alone or in a mean.
        names: the printed names that it shows.
    """

    board: Board
    ranks: bool
    names: tuple[str, ...]


def all_page(_site: Site, _query: Mapping[str, str]) -> Page:
    """The page of all metrics."""
    listed = [(entry, [use for use in uses(entry) if use.ranks]) for entry in METRICS.values()]
    return Page(
        "metrics.html",
        "Metrics",
        "What each metric of composed image retrieval means, where it is from, and which boards rank by it.",
        {"metrics": listed},
        section="m",
    )


def one_page(_site: Site, _query: Mapping[str, str], name: str) -> Page:
    """The page of one metric.

    Args:
        name: in the catalogue, such as `recall_at_k`.

    Raises:
        UnknownNameError: there is no such metric; the message names the nearest.
    """
    entry = METRICS.get(name)
    if entry is None:
        raise UnknownNameError(f"no metric {name!r}.{did_you_mean(name, METRICS)}")
    sections = card_sections(name)
    first = [one for one in sections if one.title.startswith(_FIRST)]
    traps = [one for one in sections if one.title in _TRAPS]
    return Page(
        "metric.html",
        entry.title,
        f"{entry.title}: {entry.description}"[:160],
        {
            "metric": entry,
            "load": card_head(name),
            "first": [_renamed(one) for one in first],
            "traps": [_renamed(one) for one in traps],
            "example": next(one for one in sections if one.title == "Example"),
            "rest": [one for one in sections if one not in (*first, *traps) and one.title != "Example"],
            "uses": uses(entry),
            "better": "lower" if is_rank(name) else "higher",
        },
        section="m",
    )


def uses(entry: MetricEntry) -> list[Use]:
    """The boards that show a metric.

    Args:
        entry: the metric.
    """
    found = []
    for board in boards.boards():
        shown = (*board.primary_terms, *(column.metric for column in board.columns))
        names = tuple(dict.fromkeys(_plain(metric) for metric in shown if _is_of(metric, entry)))
        if names:
            found.append(Use(board, any(_is_of(term, entry) for term in board.primary_terms), names))
    return found


@functools.cache
def card_sections(name: str) -> tuple[CardSection, ...]:
    """The sections of a metric's card.

    Args:
        name: in the catalogue.
    """
    parts = _card(name).split("\n## ")[1:]
    titled = (part.partition("\n") for part in parts)
    return tuple(CardSection(title.replace("`", ""), html_of(text)) for title, _, text in titled)


def card_head(name: str) -> Markup:
    """What a card says before its first section: the lines that load the metric.

    Args:
        name: in the catalogue.
    """
    return html_of(_card(name).split("\n## ")[0].partition("\n")[2])


def _card(name: str) -> str:
    return (resources.files("cir_metrics") / name / "README.md").read_text(encoding="utf-8")


def _renamed(section: CardSection) -> CardSection:
    return CardSection(_HEADINGS.get(section.title, section.title), section.html)


def _plain(metric: str) -> str:
    """The metric without the suite's member that stands behind it."""
    name, _, member = metric.rpartition("@")
    return name if "/" in member else metric


def _is_of(metric: str, entry: MetricEntry) -> bool:
    plain = member_metric(_plain(metric)).partition(":")[0]
    try:
        return parse_metric(plain)[0] == entry.name
    except CirError:
        return False
