"""The pipeline: the stages of CIRCLED's construction from first to last, and the sessions that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cir_datasets.common.yaml import package_yaml
from cir_datasets.construction.circled.definitions import check_definitions
from cir_datasets.construction.circled.filters import QUALITY, counts, filtered
from cir_datasets.construction.circled.queries import queries_of, twins_of
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.turns import (
    CircledModels,
    Dialogues,
    PlayedSession,
    begun,
)
from cir_datasets.construction.workspace import Workspace
from cir_datasets.rows.checks import session_fault
from cir_datasets.rows.records import session_row

if TYPE_CHECKING:
    from pathlib import Path

    from cir_datasets.rows.benchmark import Benchmark

Row = dict[str, Any]
Fingerprint = Callable[[Sequence[str]], Sequence[str]]
"""A hash of the picture of each id."""


@dataclass(frozen=True)
class MadeSessions:
    """What a run gave.

    Args:
        workspace: the folder of its stages.
        sessions: in the published form, those that passed all filters.
        unfiltered: those that went at the rank margin or the text redundancy, where they can be rows.
        unfiltered_traces: of these the query, ranks, merged captions and the target that words aimed at last.
        verdicts: what became of each session that was begun, in order.
        played: the dialogues.
        checked: the same of the sessions, with their ranks and both definitions, replayed.
        images: the searched images, and those that sessions name beside these.
    """

    workspace: Workspace
    sessions: list[Row]
    unfiltered: list[Row]
    unfiltered_traces: list[Row]
    verdicts: list[Row]
    played: list[PlayedSession]
    checked: list[Row]
    images: list[str]

    @property
    def counts(self) -> dict[str, int]:
        """Sessions begun, removed by each filter, and kept."""
        return counts(self.verdicts)


def stages_of(settings: CircledSettings) -> dict[str, str]:
    """All stages, each with what it does."""
    known = package_yaml("cir_datasets", "construction/circled/stages.yaml")
    turns = {
        f"{stage}-{turn}": what.format(turn=turn)
        for turn in range(1, settings.max_turns + 1)
        for stage, what in known["of_a_turn"].items()
    }
    return {**known["before"], **turns, **known["behind"]}


def make_circled(
    benchmark: Benchmark,
    folder: str | Path,
    models: CircledModels,
    settings: CircledSettings,
    *,
    fingerprint: Fingerprint,
    others: Iterable[str] = (),
    inputs: Mapping[str, Any] | None = None,
) -> MadeSessions:
    """Make sessions of a single-turn benchmark; the same call goes on where a run was stopped.

    Args:
        benchmark: of single queries with public targets.
        folder: of the stages.
        models: encoders and language backend.
        settings: the choices.
        fingerprint: a hash of the picture of each id, equal for equal pictures.
        others: ids of other splits whose pictures count as earlier, for `duplicates="released"`.
        inputs: what else the result depends on, such as a digest of the pictures.

    Raises:
        ConstructionError: no sessions can be made of the benchmark, or the folder holds another run.
    """
    workspace = Workspace(
        folder,
        "circled",
        stages_of(settings),
        {
            **asdict(settings),
            "benchmark": benchmark.id,
            "benchmark_version": benchmark.version,
            "data": benchmark.data_hash,
            "gallery": benchmark.gallery_hash,
            "encoder": models.features.identity,
            "diversity_encoder": models.diversity.identity,
            "language": models.words.identity,
            **(inputs or {}),
        },
    )
    queries = workspace.rows(
        "queries", lambda: queries_of(benchmark, limit=settings.limit, seed=settings.seed)
    )
    gallery = list(benchmark.gallery or ())
    same = workspace.rows("twins", lambda: twins_of(gallery, others, fingerprint))
    twins = {row["image"]: row["same_as"] for row in same}
    searched = [image for image in gallery if image not in twins]
    vectors = np.asarray(workspace.vectors("features", lambda: models.features.images(searched)))
    sessions = begun(queries, twins, {image: row for row, image in enumerate(searched)})
    Dialogues(workspace, sessions, searched, vectors, twins, models, settings).play()
    verdicts = workspace.rows("filters", lambda: filtered(sessions, models.diversity, twins, settings))
    subset = benchmark.id.replace("/", "_")
    published = list(_published(subset, sessions, verdicts, {None}))
    kept = workspace.rows("sessions", lambda: [row for row, _ in published])
    others_left = list(_published(f"{subset}_unfiltered", sessions, verdicts, set(QUALITY)))
    rest = [row for row, _ in others_left]
    rest_traces = [_trace(row, session) for row, session in others_left]
    checked = workspace.rows(
        "definitions",
        lambda: _checked(kept, [session for _, session in published], searched, vectors, models, settings),
    )
    named = [
        image
        for row in (*kept, *rest)
        for image in (*row["ground_truth_ids"], *(turn["reference_image_id"] for turn in row["turns"]))
    ]
    images = list(dict.fromkeys((*searched, *named)))
    return MadeSessions(workspace, kept, rest, rest_traces, verdicts, sessions, checked, images)


def _published(
    subset: str, sessions: Sequence[PlayedSession], verdicts: Sequence[Row], filters: set[str | None]
) -> Iterable[tuple[Row, PlayedSession]]:
    """Sessions that some filters removed (None: none did), in the published form and as they were played.

    One whose target is the same picture as a reference is no row of a benchmark; the filter of duplicates
    removes it, and among those that an earlier filter removed it is left out here.
    """
    number = 0
    for session, verdict in zip(sessions, verdicts, strict=True):
        if verdict["filter"] not in filters:
            continue
        turns = ((row["reference"], row["caption"]) for row in session.turns)
        row = session_row(f"{subset}_{number:04d}", subset, session.targets, turns)
        if session_fault(row) is None:
            number += 1
            yield row, session


def _trace(row: Row, session: PlayedSession) -> Row:
    """What a published session does not say of its making."""
    return {
        "session_id": row["session_id"],
        "query": session.query["query"],
        "ranks": session.ranks,
        "merged": [turn["merged"] for turn in session.turns],
        "aim": session.turns[-1]["aim"],
    }


def _checked(
    kept: Sequence[Row],
    dialogues: Sequence[PlayedSession],
    searched: Sequence[str],
    vectors: Any,
    models: CircledModels,
    settings: CircledSettings,
) -> list[Row]:
    """What the definitions say of each session, beside what it was made with."""
    traces = [_trace(row, session) for row, session in zip(kept, dialogues, strict=True)]
    merged = {row["session_id"]: row["merged"] for row in traces}
    found = check_definitions(
        kept, searched, models.features, models.diversity, settings, merged=merged, vectors=vectors
    )
    return [
        {
            **row,
            "replayed_ranks": list(one.ranks),
            "fall": one.fall,
            "nearest": one.nearest,
            "consistent": one.consistent,
            "diverse": one.diverse,
        }
        for one, row in zip(found, traces, strict=True)
    ]
