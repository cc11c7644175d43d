"""Whether a challenge keeps its secret: its truth fits, is private, and lies in no place of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import cir_datasets
from cir_datasets.common.paths import challenge_home
from cir_datasets.errors import DatasetError
from cir_datasets.prepared import home_of
from cir_metrics.errors import CirError
from leaderboard.boards import Board, boards, organisers_folder
from leaderboard.challenge.making import OF_OTHERS, PUBLIC_FIELDS, PUBLIC_FILES, QUERIES_FILE
from leaderboard.queue.ground_truth import laid_over, read

_CHUNK = 2**22


def faults(board: Board) -> Iterator[str]:
    """What is wrong with a sealed board's secret, a sentence each; nothing where all is well.

    Args:
        board: a sealed board.
    """
    address = board.ground_truth or ""
    for other in boards():
        if other.sealed and other.benchmark == board.benchmark and other.id != board.id:
            yield (
                f"{board.id}: {other.id} asks for the same labels, so that the two sell twice the price. "
                "Fix: remove one of them."
            )
    try:
        content = read(address)
        benchmark = cir_datasets.load(board.benchmark)
        laid_over(benchmark, content, explain=True)
    except CirError as error:
        where = f" (board {board.id}, ground truth {address})" if isinstance(error, DatasetError) else ""
        yield f"{board.id}: {error}{where}"
        return
    if address.startswith("/"):
        for path in (Path(address), Path(address).parent):
            if path.stat().st_mode & OF_OTHERS:
                yield f"{path}: others may read it. Fix: chmod {'600' if path.is_file() else '700'} {path}"
    # Each line is unlike anything that a participant sends: with the salt it is looked for byte by byte.
    lines = [line for line in content.splitlines() if line]
    secrets = [json.loads(lines[0])["salt"].encode(), *lines[1:]]
    for folder in (
        organisers_folder().parent,
        challenge_home() / benchmark.spec.card.name,
        home_of(benchmark.spec),
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and _holds(path, secrets):
                yield f"{path}: holds lines of the ground truth. Fix: make the challenge anew without them."
    handed_out = challenge_home() / benchmark.spec.card.name
    for path in sorted(handed_out.rglob("*")):
        # In another form (packed, with other fields) nothing shows whether it holds the truth.
        if path.parent != handed_out or path.name not in PUBLIC_FILES or path.is_symlink():
            yield (
                f"{path}: `cir challenge new` did not write it, and the folder is handed out. "
                "Fix: move it elsewhere."
            )
    public = handed_out / QUERIES_FILE
    if public.is_file():
        rows = json.loads(public.read_bytes())
        secret = sorted({name for row in rows for name in row} - {*PUBLIC_FIELDS})
        if secret:
            yield f"{public}: holds the fields {', '.join(secret)}. Fix: make the challenge anew."


def _holds(path: Path, secrets: list[bytes]) -> bool:
    """Whether a file holds one of the secrets, be it across the borders of what is read at once."""
    longest = max(map(len, secrets))
    kept = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            window = kept + chunk
            if any(secret in window for secret in secrets):
                return True
            kept = window[-longest:]
    return False
