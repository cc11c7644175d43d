"""What an owner declares of the reference image afterwards: held against what the lists show, then signed.

The evidence stands in the signatures, counted over the whole lists as in a file that declares it itself, so
that no file is read again; the numbers stay, and what they compare with follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cir_metrics.catalogue import FORMAT, Declared, Signature
from leaderboard.boards import Board
from leaderboard.errors import UploadRefusedError
from leaderboard.store.submission import Submission

CODE = "reference-contradiction"
"""As validation calls it in a file."""


def with_declaration(board: Board, submission: Submission, declared: Declared) -> dict[str, Any]:
    """A submission's score report with signatures that follow a declaration.

    Args:
        board: its board.
        submission: scored.
        declared: `kept`, `removed`, or empty to take it back.

    Raises:
        UploadRefusedError: `reference-contradiction`, the lists or the protocol contradict it; `wrong-state`,
            an earlier version scored it, whose signatures do not hold the evidence.
    """
    from cir_datasets.registry.suites import read_signature

    protocols = {spec.id: spec.config.reference for spec in board.specs}

    def signed(stored: Mapping[str, Any]) -> dict[str, Any]:
        made = read_signature(stored)
        if isinstance(made, Signature):
            made = _declared(made, declared, protocols[made.benchmark])
        else:
            members = tuple(_declared(each, declared, protocols[each.benchmark]) for each in made.members)
            made = replace(made, members=members)
        return {**made.to_dict(), "text": str(made)}

    def follows(report: Mapping[str, Any]) -> dict[str, Any]:
        signatures = {name: signed(each) for name, each in report["signatures"].items()}
        runs = {"runs": [follows(run) for run in report["runs"]]} if report.get("runs") else {}
        return {**report, "signatures": signatures, **runs}

    return follows(submission.scores or {"signatures": {}})


def _declared(signature: Signature, declared: Declared, protocol: str) -> Signature:
    if signature.format < FORMAT:
        raise UploadRefusedError.of("wrong-state/format", benchmark=signature.benchmark)
    held, lists = signature.reference_held or (0, 0)
    why = ""
    if declared == "removed" and held:
        why = f"{held:,} of {lists:,} lists of {signature.benchmark} hold the reference."
    elif declared == "kept" and protocol == "removed":
        why = f"{signature.benchmark} ranks the gallery without the reference."
    if why:
        raise UploadRefusedError.of(CODE, declared=declared, why=why)
    used = signature.reference
    if used in ("kept", "removed"):
        used = "removed" if "removed" in (declared, protocol) else "kept"
    return replace(signature, reference=used, reference_declared=declared)
