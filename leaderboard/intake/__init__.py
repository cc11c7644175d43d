"""The way in: a file and what was written beside it become a submission, acknowledged only when durable.

Nothing is parsed here but the beginning of a file that comes without a board. What can be refused without
reading the file (an unknown board, data that is not on this server, too many bytes, none at all) is refused
before there is a submission.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.errors import UploadRefusedError, refuse_unknown
from leaderboard.identity import LOCAL
from leaderboard.intake.destination import (
    HEAD_BYTES,
    board_of_head,
    empty_file,
    named_board,
    refuse_other_kinds,
)
from leaderboard.intake.life import RULES, act
from leaderboard.intake.quotas import Quotas
from leaderboard.settings import Settings
from leaderboard.store import Store
from leaderboard.store.files import FileStore, IncomingFile
from leaderboard.store.submission import Submission
from leaderboard.store.sweeping import Unnamed
from submissions.rank_file.texts import file_name as shown_file_name
from submissions.rank_file.texts import plain_text

CHUNK = 1 << 20
"""Bytes read at a time."""

_LENGTHS = {"submitter": 80, "reason": 300}
_FILE_NAME_LENGTH = 120
_TRUE = ("true", "yes", "1", "on")
_FALSE = ("false", "no", "0", "off")


@dataclass(frozen=True)
class Cover:
    """What comes beside the file.

    Args:
        file_name: the sender's name for the file.
        submitter: who sends it, may be empty; shown.
        method: fields of the method block, for what the file's own block leaves out.
        baseline: whether the organisers put it up as a baseline.
        owner: whose it is; empty for the organisers, and on a leaderboard of one person.
        publish: whether it goes onto the board when it is scored; else its owner publishes it afterwards.
        edit_hash: hash of the key of its private link, or None.
        address: where it comes from, for the limit of uploads an hour.
    """

    file_name: str = "upload.json"
    submitter: str = ""
    method: Mapping[str, Any] = field(default_factory=dict)
    baseline: bool = False
    owner: str = LOCAL
    publish: bool = True
    edit_hash: str | None = None
    address: str = ""


def cover_of(submission: Submission, file_name: str, address: str) -> Cover:
    """The cover of what is sent on from a submission, for the same owner: to be checked, and not published.

    Args:
        submission: what was sent before.
        file_name: the name of what is sent now.
        address: where the request comes from.
    """
    return Cover(
        file_name=file_name,
        submitter=submission.submitter,
        method=submission.form,
        owner=submission.owner,
        publish=False,
        edit_hash=submission.edit_hash,
        address=address,
    )


def yes_or_no(written: str, name: str) -> bool | None:
    """What a form's text says: yes, no, or nothing (None).

    Raises:
        UploadRefusedError: it is another word.

    Example:
        >>> yes_or_no("true", "publish"), yes_or_no(" No", "publish"), yes_or_no("", "publish")
        (True, False, None)
    """
    written = written.strip().lower()
    if not written:
        return None
    if written not in _TRUE + _FALSE:
        raise UploadRefusedError.of("bad-metadata/yes-or-no", name=name, written=written[:40])
    return written in _TRUE


@functools.cache
def method_kinds() -> dict[str, str]:
    """The fields that a method declares, each with the JSON type of its value.

    Example:
        >>> method_kinds()["zero_shot"], method_kinds()["trained_on"]
        ('boolean', 'array')
    """
    from submissions.rank_file.model import declared_fields

    by_field = {}
    for name, schema in declared_fields().items():
        kinds = {part.get("type") for part in schema.get("anyOf", [schema])}
        by_field[name] = next((kind for kind in ("array", "boolean", "integer") if kind in kinds), "string")
    return by_field


def method_from_form(form: Mapping[str, str]) -> dict[str, Any]:
    """The method's fields from a form's texts; empty ones are left out.

    Args:
        form: texts by field name; several values of `trained_on` and `text_fields` are separated by commas,
            `zero_shot` is yes or no, `skipped_images` a number.

    Raises:
        UploadRefusedError: a field is refused: `zero_shot` is neither yes nor no, a link is not https, ...

    Example:
        >>> method_from_form({"name": " CLIP sum ", "zero_shot": "yes", "paper": "", "trained_on": "a, b"})
        {'name': 'CLIP sum', 'zero_shot': True, 'trained_on': ['a', 'b']}
    """
    method: dict[str, Any] = {}
    for name, kind in method_kinds().items():
        value: Any = form.get(name, "").strip()
        if kind == "boolean":
            value = yes_or_no(value, name)
        elif kind == "array":
            value = [part.strip() for part in value.split(",") if part.strip()]
        elif kind == "integer" and value.isdecimal() and len(value) < 10:
            value = int(value)
        if value not in ("", [], None):
            method[name] = value
    return checked_method(method)


def checked_method(method: Mapping[str, Any]) -> dict[str, Any]:
    """The method's fields as they are kept and shown, where each may be.

    Args:
        method: fields by name; the name itself may be missing.

    Raises:
        UploadRefusedError: a field is unknown or refused.
    """
    from pydantic import ValidationError

    from submissions.rank_file.model import Method

    try:
        checked = Method.model_validate({"name": "unnamed", **method})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            refuse_unknown([place], Method.model_fields, "field of a method")
        reason = first["msg"].removeprefix("Value error, ")
        raise UploadRefusedError.of("bad-metadata/field", place=place, reason=reason) from error
    # As the model writes them: in NFC, notes on one line.
    return checked.model_dump(include=set(method))


def corrected_method(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A method's fields after a correction: a JSON merge patch (RFC 7396), in which null removes a field.

    Args:
        before: the fields as they stand.
        changes: those that change.

    Raises:
        UploadRefusedError: a field is unknown or refused, or the name would be removed.

    Example:
        >>> corrected_method({"name": "Ours", "notes": "x"}, {"notes": None, "backbone": "mine"})
        {'name': 'Ours', 'backbone': 'other: mine'}
    """
    if "name" in changes and changes["name"] is None:
        raise UploadRefusedError.of("bad-metadata/no-name")
    left = {name: value for name, value in {**before, **changes}.items() if value is not None}
    return {name: value for name, value in checked_method(left).items() if value not in ("", [], None)}


class Intake:
    """Takes files in.

    Args:
        settings: how large a file may be.
        store: where submissions are recorded.
        files: where files go.
        data_problem: says why a board's data is not on this server, or None where it is.
        quotas: how much may come in; None where everybody is the organiser.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        files: FileStore,
        data_problem: Callable[[Board], str | None],
        quotas: Quotas | None = None,
    ) -> None:
        """Remember the rooms that it connects."""
        self._settings = settings
        self._store = store
        self._files = files
        self._data_problem = data_problem
        self._quotas = quotas

    def board(self, board_id: str | None, head: bytes = b"", name: str = "") -> Board:
        """The board asked for, or the one that the file names, when it takes submissions.

        Args:
            board_id: the board asked for; None or empty goes by the file.
            head: the file's first bytes, see `destination`.
            name: what its sender calls the file; may be empty.

        Raises:
            UploadRefusedError: the file is a picture, an archive or the like; neither names a board of this
                server, it is paused or no phase of it is open, or its data is not on this server.
        """
        refuse_other_kinds(head, name)
        board = known_board(board_id) if board_id else board_of_head(head)
        paused = self._store.paused(board.id)
        if paused is not None:
            raise UploadRefusedError.of("board-paused", board=board, why=paused)
        closed = board.closed(datetime.now(UTC))
        if closed is not None:
            raise UploadRefusedError.of("phase-closed", board=board, why=closed)
        problem = self._data_problem(board)
        if problem is not None:
            named = named_board(head)
            right = named.id if named is not None and self._data_problem(named) is None else None
            raise UploadRefusedError.of(
                "board-unavailable" if right is None else "board-unavailable/other",
                board=board,
                why=problem,
                board_offered=right,
            )
        return board

    def incoming(self, board: Board | None = None) -> IncomingFile:
        """A file on its way in; writing more bytes to it than its board, or any board, takes is refused."""
        return self._files.incoming(lambda size: self.check_size(size, board))

    def check_size(self, size: int, board: Board | None = None) -> None:
        """Refuse a file of that many bytes where they are too many for its board, or for any.

        Raises:
            UploadRefusedError: `too-large`.
        """
        of_server = self._settings.max_upload_bytes
        limit = of_server if board is None else board.max_upload_bytes(of_server)
        if size > limit:
            whose = "this server" if board is None or limit == of_server else f"the board {board.id}"
            raise UploadRefusedError.of("too-large", limit=limit, whose=whose)

    def accept(self, board: Board, incoming: IncomingFile, cover: Cover) -> tuple[Submission, bool]:
        """Make a complete incoming file a submission; when this returns, file and record are durable.

        A file that its owner has sent before, to have it checked, is published where that is asked now; what
        they declare of the reference now is corrected before that.

        Returns:
            The submission, and whether it is new (the same bytes for the same board are one submission).

        Raises:
            UploadRefusedError: the file is empty, a text beside it is refused, the method's name belongs to
                another owner, its sender or their address has sent all that they may, or what is declared of
                the reference cannot be declared of what they have sent before.
        """
        quotas, owner = self._quotas, cover.owner
        try:
            submitter = self._checked(board, incoming, cover)
        except UploadRefusedError:
            if quotas is not None:
                quotas.count(cover.address, incoming.size)
            raise
        incoming.keep()
        of_quotas: dict[str, Any] = {}
        if quotas is not None:
            of_quotas["arrive"] = lambda connection: quotas.arrive(connection, cover.address, incoming.size)
            of_quotas["admit"] = lambda connection: quotas.admit(connection, owner, board)
        try:
            submission, new = self._store.receive(
                board=board.id,
                sha256=incoming.sha256,
                size=incoming.size,
                file_name=shown_file_name(cover.file_name, _FILE_NAME_LENGTH, "upload.json"),
                submitter=submitter,
                form=cover.method,
                baseline=cover.baseline,
                owner=owner,
                publish=cover.publish,
                edit_hash=cover.edit_hash,
                put_back=incoming.keep_again,
                **of_quotas,
                since=None if cover.baseline else board.phase_began(datetime.now(UTC)),
            )
        except UploadRefusedError:
            # Too much has come from this address, or another file took the last place since it was checked.
            Unnamed(self._store.database, self._files).remove(incoming.sha256)
            raise
        if not new:
            submission = _with_declaration(self._store, submission, cover.method.get("reference"))
        if cover.publish and submission.state == "private":
            submission = act(self._store, submission, "publish", "owner")
        return submission, new

    def _checked(self, board: Board, incoming: IncomingFile, cover: Cover) -> str:
        """Refuse what need not be kept to be refused; the submitter as they are kept."""
        if incoming.size == 0:
            raise empty_file(board)
        if self._quotas is not None:
            try:
                self._quotas.check(cover.owner, board)
            except UploadRefusedError:
                # What was sent before may need no judging; whether it does is found where it is recorded.
                if not self._store.has_sent(board.id, incoming.sha256, cover.owner):
                    raise
        return checked_line(cover.submitter, "submitter")

    def take(self, board_id: str | None, chunks: Iterable[bytes], cover: Cover) -> tuple[Submission, bool]:
        """Take a whole file in, chunk by chunk; without a board it goes to the one that it names.

        Raises:
            UploadRefusedError: see `board`, `incoming` and `accept`.
        """
        coming = iter(chunks)
        head = b""
        while len(head) < HEAD_BYTES and (chunk := next(coming, b"")):
            head += chunk
        board = self.board(board_id, head, cover.file_name)
        incoming = self.incoming(board)
        try:
            incoming.write(head)
            for chunk in coming:
                incoming.write(chunk)
            return self.accept(board, incoming, cover)
        finally:
            incoming.discard()


def _with_declaration(store: Store, submission: Submission, declared: str | None) -> Submission:
    """What was sent before, with what its owner declares of the reference now.

    Raises:
        UploadRefusedError: it cannot be corrected now, or its file or its lists say otherwise.
    """
    method = submission.form if submission.method is None else submission.method
    if not declared or method.get("reference") == declared:
        return submission
    if submission.state not in RULES["correct"].states:
        raise UploadRefusedError.of("wrong-state/declaration", submission=submission, declared=declared)
    return act(store, submission, "correct", "owner", method={**method, "reference": declared})


def chunks_of(path: Path) -> Iterable[bytes]:
    """The bytes of a file, a chunk at a time."""
    with path.open("rb") as handle:
        while chunk := handle.read(CHUNK):
            yield chunk


def known_board(board_id: str) -> Board:
    """The board of an id that came from outside.

    Raises:
        UploadRefusedError: there is no such board.
    """
    try:
        return boards.board(board_id)
    except UnknownNameError as error:
        raise UploadRefusedError.of(
            "unknown-board", board_id=board_id[:80], boards=", ".join(boards.ids())
        ) from error


def checked_line(text: str, name: str) -> str:
    """A reason or a submitter's name, as one plain line.

    Args:
        text: what was written.
        name: `reason` or `submitter`.

    Raises:
        UploadRefusedError: it is too long, or holds characters that are not shown.
    """
    try:
        return plain_text(text, _LENGTHS[name])
    except ValueError as error:
        raise UploadRefusedError.of("bad-metadata/line", name=name, error=error) from error
