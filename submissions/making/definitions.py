"""CIRCLED's two definitions for sessions, by any encoder: `cir datasets verify --encoder`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.audit.verification import Result
from cir_datasets.common.stages import compared
from cir_datasets.construction.circled.definitions import Checked, check_definitions
from cir_datasets.construction.circled.ranks_file import session_traces
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.folder import portable
from cir_datasets.errors import ConstructionError
from submissions.making.backends import EncoderFeatures
from submissions.making.circled import (
    encoder_loaders,
    is_unfiltered,
    loaded_encoders,
    made_of,
    source_pictures,
)

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark

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
    made = made_of(benchmark)
    made = made if made.get("pipeline") == "circled" else {}
    settings = CircledSettings(
        **{one.name: made[one.name] for one in fields(CircledSettings) if one.name in made}
    )
    merged = {session: list(row["merged"]) for session, row in session_traces(benchmark).items()}
    checked = check_definitions(
        benchmark.rows(), list(benchmark.gallery), search, apart, settings, merged=merged
    )
    # What the run kept by its own encoders obeys both; by others, and of what it removed, all is a finding.
    kept = bool(made) and not is_unfiltered(benchmark)
    same = [
        compared(portable(one.identity)) == compared(made.get(name))
        for one, name in ((search, "encoder"), (apart, "diversity_encoder"))
    ]
    return _result(checked, first.identity.model, settings, *(kept and one for one in same))


def _result(
    checked: list[Checked], name: str, settings: CircledSettings, must_rise: bool, must_differ: bool
) -> Result:
    """How many sessions obey; a fault where those must that do not."""
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
    broken = (must_rise and falls) or (must_differ and repeats)
    if broken:
        said += ". They were made with this encoder and obeyed it. Fix: make the benchmark again"
    return Result(
        "sessions",
        "fault" if broken else "note" if falls or repeats else "ok",
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
