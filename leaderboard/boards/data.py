"""Whether a board's data is available on this server.

The server never downloads while somebody waits: its organiser prepares what its boards need.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from leaderboard.boards import Board

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec


PREPARE_VARIABLE = "CIR_LEADERBOARD_PREPARE"
"""Environment variable: the command that prepares a benchmark where this server runs."""


def problem(board: Board) -> str | None:
    """Why submissions to a board cannot be judged here, or None where they can.

    Returns:
        A sentence that names the missing file and what the server's organiser does about it.
    """
    if board.spec.config.ground_truth == "withheld" and not board.sealed:
        return f"the ground truth of {board.benchmark} stays with its publisher."
    missing = next((found for spec in board.specs if (found := missing_file(spec)) is not None), None)
    if missing is None:
        return None
    return (
        f"the publisher's file {missing} is not on this server. Its organiser runs "
        f"{preparing(board.benchmark)}, where the server was started, or starts it with CIR_DATA_HOME. "
        "The server looks again every 30 seconds."
    )


def preparing(benchmark: str) -> str:
    """What an organiser types to prepare a benchmark for this server, which need not be started again.

    Without the folders of this machine: everybody who opens a board reads it.

    Args:
        benchmark: its id.
    """
    own = os.environ.get(PREPARE_VARIABLE)
    if own:
        return f"`{own.replace('{benchmark}', benchmark)}`"
    cache = " with the server's CIR_CACHE_HOME" if os.environ.get("CIR_CACHE_HOME") else ""
    return f"`cir datasets prepare {benchmark}`{cache}"


def missing_file(spec: BenchmarkSpec) -> str | None:
    """The first of a publisher's files that a benchmark needs and this machine has not, or None."""
    card, config = spec.card, spec.config
    if card.source.publisher == "embedded":
        return None
    from cir_datasets import sources  # of a publisher's files alone

    required = [*config.files, *(() if config.gallery_optional else config.gallery_files)]
    missing = [name for name in required if sources.here(card, name) is None]
    return missing[0] if missing and not _was_prepared(spec) else None


def has_gallery(board: Board) -> bool:
    """Whether ids can be checked here against the board's gallery, of a suite against every member's."""
    return all(not spec.config.gallery_optional or _gallery_is_here(spec) for spec in board.specs)


def _gallery_is_here(spec: BenchmarkSpec) -> bool:
    from cir_datasets import sources

    return all(sources.here(spec.card, name) for name in spec.config.gallery_files)


def current_keys(board: Board) -> tuple[str, ...] | None:
    """The comparability keys that a submission to a board would get now, from what was prepared last.

    Returns:
        A key for each term of what ranks, of a dialogue without its user; None where nothing was prepared
        here with all checks, and of a sealed board, whose keys depend on its ground truth.
    """
    from cir_datasets.prepared import last_prepared
    from cir_datasets.registry.schema import member_metric
    from cir_datasets.registry.suites import signature_over
    from cir_metrics.catalogue import Signature

    prepared = [(spec, last) for spec in board.specs if (last := last_prepared(spec)) is not None]
    skipped = any(last.meta["checks_skipped"] for _, last in prepared)
    if board.sealed or skipped or len(prepared) < len(board.specs):
        return None

    def signatures(metric: str) -> list[Signature]:
        return [
            Signature.of(
                metric,
                benchmark=spec.id,
                benchmark_version=spec.card.version,
                data_hash=last.meta["data_hash"],
                gallery_hash=last.meta["gallery_hash"],
                gallery_size=last.meta["gallery"],
                reference=last.meta.get("reference", spec.config.reference),
                n=last.meta["rows"],
                ties="listed",
                dialogue="" if board.dialogue is None else board.dialogue.text,
            )
            for spec, last in prepared
        ]

    return tuple(
        signature_over(board.benchmark, term, signatures(member_metric(term))).key
        for term in board.primary_terms
    )


def _was_prepared(spec: BenchmarkSpec) -> bool:
    """Whether loading takes what was prepared earlier (with a `data_dir`, say), with all checks made."""
    from cir_datasets.prepared import last_prepared
    from cir_datasets.sources import at_hand

    last = None if at_hand(spec) else last_prepared(spec)
    return last is not None and not last.meta["checks_skipped"]
