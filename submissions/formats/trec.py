"""The TREC run: `qid Q0 docid rank score tag`, six columns with blanks or tabs between them.

The score decides the order, as in trec_eval; equal scores are ordered by image id, as everywhere in this
suite. A turn of a session is `SESSION#TURN`, turns from 1; the ranking of a query's own subset is
`QUERY#subset`.
"""

from __future__ import annotations

import codecs
import io
import re
from array import array
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from submissions.drafts import Draft, read_rankings
from submissions.errors import ConversionError
from submissions.findings import Findings, shown
from submissions.formats import TREC, Context
from submissions.image_ids import image_family, normaliser

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from submissions.rank_file import Method, RankFile

NAME = TREC
COLUMNS = 6
TURN = "#"
"""Between a session and the number of its turn."""
SUBSET = "#subset"
"""Behind a query whose subset is ranked."""

MAX_TURN = 100
"""A session has at most so many turns: a number far beyond would make as many empty rankings."""

_TURN_NUMBER = re.compile(r"[1-9][0-9]{0,2}")
_RANK_DIGITS = 9
_RANK = re.compile(rb"[0-9]{1,%d}" % _RANK_DIGITS)
_BELOW_ZERO = re.compile(rb"-[0-9]+")
_SCORE = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[iI]nf(?:inity)?")


def parse(content: bytes, context: Context) -> Draft | None:
    """Read a TREC run.

    Args:
        content: the file's bytes.
        context: findings, benchmarks, and what was asked for; the run does not name its benchmark.

    Returns:
        The draft, or None where a line cannot be read.
    """
    from submissions.formats.foreign import asked_benchmark

    findings = context.findings
    if content.startswith(codecs.BOM_UTF8):
        findings.add(
            "malformed", "it starts with a byte order mark, which would be part of the first qid.", fix=_BOM
        )
        return None
    spec = asked_benchmark(context, format_title="a TREC run", datasets=None, example="cirr/val")
    if spec is None:
        return None
    lines = _Lines(findings, spec)
    for number, line in enumerate(io.BytesIO(content), start=1):
        words = line.split()
        if words:
            lines.take(number, words)
    if lines.broken:
        return None
    rankings, subsets = _by_section(lines.ordered(), spec, findings)
    if rankings is None:
        return None
    subset_answers = None
    if subsets:
        subset_answers = read_rankings(subsets, spec, findings, section="subset_rankings")
    answers = read_rankings(rankings, spec, findings)
    method = _method(lines.tag, context.label)
    return Draft(spec, spec.card.version, method, answers, subset_answers, NAME)


def dump(rank_file: RankFile) -> bytes:
    """The TREC run; scores fall by one from the length of a ranking to 1, so that nothing ties.

    Args:
        rank_file: what to write; a ranking without images has no line.

    Raises:
        ConversionError: an id holds a blank, or cannot be told from a turn or a subset.
    """
    tag = tag_of(rank_file)
    lines: list[str] = []
    for query, answer in rank_file.rankings.items():
        if answer and not isinstance(answer[0], str):
            for turn, ids in enumerate(answer, start=1):
                _write(lines, f"{query}{TURN}{turn}", ids, tag)
        else:
            if query.endswith(SUBSET):
                raise ConversionError(
                    f"query {shown(query)}: a TREC run takes the ending {SUBSET} for a subset's ranking. "
                    "Fix: choose another format with --to."
                )
            _write(lines, query, answer, tag)
    for query, ids in (rank_file.subset_rankings or {}).items():
        _write(lines, f"{query}{SUBSET}", ids, tag)
    content = "".join(lines).encode()
    if content.startswith(codecs.BOM_UTF8):
        raise ConversionError(
            f"query {shown(lines[0].split()[0])}: a TREC run cannot start with a byte order mark, which is "
            "no part of an id. Fix: choose another format with --to."
        )
    return content


def tag_of(rank_file: RankFile) -> str:
    """The method's name as a run's tag, which holds no blanks."""
    return re.sub(r"\s+", "_", rank_file.method.name)


def _write(lines: list[str], qid: str, ids: list[str], tag: str) -> None:
    for word in (qid, *ids):
        if len(word.split()) != 1 or word != word.strip():
            why = "holds a blank, which ends a column of a TREC run" if word else "is no column of a TREC run"
            raise ConversionError(
                f"query {shown(qid)}: {shown(word)} {why}. Fix: choose another format with --to."
            )
    depth = len(ids)
    lines += [f"{qid} Q0 {image} {place + 1} {depth - place} {tag}\n" for place, image in enumerate(ids)]


class _Lines:
    """The lines of a run as columns of numbers, which take a tenth of the memory of lists.

    Args:
        findings: collects what is wrong, with the number of the line.
        spec: the benchmark, whose spelling the image ids get.
    """

    def __init__(self, findings: Findings, spec: BenchmarkSpec) -> None:
        self.findings = findings
        self.broken = False
        self.tag: bytes | None = None
        self._normalise = normaliser(image_family(spec))
        self._queries: dict[bytes, int] = {}
        self._images: dict[bytes, int] = {}
        self._query_names: list[str] = []
        self._image_names: list[str] = []
        self._codes: dict[str, int] = {}
        self._query, self._image = array("i"), array("i")
        self._rank, self._score, self._number = array("i"), array("d"), array("i")

    def take(self, number: int, words: list[bytes]) -> None:
        if len(words) != COLUMNS:
            many = "1 column" if len(words) == 1 else f"{len(words)} columns"
            self._refuse(number, f"{many}; a TREC run has six: qid Q0 docid rank score tag.", "columns")
            return
        qid, _, docid, rank, score, tag = words
        if not _RANK.fullmatch(rank):
            self._refuse(number, f"the rank is {_said(rank)}; {_why_no_rank(rank)}.", "rank", fix=_A_RANK)
            return
        if not _SCORE.fullmatch(score):
            if score.lower().lstrip(b"+-") == b"nan":
                self._refuse(number, "the score is NaN, which has no rank.", "nan", fix=_NO_NAN)
            else:
                what = f"the score is {_said(score)}; it must be a number."
                self._refuse(number, what, "score", fix=_A_SCORE)
            return
        if self.tag is None:
            self.tag = tag
        elif tag != self.tag:
            what = f"the tag is {_said(tag)}, before it was {_said(self.tag)}; a rank file is one method's."
            self._refuse(number, what, "tag", code="bad-metadata", fix=_ONE_TAG)
            return
        query = self._queries.get(qid)
        image = self._images.get(docid)
        if query is None:
            query = self._new(number, qid, self._queries, self._add_query)
        if image is None:
            image = self._new(number, docid, self._images, self._add_image)
        if query is None or image is None:
            return
        self._query.append(query)
        self._image.append(image)
        self._rank.append(int(rank))
        self._score.append(float(score))
        self._number.append(number)

    def ordered(self) -> Iterator[tuple[str, list[str]]]:
        """Each qid, in the order of its first line, with its images, the best first and none twice."""
        import numpy as np

        queries = np.frombuffer(self._query, dtype=np.int32)
        order = np.argsort(queries, kind="stable")
        ends = np.cumsum(np.bincount(queries, minlength=len(self._query_names)))
        images, ranks = np.frombuffer(self._image, dtype=np.int32), np.frombuffer(self._rank, dtype=np.int32)
        scores, numbers = np.frombuffer(self._score), np.frombuffer(self._number, dtype=np.int32)
        start = 0
        for qid, end in zip(self._query_names, ends.tolist(), strict=True):
            lines = order[start:end]
            start = end
            _, first = np.unique(images[lines], return_index=True)
            if len(first) < len(lines):
                self._repeated(qid, images[lines].tolist(), numbers[lines].tolist())
                lines = lines[np.sort(first)]
            own = scores[lines]
            if len(own) > 1 and not (own[1:] < own[:-1]).all():
                lines = lines[self._best_first(qid, own, images[lines])]
            self._compare(qid, images[lines], ranks[lines], scores[lines])
            yield qid, [self._image_names[image] for image in images[lines].tolist()]

    def _best_first(self, qid: str, scores: Any, images: Any) -> list[int]:
        from cir_metrics.ranking import top_k

        named = [self._image_names[image] for image in images.tolist()]
        place = {name: number for number, name in enumerate(named)}
        (best,) = top_k(scores[None, :], named, k=len(named), query_ids=[qid])
        return [place[name] for name in best]

    def _compare(self, qid: str, images: Any, ranks: Any, scores: Any) -> None:
        """Note where the rank column orders two neighbours the other way round."""
        against = (ranks[1:] < ranks[:-1]).nonzero()[0]
        if not len(against):
            return
        at = int(against[0])
        better, worse = (shown(self._image_names[image]) for image in images[at : at + 2].tolist())
        high, low = scores[at : at + 2].tolist()
        if high == low:
            cause = "tie"
            message = (
                f"{better} and {worse} both have the score {high:.6g}, which a hash of qid and docid orders"
            )
        else:
            cause = "order"
            message = f"{better} has the score {high:.6g} and {worse} {low:.6g}"
        message += (
            f", but their ranks are {int(ranks[at])} and {int(ranks[at + 1])}; the rank column is not used."
        )
        self.findings.add("rank-score-disagree", message, cause=cause, query=qid, count=len(against))

    def _repeated(self, qid: str, images: list[int], numbers: list[int]) -> None:
        first: dict[int, int] = {}
        for image, number in zip(images, numbers, strict=True):
            before = first.setdefault(image, number)
            if before != number:
                name = self._image_names[image]
                message = f"{shown(name)} stands in line {before:,} and in line {number:,}."
                self.findings.add("duplicate-image", message, cause="lines", query=qid, value=name)

    def _new(
        self, number: int, word: bytes, known: dict[bytes, int], add: Callable[[str], int]
    ) -> int | None:
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse(number, f"{_said(word)} is not UTF-8 text.", "text", code="unreadable")
            return None
        code = known[word] = add(text)
        return code

    def _add_query(self, name: str) -> int:
        self._query_names.append(name)
        return len(self._query_names) - 1

    def _add_image(self, name: str) -> int:
        (spelled,) = self._normalise([name])
        code = self._codes.setdefault(spelled, len(self._image_names))
        if code == len(self._image_names):
            self._image_names.append(spelled)
        return code

    def _refuse(
        self, number: int, what: str, cause: str, *, code: str = "malformed", fix: str | None = None
    ) -> None:
        self.broken = True
        message = f"line {number:,}: {what}"
        self.findings.add(code, message, cause=cause, value=f"line {number:,}", fix=fix or _SIX)


_SIX = "write six columns a line: qid Q0 docid rank score tag"
_BOM = "save it as UTF-8 without BOM"
_A_RANK = "write the image's place in the ranking as the fourth column, a whole number from 1"
_A_SCORE = "write a decimal number, such as 0.97 or 9.7e-1, as the fifth column"
_NO_NAN = "give the image a number as its score, or leave its line out"
_ONE_TAG = "write one method's name into the last column of every line"


def _why_no_rank(rank: bytes) -> str:
    if rank.isdigit():
        return f"one of at most {_RANK_DIGITS} digits is read"
    return "ranks start at 1" if _BELOW_ZERO.fullmatch(rank) else "it must be a whole number"


def _said(word: bytes) -> str:
    return shown(word.decode("utf-8", errors="replace"))


def _by_section(
    ordered: Iterator[tuple[str, list[str]]], spec: BenchmarkSpec, findings: Findings
) -> tuple[dict[str, Any] | None, dict[str, list[str]]]:
    """The rankings by query or session, and those of subsets."""
    if spec.kind == "multi_turn":
        return _by_session(ordered, findings), {}
    rankings: dict[str, Any] = {}
    subsets: dict[str, list[str]] = {}
    has_subsets = spec.config.subset is not None
    for qid, ids in ordered:
        if has_subsets and qid.endswith(SUBSET):
            subsets[qid.removesuffix(SUBSET)] = ids
        else:
            rankings[qid] = ids
    return rankings, subsets


def _by_session(ordered: Iterator[tuple[str, list[str]]], findings: Findings) -> dict[str, Any] | None:
    sessions: dict[str, dict[int, list[str]]] = {}
    broken = False
    for qid, ids in ordered:
        session, sign, turn = qid.rpartition(TURN)
        number = int(turn) if _TURN_NUMBER.fullmatch(turn) else 0
        if not sign or not 1 <= number <= MAX_TURN:
            message = f"the qid {shown(qid)} names no turn of a session."
            findings.add("bad-type", message, cause="turn", query=qid, value=qid, fix=_TURN)
            broken = True
        else:
            sessions.setdefault(session, {})[number] = ids
    if broken:
        return None
    return {
        session: [turns.get(number, []) for number in range(1, max(turns) + 1)]
        for session, turns in sessions.items()
    }


_TURN = f"write SESSION{TURN}TURN as the qid, turns from 1 to {MAX_TURN}"


def _method(tag: bytes | None, label: str) -> Method:
    from pydantic import ValidationError

    from submissions.formats.foreign import nameless_method
    from submissions.rank_file import Method

    name = label if tag is None else tag.decode("utf-8", errors="replace")
    try:
        return Method(name=name)
    except ValidationError:
        return nameless_method(name)
