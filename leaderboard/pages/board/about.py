"""The last tab of a board: its whole protocol, its data and licence, and what does not compare with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from cir_datasets.registry import BenchmarkSpec, members_of
from cir_datasets.registry.schema import member_metric
from cir_datasets.registry.suites import suite_ids
from cir_metrics.catalogue import parse_metric
from leaderboard.boards import Board
from leaderboard.pages.board.head import dialogue_user, phase_words
from leaderboard.pages.figures import number
from leaderboard.pages.signature import part_meaning
from leaderboard.pages.site import Page, Site
from leaderboard.standings.views import compared_rows
from submissions.comparison.keys import shared_text
from submissions.report.grouping import FLOOR_NAMES

_ORDER = "A rank file has no ties: its order is final. "

_TIES = (
    f"{_ORDER}Methods share a rank group if paired tests on the queries find no significant difference "
    "from the best of the group. Of equal values the earlier entry stands first."
)

_TIES_OF_SEALED = (
    f"{_ORDER}On the board equal values share a rank; of two such entries the earlier one stands first."
)


def page(site: Site, board: Board, tabs: Mapping[str, str]) -> Page:
    """The page of the tab.

    Args:
        site: of the server.
        board: which one.
        tabs: the board's, from `leaderboard.pages.board.tabs.tabs_here`.
    """
    rows = site.server.tables.of(board).view["rows"]
    signature = shared_text([row["signature"] for row in compared_rows(rows)] or [""])
    card = board.spec.card
    values = {
        "board": board,
        "path": f"b/{quote(board.id)}",
        "tab": "about",
        "tabs": tabs,
        "card": card,
        "user": dialogue_user(board, with_settings=True),
        "unit": "Sessions" if board.spec.kind == "multi_turn" else "Queries",
        "members": [_member(spec) for spec in board.specs],
        "metrics": _metrics(board),
        "signature": [(part, part_meaning(part)) for part in signature.split(" | ") if part],
        "others": _others(board),
        "traps": card.traps,
        "differences": [
            each.text()
            for each in (
                *card.known_differences,
                *(d for s in board.specs for d in s.config.known_differences),
            )
        ],
        "floors": _floors(board),
        "phases": [phase_words(phase) for phase in board.phases],
        "ties": _TIES_OF_SEALED if board.sealed else _TIES,
    }
    about = f"The protocol of {board.title}: data, licence, metrics and signature."
    return Page("board/about.html", f"{board.title}: about", about, values)


def _member(spec: BenchmarkSpec) -> dict[str, Any]:
    config = spec.config
    turns = ", ".join(f"{count:,} with {length}" for length, count in (config.turns or {}).items())
    return {
        "id": spec.id,
        "split": config.split,
        "queries": "–" if config.queries is None else f"{config.queries:,}",
        "gallery": "–" if config.gallery is None else f"{config.gallery:,}{spec.gallery_note}",
        "reference": config.reference,
        "subset": "" if config.subset is None else str(config.subset),
        "turns": turns,
    }


def _metrics(board: Board) -> list[dict[str, str]]:
    """What ranks and what stands beside it, each with its metric's page."""
    columns = [column.metric for column in board.columns]
    named = [*board.primary_terms, *(metric for metric in columns if metric not in board.primary_terms)]
    found = []
    for metric in named:
        own = metric.rpartition("@")[0] if "/" in metric else member_metric(metric)
        ranks = "ranks" if metric in board.primary_terms else ""
        label = board.labels.get(metric, metric)
        found.append({"metric": metric, "label": label, "path": f"m/{parse_metric(own)[0]}", "ranks": ranks})
    return found


def _others(board: Board) -> list[str]:
    """Protocols of the same data that are known here under other ids; their numbers do not compare."""
    card = board.spec.card
    suites = [
        name
        for name in suite_ids()
        if name != board.benchmark and any(member.startswith(f"{card.name}/") for member in members_of(name))
    ]
    own = set(board.benchmarks)
    configs = [f"{card.name}/{config}" for config in card.configs if f"{card.name}/{config}" not in own]
    return [*suites, *configs]


def _floors(board: Board) -> list[dict[str, str]]:
    """Recorded floors of what ranks, where the card has them for all its terms."""
    if board.takes_bundles or board.dialogue is not None:
        return []
    recorded = board.spec.card.floors.get(board.spec.config_name)
    found = []
    for name, floor in {} if recorded is None else recorded.methods().items():
        values = [floor.metrics.get(term) for term in board.primary_terms]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            shown = number(sum(known) / len(known), board.primary_unit)
            found.append({"name": FLOOR_NAMES[name], "value": shown, "command": floor.command})
    return found
