"""`--dry-run` of the commands that rank anew: what a language backend would be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import Options, option
from cir_datasets.common.terminal import echo
from submissions.commands import as_text

if TYPE_CHECKING:
    from cir_datasets.common.estimates import Work
    from submissions.running.options import RunOptions

_CALL_SECONDS = 2.0
"""About what an answer takes; most questions of a re-ranker show two pictures."""


class EstimatesReranking(Options):
    """Of commands that say before the work what a re-ranker would ask."""

    dry_run: bool = option(
        False, "Print an estimate of calls, tokens and hours of the re-ranker, and rank nothing."
    )
    picture_tokens: int | None = option(None, "Of --dry-run: tokens of a picture.", min=1, in_file=True)
    call_seconds: float | None = option(
        None, f"Of --dry-run: seconds of a call ({_CALL_SECONDS:g}).", min=0.001, in_file=True
    )

    @property
    def tokens(self) -> int:
        """Tokens of a picture."""
        from cir_datasets.common.estimates import PICTURE_TOKENS

        return self.picture_tokens or PICTURE_TOKENS

    def check_dry_run(self, out: Path | None) -> None:
        """Refuse what an estimate, or a run, would ignore.

        Raises:
            CallError: `--out` beside `--dry-run`, or one of its figures without it.
        """
        from cir_metrics.errors import CallError

        figures = self.by_option("picture_tokens", "call_seconds")
        if self.dry_run and out is not None:
            raise CallError("--dry-run writes no file. Fix: leave --out or --dry-run out.")
        if figures and not self.dry_run:
            raise CallError(
                f"{', '.join(figures)}: only beside --dry-run. Fix: leave it out, or add --dry-run."
            )

    def print_estimate(
        self, found: Mapping[str, Sequence[Work]], settings: RunOptions, *, as_json: bool
    ) -> None:
        """Print estimates by benchmark: a table each, or one list of JSON."""
        from cir_datasets.common.tables import render
        from submissions.running.rerank_estimate import estimate_of

        seconds = self.call_seconds or _CALL_SECONDS
        estimates = {name: estimate_of(name, work, settings, seconds) for name, work in found.items()}
        if as_json:
            rows = [{"benchmark": name, **row} for name, of in estimates.items() for row in of.values()]
            echo(as_text(rows))
            return
        for estimate in estimates.values():
            echo(render([estimate.table()], "table"))
