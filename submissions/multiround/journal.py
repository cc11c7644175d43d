"""Every finished round of a dialogue is a stage on disk: a run that was killed goes on with the next one."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from cir_datasets.common import locks
from cir_datasets.common.stages import Stages
from cir_metrics.errors import CallError
from submissions.errors import SubmissionError
from submissions.transcripts.transcript import Round

_ROUNDS = TypeAdapter(list[Round])


class Journal(Stages):
    """The finished rounds of one run, a stage each; beside the last one lies what the method remembered.

    Args:
        folder: where they lie.
        header: what the run is, of a transcript; rounds of another run are not gone on with.
        sessions: the ids of its sessions, in the order in which they are played.
        shape: of what the method remembers.

    Raises:
        CallError: the folder holds rounds of another run, or of an earlier version.
        SubmissionError: it is damaged, or the system refuses to write there.
    """

    error = SubmissionError
    call_error = CallError
    noun = "dialogue"
    anew = "remove {folder} and run again"

    def __init__(
        self, folder: Path, header: Mapping[str, Any], sessions: Sequence[str], shape: tuple[int, ...]
    ) -> None:
        """See the class."""
        if (folder / "header.json").is_file():
            raise CallError(
                f"{folder}: it holds a dialogue as versions up to 0.1 kept it, which is not read any more. "
                "Fix: end it with 0.1, or move the folder away and play it anew: answers of models are in "
                "their cache; what a person wrote is in the round-*.json there."
            )
        names = [f"round-{number}" for number in range(1, header["settings"]["max_rounds"] + 1)]
        settings = {**header, "sessions": list(sessions)}
        super().__init__(folder, "dialogue", dict.fromkeys(names, "a round"), settings)
        self._shape = shape

    def rounds(self) -> int:
        """How many rounds are finished."""
        return sum(state.finished for state in self.states())

    def read(self, number: int) -> list[Round]:
        """What was played in a round.

        Raises:
            SubmissionError: its file is damaged.
        """
        name = f"round-{number}"
        try:
            return _ROUNDS.validate_python(self.rows(name, list))
        except ValidationError as error:
            raise self._damaged(self.path(name, ".jsonl")) from error

    def memory(self, number: int) -> NDArray[np.float64]:
        """What the method remembered after a round.

        Raises:
            SubmissionError: its file is damaged, or holds numbers of another type or shape.
        """
        path = self.kept(f"round-{number}")
        try:
            memory: NDArray[np.float64] = np.load(path, allow_pickle=False)
        except (OSError, EOFError, ValueError) as error:
            raise self._damaged(path) from error
        if memory.shape != self._shape or memory.dtype != np.float64:
            raise self._damaged(path)
        return memory

    def write(self, number: int, rounds: list[Round], memory: NDArray[np.float64]) -> None:
        """Keep a round."""
        buffer = io.BytesIO()
        np.save(buffer, memory, allow_pickle=False)
        self.keep(f"round-{number}", buffer.getvalue())
        self.write_rows(f"round-{number}", [each.model_dump() for each in rounds])
        if number > 1:
            # Only the last memory is gone on from.
            self.kept(f"round-{number - 1}").unlink(missing_ok=True)


def remove_rounds(folder: Path) -> None:
    """Take a journal's files away, and the folder where nothing else is in it."""
    if Journal.begun(folder):
        Journal.existing(folder).remove()


def only_program(written: Path, program: str) -> AbstractContextManager[None]:
    """No other program plays into the same journal or transcript meanwhile.

    Args:
        written: the journal or the transcript; a hidden lock lies beside it.
        program: what another one is called in the message.

    Raises:
        CallError: another program holds it, or another thread.
        SubmissionError: the system refuses to write there.
    """
    target = written.resolve()
    lock = target.with_name(f".{target.name}.lock")
    return locks.only_program(
        written, lock, error=SubmissionError, busy=CallError, program=program, forget=True
    )
