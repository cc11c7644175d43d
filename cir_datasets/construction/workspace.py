"""A pipeline's folder: what each stage has made is on disk, can be read by a person, and is made once.

    make.json             the pipeline, its settings, and of each finished stage its rows and hash
    01-captions.jsonl     a stage of rows, one JSON object a line
    02-features.npy       a stage of vectors
    03-frames.parts/      the finished chunks of a stage that has not ended yet
    benchmark/            the result

A file appears whole or not at all. A run that was killed goes on with the first chunk that is not there. What
a stage gives depends on the settings and on the stages before it alone, so that a resumed run ends with the
same bytes. Rows that could not be made are rows with a `failed`, which says why.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.locks import acquire, file_lock
from cir_datasets.common.progress import step_progress
from cir_datasets.construction.backends import Engine, Here
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.folders import CARD_FILE
from cir_metrics.errors import UnknownNameError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROW_FORMAT = 1
FAILED = "failed"
"""Field of a row that could not be made: why."""

CALLED = "called"
"""Field of an identity that is shown and not compared: names of folders, and where a server listens.

That of the settings themselves is what the result is called, and how it is cut; each call may say it anew."""

BENCHMARK = "benchmark"
"""Folder of the result, in that of the run."""

_STATE = "make.json"
_FORGOTTEN = "forgotten"
"""In `make.json`, the first stage whose files are being removed; an ended removal is gone on with."""
_LOCK = ".lock"
RESULT = "result"
"""What lies behind the last stage: from there on, all stages are taken as they are."""
_In = TypeVar("_In")
Row = dict[str, Any]


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


class Workspace:
    """The folder of one run of a pipeline.

    Args:
        folder: where everything is written; made where it is missing.
        pipeline: `circled`, `cirr`, `zerosight` or `fisd`.
        stages: by name, in order, what each does in a line.
        settings: everything that the result depends on, as JSON values: options, seeds, hashes of the
            input, identities of encoders and language backends. A `called` in these is shown alone: a run
            goes on where it differs.

    Raises:
        ConstructionError: the folder holds a run with other settings or is damaged, a stage's file was
            changed since it was made, or the system refuses to write there.
    """

    def __init__(
        self, folder: str | Path, pipeline: str, stages: Mapping[str, str], settings: Mapping[str, Any]
    ) -> None:
        """See the class."""
        self.folder = Path(folder).expanduser().absolute()
        self._stages = dict(stages)
        plain: Row = orjson.loads(orjson.dumps(dict(settings)))
        wanted: Row = {"format": ROW_FORMAT, "pipeline": pipeline, "stages": self._stages, "settings": plain}
        self._state = _read_state(self.folder)
        if self._state is None:
            self._state = {**wanted, "done": {}}
            self._save()
            return
        there = {key: self._state.get(key) for key in wanted}
        if compared(there) != compared(wanted):
            changed = ", ".join(_changed(there, wanted))
            raise ConstructionError(
                f"{self.folder}: it holds a run with other settings ({changed}). Fix: call it as before to "
                "go on with that run, or name another folder."
            )
        if self._state["settings"].get(CALLED) != plain.get(CALLED):
            self._state["settings"] = {**self._state["settings"], CALLED: plain.get(CALLED)}
            self._save()
        if _FORGOTTEN in self._state:
            _remove_forgotten(self.folder, self._state)
        for name in self._done:
            self._check(name)

    @property
    def _done(self) -> dict[str, Row]:
        done: dict[str, Row] = (self._state or {})["done"]
        return done

    def rows(self, stage: str, make: Callable[[], Iterable[Row]]) -> list[Row]:
        """The rows of a stage, made where they are not there.

        Args:
            stage: its name.
            make: gives the rows; JSON values alone. What it asks of language backends is in their cache.
        """
        path = self.path(stage, ".jsonl")
        if not path.is_file():
            return self._write_rows(stage, make())
        if stage not in self._done:
            # It was written, and the run ended before that was noted.
            self._note(stage, _noted(path))
        return _read_rows(path)

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
        parts = path.with_suffix(".parts")
        if path.is_file():
            shutil.rmtree(parts, ignore_errors=True)
            return self.rows(stage, list)
        chunks = [items[at : at + size] for at in range(0, len(items), size)]
        files = [parts / f"{number:06d}.jsonl" for number in range(len(chunks))]
        to_do = [(number, chunk) for number, chunk in enumerate(chunks) if not files[number].is_file()]
        with step_progress(f"{stage}: {self._stages[stage]}", len(chunks)) as advance:
            advance(len(chunks) - len(to_do))
            for number, rows in (engine or Here()).map(make, to_do):
                self._write(files[number], _lines(rows))
                advance(1)
        whole = self._write_rows(stage, (row for file in files for row in _read_rows(file)))
        shutil.rmtree(parts, ignore_errors=True)
        return whole

    def vectors(self, stage: str, make: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
        """The vectors of a stage, shape (n, dimensions), float32, read from disk as they are needed."""
        import numpy as np

        path = self.path(stage, ".npy")
        if not path.is_file():
            buffer = io.BytesIO()
            np.save(buffer, np.ascontiguousarray(make(), np.float32), allow_pickle=False)
            self._write(path, buffer.getvalue())
        try:
            found: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise _damaged(path) from error
        if stage not in self._done:
            self._note(stage, _noted(path))
        return found

    def replaced(self, stage: str, rows: Iterable[Row]) -> list[Row]:
        """The rows of a finished stage written anew; those behind it are forgotten before (`forget_from`).

        A run that ends meanwhile leaves the old rows or the new ones, whole.
        """
        if self._done.pop(stage, None) is not None:
            self._save()
        return self._write_rows(stage, rows)

    def path(self, stage: str, ending: str) -> Path:
        """The file of a stage.

        Raises:
            UnknownNameError: the pipeline has no such stage.
        """
        return self.folder / f"{number_of(self._stages, stage):02d}-{stage}{ending}"

    def states(self) -> list[StageState]:
        """How far each stage is."""
        return states_of(self.folder)

    def _write_rows(self, stage: str, rows: Iterable[Row]) -> list[Row]:
        """The rows as their file has them."""
        path = self.path(stage, ".jsonl")
        lines = [orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows]
        content = b"".join(lines)
        self._write(path, content)
        written: list[Row] = [orjson.loads(line) for line in lines]
        self._note(stage, _note_of(path, written, hashlib.sha256(content).hexdigest()))
        return written

    def _note(self, stage: str, noted: Row) -> None:
        self._done[stage] = noted
        self._save()

    def _check(self, stage: str) -> None:
        path = self.folder / self._done[stage]["file"]
        if not path.is_file() or _sha256(path) != self._done[stage]["sha256"]:
            what = "was changed since it was made" if path.is_file() else "is gone"
            again = f"`cir make again {self.folder} --from "
            behind = [*self._stages, RESULT][number_of(self._stages, stage)]
            taken = f" {again}{behind}` takes your changes." if path.is_file() else ""
            raise ConstructionError(
                f"{path}: it {what}, and what comes later was made from it. Fix: put it back, or run "
                f"{again}{stage}`, which makes it anew.{taken}"
            )

    def _save(self) -> None:
        _write_state(self.folder, self._state or {})

    def _write(self, path: Path, content: bytes) -> None:
        try:
            write_whole(path, content)
        except OSError as error:
            raise _unwritable(path, error) from error


@contextmanager
def only_run(folder: str | Path) -> Iterator[None]:
    """Hold a pipeline's folder for the length of the block.

    Raises:
        ConstructionError: another program works there, or the system refuses to write there.
    """
    target = Path(folder).expanduser().absolute()
    lock = file_lock(target / _LOCK)
    try:
        target.mkdir(parents=True, exist_ok=True)
        alone = acquire(lock)
    except OSError as error:
        raise ConstructionError(
            f"{target}: cannot be written: {error.strerror}. Fix: name another folder."
        ) from error
    if not alone:
        raise ConstructionError(
            f"{target}: another program works there. Fix: wait for it, or name another folder."
        )
    try:
        yield
    finally:
        lock.release()


def has_run(folder: str | Path) -> bool:
    """Whether a pipeline has begun in a folder."""
    return _read_state(Path(folder).expanduser().absolute()) is not None


def states_of(folder: str | Path) -> list[StageState]:
    """How far each stage of a pipeline's folder is.

    Raises:
        ConstructionError: no pipeline has written there.
    """
    state = _existing(folder)
    root = Path(folder).expanduser().absolute()
    found = []
    for number, (name, what) in enumerate(state["stages"].items(), start=1):
        done = state["done"].get(name)
        if done is not None:
            file = root / done["file"]
            found.append(StageState(name, what, file, file.is_file(), done["rows"], done["failed"]))
            continue
        file = root / f"{number:02d}-{name}.jsonl"
        parts = len(list(file.with_suffix(".parts").glob("[0-9]*.jsonl")))
        found.append(StageState(name, what, file, finished=False, parts=parts))
    return found


def settings_of(folder: str | Path) -> tuple[str, Row]:
    """The pipeline of a folder and its settings.

    Raises:
        ConstructionError: no pipeline has written there.
    """
    state = _existing(folder)
    return str(state["pipeline"]), dict(state["settings"])


def forget_from(folder: str | Path, stage: str) -> list[Path]:
    """Remove what a stage and all later ones have made, benchmarks too; the next run makes them anew.

    What a person has changed in the files of earlier stages is taken as it is. `result` keeps all stages, so
    that changes of the last one are taken too.

    Returns:
        The files that were removed.

    Raises:
        ConstructionError: no pipeline has written there, or a changed file cannot be gone on with: a line is
            not a JSON object, or lacks a field that the stage's rows have.
        UnknownNameError: the pipeline has no such stage.
    """
    state = _existing(folder)
    root = Path(folder).expanduser().absolute()
    first = number_of([*state["stages"], RESULT], stage)
    removed = _remove_forgotten(root, state) if _FORGOTTEN in state else []
    earlier = [name for name in list(state["stages"])[: first - 1] if name in state["done"]]
    state["done"] = {name: _taken(root, name, state["done"][name]) for name in earlier}
    state[_FORGOTTEN] = stage
    _write_state(root, state)
    return removed + _remove_forgotten(root, state)


def _remove_forgotten(root: Path, state: Row) -> list[Path]:
    """Remove the files of the stages that the state no longer has, and the mark that says so."""
    first = number_of([*state["stages"], RESULT], state[_FORGOTTEN])
    removed = []
    for number, name in list(enumerate(state["stages"], start=1))[first - 1 :]:
        for path in sorted(root.glob(f"{number:02d}-{name}.*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            removed.append(path)
    for card in sorted(root.glob(f"*/{CARD_FILE}")):
        # Without its card a folder is not a benchmark: nobody takes the old result for the new one.
        card.unlink()
        removed.append(card)
    del state[_FORGOTTEN]
    _write_state(root, state)
    return removed


def _write_state(root: Path, state: Row) -> None:
    try:
        write_whole(root / _STATE, orjson.dumps(state, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise _unwritable(root / _STATE, error) from error


def _unwritable(path: Path, error: OSError) -> ConstructionError:
    return ConstructionError(
        f"{path}: cannot be written: {error.strerror}. Fix: make room, or name another folder."
    )


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


def _existing(folder: str | Path) -> Row:
    root = Path(folder).expanduser().absolute()
    found = _read_state(root)
    if found is None:
        raise ConstructionError(f"{root}: no pipeline has written there. Fix: name a folder of `cir make`.")
    return found


def _read_state(root: Path) -> Row | None:
    path = root / _STATE
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise ConstructionError(f"{root}: it is a file. Fix: name a folder.") from error
    except (OSError, orjson.JSONDecodeError) as error:
        raise _damaged(path) from error
    whole = isinstance(found, dict) and all(
        isinstance(found.get(key), dict) for key in ("stages", "settings", "done")
    )
    if not whole or not isinstance(found.get("pipeline"), str):
        raise _damaged(path)
    checked: Row = found
    return checked


def _noted(path: Path) -> Row:
    """What is written down of a finished stage's file."""
    if path.suffix == ".npy":
        import numpy as np

        found = np.load(path, mmap_mode="r", allow_pickle=False)
        return {"file": path.name, "sha256": _sha256(path), "rows": len(found), "failed": 0}
    return _note_of(path, _read_rows(path), _sha256(path))


def _note_of(path: Path, rows: Sequence[Row], sha256: str) -> Row:
    made = [row for row in rows if not row.get(FAILED)]
    return {
        "file": path.name,
        "sha256": sha256,
        "rows": len(rows),
        "failed": len(rows) - len(made),
        "fields": sorted(set.intersection(*map(set, made))) if made else [],
    }


def _taken(root: Path, stage: str, noted: Row) -> Row:
    """What is written down of an earlier stage's file, which a person may have changed.

    Raises:
        ConstructionError: it cannot be gone on with.
    """
    path = root / noted["file"]
    if not path.is_file() or _sha256(path) == noted["sha256"]:
        return noted
    again = f"or run `cir make again {root} --from {stage}`, which makes the stage anew"
    if path.suffix == ".jsonl":
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise ConstructionError(
                    f"{path}, line {number}: it is not JSON: {error}. Fix: correct the line, {again}."
                ) from error
            if not isinstance(row, dict):
                raise ConstructionError(
                    f"{path}, line {number}: it is not a JSON object. Fix: correct the line, {again}."
                )
            lacking = [] if row.get(FAILED) else [key for key in noted.get("fields", []) if key not in row]
            if lacking:
                raise ConstructionError(
                    f"{path}, line {number}: it has no {', '.join(lacking)}, which each row of the stage "
                    f"has. Fix: add it, remove the line, or write the reason into {FAILED}; {again}."
                )
    try:
        return _noted(path)
    except ValueError as error:
        raise ConstructionError(
            f"{path}: it does not hold vectors any more: {error}. Fix: put it back, {again}."
        ) from error


def _read_rows(path: Path) -> list[Row]:
    try:
        return [orjson.loads(line) for line in path.read_bytes().splitlines()]
    except (OSError, orjson.JSONDecodeError) as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> ConstructionError:
    return ConstructionError(
        f"{path}: it is damaged. Fix: remove the folder {path.parent}, or name another one; answers of "
        "language backends are kept in their cache."
    )


def _lines(rows: Iterable[Row]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _changed(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Which settings differ, by name."""
    for key in wanted:
        if key != "settings" and there[key] != wanted[key]:
            yield key
    one, two = compared(there["settings"] or {}), compared(wanted["settings"])
    yield from (key for key in sorted({*one, *two}) if one.get(key) != two.get(key))


def compared(value: Any) -> Any:
    """A JSON value without what is shown alone, as two runs are compared."""
    if isinstance(value, dict):
        return {key: compared(inside) for key, inside in value.items() if key != CALLED}
    return [compared(inside) for inside in value] if isinstance(value, list) else value
