"""Scoring what stands on a board again, after a metric or a ground truth has changed.

Old and new stand side by side until the organiser switches; then all entries change in one transaction, and
the old results stay in the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cir_datasets
from leaderboard.boards import Board
from leaderboard.errors import ConflictError, LostFileError
from leaderboard.queue.child import Judged, Limits, judge_for
from leaderboard.server import Server
from leaderboard.store import Happened
from leaderboard.store.submission import State, Submission

_STANDING: tuple[State, ...] = ("published", "private", "hidden")
"""States of submissions that have a score and may be on the board, now or later."""


@dataclass(frozen=True)
class Rescored:
    """A submission with its new result beside the one that counts.

    Args:
        submission: as it was read.
        judged: what judging its file says now.
        kept_values: its values per query now, an .npz; None where the file is refused now.
        kept_before: those that the store keeps, or None.
    """

    submission: Submission
    judged: Judged
    kept_values: bytes | None
    kept_before: bytes | None

    def old(self, board: Board) -> float:
        """What ranks, as it counts now."""
        return board.primary_value((self.submission.scores or {})["metrics"])

    def new(self, board: Board) -> float | None:
        """What ranks, scored again; None where the file is refused now."""
        return None if self.judged.report is None else board.primary_value(self.judged.report["metrics"])

    def changed(self, board: Board) -> bool:
        """Whether a number or its signature changed, or what is kept beside them, as after an update."""
        if self.judged.report is None:
            return False
        if self.submission.canonical is None or self.kept_values != self.kept_before:
            return True
        before = self.submission.scores or {}
        names = [*board.primary_terms, *(column.metric for column in board.columns)]
        return any(
            _result(old, name) != _result(new, name)
            for old, new in _with_members(before, self.judged.report)
            for name in names
        )


def rescore(server: Server, board: Board, limits: Limits | None = None) -> Iterator[Rescored]:
    """Judge every file again that has a score on a board, one after another; nothing is written.

    A file that is missing or damaged counts as refused: its entry keeps its result.

    Args:
        server: the leaderboard.
        board: the board.
        limits: what judging one file may take; None takes the usual limits.

    Yields:
        A result for each submission, in the order in which they came.

    Raises:
        PassingError: the machine is in trouble.
        DatasetError: the benchmark cannot be read.
    """
    for benchmark in board.benchmarks:
        cir_datasets.prepare(benchmark)
    for submission in server.store.of_board(board.id, *_STANDING):
        name, form = submission.file_name, submission.form_now
        try:
            path = server.files.local_copy(submission.sha256)
            judged, kept = judge_for(board, path, file_name=name, form=form, limits=limits or Limits())
        except LostFileError as error:
            judged, kept = Judged("rejected", [{"severity": "error", "code": "lost-file"}], str(error)), None
        yield Rescored(submission, judged, kept, server.store.kept_values(submission.id))


def switch(server: Server, board: Board, results: list[Rescored]) -> int:
    """Let new results count, all in one transaction.

    Args:
        server: the leaderboard.
        board: the board.
        results: from `rescore`; those that changed nothing, or are refused now, are left as they are.

    Returns:
        How many submissions changed.

    Raises:
        ConflictError: something happened to one of them since; nothing is changed then.
    """
    changed = [result for result in results if result.changed(board)]
    with server.store.database.write() as connection:
        for result in changed:
            now = server.store.reread(connection, result.submission)
            if now.events[-1].sequence != result.submission.events[-1].sequence:
                raise ConflictError(
                    f"submission {now.id}: something happened to it since it was scored again. "
                    "Fix: run the command once more."
                )
            happened: list[Happened] = [("rescored", {"report": result.judged.report})]
            server.store.append(
                now,
                happened,
                by="organiser",
                connection=connection,
                kept_values=result.kept_values,
                canonical=result.judged.canonical,
            )
    return len(changed)


def _with_members(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Both reports, and of a suite those of its members, by pairs."""
    runs = zip(old.get("runs", ()), new.get("runs", ()), strict=False)
    return [(old, new), *runs]


def _result(report: dict[str, Any], name: str) -> tuple[Any, Any]:
    """A metric's number and what makes it comparable."""
    return report.get("metrics", {}).get(name), report.get("signatures", {}).get(name, {}).get("key")
