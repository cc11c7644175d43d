"""A run in stages: what each stage has made is on disk, can be read by a person, and is made once.

    make.json               what the run is, its settings, and of each finished stage its rows and hash
    01-captions.jsonl       a stage of rows, one JSON object a line
    02-features.npy         a stage of vectors
    03-frames.part.jsonl    the finished chunks of a stage that has not ended yet, a line each

A file appears whole or not at all; chunks are appended, and synced in batches. A run that was killed goes on
with the first stage or chunk that is not there. What a stage gives depends on the settings and on the stages
before it alone, so that a resumed run ends with the same bytes. Rows that could not be made are rows with a
`failed`, which says why.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import orjson

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.locks import only_program
from cir_datasets.common.progress import step_progress
from cir_metrics.errors import CirError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FAILED = "failed"
"""Field of a row that could not be made: why."""

CALLED = "called"
"""Field of an identity that is shown and not compared: names of folders, and where a server listens.

That of the settings themselves is what the result is called, and how it is cut; each call may say it anew."""

RESULT = "result"
"""What lies behind the last stage: from there on, all stages are taken as they are."""

STATE = "make.json"
_FORMAT = 1
_FORGOTTEN = "forgotten"
"""In the state, the first stage whose files are being removed; an ended removal is gone on with."""
_SYNC_SECONDS = 1.0
"""Between two times that what was appended is written to the disk itself, which takes milliseconds."""
_SHOWN = 60
"""Characters of a setting that a message shows."""
_In = TypeVar("_In")
_Out = TypeVar("_Out")
Row = dict[str, Any]


class Engine(Protocol):
    """Where chunks of a stage are worked on."""

    def map(
        self, work: Callable[[_In], _Out], chunks: Iterable[tuple[int, _In]]
    ) -> Iterator[tuple[int, _Out]]:
        """Each chunk's number and result, in any order."""


class Here:
    """The engine that works on one chunk after the other in this process."""

    def map(
        self, work: Callable[[_In], _Out], chunks: Iterable[tuple[int, _In]]
    ) -> Iterator[tuple[int, _Out]]:
        """Each chunk's number and result, in order."""
        for number, chunk in chunks:
            yield number, work(chunk)


@dataclass(frozen=True)
class StageState:
    """How far a stage is.

    Args:
        name: the stage.
        what: what it does, in a line.
        file: what it writes, whether it is there or not.
        finished: whether it is done.
        rows: of its file; of a stage of vectors their number.
        failed: rows among them with a `failed`.
        parts: finished chunks of a stage that has not ended.
    """

    name: str
    what: str
    file: Path
    finished: bool
    rows: int = 0
    failed: int = 0
    parts: int = 0

    @property
    def state(self) -> str:
        """`done`, `begun` or `to do`."""
        return "done" if self.finished else "begun" if self.parts else "to do"


class Stages:
    """The folder of a run. What makes runs has a class of its own, for the errors and words of its messages.

    Args:
        folder: where everything is written; made where it is missing.
        kind: what makes the run: `circled` or `dialogue`, say.
        stages: by name, in order, what each does in a line.
        settings: everything that the result depends on, as JSON values: options, seeds, hashes of the
            input, identities of encoders and language backends. A `called` in these is shown alone: a run
            goes on where it differs.

    Raises:
        CirError: of `error` or `call_error`: the folder holds a run with other settings or is damaged, a
            stage's file was changed since it was made, or the system refuses to write there.
    """

    error: ClassVar[type[CirError]] = CirError
    """Of a folder that is damaged or cannot be written."""
    call_error: ClassVar[type[CirError]] = CirError
    """Of a call that another run, or another program, is in the way of."""
    noun: ClassVar[str] = "run"
    room: ClassVar[str] = "make room, or name another folder."
    """What a user does where nothing can be written."""
    anew: ClassVar[str] = "remove the folder and run again"
    """What makes a stage anew, with `{folder}` and `{stage}`."""
    _synced = 0.0
    taken: ClassVar[str] = ""
    """What takes a person's changes, with `{folder}` and `{stage}`, which is the one behind."""

    def __init__(
        self, folder: str | Path, kind: str, stages: Mapping[str, str], settings: Mapping[str, Any]
    ) -> None:
        """See the class."""
        self.folder = Path(folder).expanduser().absolute()
        plain: Row = orjson.loads(orjson.dumps(dict(settings)))
        asked: Row = {"format": _FORMAT, "pipeline": kind, "stages": dict(stages), "settings": plain}
        state = self._read_state()
        if state is None:
            self._state = {**asked, "done": {}}
            files = (self.path(name, ending) for name in stages for ending in (".jsonl", ".npy"))
            if any(file.is_file() for file in files):
                # Of which settings they are, nobody knows any more.
                raise self._damaged(self.folder / STATE)
            self._save()
            return
        self._state = state
        other = [key for key in ("format", "pipeline", "stages") if state.get(key) != asked[key]]
        self.refuse_other(self.folder, state["settings"], plain, other)
        if state["settings"].get(CALLED) != plain.get(CALLED):
            self._state["settings"] = {**state["settings"], CALLED: plain.get(CALLED)}
            self._save()
        if _FORGOTTEN in state:
            self._remove_forgotten()
        for path in self._half_written():
            path.unlink(missing_ok=True)
        for name in self._done:
            self._check(name)

    @classmethod
    def existing(cls, folder: str | Path) -> Self:
        """The run of a folder, whatever its settings; its files are not looked at.

        Raises:
            CirError: of `error`: there is none, or its state is damaged.
        """
        run = cls.__new__(cls)
        run.folder = Path(folder).expanduser().absolute()
        state = run._read_state()
        if state is None:
            raise cls.error(f"{run.folder}: it holds no {cls.noun}. Fix: name the folder of one.")
        run._state = state
        return run

    @classmethod
    def begun(cls, folder: str | Path) -> bool:
        """Whether a folder holds a run."""
        return (Path(folder).expanduser() / STATE).is_file()

    @classmethod
    def held(cls, folder: str | Path, *, forget: bool = False) -> AbstractContextManager[None]:
        """Hold a run's folder for the length of the block.

        Args:
            folder: made where it is missing.
            forget: whether nothing of the lock is left there.

        Raises:
            CirError: of `call_error`: another program works there; of `error`: nothing can be written there.
        """
        target = Path(folder).expanduser().absolute()
        return only_program(target, target / ".lock", error=cls.error, busy=cls.call_error, forget=forget)

    @classmethod
    def refuse_other(
        cls, folder: Path, there: Mapping[str, Any], asked: Mapping[str, Any], other: Sequence[str] = ()
    ) -> None:
        """Refuse what a folder holds where it was made with other settings, which the message names.

        Args:
            folder: which holds it.
            there: its settings.
            asked: those of the call.
            other: what else differs.

        Raises:
            CirError: of `call_error`: they differ in more than what they are called.
        """
        one, two = compared(dict(there)), compared(dict(asked))
        keys = [key for key in sorted({*one, *two}) if one.get(key) != two.get(key)]
        words = [*other, *(_difference(key, one.get(key), two.get(key)) for key in keys)]
        if words:
            raise cls.call_error(
                f"{folder}: it holds a {cls.noun} with other settings ({'; '.join(words)}). Fix: call it as "
                "before to go on with it, remove the folder, or name another one."
            )

    @property
    def kind(self) -> str:
        """What made the run."""
        return str(self._state["pipeline"])

    @property
    def settings(self) -> Row:
        """Everything that the result depends on."""
        return dict(self._state["settings"])

    @property
    def _stages(self) -> dict[str, str]:
        stages: dict[str, str] = self._state["stages"]
        return stages

    @property
    def _done(self) -> dict[str, Row]:
        done: dict[str, Row] = self._state["done"]
        return done

    def is_done(self, stage: str) -> bool:
        """Whether a stage is done."""
        return stage in self._done

    def rows(self, stage: str, make: Callable[[], Iterable[Row]]) -> list[Row]:
        """The rows of a stage, made where they are not there.

        Args:
            stage: its name.
            make: gives the rows; JSON values alone. What it asks of language backends is in their cache.
        """
        path = self.path(stage, ".jsonl")
        if not path.is_file():
            return self.write_rows(stage, make())
        # A file that is not noted was written, and the run ended before that was.
        return self._parsed(path) if stage in self._done else self._note(stage, path)

    def rows_in_chunks(
        self,
        stage: str,
        items: Sequence[_In],
        make: Callable[[Sequence[_In]], list[Row]],
        *,
        size: int,
        engine: Engine | None = None,
    ) -> list[Row]:
        """The rows of a stage that is long: every finished chunk is kept.

        Args:
            stage: its name.
            items: what rows are made of, in order.
            make: the rows of some items; it sees one chunk, so that what it gives does not depend on where
                an earlier run ended. An engine of several machines must be able to pickle it.
            size: items of a chunk, from 1.
            engine: where chunks are worked on; None is this process.
        """
        path = self.path(stage, ".jsonl")
        appended = path.with_suffix(".part.jsonl")
        if path.is_file():
            made = self.rows(stage, list)
        else:
            chunks = [items[at : at + size] for at in range(0, len(items), size)]
            there = self._chunks(path, cut=True)
            to_do = [(number, chunk) for number, chunk in enumerate(chunks) if number not in there]
            with step_progress(f"{stage}: {self._stages[stage]}", len(chunks)) as advance:
                advance(len(chunks) - len(to_do))
                for number, rows in (engine or Here()).map(make, to_do):
                    there[number] = rows
                    self._append(appended, [number, rows])
                    advance(1)
            made = self.write_rows(stage, (row for number in range(len(chunks)) for row in there[number]))
        appended.unlink(missing_ok=True)
        shutil.rmtree(path.with_suffix(".parts"), ignore_errors=True)
        return made

    def vectors(self, stage: str, make: Callable[[], NDArray[Any]]) -> NDArray[np.float32]:
        """The vectors of a stage, shape (n, dimensions), float32, read from disk as they are needed."""
        import numpy as np

        path = self.path(stage, ".npy")
        if not path.is_file():
            buffer = io.BytesIO()
            np.save(buffer, np.ascontiguousarray(make(), np.float32), allow_pickle=False)
            self._write_stage(path, stage, buffer.getvalue())
        try:
            vectors: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise self._damaged(path) from error
        if stage not in self._done:
            self._note(stage, path)
        return vectors

    def write_rows(self, stage: str, rows: Iterable[Row]) -> list[Row]:
        """Write the rows of a stage, also where there are some; as their file has them.

        A run that ends meanwhile leaves the old rows or the new ones, whole.
        """
        content = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        return self._write_stage(self.path(stage, ".jsonl"), stage, content)

    def _write_stage(self, path: Path, stage: str, content: bytes) -> list[Row]:
        if self._done.pop(stage, None) is not None:
            # First: of a file that is not noted, nobody says that a person has changed it.
            self._save()
        # On the disk itself, before what it was made of is removed.
        self._write(path, content, durable=True)
        return self._note(stage, path, content)

    def keep(self, stage: str, content: bytes, *, durable: bool = False) -> None:
        """Keep what a stage goes on from, in a form of its own and whole.

        Args:
            stage: its name.
            content: of the file `kept`.
            durable: whether it must also outlive a loss of power.
        """
        self._write(self.kept(stage), content, durable=durable)

    def kept(self, stage: str) -> Path:
        """The file of `keep`, whether it is there or not."""
        return self.path(stage, ".part")

    def path(self, stage: str, ending: str) -> Path:
        """The file of a stage.

        Raises:
            UnknownNameError: the run has no such stage.
        """
        return self.folder / f"{number_of(self._stages, stage):02d}-{stage}{ending}"

    def states(self) -> list[StageState]:
        """How far each stage is."""
        states = []
        for name, what in self._stages.items():
            done = self._done.get(name)
            if done is not None:
                file = self.folder / done["file"]
                states.append(StageState(name, what, file, file.is_file(), done["rows"], done["failed"]))
            else:
                file = self.path(name, ".jsonl")
                states.append(StageState(name, what, file, finished=False, parts=len(self._chunks(file))))
        return states

    def forget_from(self, stage: str) -> list[Path]:
        """Remove what a stage and all later ones have made, results too; the next run makes them anew.

        What a person has changed in the files of earlier stages is taken as it is. `result` keeps all stages,
        so that changes of the last one are taken too.

        Returns:
            The files that were removed.

        Raises:
            CirError: of `error`: a changed file cannot be gone on with: a line is not a JSON object, or lacks
                a field that the stage's rows have.
            UnknownNameError: the run has no such stage.
        """
        first = number_of([*self._stages, RESULT], stage)
        removed = self._remove_forgotten() if _FORGOTTEN in self._state else []
        earlier = [name for name in list(self._stages)[: first - 1] if name in self._done]
        self._state["done"] = {name: self._with_changes(name) for name in earlier}
        self._state[_FORGOTTEN] = stage
        self._save()
        return removed + self._remove_forgotten()

    def remove(self) -> None:
        """Take the run away, and its folder where nothing else is in it."""
        # First the state: a kill meanwhile leaves a run that begins anew, not one whose files are gone.
        self._state["done"] = {}
        self._save()
        for number, name in enumerate(self._stages, start=1):
            for path in self.folder.glob(f"{number:02d}-{name}.*"):
                path.unlink()
        for path in (self.folder / STATE, *self._half_written()):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _half_written(self) -> Iterable[Path]:
        """What a kill in the midst of writing has left of the state and of stages."""
        names = [f"{number:02d}-{name}.*" for number, name in enumerate(self._stages, start=1)]
        return [path for name in (STATE, *names) for path in self.folder.glob(f".{name}-{'[0-9a-f]' * 8}")]

    def _results(self) -> Iterable[Path]:
        """What is removed with any stage, for it was made of the last one."""
        return ()

    def _remove_forgotten(self) -> list[Path]:
        """Remove the files of the stages that the state no longer has, and the mark that says so."""
        first = number_of([*self._stages, RESULT], self._state[_FORGOTTEN])
        removed = []
        for number, name in list(enumerate(self._stages, start=1))[first - 1 :]:
            removed += sorted(self.folder.glob(f"{number:02d}-{name}.*"))
        removed += self._results()
        for path in removed:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        del self._state[_FORGOTTEN]
        self._save()
        return removed

    def _chunks(self, path: Path, *, cut: bool = False) -> dict[int, list[Row]]:
        """The finished chunks of a stage, by number; what a kill has left of a line is cut off for good.

        Those of versions up to 0.1 are files of a folder.
        """
        chunks = {
            int(part.stem): self._parsed(part) for part in path.with_suffix(".parts").glob("[0-9]*.jsonl")
        }
        appended = path.with_suffix(".part.jsonl")
        try:
            content = appended.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if cut and len(whole) < len(content):
                os.truncate(appended, len(whole))
            return chunks | dict(orjson.loads(line) for line in whole.splitlines())
        except FileNotFoundError:
            return chunks
        except (OSError, ValueError, TypeError) as error:
            raise self._damaged(appended) from error

    def _append(self, path: Path, line: list[Any]) -> None:
        """Add a line, which outlives the process; a loss of power costs those of the last second."""
        with write_errors(path, self.error, self.room), path.open("ab") as file:
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            file.flush()
            if time.monotonic() - self._synced >= _SYNC_SECONDS:
                os.fsync(file.fileno())
                self._synced = time.monotonic()

    def _note(self, stage: str, path: Path, content: bytes | None = None) -> list[Row]:
        """Write down that a stage is done; its rows."""
        self._done[stage], rows = self._noted(path, path.read_bytes() if content is None else content)
        self._save()
        return rows

    def _noted(self, path: Path, content: bytes) -> tuple[Row, list[Row]]:
        """What is written down of a finished stage's file, and its rows."""
        noted: Row = {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}
        if path.suffix == ".npy":
            import numpy as np

            number = len(np.load(path, mmap_mode="r", allow_pickle=False))
            return {**noted, "rows": number, "failed": 0}, []
        rows = self._parsed(path, content)
        good = [row for row in rows if not row.get(FAILED)]
        fields = sorted(set.intersection(*map(set, good))) if good else []
        return {**noted, "rows": len(rows), "failed": len(rows) - len(good), "fields": fields}, rows

    def _check(self, stage: str) -> None:
        path = self.folder / self._done[stage]["file"]
        if not path.is_file() or _sha256(path) != self._done[stage].get("sha256"):
            what = "was changed since it was made" if path.is_file() else "is gone"
            anew = self.anew.format(folder=self.folder, stage=stage)
            behind = [*self._stages, RESULT][number_of(self._stages, stage)]
            taken = self.taken.format(folder=self.folder, stage=behind) if path.is_file() else ""
            raise self.error(
                f"{path}: it {what}, and what comes later was made from it. Fix: put it back, or {anew}."
                f"{taken}"
            )

    def _with_changes(self, stage: str) -> Row:
        """What is written down of an earlier stage's file, which a person may have changed.

        Raises:
            CirError: of `error`: it cannot be gone on with.
        """
        noted = self._done[stage]
        path = self.folder / noted["file"]
        if not path.is_file() or _sha256(path) == noted.get("sha256"):
            return noted
        anew = f"or {self.anew.format(folder=self.folder, stage=stage)}"
        lines = path.read_bytes().splitlines() if path.suffix == ".jsonl" else ()
        for number, line in enumerate(lines, start=1):
            problem = _problem(line, noted.get("fields", []))
            if problem is not None:
                raise self.error(f"{path}, line {number}: it {problem}, {anew}.")
        try:
            return self._noted(path, path.read_bytes())[0]
        except ValueError as error:
            raise self.error(
                f"{path}: it does not hold vectors any more: {error}. Fix: put it back, {anew}."
            ) from error

    def _read_state(self) -> Row | None:
        path = self.folder / STATE
        try:
            state = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise self.error(f"{self.folder}: it is a file. Fix: name a folder.") from error
        except (OSError, orjson.JSONDecodeError) as error:
            raise self._damaged(path) from error
        whole = isinstance(state, dict) and all(
            isinstance(state.get(key), dict) for key in ("stages", "settings", "done")
        )
        if (
            not whole
            or not isinstance(state.get("pipeline"), str)
            or not all(name in state["stages"] and _is_note(note) for name, note in state["done"].items())
        ):
            raise self._damaged(path)
        checked: Row = state
        return checked

    def _parsed(self, path: Path, content: bytes | None = None) -> list[Row]:
        try:
            return [orjson.loads(line) for line in (content or path.read_bytes()).splitlines()]
        except (OSError, orjson.JSONDecodeError) as error:
            raise self._damaged(path) from error

    def _save(self) -> None:
        self._write(
            self.folder / STATE,
            orjson.dumps(self._state, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        )

    def _write(self, path: Path, content: bytes, *, durable: bool = False) -> None:
        with write_errors(path, self.error, self.room):
            write_whole(path, content, durable=durable)

    def _damaged(self, path: Path) -> CirError:
        return self.error(
            f"{path}: it is damaged. Fix: remove the folder {path.parent}, or name another one; answers of "
            "language backends are kept in their cache."
        )


def _is_note(note: Any) -> bool:
    """Whether this can have been written of a finished stage."""
    kinds = {"file": str, "rows": int, "failed": int}
    return isinstance(note, dict) and all(isinstance(note.get(key), kind) for key, kind in kinds.items())


def number_of(stages: Collection[str], stage: str) -> int:
    """A stage's place, from 1.

    Raises:
        UnknownNameError: there is no such stage.

    Example:
        >>> number_of(["captions", "features"], "features")
        2
    """
    if stage not in stages:
        raise UnknownNameError(
            f"no stage {stage!r}.{did_you_mean(stage, tuple(stages))} There are:\n"
            + textwrap.fill(", ".join(stages), 100, initial_indent="  ", subsequent_indent="  ")
        )
    return list(stages).index(stage) + 1


def compared(value: Any) -> Any:
    """A JSON value without what is shown alone, as two runs are compared."""
    if isinstance(value, dict):
        return {key: compared(inside) for key, inside in value.items() if key != CALLED}
    return [compared(inside) for inside in value] if isinstance(value, list) else value


def _difference(key: str, there: Any, asked: Any) -> str:
    """A setting that differs, or what differs inside it, with both values where a line has room for them."""
    if isinstance(there, dict) and isinstance(asked, dict):
        inside = [name for name in sorted({*there, *asked}) if there.get(name) != asked.get(name)]
        return "; ".join(_difference(name, there.get(name), asked.get(name)) for name in inside)
    short = [repr(value) for value in (there, asked) if not isinstance(value, dict | list)]
    if len(short) < 2 or max(map(len, short)) > _SHOWN:
        return key
    return f"{key} {short[0]}, not {short[1]}"


def _problem(line: bytes, fields: Iterable[str]) -> str | None:
    """What is wrong with a line that a person may have changed, and how to mend it."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return f"is not JSON: {error}. Fix: correct the line"
    if not isinstance(row, dict):
        return "is not a JSON object. Fix: correct the line"
    lacking = [] if row.get(FAILED) else [key for key in fields if key not in row]
    if lacking:
        return (
            f"has no {', '.join(lacking)}, which each row of the stage has. Fix: add it, remove the line, or "
            f"write the reason into {FAILED};"
        )
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
