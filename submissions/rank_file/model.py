"""The rank file: one method's answer to one benchmark, ids only, best first (and bundles of them).

Scores are left out on purpose: scores bring ties, and a tie rule belongs to `cir_metrics.ranking`, not to a
file. The native form is one JSON object, see `RankFile.to_dict`.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
)

from cir_datasets.common.terminal import counted
from cir_metrics.catalogue import Declared
from cir_metrics.errors import CirError
from submissions.errors import SubmissionError
from submissions.rank_file import texts

if TYPE_CHECKING:
    from submissions.rank_file.columns import Columns

RANK_FILE = "cir-rank-file"
"""What a native rank file says under "format"."""
BUNDLE = "cir-rank-bundle"
"""What a bundle says there."""
LINES_FILE = "cir-rank-file-lines"
"""What the first line of a rank file in JSON Lines says there."""
TRANSCRIPT: Literal["cir-transcript"] = "cir-transcript"
"""What the first line of a transcript of dialogues says there."""
FORMAT_VERSION = 1
SECTIONS = ("rankings", "subset_rankings")
"""The parts of a rank file that hold rankings: the first that a benchmark asks, and the second."""

NATIVE = "native"
CIRR_SERVER = "cirr-server"
CIRCO_SERVER = "circo-server"
ZEROSIGHT = "zerosight"
LISTS = "plain-lists"
"""A plain file of rankings by query id: read, and not written."""
FASHIONIQ = "fashioniq"
LINES = "lines"
PARQUET = "parquet"
TREC = "trec"
JSON_RUN = "json-run"
"""Scores by image by query id, as pytrec_eval, ranx and MTEB write them."""
FORMATS = (NATIVE, LINES, PARQUET, TREC, JSON_RUN, CIRR_SERVER, CIRCO_SERVER, ZEROSIGHT, FASHIONIQ)
"""Names of the formats that `convert` writes."""

FORMAT = NATIVE
"""`RankFile.format` of our own format; the others have no method block, only the file's name."""

_FIRST = 5
"""Rankings, and images of each, that a notebook shows."""

Ranking = list[str]
"""Image ids, best first, none twice."""


def _field_name(text: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", text):
        raise ValueError("a text field is a column's name, such as relative_caption")
    return text


def _gallery_name(text: str) -> str:
    if text and not re.fullmatch(r"[1-9][0-9]{0,11}:[0-9a-f]{64}", text):
        raise ValueError("own_gallery is the number of images, a colon and the sha256 over their sorted ids")
    return text


_NAME, _TEXT, _NOTES = 80, 300, 2000
"""Characters at most."""

Name = Annotated[
    StrictStr,
    Field(min_length=1, max_length=_NAME),
    AfterValidator(lambda text: texts.name(text, _NAME)),
]
Word = Annotated[
    StrictStr, Field(max_length=_TEXT), AfterValidator(lambda text: texts.plain_text(text, _TEXT))
]
_OR_EMPTY = BeforeValidator(lambda value: "" if value is None else value)
"""Null says the same as nothing."""
_OR_NONE_LISTED = BeforeValidator(lambda value: [] if value is None else value)
Text = Annotated[Word, _OR_EMPTY]
Notes = Annotated[
    StrictStr,
    Field(max_length=_NOTES),
    AfterValidator(lambda text: texts.plain_text(text, _NOTES, "join")),
    _OR_EMPTY,
]
Link = Annotated[
    StrictStr, Field(max_length=_TEXT), AfterValidator(lambda text: texts.link(text, _TEXT)), _OR_EMPTY
]


@dataclass(frozen=True)
class _Listed:
    """What a field that chooses from a list of words does with a text, and how its JSON schema says it."""

    field: str

    def __call__(self, text: str) -> str:
        longest = texts.LONGEST_WORD if text.casefold().startswith(texts.OTHER) else _TEXT
        return texts.listed_word(self.field, texts.plain_text(text, longest))

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> dict[str, Any]:
        return texts.schema_of(self.field)


_ORACLE, _CAPTION_RULE, _BACKBONE = map(_Listed, texts.LISTED_FIELDS)
Oracle = Annotated[StrictStr, AfterValidator(_ORACLE), _OR_EMPTY, _ORACLE]
CaptionRule = Annotated[StrictStr, AfterValidator(_CAPTION_RULE), _OR_EMPTY, _CAPTION_RULE]
Backbone = Annotated[StrictStr, AfterValidator(_BACKBONE), _OR_EMPTY, _BACKBONE]
RankedGallery = Annotated[StrictStr, AfterValidator(_gallery_name), _OR_EMPTY]
Reference = Annotated[Declared, _OR_EMPTY]
FieldName = Annotated[StrictStr, AfterValidator(_field_name)]
Repairs = Annotated[
    dict[Literal["references", "outsiders", "doubles"], Annotated[StrictInt, Field(ge=1)]],
    Field(min_length=1),
]


class Method(BaseModel):
    """Who answers: what a board shows beside the numbers, checked like any other untrusted input.

    Text is brought to NFC; control, formatting and bidirectional characters are refused; links are https.

    Example:
        >>> Method(name="Image + text, sum", zero_shot=True).name
        'Image + text, sum'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    """1 to 80 characters."""
    paper: Link = ""
    code: Link = ""
    backbone: Backbone = ""
    """Encoder, a word of `words.yaml`, with the weights behind it as exactly as can be said."""
    zero_shot: StrictBool | None = None
    """Whether nothing was trained on the benchmark's own data; null where unknown."""
    trained_on: Annotated[list[Word], Field(max_length=20), _OR_NONE_LISTED] = []
    oracle: Oracle = ""
    """What it knows that a user's query does not hold; an oracle has no rank on any board."""
    caption_rule: CaptionRule = ""
    """How several captions become one text: part of the method, since it moves scores."""
    text_fields: Annotated[list[FieldName], Field(max_length=20), _OR_NONE_LISTED] = []
    """Columns whose text the method reads."""
    aggregation: Text = ""
    """How the turns of a session become one ranking."""
    search: Text = ""
    """How the gallery was searched, with its measured recall; empty where that was exact or is not given."""
    reranking: Text = ""
    """How the best images were put in another order, and for how many rankings; empty where they were not."""
    own_gallery: RankedGallery = ""
    """What was ranked where it was not the publisher's list: number of images, a colon, and the sha256 over
    the sorted ids; empty where it was the publisher's, or is not given."""
    reference: Reference = ""
    """Whether the query's reference image was `kept` in the ranking or `removed`: a list without it cannot
    show that; empty where it is not known."""
    skipped_images: Annotated[StrictInt, Field(ge=1)] | None = None
    """How many images could not be read: those of the gallery have no score and rank last, or, where the
    method needed no encoder, behind the images that were put in another order; null where none."""
    repaired: Repairs | None = None
    """What `repair` took out of the lists, by kind how many images; null where nothing was: no board takes
    such a file, and its scores' signatures say so."""
    notes: Notes = ""
    """Remarks, up to 2,000 characters; line breaks become blanks."""

    def to_dict(self) -> dict[str, Any]:
        """The method as JSON values; what was left empty is left out."""
        return {key: value for key, value in self.model_dump().items() if value not in ("", [], None)}


def checked_method(fields: Mapping[str, Any] | Method, error: Callable[[str], CirError], fix: str) -> Method:
    """A method block of fields that somebody gave.

    Args:
        fields: those of `Method`.
        error: makes the error of a message.
        fix: what to do about a field that is refused.

    Raises:
        CirError: of `error`; one is unknown, missing or refused.

    Example:
        >>> checked_method({"name": "Mine"}, SubmissionError, "choose another").name
        'Mine'
    """
    try:
        return Method.model_validate(fields)
    except ValidationError as refused:
        first = refused.errors(include_url=False)[0]
        reason = str(first["msg"]).removeprefix("Value error, ")
        what = "".join(f"'s {place} {first['input']!r:.100}" for place in first["loc"][:1])
        raise error(f"the method{what} is refused: {reason}. Fix: {fix}.") from refused


def declared_fields() -> dict[str, Any]:
    """JSON schemas of what a method declares, by field; `repaired` is what `repair` did, and on no board."""
    properties: dict[str, Any] = Method.model_json_schema()["properties"]
    return {name: schema for name, schema in properties.items() if name != "repaired"}


def _first_of(answer: list[Any]) -> str:
    """A ranking, or the rankings of a session, cut to what a line holds."""
    turns = answer if answer and not isinstance(answer[0], str) else [answer]
    shown = [", ".join(map(str, turn[:_FIRST])) + (", ..." if len(turn) > _FIRST else "") for turn in turns]
    return " → ".join(shown)


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class RankFile:
    """One method's rankings of one benchmark; a notebook shows the first of them.

    Args:
        benchmark: the benchmark's id, such as `cirr/val`.
        benchmark_version: version of the benchmark's card.
        method: who answers.
        rankings: by query id the ranked image ids, or by session id one such list a turn; empty in the
            CIRR server's subset file.
        subset_rankings: by query id the ranked members of the query's subset, or None.
        format: name of the format that it was read from.

    Example:
        >>> RankFile("shapes/val", 2, Method(name="Mine"), {"q": ["a", "b"]})
        <RankFile shapes/val#2: Mine, 1 answered>
    """

    benchmark: str
    benchmark_version: int
    method: Method
    rankings: Mapping[str, list[Any]]
    subset_rankings: Mapping[str, Ranking] | None = None
    format: str = NATIVE

    def __repr__(self) -> str:
        """What it is in one line; rankings are not in it."""
        return f"<RankFile {', '.join((self._title(), *self._facts()))}>"

    def _repr_html_(self) -> str:
        """Who answers what, and the first rankings, for a notebook."""
        from cir_datasets.common.terminal import Cell, Table
        from cir_datasets.pages import object_html

        lists = self.rankings or self.subset_rankings or {}
        rows = [(Cell(name), Cell(_first_of(lists[name]))) for name in islice(lists, _FIRST)]
        title = f"the first {len(rows)} of {len(lists):,}" if len(rows) < len(lists) else ""
        method = [(Cell(name), Cell(_words(value))) for name, value in self.method.to_dict().items()]
        tables = [
            Table("", ("method", ""), tuple(method)),
            Table(title, ("id", "ranking, best first"), tuple(rows)),
        ]
        return object_html(self._title(), self._facts(), tables)

    def _title(self) -> str:
        return f"{self.benchmark}#{self.benchmark_version}: {self.method.name}"

    def _facts(self) -> list[str]:
        facts = [f"{len(self.rankings):,} answered"]
        if self.subset_rankings is not None:
            facts.append(f"{counted(len(self.subset_rankings), 'subset')} ranked")
        return facts if self.format == NATIVE else [*facts, f"format {self.format}"]

    def sections(self) -> dict[str, Mapping[str, list[Any]]]:
        """Its rankings by section, of `SECTIONS`."""
        sections = {section: getattr(self, section) for section in SECTIONS}
        return {section: rankings for section, rankings in sections.items() if rankings is not None}

    def to_dict(self) -> dict[str, Any]:
        """The native form as JSON values."""
        return {
            "format": RANK_FILE,
            "format_version": FORMAT_VERSION,
            "benchmark": self.benchmark,
            "benchmark_version": self.benchmark_version,
            "method": self.method.to_dict(),
            **{section: dict(rankings) for section, rankings in self.sections().items()},
        }

    def to_json(self) -> bytes:
        """The native form as compact JSON with a newline at the end; equal rank files give equal bytes.

        Raises:
            SubmissionError: an id is not text that JSON can hold.
        """
        return compact(self.to_dict())


@dataclass(frozen=True)
class RankBundle:
    """One method's rank files for every benchmark of a suite.

    Args:
        suite: the suite's id, such as `fashioniq/val`.
        runs: one rank file a member.

    Example:
        >>> RankBundle("fisd", (RankFile("fisd/change", 1, Method(name="Mine"), {}),))
        <RankBundle fisd: Mine, 1 rank file>
    """

    suite: str
    runs: tuple[RankFile, ...]

    def __repr__(self) -> str:
        """What it is in one line; rankings are not in it."""
        return f"<RankBundle {self._title()}, {counted(len(self.runs), 'rank file')}>"

    def _repr_html_(self) -> str:
        """Its rank files as a table, for a notebook."""
        from cir_datasets.common.terminal import Cell, Table
        from cir_datasets.pages import object_html

        rows = tuple(
            (
                Cell(f"{run.benchmark}#{run.benchmark_version}"),
                Cell(f"{len(run.rankings):,}", len(run.rankings)),
            )
            for run in self.runs
        )
        table = Table("", ("benchmark", "answered"), rows)
        return object_html(self._title(), [counted(len(self.runs), "rank file")], [table])

    def _title(self) -> str:
        names = dict.fromkeys(run.method.name for run in self.runs)
        return f"{self.suite}: {', '.join(names) or 'empty'}"

    def to_dict(self) -> dict[str, Any]:
        """The native form as JSON values."""
        return {"format": BUNDLE, "suite": self.suite, "runs": [run.to_dict() for run in self.runs]}

    def to_json(self) -> bytes:
        """The native form as compact JSON with a newline at the end.

        Raises:
            SubmissionError: an id is not text that JSON can hold.
        """
        return compact(self.to_dict())


def runs_of(answer: RankFile | RankBundle) -> tuple[RankFile, ...]:
    """A bundle's rank files; a rank file alone."""
    return answer.runs if isinstance(answer, RankBundle) else (answer,)


def answer_of(asked: str, runs: Sequence[RankFile]) -> RankFile | RankBundle:
    """What answers a benchmark or suite: the one rank file for it, or a bundle.

    Args:
        asked: its id.
        runs: a rank file, or one for each member of the suite.
    """
    return runs[0] if runs[0].benchmark == asked else RankBundle(asked, tuple(runs))


def compact(document: dict[str, Any]) -> bytes:
    """JSON without blanks, with a newline at the end.

    Raises:
        SubmissionError: the document holds what JSON cannot.
    """
    try:
        return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:
        raise SubmissionError(
            f"the rank file cannot be written as JSON: {error}. Fix: use strings as ids."
        ) from error


def write(file: RankFile | RankBundle, path: str | os.PathLike[str]) -> Path:
    """Write a rank file or bundle in the native format; a reader never sees half of it.

    Args:
        file: what to write.
        path: where; an existing file is replaced. A name in .gz is compressed, without the time of day.

    Returns:
        The absolute path.

    Raises:
        SubmissionError: it holds what JSON cannot, or the system refuses to write there.
    """
    content = file.to_json()
    packed = str(path).lower().endswith(".gz")
    return write_bytes(gzip.compress(content, mtime=0) if packed else content, path)


def write_bytes(content: bytes, path: str | os.PathLike[str]) -> Path:
    """Write bytes so that a reader sees all of them or none.

    Raises:
        SubmissionError: the system refuses to write there.
    """
    from cir_datasets.common.atomic import write_whole

    target = Path(path).absolute()
    try:
        write_whole(target, content)
    except OSError as error:
        raise SubmissionError(f"{target}: cannot be written: {error.strerror or error}.") from error
    return target


def as_columns(rankings: Mapping[str, Any], *, by_turn: bool = False) -> Columns:
    """Rankings as columns, whatever they are held in.

    Raises:
        SubmissionError: an id is not text.
    """
    from submissions.rank_file.columns import Columns

    if isinstance(rankings, Columns):
        return rankings
    try:
        return Columns.of_lists(rankings, by_turn=by_turn)
    except (TypeError, ValueError) as error:
        raise SubmissionError(
            f"the rankings hold what is not text: {error}. Fix: use strings as ids."
        ) from error


TURN = "#"
"""Between a session and the number of its turn."""


def turn_key(session_id: str, turn: int) -> str:
    """What a turn is called where a query has its id: in messages, and where ties are broken.

    Args:
        session_id: the session's id.
        turn: its number, from 1.

    Example:
        >>> turn_key("cirr_val_0000", 2)
        'cirr_val_0000#2'
    """
    return f"{session_id}{TURN}{turn}"
