"""CIRCLED's two definitions for sessions, by any encoder: `cir datasets verify --encoder`."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.audit.verification import Result
from cir_datasets.construction.circled.definitions import Checked, check_definitions
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.errors import ConstructionError
from submissions.making.backends import EncoderFeatures
from submissions.making.circled import encoder_loaders, loaded_encoders, source_pictures

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

RANKS_FILE = "ranks.jsonl"
"""Beside a made benchmark: ranks and merged captions of its sessions."""
_SHOWN = 3


def definitions_result(
    benchmark: Benchmark,
    encoder: str | None,
    diversity: str | None = None,
    images: str | Path | None = None,
    *,
    device: str = "auto",
) -> Result:
    """Replay the sessions of a benchmark, and say how many obey both definitions.

    Args:
        benchmark: of sessions.
        encoder: of the search, a name or folder; None is the shipped one, on shapes.
        diversity: tells captions apart; None as for `cir make circled`.
        images: folder of the pictures; None looks below `CIR_IMAGES`.
        device: where encoders run.

    Raises:
        ConstructionError: it has no sessions, or no list of its gallery.
    """
    if not benchmark.multi_turn or benchmark.gallery is None:
        raise ConstructionError(
            f"{benchmark.id}: both definitions are about sessions over a gallery whose list is available. "
            "Fix: leave --encoder out."
        )
    first, second = loaded_encoders(*encoder_loaders(benchmark, encoder, diversity, device=device))
    search, apart = (
        EncoderFeatures(one, lambda ids: source_pictures(benchmark, images, ids)) for one in (first, second)
    )
    settings = _settings(benchmark)
    checked = check_definitions(
        benchmark.rows(), list(benchmark.gallery), search, apart, settings, merged=_merged(benchmark)
    )
    return _result(checked, first.identity.model, settings)


def _settings(benchmark: Benchmark) -> CircledSettings:
    """The settings that `cir make circled` made sessions with; of others the paper's."""
    if benchmark.spec.card.source.publisher != "folder":
        return CircledSettings()
    from cir_datasets.registry.folders import folder_of, read_folder_card

    made = read_folder_card(folder_of(benchmark.spec.card.name)).made
    if made.get("pipeline") != "circled":
        return CircledSettings()
    return CircledSettings(
        **{one.name: made[one.name] for one in fields(CircledSettings) if one.name in made}
    )


def _merged(benchmark: Benchmark) -> dict[str, list[str]]:
    """The merged captions that sessions were made with, where they lie beside the benchmark."""
    if benchmark.spec.card.source.publisher != "folder":
        return {}
    from cir_datasets.registry.folders import folder_of

    path = folder_of(benchmark.spec.card.name) / RANKS_FILE
    if not path.is_file():
        return {}
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {row["session_id"]: list(row["merged"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConstructionError(
            f"{path}: it is damaged. Fix: run `cir make circled` again, or remove it."
        ) from error


def _result(checked: list[Checked], name: str, settings: CircledSettings) -> Result:
    falls = [one.session for one in checked if not one.consistent]
    repeats = [one.session for one in checked if not one.diverse]
    said = (
        f"by {name}: {len(checked) - len(falls):,} of {len(checked):,} sessions are epsilon-consistent "
        f"({settings.epsilon}), {len(checked) - len(repeats):,} are tau-diverse ({settings.tau:g})"
    )
    for what, sessions in (("fall", falls), ("repeat", repeats)):
        if sessions:
            more = ", ..." if len(sessions) > _SHOWN else ""
            said += f"; {what}: {', '.join(sessions[:_SHOWN])}{more}"
    return Result(
        "sessions",
        "note" if falls or repeats else "ok",
        said,
        {
            one.session: {
                "ranks": list(one.ranks),
                "fall": one.fall,
                "nearest": one.nearest,
                "consistent": one.consistent,
                "diverse": one.diverse,
            }
            for one in checked
        },
    )
