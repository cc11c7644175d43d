"""Every finished round on disk, so that a run that was killed goes on with the next one.

A folder beside the transcript: `header.json`, and for each round `round-N.json` and `memory-N.npy`. A round
counts when its JSON is there; it is written last, and whole or not at all.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import TypeAdapter

from cir_datasets.common.locks import acquire, file_lock
from cir_metrics.errors import CallError
from submissions.errors import SubmissionError
from submissions.rank_file.model import write_bytes
from submissions.transcripts.transcript import Round

_ROUNDS = TypeAdapter(list[Round])


class Journal:
    """The finished rounds of one run.

    Args:
        folder: where they lie.
        header: what the run is; rounds of another run are not gone on with.
        sessions: the ids of its sessions, in the order in which they are played.
        shape: of what the method remembers; None where only its rows are known, one a session.

    Raises:
        CallError: the folder holds rounds of another run.
        SubmissionError: its header is damaged, or the system refuses to write there.
    """

    def __init__(
        self,
        folder: Path,
        header: Mapping[str, Any],
        sessions: Sequence[str],
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """See the class."""
        self.folder = folder
        self._sessions = list(sessions)
        self._going = self._sessions
        self._shape = shape
        said = {**header, "sessions": self._sessions}
        wanted = orjson.dumps(said, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
        path = folder / "header.json"
        if self.rounds() and not path.is_file():
            raise _damaged(path)
        if path.is_file() and path.read_bytes() != wanted:
            changed = _changed(_header(path), said)
            raise CallError(
                f"{folder}: it holds rounds of another run ({', '.join(changed)} differ). "
                "Fix: call as before to go on with it, remove the folder, or name another --out."
            )
        write_bytes(wanted, path)

    def rounds(self) -> int:
        """How many rounds are finished."""
        number = 0
        while (self.folder / f"round-{number + 1}.json").is_file():
            number += 1
        return number

    def read(self, number: int) -> list[Round]:
        """What was played in a round; rounds are read in their order, from the first.

        Raises:
            SubmissionError: its file is damaged, or holds another round or other sessions.
        """
        path = self.folder / f"round-{number}.json"
        try:
            found = _ROUNDS.validate_json(path.read_bytes())
        except (OSError, ValueError) as error:
            raise _damaged(path) from error
        going = self._sessions if number == 1 else self._going
        if [(each.session, each.round) for each in found] != [(session, number) for session in going]:
            raise _damaged(path)
        self._going = [each.session for each in found if not each.end]
        return found

    def memory(self, number: int) -> NDArray[np.float64]:
        """What the method remembered after a round.

        Raises:
            SubmissionError: its file is damaged, or holds numbers of another type or shape.
        """
        path = self.folder / f"memory-{number}.npy"
        try:
            with path.open("rb") as file:
                found: NDArray[np.float64] = np.lib.format.read_array(file, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise _damaged(path) from error
        shape = self._shape or (len(self._sessions), *found.shape[1:2])
        if found.dtype != np.float64 or found.ndim != 2 or found.shape != shape:
            raise _damaged(path)
        return found

    def write(self, number: int, rounds: list[Round], memory: NDArray[np.float64]) -> None:
        """Keep a round; when this returns, it is on disk."""
        buffer = io.BytesIO()
        np.save(buffer, memory, allow_pickle=False)
        write_bytes(buffer.getvalue(), self.folder / f"memory-{number}.npy")
        write_bytes(
            orjson.dumps([each.model_dump() for each in rounds]), self.folder / f"round-{number}.json"
        )
        # Only the last memory is gone on from.
        (self.folder / f"memory-{number - 1}.npy").unlink(missing_ok=True)

    def remove(self) -> None:
        """Take it away: the transcript holds everything."""
        remove_rounds(self.folder)


def remove_rounds(folder: Path) -> None:
    """Take a journal's own files away, and the folder where nothing else is in it."""
    for pattern in ("round-*.json", "memory-*.npy", "header.json"):
        for path in folder.glob(pattern):
            path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


@contextmanager
def only_program(written: Path, program: str) -> Iterator[None]:
    """No other program plays into the same journal or transcript meanwhile.

    Who holds it may take it again, as a command does that plays and then writes the transcript.

    Args:
        written: the journal or the transcript; a hidden lock lies beside it.
        program: what another one is called in the message.

    Raises:
        CallError: another program holds it, or another thread.
        SubmissionError: the system refuses to write there.
    """
    target = written.resolve()
    place = target.with_name(f".{target.name}.lock")
    lock = file_lock(place, shared=True)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        alone = acquire(lock)
    except OSError as error:
        raise SubmissionError(f"{written}: cannot be written: {error.strerror or error}.") from error
    if (
        not alone and not place.exists()
    ):  # some systems say of a folder that takes no files that it is not there
        raise SubmissionError(f"{written}: cannot be written. Fix: name another folder.")
    if not alone:
        raise CallError(
            f"{written}: another {program} writes it. Fix: wait until that one ends, or name another file."
        )
    try:
        yield
    finally:
        if lock.lock_counter <= 1:
            # Before the release: afterwards it may be the lock of the next program.
            with suppress(OSError):
                place.unlink()
        lock.release()


def _header(path: Path) -> dict[str, Any]:
    try:
        found = orjson.loads(path.read_bytes())
    except ValueError as error:
        raise _damaged(path) from error
    if not isinstance(found, dict):
        raise _damaged(path)
    return found


def _damaged(path: Path) -> SubmissionError:
    return SubmissionError(f"{path}: it is damaged. Fix: remove {path.parent} and run again.")


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]
