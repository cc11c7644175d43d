"""The boards, declared in YAML: a benchmark or a suite, what ranks, and what is shown beside it.

Those of the package lie in `boards/*.yaml`, those of an organiser in the folder `boards` of the leaderboard's
home. A file that is added or changed there counts at once, in every process. One that is wrong is logged, and
its board is left out, or stays as it was in a process that has read it before; the other boards go on.
"""

from __future__ import annotations

import functools
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cir_datasets import registry
from cir_datasets.common.paths import cache_home, challenge_home
from cir_datasets.common.yaml import checked, read_yaml
from cir_datasets.registry import members_of, queries_of
from cir_datasets.registry.schema import main_metric_terms, member_metric
from cir_datasets.registry.suites import Suite, find_suite
from cir_metrics.errors import UnknownNameError, did_you_mean
from leaderboard.dialogues import BoardDialogue
from leaderboard.errors import BoardError
from leaderboard.settings import default_home, only_own_boards
from submissions.transcripts.settings import round_metrics

if TYPE_CHECKING:
    from leaderboard.boards.pricing import BoardPrice

log = logging.getLogger("leaderboard.boards")

_DERIVED = re.compile(r"^(?P<metric>[a-z_]+@\d+)@turn\d+$")


FINEST = 0.01
"""The step in which the judging process writes numbers of sealed boards: of a per cent, or of a rank."""


class Column(BaseModel):
    """A metric that the board shows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str
    """The metric's printed name, `recall@5`; of a suite's member `recall@5@fashioniq/dress_val`."""
    label: str
    """The column's heading, `R@5`."""
    direction: Literal["higher", "lower"] = "higher"
    """Which values are better."""
    unit: Literal["percent", "rank"] = "percent"
    """`percent` for fractions, multiplied by 100 in tables only; `rank` for mean and median ranks."""


def _moment(of_day: time) -> Callable[[Any], Any]:
    """Read a moment: a day is that time of it; a time without a zone is UTC."""

    def read(written: Any) -> Any:
        if isinstance(written, str):
            with suppress(ValueError):
                written = date.fromisoformat(written)
        if isinstance(written, str):
            written = datetime.fromisoformat(written)
        if isinstance(written, date) and not isinstance(written, datetime):
            written = datetime.combine(written, of_day)
        if isinstance(written, datetime):
            return written.replace(tzinfo=UTC) if written.tzinfo is None else written.astimezone(UTC)
        return written

    return read


Limit = Annotated[int, Field(strict=True, ge=1)] | None


class Phase(BaseModel):
    """A time in which a board takes submissions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1, max_length=40)]
    opens: Annotated[datetime, BeforeValidator(_moment(time()))]
    """The first moment, UTC; a day is its beginning."""
    closes: Annotated[datetime, BeforeValidator(_moment(time(23, 59, 59)))]
    """The first moment after it, UTC; a day is its last second."""
    a_day: Limit = None
    """Scored submissions of an owner a UTC day; None leaves it to the server's own limit, as in `in_all`."""
    in_all: Limit = None
    """Scored submissions of an owner in the phase."""
    results: Literal["shown", "at_end"] = "shown"
    """Whether results are shown as they come, or when the phase has closed."""

    @model_validator(mode="after")
    def _lasts(self) -> Phase:
        if self.closes <= self.opens:
            raise ValueError(f"the phase {self.name!r} closes before it opens")
        return self


def phases_fault(phases: Sequence[Phase]) -> str | None:
    """Why these are not the phases of one board, or None."""
    for earlier, later in pairwise(phases):
        if later.opens < earlier.closes:
            return f"the phase {later.name!r} opens before {earlier.name!r} has closed"
    return "two phases have one name" if len({phase.name for phase in phases}) < len(phases) else None


_REMOTE = re.compile(r"(s3://[a-z0-9][a-z0-9.-]+|hf://datasets/[\w.-]+/[\w.-]+)(/[\w.+=-]+)+", re.ASCII)


def _address(written: str) -> str:
    """Where a ground truth may lie: it is read over and over, and never copied."""
    if not (_REMOTE.fullmatch(written) or (written.startswith("/") and ":" not in written)):
        raise ValueError(
            "a ground truth lies at an absolute path, s3://BUCKET/KEY or hf://datasets/OWNER/NAME/FILE; "
            "keys and tokens belong into the environment"
        )
    return written


class Board(BaseModel):
    """A board: one benchmark or suite, one metric that ranks, the columns beside it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+(/[a-z0-9_+]+)?$")]
    title: Annotated[str, Field(min_length=1, max_length=80)]
    short_title: Annotated[str, Field(min_length=1, max_length=30)]
    """What the list of boards shows."""
    group: str
    """The heading below which the list of boards shows it."""
    order: int
    """Its place in the list of boards."""
    benchmark: str
    """Id of the benchmark; or of the suite, whose board takes bundles."""
    track: Literal["open", "sealed"]
    """`open`: the ground truth is public, and anyone can compute the scores again. `sealed`: it lies in a
    private place, which only the process that judges a file reads."""
    ground_truth: Annotated[str, AfterValidator(_address)] | None = None
    """Where the ground truth of a sealed board lies."""
    dialogue: BoardDialogue | None = None
    """Of a board whose submissions are transcripts: the settings and the user that they were made with."""
    phases: tuple[Phase, ...] = ()
    """When the board takes submissions, in order; always, where there are none."""
    primary: str
    """What ranks: a metric's name or `mean(a, b)`."""
    primary_label: str
    primary_means: Annotated[str, Field(max_length=100)] = ""
    """What it counts, in a few words for who does not know the metric; may be empty."""
    primary_unit: Literal["percent", "rank"] = "percent"
    primary_direction: Literal["higher", "lower"] = "higher"
    columns: tuple[Column, ...]
    """Metrics beside the one that ranks, which is not repeated."""
    step: Annotated[float, Field(ge=FINEST, le=50)] = FINEST
    """In which steps a sealed board tells its numbers, in per cent or in ranks; what is stored is finer."""
    choices: Annotated[int, Field(ge=2)] | None = None
    """Of a sealed board whose queries rank lists of their own: the images of such a list. Else the gallery's
    images are what a label is one of."""
    description: str
    max_mb: Annotated[int, Field(ge=1)] | None = None
    """MB of 2**20 bytes that a rank file may have; a board may take less than its server, never more."""

    @field_validator("columns")
    @classmethod
    def _beside_what_ranks(cls, columns: tuple[Column, ...], known: ValidationInfo) -> tuple[Column, ...]:
        return tuple(column for column in columns if column.metric != known.data.get("primary"))

    @model_validator(mode="after")
    def _track_and_phases_fit(self) -> Board:
        if (self.track == "sealed") != (self.ground_truth is not None):
            raise ValueError("a sealed board, and no other, says where its `ground_truth` lies")
        if self.dialogue is not None and self.sealed:
            raise ValueError("a transcript names its targets, so that a board of dialogues is not sealed")
        fault = phases_fault(self.phases)
        if fault is not None:
            raise ValueError(fault)
        return self

    @property
    def sealed(self) -> bool:
        """Whether its ground truth is private: only rounded aggregates of it are given out."""
        return self.track == "sealed"

    @property
    def price(self) -> BoardPrice | None:
        """What a sealed board sells of its labels; None of an open one, and where its size is not known."""
        if not self.sealed:
            return None
        choices = self.choices if self.spec.per_query else self.gallery
        if self.queries is None or choices is None:
            return None
        from leaderboard.boards.pricing import BoardPrice

        return BoardPrice(self.queries, choices, self._told, self.step)

    @property
    def _told(self) -> dict[str, Literal["percent", "rank"]]:
        """The metrics that a sealed board tells, with their units: terms of what ranks, then the columns."""
        terms = dict.fromkeys(self.primary_terms, self.primary_unit)
        return {**terms, **{each.metric: each.unit for each in self.columns}}

    def told(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """A score report as everybody may read it: of a sealed board what is priced, in its steps.

        Args:
            report: as it is stored, or nothing.
        """
        if not self.sealed or not report:
            return dict(report)
        metrics = {
            name: rounded(report["metrics"][name], unit, self.step)
            for name, unit in self._told.items()
            if name in report["metrics"]
        }
        signatures = {name: report["signatures"][name] for name in metrics}
        main = {"main_metric": self.primary, "main": self.primary_value(metrics)}
        return {**report, **main, "metrics": metrics, "signatures": signatures}

    def phase(self, now: datetime) -> Phase | None:
        """The phase that is open at a moment, or None."""
        return next((phase for phase in self.phases if phase.opens <= now < phase.closes), None)

    def phase_began(self, at: datetime) -> datetime | None:
        """When the phase that is open at a moment began: what came before it is of another; None without."""
        phase = self.phase(at)
        return None if phase is None else phase.opens

    def closed(self, now: datetime) -> str | None:
        """Why the board takes no submissions at a moment, and when it does; None where it takes them."""
        if not self.phases or self.phase(now) is not None:
            return None
        following = next((phase for phase in self.phases if phase.opens > now), None)
        if following is None:
            last = self.phases[-1]
            return f"its last phase, {last.name}, closed on {_day(last.closes)}."
        return f"its next phase, {following.name}, opens on {_day(following.opens)}."

    def shown_from(self, received_at: datetime) -> datetime | None:
        """When the result of a submission of a moment is shown; None where it is at once.

        One that no phase holds, since they were moved, goes with the next phase, or with the last.
        """
        later = (phase for phase in self.phases if received_at < phase.closes)
        phase = next(later, self.phases[-1] if self.phases else None)
        return None if phase is None or phase.results == "shown" else phase.closes

    @property
    def suite(self) -> Suite | None:
        """The suite that it ranks, or None where it ranks one benchmark."""
        return find_suite(self.benchmark)

    @property
    def takes_bundles(self) -> bool:
        """Whether it ranks a suite, and its submissions are bundles."""
        return self.suite is not None

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Id of its benchmark; of a suite those of the members."""
        return members_of(self.benchmark)

    @property
    def specs(self) -> tuple[registry.BenchmarkSpec, ...]:
        """Card and configuration of its benchmark, or of each member of its suite."""
        return tuple(registry.spec(benchmark) for benchmark in self.benchmarks)

    @property
    def spec(self) -> registry.BenchmarkSpec:
        """The benchmark's card and configuration; of a suite its first member's.

        All members of a suite are of one kind, and their references are kept, or removed, alike.
        """
        return self.specs[0]

    @property
    def version(self) -> int | str:
        """The version of its benchmark, or of its suite."""
        return self.spec.card.version if self.suite is None else self.suite.version

    @property
    def queries(self) -> int | None:
        """Queries or sessions, of a suite those of all members; None where their number is not known."""
        return queries_of(self.benchmark)

    @property
    def gallery(self) -> int | None:
        """Images that are ranked, of a suite those of all galleries; None where their number is not known."""
        sizes = [spec.config.gallery for spec in self.specs]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def max_upload_bytes(self, of_server: int) -> int:
        """Bytes that a rank file for this board may have.

        Args:
            of_server: that it may have on any board.
        """
        return of_server if self.max_mb is None else min(of_server, self.max_mb * 2**20)

    @property
    def primary_terms(self) -> tuple[str, ...]:
        """The metrics that the ranking value is made of."""
        return main_metric_terms(self.primary)

    def step_of(self, metric: str) -> float:
        """In which steps a metric's values are told: a mean's are finer than those of its terms.

        Args:
            metric: its printed name, or `mean(a, b)`.

        Example:
            >>> board("cirr/val").primary, board("cirr/val").step_of(board("cirr/val").primary)
            ('mean(recall@5, recall_subset@1)', 0.005)
        """
        return self.step / len(main_metric_terms(metric))

    @property
    def right_by(self) -> tuple[str, ...]:
        """The metrics that `right_answers` goes by; none where every right picture counts.

        They are those that rank if they count all positives, else all metrics of the benchmark. In a dialogue
        every right picture counts; in one that starts at a random picture the target alone does.

        Example:
            >>> board("circo/val").right_by
            ('map@5',)
        """
        if self.dialogue is not None:
            return () if self.dialogue.choices.start == "published" else tuple(self.spec.metrics)
        from cir_datasets.rows.right import right_by

        return right_by([*map(member_metric, self.primary_terms)], self.spec.metrics)

    @property
    def labels(self) -> dict[str, str]:
        """What tables call each metric that the board shows: what ranks first, then the columns."""
        return self._of_columns("label")

    @property
    def units(self) -> dict[str, Literal["percent", "rank"]]:
        """The unit of each metric that the board shows, in the same order."""
        return self._of_columns("unit")

    @property
    def directions(self) -> dict[str, Literal["higher", "lower"]]:
        """Which values of each metric are better, in the same order."""
        return self._of_columns("direction")

    def _of_columns(self, name: str) -> dict[str, Any]:
        own = {self.primary: getattr(self, f"primary_{name}")}
        return own | {each.metric: getattr(each, name) for each in self.columns}

    def primary_value(self, metrics: Mapping[str, float]) -> float:
        """The value that ranks, from a submission's metrics.

        Raises:
            BoardError: the metrics lack a term.
        """
        missing = [term for term in self.primary_terms if term not in metrics]
        if missing:
            raise BoardError(f"board {self.id!r}: the scores hold no {missing[0]!r}, which ranks this board.")
        value = math.fsum(metrics[term] for term in self.primary_terms) / len(self.primary_terms)
        return rounded(value, self.primary_unit) if self.sealed else value


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d at %H:%M} UTC"


def rounded(value: float, unit: Literal["percent", "rank"] = "percent", step: float = FINEST) -> float:
    """A number as a sealed board tells it.

    Args:
        value: a fraction, or a rank.
        unit: which of the two.
        step: of what is told, in per cent or in ranks.

    Example:
        >>> rounded(0.123456), rounded(17.24681, "rank"), rounded(0.5867, step=5.0)
        (0.1235, 17.25, 0.6)
    """
    written = round(value, 4 if unit == "percent" else 2)
    if step == FINEST:
        return written
    width = step / 100 if unit == "percent" else step
    return round(round(written / width) * width, 6)


def ids() -> tuple[str, ...]:
    """Ids of all boards, in the order in which they are listed."""
    return tuple(_all())


def boards() -> tuple[Board, ...]:
    """All boards, in the order in which they are listed."""
    return tuple(_all().values())


def board(board_id: str) -> Board:
    """The board of that id.

    Raises:
        UnknownNameError: no board has that id; the message names the nearest.

    Example:
        >>> board("cirr/val").primary
        'mean(recall@5, recall_subset@1)'
    """
    match = find(board_id)
    if match is None:
        hint, wrong = did_you_mean(board_id, ids()), ", ".join(wrong_files())
        left_out = f" Wrong files in {organisers_folder()}: {wrong}." if wrong else ""
        raise UnknownNameError(f"no board {board_id!r}.{hint} Boards: {', '.join(ids())}.{left_out}")
    return match


def find(board_id: str) -> Board | None:
    """The board of that id, or None where there is none, as where it was removed."""
    return _all().get(board_id)


def all_metrics(report: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a score report by name, fractions; of a suite its members' too.

    Args:
        report: from `ScoreReport.to_dict`.

    Example:
        >>> run = {"benchmark": "a/b", "metrics": {"map@5": 1.0}}
        >>> all_metrics({"metrics": {"map@5": 0.5}, "runs": [run]})
        {'map@5': 0.5, 'map@5@a/b': 1.0}
    """
    found = dict(report["metrics"])
    for run in report.get("runs", ()):
        found.update({f"{name}@{run['benchmark']}": value for name, value in run["metrics"].items()})
    return found


def main_of_member(expression: str, metrics: Mapping[str, float], member: str) -> float | None:
    """What ranks a suite, of one member alone; None where it is not known.

    Args:
        expression: of what ranks.
        metrics: from `all_metrics`.
        member: its id.

    Example:
        >>> main_of_member("mean(map@5, map@10)", {"map@5@a/b": 0.5, "map@10@a/b": 0.25}, "a/b")
        0.375
    """
    from submissions.scoring.score_report import main_value

    terms = main_metric_terms(expression)
    return main_value(expression, {term: metrics.get(f"{member_metric(term)}@{member}") for term in terms})


def of_benchmark(benchmark_id: str, *, dialogue: bool = False) -> tuple[Board, ...]:
    """The boards that rank submissions to a benchmark, or bundles for a suite.

    Args:
        benchmark_id: its id, or the suite's.
        dialogue: whether the submissions are transcripts of dialogues, and not rank files.
    """
    found = (board for board in boards() if board.benchmark == benchmark_id)
    return tuple(board for board in found if (board.dialogue is not None) == dialogue)


def parse(data: Any, where: str) -> Board:
    """A board from what its YAML file holds, checked against the registry.

    Args:
        data: the parsed YAML.
        where: the file's name, for messages.

    Raises:
        BoardError: a field is missing or malformed, or the benchmark or a metric does not exist.
    """
    found = checked(Board, data, where, BoardError)
    try:
        known = _known_metrics(found, where)
    except UnknownNameError as error:
        from cir_datasets.registry.challenges import CONFIG

        name, _, config = found.benchmark.partition("/")
        if found.sealed and config == CONFIG:
            raise BoardError(
                f"{where}: the challenge {name} is not in {challenge_home()}. Fix: set CIR_CHALLENGES to the "
                f"folder that holds it, or remove what is left of it with  cir challenge remove {name}"
            ) from error
        raise BoardError(f"{where}: {error}") from error
    if found.sealed and found.suite is not None:
        raise BoardError(
            f"{where}: {found.benchmark} is a suite, and a sealed board has one benchmark. "
            "Fix: write track: open, or name one benchmark."
        )
    if found.sealed and found.spec.config.ground_truth == "public":
        raise BoardError(
            f"{where}: the ground truth of {found.benchmark} is public, so that no board of it is sealed. "
            "Fix: write track: open, or make a challenge with  cir challenge new"
        )
    for name in (*found.primary_terms, *(column.metric for column in found.columns)):
        if not _is_computed(name, known):
            raise BoardError(
                f"{where}: {found.benchmark} has no metric {name!r}. It has: {', '.join(known)}. "
                "Fix: name one of these, or add it to the benchmark's card."
            )
    return found


def _known_metrics(board: Board, where: str) -> tuple[str, ...]:
    if board.dialogue is None and board.suite is not None:
        specs = ((spec.id, spec.metrics) for spec in board.specs)
        members = [f"{name}@{member}" for member, metrics in specs for name in metrics]
        return (*board.suite.numbers, *members)
    if board.dialogue is None:
        return board.spec.metrics
    if board.takes_bundles or board.spec.kind == "multi_turn" or board.spec.config.ground_truth == "withheld":
        raise BoardError(
            f"{where}: {board.benchmark} cannot be played as a dialogue, which goes on from single queries "
            "with public ground truth. Fix: name such a benchmark."
        )
    choices = board.dialogue.choices
    return tuple(round_metrics(choices.k, choices.max_rounds, several_targets=True))


def _is_computed(name: str, known: tuple[str, ...]) -> bool:
    by_turn = _DERIVED.match(name)
    return name in known or (by_turn is not None and by_turn["metric"] in known)


_Boards = dict[str, Board]
_Stamp = tuple[tuple[str, int, int], ...]
"""Name, time and size of each file: what a folder is taken to hold as long as it stays the same."""


@dataclass(frozen=True)
class _Folder:
    """What an organiser's folder holds: its boards by file, all boards with them, and the wrong files."""

    stamp: _Stamp
    own: Mapping[str, Board]
    boards: _Boards
    wrong: tuple[str, ...]


_home: Path | None = None
_read: dict[Path, _Folder] = {}


def use(home: Path | None) -> None:
    """Take an organiser's boards from this home from now on, in this process.

    Args:
        home: the leaderboard's home; None is the one that the environment names.

    Raises:
        BoardError: its folder of boards cannot be read.
    """
    global _home
    _home = home
    _read.pop(organisers_folder(), None)
    _all()


def organisers_folder() -> Path:
    """Where an organiser's boards lie."""
    return (_home or default_home()) / "boards"


def wrong_files() -> tuple[str, ...]:
    """Names of an organiser's files that hold no board; the log says why, which may name what is secret."""
    _all()
    return _read[organisers_folder()].wrong


def _all() -> _Boards:
    folder = organisers_folder()
    kept = _read.get(folder)
    try:
        stamp = _stamp(folder)
    except BoardError as error:
        if kept is None:
            raise
        log.error("%s The boards stay as they were.", error)
        return kept.boards
    if kept is None or kept.stamp != stamp:
        kept = _read[folder] = _folder_of(folder, stamp, {} if kept is None else kept.own)
    return kept.boards


def _folder_of(folder: Path, stamp: _Stamp, before: Mapping[str, Board]) -> _Folder:
    """Read an organiser's boards; `before` has by file those that were right when they were last read."""
    found = {} if only_own_boards() else dict(_packaged())
    own: dict[str, Board] = {}
    wrong: list[str] = []
    for name, _, _ in stamp:
        place = folder / name
        try:
            one = _add(found, place.read_text(encoding="utf-8"), str(place))
        except (BoardError, OSError, UnicodeDecodeError) as error:
            wrong.append(name)
            said = str(error) if isinstance(error, BoardError) else f"{place}: cannot be read: {error}."
            old = before.get(name)
            stays = old is not None and old.id not in found
            log.error("%s Its board %s.", said, "stays as it was" if stays else "is left out")
            if old is None or not stays:
                continue
            one = found[old.id] = old
        own[name] = one
    ordered = dict(sorted((found or _packaged()).items(), key=lambda item: item[1].order))
    return _Folder(stamp, own, ordered, tuple(wrong))


def _stamp(folder: Path) -> _Stamp:
    try:
        files = [(path.name, path.stat()) for path in folder.iterdir() if path.suffix == ".yaml"]
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise BoardError(f"{folder}: {error.strerror}. Fix: let this user read the folder.") from error
    return tuple(sorted((name, found.st_mtime_ns, found.st_size) for name, found in files))


@functools.cache
def _packaged() -> Mapping[str, Board]:
    found: _Boards = {}
    for entry in (resources.files("leaderboard") / "boards").iterdir():
        if entry.name.endswith(".yaml"):
            _add(found, entry.read_text(encoding="utf-8"), f"boards/{entry.name}")
    return dict(sorted(found.items(), key=lambda item: item[1].order))


def _add(found: _Boards, text: str, where: str) -> Board:
    one = parse(read_yaml(text, where, BoardError), where)
    check_place(one)
    _check_price(one, where)
    if one.id in found:
        raise BoardError(f"{where}: there is another board {one.id!r}. Fix: give it an id of its own.")
    found[one.id] = one
    return one


def _check_price(board: Board, where: str) -> None:
    """Refuse a sealed board whose answers tell more of its labels than the rule allows."""
    if not board.sealed:
        return
    from leaderboard.boards.pricing import oversold

    if board.price is None:
        raise BoardError(
            f"{where}: what it sells is not known. Fix: write as choices how many images each query's own "
            "list has; of other benchmarks the card says queries and gallery."
        )
    at_end = all(phase.results == "at_end" for phase in board.phases)
    said = " ".join(oversold(board.price, [phase.in_all for phase in board.phases], at_end=at_end))
    if said:
        raise BoardError(f"{where}: {said}")


def check_place(board: Board) -> None:
    """Refuse a ground truth that lies where the server keeps what it shows or copies.

    Raises:
        BoardError: it lies below the home, the challenges or the cache.
    """
    address = board.ground_truth or ""
    if not address.startswith("/"):
        return
    for folder in (organisers_folder().parent, challenge_home(), cache_home()):
        if Path(address).resolve().is_relative_to(folder.resolve()):
            raise BoardError(
                f"board {board.id!r}: its ground truth lies below {folder}, which is kept, copied or handed "
                "out. Fix: move it to a folder of its own."
            )
