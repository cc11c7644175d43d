"""Transcripts: what was shown and said in every round of every session, and where the target stood.

A file is JSON Lines: a header, then one object a round; or Parquet with the header in its metadata. All
numbers are computed from it and from the benchmark's ground truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cir_datasets.common.atomic import write_whole
from cir_metrics.ids import DIRECTION
from submissions.errors import SubmissionError
from submissions.rank_file.model import TRANSCRIPT, Method
from submissions.transcripts.settings import DEPTH, MOST_ROUNDS, RoundSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from submissions.rank_file.benchmarks import Spelling

FORMAT = TRANSCRIPT
VERSION: Literal[1] = 1
SOLVED, LAST, SILENT = "solved", "last round", "silent: "
"""How a session ends: the target was found, all rounds were played, or the user said nothing of use."""

_MOST_IMAGES = 10**9


def shown_text(text: str) -> str:
    """A text that may stand on a page.

    Raises:
        ValueError: it holds a character that changes the direction of text.
    """
    wrong = DIRECTION.search(text)
    if wrong is not None:
        raise ValueError(f"the character U+{ord(wrong[0]):04X} changes the direction of text")
    return text


Shown = Annotated[str, AfterValidator(shown_text)]
Id = Annotated[Shown, Field(min_length=1, max_length=300)]


class TranscriptError(SubmissionError, ValueError):
    """A file is not a transcript."""


class Round(BaseModel):
    """One round of one session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    session: Id
    round: Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
    """From 1, the published query."""
    reference: Id | None
    """The image that the caption starts from."""
    caption: Annotated[Shown, Field(max_length=2000)]
    target: Id
    """The image that the user has in mind."""
    rank: Annotated[int, Field(ge=1, le=_MOST_IMAGES)]
    """Of the best-ranked target among all images."""
    top: Annotated[list[Id], Field(max_length=DEPTH)]
    """The best images, best first."""
    end: Annotated[Shown, Field(max_length=300)] = ""
    """Why no round follows; empty where one does."""

    @property
    def silent(self) -> bool:
        """Whether the user said nothing of use, so that nothing was ranked."""
        return self.end.startswith(SILENT)


def by_session(rounds: Sequence[Round]) -> dict[str, list[Round]]:
    """Rounds by session, in the order in which sessions are first named; each session's by number."""
    found: dict[str, list[Round]] = {each.session: [] for each in rounds}
    for each in sorted(rounds, key=lambda one: one.round):
        found[each.session].append(each)
    return found


class Transcript(BaseModel):
    """All sessions of one method with one user on one benchmark.

    Rounds stand session by session: in the benchmark's order of queries, or as they were drawn.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["cir-transcript"] = FORMAT
    version: Literal[1] = VERSION
    benchmark: Id
    benchmark_version: int
    method: Method
    user: dict[str, Any]
    """Who spoke: kind, way, language backend."""
    prompts: dict[str, str]
    """Version and hash of each prompt in use, by name."""
    settings: dict[str, Any]
    """The fields of `RoundSettings`."""
    rounds: list[Round]

    @property
    def choices(self) -> RoundSettings:
        """The settings, checked."""
        return RoundSettings.of(self.settings)

    def sessions(self) -> dict[str, list[Round]]:
        """The rounds of each session, by number, wherever they stand in the file."""
        return by_session(self.rounds)

    def respelled(self, spelling: Spelling) -> Transcript:
        """The transcript with its images spelled as a benchmark spells them."""
        named = {image for each in self.rounds for image in (each.reference or "", each.target, *each.top)}
        changed = spelling.changes(named)
        if not changed:
            return self
        rounds = [
            each.model_copy(
                update={
                    "reference": changed.get(each.reference or "", each.reference),
                    "target": changed.get(each.target, each.target),
                    "top": [changed.get(image, image) for image in each.top],
                }
            )
            for each in self.rounds
        ]
        return self.model_copy(update={"rounds": rounds})

    def header(self) -> dict[str, Any]:
        """All but the rounds."""
        return self.model_dump(exclude={"rounds"})


def write_transcript(transcript: Transcript, path: str | Path) -> Path:
    """Write a transcript, as JSON Lines or, to `.parquet`, as Parquet; the same one gives the same bytes.

    Raises:
        OSError: the system refuses to write there.
    """
    target = Path(path)
    if target.suffix == ".parquet":
        content = _parquet(transcript)
    else:
        lines = (transcript.header(), *(each.model_dump() for each in transcript.rounds))
        content = b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
    write_whole(target, content)
    return target


def columns() -> pa.Schema:
    """The columns of a transcript in Parquet: the fields of `Round`."""
    import pyarrow as pa

    texts = ("session", "reference", "caption", "target", "end")
    kinds = {name: pa.string() for name in texts} | {"round": pa.int32(), "rank": pa.int64()}
    return pa.schema([(name, kinds.get(name, pa.list_(pa.string()))) for name in Round.model_fields])


def _parquet(transcript: Transcript) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = columns().with_metadata({FORMAT: orjson.dumps(transcript.header())})
    table = pa.Table.from_pylist([each.model_dump() for each in transcript.rounds], schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
