"""The board that a file is for, from the file's own words.

On its way in only the beginning of a file is looked at: a submission has a board from its first event on, and
its receipt names that board; reading a whole file is the work of the judge, which has limits. Every writer of
ours puts the header first; Parquet has it at its end, which is looked at as well. A TREC run has none: it
goes to the board whose queries its first ones are. A file that names no benchmark in any of these ways is not
taken in without a board, and its answer names the boards; nothing is acknowledged that is not recorded.
"""

from __future__ import annotations

import codecs
import functools
import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.registry import members_of, spec
from cir_datasets.registry.suites import find_suite
from cir_metrics.errors import CirError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import UploadRefusedError
from submissions.rank_file.content import JSON, inside, kind_of
from submissions.rank_file.model import BUNDLE, PARQUET, TRANSCRIPT, TREC

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec

log = logging.getLogger("leaderboard.intake")

HEAD_BYTES = 64 * 1024
"""Bytes of a file's beginning that are looked at, packed and unpacked."""
END_BYTES = 32 * 1024
"""Bytes of the end of a Parquet file that are looked at, in the place of the last of its beginning."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_SHOWN = 80
_ONE_AT_A_TIME = threading.Lock()
"""Held while a benchmark is prepared whose queries somebody's file may answer."""
_DAMAGED: set[str] = set()
"""Benchmarks that could not be prepared."""


def board_of_head(head: bytes) -> Board:
    """The board that the beginning of a file names.

    Args:
        head: the file's first bytes; more than `HEAD_BYTES` are not looked at.

    Raises:
        UploadRefusedError: it is empty, names no benchmark or suite (`missing-board`), or one that no board
            ranks.

    Example:
        >>> board_of_head(b'{"format": "cir-rank-file", "benchmark": "shapes/val", "rankings": {').id
        'shapes/val'
    """
    if not head:
        raise empty_file()
    words = words_of(head)
    owners = [named] if (named := _named(words)) else _asked(head)
    if len(owners) > 1:
        raise UploadRefusedError.of("missing-board/several", boards=", ".join(owners))
    if not owners:
        said = f"the file's first {HEAD_BYTES // 1024} KB name no benchmark, so that its board is not clear."
        start = inside(head[:HEAD_BYTES]).removeprefix(codecs.BOM_UTF8).lstrip()
        if kind_of(start) == JSON and not start.startswith((b"{", b"[")):
            said = "the file is neither JSON, JSON Lines, Parquet nor a TREC run, and names no benchmark."
        raise UploadRefusedError.of("missing-board/named-by-none", words=said, boards=", ".join(boards.ids()))
    return board_of_benchmark(owners[0], dialogue=words.get("format") == TRANSCRIPT)


def refuse_other_kinds(head: bytes, name: str) -> None:
    """Refuse a file at once that is neither JSON nor another container of rankings: a picture, an archive.

    Args:
        head: the file's first bytes.
        name: what its sender calls it; may be empty.

    Raises:
        UploadRefusedError: it is one (`unreadable`).
    """
    if inside(head).lstrip().startswith((b"{", b"[")) or kind_of(head) == PARQUET:
        return
    from submissions.formats.odd_files import other_kind  # for files alone that are not plainly a rank file

    kind = other_kind(head)
    if kind is not None:
        file = f"the file {_shown(name)}" if name else "the file"
        raise UploadRefusedError.of("unreadable", file=file, kind=kind)


def empty_file(board: Board | None = None) -> UploadRefusedError:
    """The refusal of a file without a byte.

    Args:
        board: that it was sent to, where one was chosen.
    """
    kind = "rank file or the transcript"
    if board is not None:
        kind = "rank file" if board.dialogue is None else "transcript"
    return UploadRefusedError.of("malformed", kind=kind)


def board_of_benchmark(benchmark: str, *, dialogue: bool = False) -> Board:
    """The board that ranks a benchmark; the first in the list, where several do.

    Args:
        benchmark: its id, or of a bundle the suite's.
        dialogue: whether the submission is a transcript.

    Raises:
        UploadRefusedError: none does.
    """
    found = boards.of_benchmark(benchmark, dialogue=dialogue)
    if not found and find_suite(benchmark) is not None:
        raise UploadRefusedError.of(
            "unknown-board/suite", shown=_shown(benchmark), suite=benchmark, members=_member_boards(benchmark)
        )
    if not found:
        kind = "transcripts of " if dialogue else ""
        raise UploadRefusedError.of(
            "unknown-board/benchmark", kind=kind, benchmark=_shown(benchmark), boards=", ".join(boards.ids())
        )
    return found[0]


def _member_boards(suite_id: str) -> str:
    """What can be done with a bundle whose suite has no board, where its members have some."""
    found = [board.id for member in members_of(suite_id) for board in boards.of_benchmark(member)]
    if not found:
        return ""
    return f"send its runs one by one, each in a rank file of its own, to {', '.join(found)}; or "


def benchmark_of_head(head: bytes) -> str | None:
    """The benchmark, or suite, that the beginning of a file names, whether or not it exists, or None.

    Args:
        head: the file's first bytes, as for `board_of_head`.
    """
    return _named(words_of(head))


def _named(words: Mapping[str, Any]) -> str | None:
    """What a file answers, by the first words of it."""
    named = words.get("suite" if words.get("format") == BUNDLE else "benchmark")
    return named if isinstance(named, str) else None


def named_board(head: bytes) -> Board | None:
    """The board that the beginning of a file names, or None where it names none."""
    try:
        return board_of_head(head)
    except UploadRefusedError:
        return None


def board_offered(sent_to: str, findings: Iterable[Mapping[str, Any]]) -> Board | None:
    """The board that a refused file belongs to, where it was sent to a wrong one and its findings say which.

    Args:
        sent_to: id of the board that it was sent to, which may be gone.
        findings: of its validation, as JSON values.
    """
    sent = boards.find(sent_to)
    dialogue = sent is not None and sent.dialogue is not None
    for finding in findings:
        ranking: tuple[Board, ...] = ()
        if finding["code"] == "wrong-kind" and sent is not None:
            ranking = boards.of_benchmark(sent.benchmark, dialogue=not dialogue)
        elif finding["code"] == "wrong-benchmark":
            named = (str(example.get("value")) for example in finding.get("examples") or ())
            ranking = tuple(board for each in named for board in boards.of_benchmark(each, dialogue=dialogue))
        if ranking:
            return ranking[0]
    return None


def with_offer(
    sent_to: str, file_name: str, findings: Iterable[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], str] | None:
    """The findings of a file that was sent to a wrong board, which name the right one; else None.

    Args:
        sent_to: id of the board that it was sent to.
        file_name: the sender's name for the file.
        findings: of its validation, as JSON values.

    Returns:
        The findings as JSON values, and as a terminal shows them.
    """
    from submissions.rank_file.findings import Finding, ValidationReport

    listed = [dict(finding) for finding in findings]
    board = board_offered(sent_to, listed)
    if board is None:
        return None
    for finding in listed:
        if finding["code"] in ("wrong-benchmark", "wrong-kind"):
            finding["fix"] = (
                f"send it to the board {board.id}: --board {board.id}, in the API ?board={board.id}"
            )
    report = ValidationReport(file_name, None, tuple(Finding(**finding) for finding in listed), None)
    return listed, report.text()


def with_end(head: bytes, end: Callable[[int], bytes]) -> bytes:
    """What is looked at of a file: its beginning, and of Parquet its end, too.

    Args:
        head: its first bytes.
        end: gives so many of its last ones.
    """
    if len(head) < HEAD_BYTES or kind_of(head) != PARQUET:
        return head
    return head[: HEAD_BYTES - END_BYTES] + end(END_BYTES)


def words_of(head: bytes) -> dict[str, Any]:
    """What a file says of itself before its rankings: `format`, `benchmark`, `suite`.

    Args:
        head: its first bytes, of Parquet with its last ones (`with_end`).
    """
    content = inside(head[:HEAD_BYTES])
    if kind_of(content) == PARQUET:
        from submissions.formats.parquet import KEY  # other files need nothing of it

        # The schema's metadata stand in the footer as they are; no Parquet is parsed here.
        found = re.search(re.escape(KEY) + rb"[^{\"]{1,8}\{", content)
        content = b"" if found is None else content[found.end() - 1 :]
    return _header(content)


def _asked(head: bytes) -> list[str]:
    """The benchmarks of boards that have all queries with which a TREC run begins."""
    content = inside(head[:HEAD_BYTES])
    if kind_of(content) != TREC:
        return []
    from submissions.rank_file.owners import sessions_of  # a file with a header needs none of it

    # The last line may not be whole.
    lines = content[: content.rfind(b"\n") + 1].decode("utf-8", "replace").splitlines()
    asked = sessions_of(line.split(maxsplit=1)[0] for line in lines if line.strip())
    ranked = dict.fromkeys(board.benchmark for board in boards.boards() if board.dialogue is None)
    single = [name for name in ranked if asked and find_suite(name) is None]
    return [name for name in single if asked <= _queries(spec(name))]


def _queries(of: BenchmarkSpec) -> frozenset[str]:
    from cir_datasets.prepared import ensure, last_prepared
    from leaderboard.boards.data import missing_file

    prepared = last_prepared(of)
    if prepared is None and of.id not in _DAMAGED and missing_file(of) is None:
        # A board is open as soon as its files are here, whether or not anything was judged yet.
        with _ONE_AT_A_TIME:
            try:
                prepared = last_prepared(of) or ensure(of)
            except (CirError, OSError) as error:
                _DAMAGED.add(of.id)
                log.warning("%s: its queries are not known until the next start: %s", of.id, error)
    column = "session_id" if of.kind == "multi_turn" else "query_id"
    return frozenset() if prepared is None else _column(prepared.rows_file, column)


@functools.lru_cache(32)
def _column(rows: Path, name: str) -> frozenset[str]:
    from cir_datasets.rows import read_table

    return frozenset(read_table(rows, [name]).column(name).to_pylist())


def _header(head: bytes) -> dict[str, Any]:
    """The keys with which an object begins, up to the first value that is not complete."""
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "ignore")
    read = json.JSONDecoder().raw_decode
    found: dict[str, Any] = {}
    place, expected = 0, "{"
    try:
        while "benchmark" not in found and text[place := _after_blanks(text, place)] == expected:
            key, place = read(text, _after_blanks(text, place + 1))
            place = _after_blanks(text, place)
            if not isinstance(key, str) or text[place] != ":":
                break
            found[key], place = read(text, _after_blanks(text, place + 1))
            expected = ","
    except (ValueError, IndexError, RecursionError):
        pass  # Here the beginning ends, or what is not JSON begins.
    return found


def _after_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return place if found is None else found.end()


def _shown(value: object) -> str:
    return repr(str(value)[:_SHOWN])
