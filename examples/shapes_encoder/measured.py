"""What the encoder scores on the boards of shapes, by the same code that scores anybody's rank file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder

METHODS = ("text_only", "image_only", "image_text_sum")
QUERIES = "shapes/val"
SESSIONS = "shapes/multiturn_val"

_DIGITS = 4


def measured(encoder: Encoder) -> dict[str, Any]:
    """Scores with their intervals: each method on the queries, the sum by aggregation on the sessions.

    Args:
        encoder: of `load_encoder`.

    Returns:
        By benchmark, then by method (on the sessions by aggregation), then by metric the value and the ends
        of its interval, fractions rounded to four places; and in `intervals` how these were made.
    """
    from submissions.running.aggregation import AGGREGATIONS

    with tempfile.TemporaryDirectory(prefix="shapes-encoder-") as store:
        queries = {method: _scores(encoder, Path(store), QUERIES, method) for method in METHODS}
        sessions = {
            name: _scores(encoder, Path(store), SESSIONS, "image_text_sum", aggregation=name)
            for name in AGGREGATIONS
        }
    note = {"queries": queries[METHODS[0]].pop("note"), "sessions": sessions[AGGREGATIONS[0]].pop("note")}
    for found in (*queries.values(), *sessions.values()):
        found.pop("note", None)
    return {QUERIES: queries, SESSIONS: sessions, "intervals": note}


def _scores(encoder: Encoder, store: Path, benchmark: str, method: str, **how: str) -> dict[str, Any]:
    from submissions import make_rank_file
    from submissions.embeddings.store import EmbeddingStore
    from submissions.scoring import score
    from submissions.scoring.intervals import intervals

    made = make_rank_file(
        benchmark,
        method,
        encoder=encoder,
        store=EmbeddingStore(store),
        workers=0,
        **how,  # type: ignore[arg-type]
    )
    report = score(made)
    ends = intervals(report)
    found: dict[str, Any] = {
        name: [round(each, _DIGITS) for each in (value, ends.values[name].low, ends.values[name].high)]
        for name, value in report.metrics.items()
    }
    return {**found, "note": ends.note()}
