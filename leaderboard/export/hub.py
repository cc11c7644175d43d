"""Standings as the Hub's own boards read them: `eval.yaml` of a dataset, `.eval_results/*.yaml` of models.

The format is a beta of the Hub: https://huggingface.co/docs/hub/eval-results. Results go through the entry of
huggingface_hub, which spells the fields. What this server cannot vouch for is left out: `docs/host.md`
names it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import yaml

from cir_datasets.publishing.hub import check_repository, is_repository
from cir_metrics.errors import CallError, did_you_mean
from leaderboard.boards import Board
from leaderboard.standings import Entry
from leaderboard.standings.views import entry_page

Standings = Sequence[tuple[Board, Sequence[Entry]]]
"""Boards with their entries, best first."""

_REVISION = re.compile(r"[0-9a-f]{40}")
_UNFOLDED = 2**20
_DIGITS = {"percent": 4, "rank": 2}
"""Digits of a fraction and of a rank: those that the boards show."""


@dataclass(frozen=True)
class Exporter:
    """Who exports, and for which dataset repository.

    Args:
        dataset: id of the dataset repository, `OWNER/NAME`.
        server: what the server calls itself.
        url: its address from outside; empty where it is not known, then results name no source.
        revision: commit of the dataset that was scored on, 40 hex digits, or None.
        framework: `evaluation_framework` of `eval.yaml`; None leaves it out.
        models: model repositories by method name or submission id.
    """

    dataset: str
    server: str
    url: str = ""
    revision: str | None = None
    framework: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what goes into paths and files.

        Raises:
            CallError: a repository's id or the revision is malformed.
        """
        for said, option in [
            (self.dataset, "--dataset"),
            *((one, "--model") for one in self.models.values()),
        ]:
            check_repository(option, said)
        if self.revision is not None and not _REVISION.fullmatch(self.revision):
            raise CallError(
                f"--revision: {self.revision!r} is not a commit. "
                "Fix: write its 40 hex digits, or leave it out."
            )


@dataclass(frozen=True)
class HubResult:
    """An entry that is exported.

    Args:
        board: where it stands.
        entry: what stands there.
        repository: its model repository, `OWNER/NAME`.
    """

    board: Board
    entry: Entry
    repository: str

    @property
    def scored_at(self) -> datetime:
        """When it was scored, UTC."""
        scored = self.entry.submission.last("scored")
        return (self.entry.received_at if scored is None else scored.at).astimezone(UTC)


def task_id(board: Board) -> str:
    """A board as the Hub's boards name a task.

    Example:
        >>> from leaderboard import boards
        >>> task_id(boards.board("shapes/val"))
        'shapes_val'
    """
    return re.sub(r"[^a-z0-9_]", "_", board.id)


def select(standings: Standings, models: Mapping[str, str]) -> tuple[list[HubResult], list[str]]:
    """The entries to export, one a board and model repository.

    Baselines stand outside, and so do entries without a rank or of a later block: their numbers do not
    compare with the others, and the Hub's boards cannot say so. An entry's repository is the one that
    `models` names, else the one to which its method's `code` links.

    Args:
        standings: the boards, entries best first.
        models: model repositories by method name or submission id.

    Returns:
        What is exported, and a sentence for each ranked entry that is not.

    Raises:
        CallError: `models` names no entry, or a name that several entries of a board have.
    """
    results: list[HubResult] = []
    left_out: list[str] = []
    ranked = [
        (board, entry)
        for board, entries in standings
        for entry in entries
        if entry.rank is not None and entry.block == entries[0].block
    ]
    _check_names(ranked, models)
    taken: set[tuple[str, str]] = set()
    for board, entry in ranked:
        repository = models.get(entry.submission.id) or models.get(entry.name) or _linked(entry)
        label = f"{board.id}: {entry.name!r} ({entry.submission.id})"
        if repository is None:
            fix = f"name it with --model {entry.submission.id}=OWNER/NAME."
            left_out.append(f"{label} has no model repository. Fix: {fix}")
        elif (board.id, repository) in taken:
            left_out.append(f"{label}: a better entry stands for {repository}; the Hub has one value a task.")
        else:
            taken.add((board.id, repository))
            results.append(HubResult(board, entry, repository))
    return results, left_out


def hub_files(boards: Sequence[Board], results: Sequence[HubResult], exporter: Exporter) -> dict[str, bytes]:
    """The files for the Hub by path: `dataset/eval.yaml`, `models/OWNER/NAME/.eval_results/TASK.yaml`.

    Args:
        boards: the tasks of the dataset.
        results: from `select`.
        exporter: who exports.

    Raises:
        CallError: the boards are not of one dataset, two have the same task id, one ranks a suite, or a lower
            value is better.

    Example:
        >>> from leaderboard import boards
        >>> exporter = Exporter("me/shapes", "A leaderboard")
        >>> files = hub_files([boards.board("shapes/val")], [], exporter)
        >>> print(files["dataset/eval.yaml"].decode().partition("tasks:")[2])
        <BLANKLINE>
        - id: shapes_val
          config: val
          split: validation
        <BLANKLINE>
    """
    _check_boards(boards)
    files = {"dataset/eval.yaml": _yaml(_benchmark(boards, exporter))}
    for one in results:
        path = f"models/{one.repository}/.eval_results/{task_id(one.board)}.yaml"
        files[path] = _yaml(_result(one, exporter))
    return files


def _benchmark(boards: Sequence[Board], exporter: Exporter) -> dict[str, Any]:
    card = boards[0].spec.card
    return {
        "name": card.title,
        "description": card.summary.strip(),
        **({} if exporter.framework is None else {"evaluation_framework": exporter.framework}),
        "tasks": [
            {"id": task_id(board), "config": board.spec.config_name, "split": board.spec.config.split}
            for board in boards
        ],
    }


def _result(one: HubResult, exporter: Exporter) -> list[dict[str, Any]]:
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    page = f"{exporter.url}{entry_page(one.board.id, one.entry.submission.id)}" if exporter.url else None
    unit = one.board.primary_unit
    value = round(one.entry.value, _DIGITS[unit])
    entry = EvalResultEntry(
        dataset_id=exporter.dataset,
        task_id=task_id(one.board),
        value=round(100 * value, 2) if unit == "percent" else value,
        dataset_revision=exporter.revision,
        date=one.scored_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        source_url=page,
        source_name=exporter.server if page else None,
        notes=f"{one.board.primary}{' in per cent' if unit == 'percent' else ''}; {one.entry.signature}",
    )
    return eval_result_entries_to_yaml([entry])


def _yaml(content: Any) -> bytes:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=_UNFOLDED).encode()


def _linked(entry: Entry) -> str | None:
    """The model repository that a method's `code` links to, or None where it links elsewhere."""
    parts = urlsplit(str(entry.method.get("code", "")))
    path = parts.path.strip("/")
    if parts.hostname != "huggingface.co" or not is_repository(path):
        return None
    return None if path.partition("/")[0] in ("datasets", "spaces") else path


def _check_names(ranked: Sequence[tuple[Board, Entry]], models: Mapping[str, str]) -> None:
    known = dict.fromkeys(name for _, entry in ranked for name in (entry.name, entry.submission.id))
    for name in models:
        if name not in known:
            hint = did_you_mean(name, tuple(known))
            raise CallError(
                f"--model: no ranked entry of these boards is named {name!r}.{hint} "
                "Fix: write the method's name, or the submission's id, as the board's page has it."
            )
        for board in dict.fromkeys(board.id for board, _ in ranked):
            same = [one.submission.id for on, one in ranked if on.id == board and one.name == name]
            if len(same) > 1:
                raise CallError(
                    f"--model: {len(same)} entries of {board} are named {name!r}, and may be of different "
                    f"people. Fix: write the id of the one that is meant: {', '.join(same)}."
                )


def _check_boards(boards: Sequence[Board]) -> None:
    cards = dict.fromkeys(board.spec.card.name for board in boards)
    if len(cards) != 1:
        raise CallError(
            f"the boards are of {len(cards)} datasets ({', '.join(cards)}), and eval.yaml describes one. "
            "Fix: name boards of one dataset, and export once for each."
        )
    tasks = [task_id(board) for board in boards]
    if len(set(tasks)) < len(tasks):
        raise CallError(
            f"two boards have the same task id ({', '.join(tasks)}). Fix: export one of them at a time."
        )
    for board in boards:
        if board.takes_bundles:
            raise CallError(
                f"board {board.id!r}: it ranks the mean of {len(board.benchmarks)} benchmarks, and a task of "
                "the Hub's format is one configuration. Fix: name the boards of its members instead."
            )
        if board.primary_direction == "lower":
            raise CallError(
                f"board {board.id!r}: lower values of {board.primary} are better, and the Hub's format "
                "cannot say so. Fix: leave this board out."
            )
