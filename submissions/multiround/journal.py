"""Every finished round on disk, so that a run that was killed goes on with the next one.

A folder beside the transcript: `header.json`, and for each round `round-N.json` and `memory-N.npy`. A round
counts when its JSON is there; it is written last, and whole or not at all.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from cir_metrics.errors import CallError
from submissions.errors import SubmissionError
from submissions.rank_file.model import write_bytes
from submissions.transcripts.transcript import Round


class Journal:
    """The finished rounds of one run.

    Args:
        folder: where they lie.
        header: what the run is; rounds of another run are not gone on with.

    Raises:
        CallError: the folder holds rounds of another run.
        SubmissionError: the system refuses to write there.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any]) -> None:
        """See the class."""
        self.folder = folder
        wanted = orjson.dumps(header, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
        path = folder / "header.json"
        if path.is_file() and path.read_bytes() != wanted:
            changed = _changed(orjson.loads(path.read_bytes()), dict(header))
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
        """What was played in a round.

        Raises:
            SubmissionError: its file is damaged.
        """
        path = self.folder / f"round-{number}.json"
        try:
            return [Round.model_validate(each) for each in orjson.loads(path.read_bytes())]
        except ValueError as error:
            raise _damaged(path) from error

    def memory(self, number: int) -> NDArray[np.float64]:
        """What the method remembered after a round.

        Raises:
            SubmissionError: its file is damaged.
        """
        path = self.folder / f"memory-{number}.npy"
        try:
            found: NDArray[np.float64] = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise _damaged(path) from error
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


def _damaged(path: Path) -> SubmissionError:
    return SubmissionError(f"{path}: it is damaged. Fix: remove {path.parent} and start anew.")


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]
