"""A suite's bundle of what one owner has sent for its members, offered on a page and joined by the API.

The rank files are joined as they lie in the store: each is one JSON object, and none is parsed again.
"""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import LostFileError, UploadRefusedError
from leaderboard.intake import CHUNK, cover_of
from leaderboard.intake.destination import HEAD_BYTES, words_of
from leaderboard.server import Server
from leaderboard.store.submission import State, Submission
from submissions.rank_file.content import GZIP, JSON, inside, kind_of
from submissions.rank_file.model import BUNDLE, RANK_FILE

_JUDGED: tuple[State, ...] = ("private", "published")


@dataclass(frozen=True)
class SuiteBundle:
    """What can be joined.

    Args:
        board: of the suite.
        members: a submission for each of its members, in its order.
    """

    board: Board
    members: tuple[Submission, ...]


def offered(server: Server, submission: Submission) -> SuiteBundle | None:
    """The bundle that a submission completes: its owner has one of its method for every member of a suite.

    Args:
        server: the leaderboard.
        submission: in any state.
    """
    sent_to = boards.find(submission.board)
    if submission.state not in _JUDGED or submission.baseline or sent_to is None:
        return None
    for board in boards.boards():
        if not board.takes_bundles or sent_to.benchmark not in board.benchmarks:
            continue
        ranking = [boards.of_benchmark(member)[:1] for member in board.benchmarks]
        sent = [_own(server, submission, each) for (each,) in filter(None, ranking)]
        parts = [of_member[-1] for of_member in sent if of_member]
        before = _own(server, submission, board)
        is_new = not before or any(part.received_at > before[-1].received_at for part in parts)
        if len(parts) == len(board.benchmarks) and is_new and all(_joins(server, part) for part in parts):
            return SuiteBundle(board, tuple(parts))
    return None


def join(server: Server, submission: Submission, address: str) -> tuple[Submission, bool]:
    """Send the bundle that a submission completes, to be checked; its owner publishes it.

    Args:
        server: the leaderboard.
        submission: one of its parts.
        address: where the request comes from.

    Returns:
        The bundle's submission, and whether it is new.

    Raises:
        UploadRefusedError: there is none, or its board does not take it.
        FileStoreError: files cannot be read or written now.
        LostFileError: a file is kept no longer.
    """
    bundle = offered(server, submission)
    if bundle is None:
        raise UploadRefusedError.of("wrong-state/bundle", submission=submission)
    name = f"{bundle.board.benchmark.replace('/', '-')}.json"
    paths = [server.files.local_copy(one.sha256) for one in bundle.members]
    try:
        joined = _joined(bundle.board.benchmark, paths)
        return server.intake.take(bundle.board.id, joined, cover_of(submission, name, address))
    except FileNotFoundError as error:
        raise LostFileError(f"{error.filename}: was removed at this moment. Fix: try it again.") from error


def _own(server: Server, submission: Submission, board: Board) -> list[Submission]:
    """What the owner has sent to a board of the same method, oldest first."""
    name = (submission.method or {}).get("name")
    sent = server.store.of_board(board.id, *_JUDGED)
    return sorted(
        (one for one in sent if one.owner == submission.owner and (one.method or {}).get("name") == name),
        key=lambda one: one.received_at,
    )


def _joined(suite_id: str, paths: list[Path]) -> Iterator[bytes]:
    head = {"format": BUNDLE, "format_version": 1, "suite": suite_id}
    yield json.dumps(head).encode()[:-1] + b', "runs": ['
    for number, path in enumerate(paths):
        yield b", " if number else b""
        yield from _text(path)
    yield b"]}"


def _joins(server: Server, part: Submission) -> bool:
    """Whether its file is one JSON object that says which benchmark and method it is of, as the page does."""
    renamed = any(event.kind == "corrected" and event.payload.get("name") for event in part.events)
    try:
        with server.files.local_copy(part.sha256).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except (LostFileError, FileNotFoundError):
        return False
    return not renamed and kind_of(inside(head)) == JSON and words_of(head).get("format") == RANK_FILE


def _text(path: Path) -> Iterator[bytes]:
    with path.open("rb") as raw:
        packed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
        with gzip.GzipFile(fileobj=raw) if packed else raw as text:
            yield text.read(CHUNK).removeprefix(codecs.BOM_UTF8)
            while chunk := text.read(CHUNK):
                yield chunk
