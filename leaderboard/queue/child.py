"""One file judged in a fresh process, which limits itself before it reads anything.

`judge` starts `python -m leaderboard.queue.child`, gives it a request as JSON on stdin, and reads its stdout,
a JSON object a line: first that the benchmark is loaded (`begun`), then the answer. What the process did not
survive after it had begun, it did not survive because of the file: a limit is a verdict, anything else a
crash. Before that it is trouble of the machine, as a signal from outside always is. What it writes on stderr
goes to the server's log only.
"""

from __future__ import annotations

import ctypes
import json
import logging
import math
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cir_datasets.common.terminal import visible
from cir_metrics.errors import CirError
from leaderboard.errors import ChildCrashedError, PassingError, is_passing

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from leaderboard.boards import Board
    from leaderboard.dialogues import BoardDialogue
    from leaderboard.queue.judging import Validated
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.scoring.score_report import ScoreReport

log = logging.getLogger("leaderboard.child")

_MI = 2**20
_START_SECONDS = 60
"""What loading a benchmark may take, of time and of processor time, before the file's own limits count."""
_EXPLAINING_SECONDS = 10
"""Processor time for the explanation of a refused file."""
_SPARE_BYTES = 64 * _MI
"""Memory beyond the limit in which a process can still say that it met the limit."""
_LARGEST_FILE = 64 * _MI
"""Bytes of a file that the process writes; the values of ZeroSight's queries are 4 MiB."""
_MOST_FILES = 128
_BEGUN = {"begun": True}
_LONGEST_ANSWER = 8 * _MI
_LONGEST_LOG = 16 * 1024
_CHUNK = 64 * 1024
_LOOK_SECONDS = 0.2
"""How often a waiting parent looks whether it is to stop."""

_ENVIRONMENT = frozenset(
    (
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "HF_HOME",
        "HOME",
        "LANG",
        "LD_LIBRARY_PATH",
        "PATH",
        "PYTHONPATH",
        "TMPDIR",
        "TZ",
    )
)
"""What is passed on beside `CIR_...`: where things lie. Passwords and tokens are kept from hostile files."""
_TRUTH_PREFIX = "CIR_LEADERBOARD_TRUTH_"
"""`CIR_LEADERBOARD_TRUTH_HF_TOKEN` is `HF_TOKEN` where a sealed board's ground truth is read, only there."""
_PLAIN = {
    # Threads and pools claim addresses by the gigabyte, as many as the machine has processors.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}

_NO_MEMORY = re.compile(rb"bad_alloc|memory allocation of \d+ bytes failed|MemoryError")
"""What C++, Rust and Python say before they abort because an allocation failed."""

_FROM_OUTSIDE = (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
"""Signals by which people, service managers and kernels without memory end a process."""

Limited = Literal["memory", "cpu", "wall"]


@dataclass(frozen=True)
class Limits:
    """What judging one file may take.

    Args:
        memory_bytes: addresses that the process may have, Python and the benchmark included.
        cpu_seconds: processor time, from when the benchmark is loaded.
        wall_seconds: time, from when the benchmark is loaded.
    """

    memory_bytes: int = 1536 * _MI
    cpu_seconds: int = 60
    wall_seconds: float = 120.0


@dataclass(frozen=True)
class Judged:
    """What became of a file.

    Args:
        outcome: whether it is refused or has a score.
        findings: what validation found, as JSON values: errors of a refused file, warnings of another.
        text: the findings as a terminal shows them.
        explanation: what a refused file says and its numbers under each reading, or empty.
        method: the method's fields as shown, the file's own completed by the form; None of a refused file.
        claims: of these fields that the file itself holds: `oracle`, `zero_shot`, `trained_on`.
        report: the score report as JSON values, or None.
        canonical: hash of its rankings (`submissions.rank_file.canonical`), or None.
        values: where the values per query were written, or None: a sealed board has none.
    """

    outcome: Literal["rejected", "scored"]
    findings: list[dict[str, Any]]
    text: str
    explanation: str = ""
    method: dict[str, Any] | None = None
    claims: dict[str, Any] | None = None
    report: dict[str, Any] | None = None
    canonical: str | None = None
    values: Path | None = None


def judge(
    file: Path,
    benchmark: str,
    *,
    file_name: str,
    form: Mapping[str, Any],
    limits: Limits = Limits(),
    values_to: Path | None = None,
    ground_truth: str | None = None,
    dialogue: BoardDialogue | None = None,
    right_by: Sequence[str] | None = None,
    stopped: threading.Event | None = None,
) -> Judged:
    """Validate and score one file in a process of its own, and wait for it.

    Args:
        file: the stored copy.
        benchmark: id of the benchmark, or suite; it is prepared already.
        file_name: the sender's name for the file, which stands in the messages.
        form: the method's fields as they were sent beside the file.
        limits: what this may take; a file that needs more is rejected with the finding `too-costly`.
        values_to: where the values per query are kept (see `judging.write_values`), or None.
        ground_truth: address of a sealed board's ground truth, which the process alone reads. Its answer is
            rounded then, and neither values nor what it writes on stderr are kept.
        dialogue: of a board that takes transcripts; None of one that takes rank files.
        right_by: the metrics that say which images are right answers; None keeps no rankings' beginnings
            beside the values (see `leaderboard.queue.beginnings`).
        stopped: ends the process when it is set.

    Raises:
        ChildCrashedError: the process began with the file, and ended without an answer.
        PassingError: there is no process, no memory, no space or no benchmark at the moment, the process was
            ended from outside, or `stopped` is set; the file is to be judged again.
    """
    request = {
        "file": str(file),
        "benchmark": benchmark,
        "file_name": file_name,
        "form": dict(form),
        "values_to": None if values_to is None else str(values_to),
        "ground_truth": ground_truth,
        "dialogue": None if dialogue is None else dialogue.model_dump(),
        "right_by": None if right_by is None else list(right_by),
        "keys": sorted(_truth_keys()),
    }
    sealed = ground_truth is not None
    ended = run(request, limits, stopped, sealed=sealed)
    if "passing" in ended.answer:
        raise PassingError(f"{file_name}: {ended.answer['passing']}")
    if "outcome" in ended.answer and ended.limit is None:
        if ended.code:
            log.info("explaining %s, which is refused: the process %s", file_name, ended.words)
        kept = values_to if values_to is not None and values_to.is_file() else None
        return Judged(**ended.answer, values=kept)
    words = f"judging {file_name} on {benchmark}: the process {ended.words}"
    if ended.log and not sealed:
        log.warning("%s; its last words:\n%s", words, ended.log)
    if stopped is not None and stopped.is_set():
        raise PassingError(f"{words}, because the worker stops.")
    if not ended.begun:
        raise PassingError(f"{words} before it had read the file.")
    if ended.limit is not None:
        return _too_costly(ended.limit, limits, benchmark, file_name)
    if ended.outside:
        raise PassingError(f"{words}, which no file does: the machine or somebody there ended it.")
    raise ChildCrashedError(f"{words} without an answer.")


def judge_for(
    board: Board,
    file: Path,
    *,
    file_name: str,
    form: Mapping[str, Any],
    limits: Limits,
    stopped: threading.Event | None = None,
) -> tuple[Judged, bytes | None]:
    """As `judge`, by what a board says; beside it the values per query, an .npz, where they are kept."""
    with tempfile.TemporaryDirectory(prefix="cir-judged-") as folder:
        judged = judge(
            file,
            board.benchmark,
            file_name=file_name,
            form=form,
            limits=limits,
            values_to=Path(folder) / "values.npz",
            ground_truth=board.ground_truth,
            dialogue=board.dialogue,
            right_by=board.right_by,
            stopped=stopped,
        )
        return judged, None if judged.values is None else judged.values.read_bytes()


@dataclass(frozen=True)
class Ended:
    """How the process ended: its code as `subprocess` has it, and what ended it: a limit, or an outsider."""

    code: int
    begun: bool
    answer: dict[str, Any]
    limit: Limited | None
    log: str
    outside: bool = False

    @property
    def words(self) -> str:
        """How it ended, as the end of a sentence."""
        if self.limit is not None:
            return f"met its limit ({self.limit})"
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit code {self.code}"


def run(
    request: Mapping[str, Any],
    limits: Limits,
    stopped: threading.Event | None = None,
    *,
    sealed: bool = False,
) -> Ended:
    """Start a process that handles one file, and hear it to its end.

    Args:
        request: JSON values, with `benchmark`, `ground_truth` and `keys`.
        limits: what it may take.
        stopped: ends the process when it is set.
        sealed: whether it may open the ground truths of sealed boards.

    Raises:
        PassingError: the machine has no process to give.
    """
    command = [sys.executable, "-m", "leaderboard.queue.child", str(os.getpid())]
    command += [str(limits.memory_bytes), str(limits.cpu_seconds)]
    environment = _environment(sealed=sealed)
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        )
    except OSError as error:
        if not is_passing(error):
            raise
        raise PassingError(f"no process for judging: {error.strerror}") from error
    with process:
        try:
            heard = _Heard(process, limits, stopped)
            heard.listen(json.dumps(request).encode())
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return heard.ended()


class _Heard:
    """What a process has said: never more than a cap of it is kept."""

    def __init__(
        self, process: subprocess.Popen[bytes], limits: Limits, stopped: threading.Event | None
    ) -> None:
        self._process, self._limits, self._stopped = process, limits, stopped
        self._answers, self._log = bytearray(), bytearray()
        self._deadline = time.monotonic() + _START_SECONDS
        self._overdue = False

    def listen(self, request: bytes) -> None:
        """Hand the request over, and listen until the process ends or has to be ended."""
        process = self._process
        with suppress(BrokenPipeError), process.stdin:  # type: ignore[union-attr]
            process.stdin.write(request)  # type: ignore[union-attr]
        # Not epoll, which needs a descriptor of its own.
        with selectors.PollSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, self._hear_answer)  # type: ignore[arg-type]
            selector.register(process.stderr, selectors.EVENT_READ, self._hear_log)  # type: ignore[arg-type]
            while selector.get_map() and not self._to_end():
                for key, _ in selector.select(_LOOK_SECONDS):
                    chunk = os.read(key.fd, _CHUNK)
                    key.data(chunk)
                    if not chunk:
                        selector.unregister(key.fileobj)
        while process.poll() is None and not self._to_end():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)

    def ended(self) -> Ended:
        """How it ended, once it has."""
        code = self._process.returncode
        messages: list[dict[str, Any]] = []
        with suppress(ValueError):
            messages += (json.loads(line) for line in self._answers.splitlines())
        answer = messages[-1] if messages and code == 0 else {}
        limit: Limited | None = None
        refused = [each for each in messages if each.get("outcome") == "rejected"]
        if refused:
            # That is its end, whether or not there was time for the explanation.
            answer = refused[-1]
        elif self._overdue:
            limit = "wall"
        elif code == -signal.SIGXCPU:
            limit = "cpu"
        elif "limit" in answer or (code == -signal.SIGABRT and _NO_MEMORY.search(self._log)):
            limit = "memory"
        # One that talked without end was ended here.
        outside = -code in _FROM_OUTSIDE and len(self._answers) <= _LONGEST_ANSWER
        return Ended(code, _BEGUN in messages, answer, limit, _quoted(bytes(self._log)), outside)

    def _hear_answer(self, chunk: bytes) -> None:
        if not self._answers and chunk:
            self._deadline = time.monotonic() + self._limits.wall_seconds
        self._answers += chunk

    def _hear_log(self, chunk: bytes) -> None:
        self._log = (self._log + chunk)[-_LONGEST_LOG:]

    def _to_end(self) -> bool:
        self._overdue = time.monotonic() > self._deadline
        stopped = self._stopped is not None and self._stopped.is_set()
        return self._overdue or stopped or len(self._answers) > _LONGEST_ANSWER


def _quoted(words: bytes) -> str:
    """Lines of the process, such that none of them looks like a line of the server's own log."""
    return "\n".join(f"  | {line}" for line in visible(words.decode(errors="replace")).splitlines())


def _too_costly(limit: Limited, limits: Limits, benchmark: str, file_name: str) -> Judged:
    from submissions.rank_file.findings import Findings, ValidationReport

    needs = {
        "memory": f"more than {limits.memory_bytes // _MI:,} MiB of memory",
        "cpu": f"more than {limits.cpu_seconds:,} seconds of processor time",
        "wall": f"longer than {limits.wall_seconds:,.0f} seconds",
    }
    findings = Findings(file_name, benchmark)
    findings.add(
        "too-costly", f"judging it takes {needs[limit]}, which is more than this server grants a file."
    )
    report = ValidationReport(file_name, benchmark, tuple(findings.listed()), None)
    return Judged("rejected", [finding.to_dict() for finding in report.findings], report.text())


def _environment(*, sealed: bool) -> dict[str, str]:
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in _ENVIRONMENT or (name.startswith("CIR_") and not name.startswith("CIR_LEADERBOARD_"))
    }
    return {**passed, **(_truth_keys() if sealed else {}), **_PLAIN}


def _truth_keys() -> dict[str, str]:
    """What opens the ground truths of sealed boards, by the names that libraries know."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_TRUTH_PREFIX)}
    return {name.removeprefix(_TRUTH_PREFIX): value for name, value in own.items()}


# The child's side


def main() -> None:
    """Handle the request on stdin; the process's arguments are the parent's id and the limits."""
    parent, memory, cpu = map(int, sys.argv[1:])
    _confine(parent, memory, cpu)
    # What a library prints must not stand among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**message: Any) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    request = json.load(sys.stdin)
    try:
        asked, whole = loaded(request)
        for name in request["keys"]:
            os.environ.pop(name, None)
        used = math.ceil(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        say(**_BEGUN)
        answer = _answer(request, asked, whole)
        say(**answer)
        if answer["outcome"] == "rejected":
            used = math.ceil(time.process_time()) + _EXPLAINING_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (used, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            say(**with_explanation(request, answer))
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, (memory + _SPARE_BYTES, memory + _SPARE_BYTES))
        say(limit="memory")
    except (OSError, CirError) as error:
        if not is_passing(error):
            raise
        say(passing=str(error))


def with_explanation(request: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to a refused file with what it says, unless that tells of a sealed board's labels."""
    if request["ground_truth"] is not None:
        return answer
    from leaderboard.queue.judging import explained

    return {**answer, "explanation": explained(Path(request["file"]), request["benchmark"])}


def loaded(request: Mapping[str, Any]) -> tuple[Benchmarks, Benchmark | None]:
    """What a request's file is checked against, and of a sealed board the same with its ground truth."""
    from cir_datasets.registry import members_of
    from submissions.rank_file.benchmarks import Benchmarks

    asked = Benchmarks(request["benchmark"])
    benchmarks = [asked.load(member) for member in members_of(request["benchmark"])]
    if request["ground_truth"] is None:
        return asked, None
    from leaderboard.queue.ground_truth import laid_over, read

    return asked, laid_over(benchmarks[0], read(request["ground_truth"]))


def _confine(parent: int, memory: int, cpu: int) -> None:
    """Take no more than the limits, and live no longer than the parent."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        with suppress(OSError):
            # Where memory runs out, this process goes first, not the server.
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if os.getppid() != parent:
        sys.exit("the process that wanted an answer is gone")
    limits = {
        resource.RLIMIT_AS: (memory, memory + _SPARE_BYTES),
        resource.RLIMIT_CPU: (_START_SECONDS, 2 * _START_SECONDS + cpu),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (_LARGEST_FILE, _LARGEST_FILE),
        resource.RLIMIT_NOFILE: (_MOST_FILES, _MOST_FILES),
    }
    for kind, limit in limits.items():
        resource.setrlimit(kind, limit)


def _answer(request: dict[str, Any], asked: Benchmarks, sealed: Benchmark | None) -> dict[str, Any]:
    """What became of the file.

    Args:
        request: from the parent.
        asked: what the file is checked against; of a sealed board it holds no ground truth, so that no
            finding can depend on that.
        sealed: the same with the ground truth of a sealed board, for its score alone.
    """
    from leaderboard.queue.judging import Rejected, judge_file, score_file, write_values
    from submissions.rank_file.canonical import canonical_hash

    path = Path(request["file"])
    with path.open("rb") as file:
        # A disk that does not give the bytes is not the file's fault; validation would call it unreadable.
        while file.read(_CHUNK):
            pass
    dialogue = None
    if request["dialogue"] is not None:
        from leaderboard.dialogues import BoardDialogue

        dialogue = BoardDialogue.model_validate(request["dialogue"])
    judged = judge_file(path, asked, file_name=request["file_name"], form=request["form"], dialogue=dialogue)
    if isinstance(judged, Rejected):
        return {"outcome": "rejected", **judged.payload}
    report = score_file(judged, asked if sealed is None else sealed)
    said, kept = report.to_dict(), request["values_to"]
    if sealed is not None:
        from leaderboard.queue.ground_truth import aggregates

        said = aggregates(said, sealed)
    elif kept is not None:
        write_values(report, Path(kept), _lists(judged, report, request["right_by"]))
    return {
        "outcome": "scored",
        **judged.payload,
        "method": judged.method,
        "claims": judged.claims,
        "report": said,
        "canonical": canonical_hash(judged.rank_file),
    }


def _lists(judged: Validated, report: ScoreReport, right_by: Sequence[str] | None) -> Mapping[str, Any]:
    """The beginnings of the rankings; none where no memory is left for them, since the score needs none."""
    from leaderboard.queue.beginnings import packed_lists

    with suppress(MemoryError):
        return {} if right_by is None else packed_lists(judged, report, right_by)
    return {}


if __name__ == "__main__":
    main()
