"""The TREC run: `qid Q0 docid rank score tag`, six columns with blanks or tabs between them.

The score decides the order, as in trec_eval; equal scores are ordered by a hash of qid and docid, as
everywhere in this suite. A turn of a session is `SESSION#TURN`, turns from 1; the ranking of a query's own
subset is `QUERY#subset`.
"""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cir_datasets.rows import id_array
from submissions.errors import ConversionError
from submissions.formats.native import ReaderContext, UncheckedFile, read_rankings
from submissions.rank_file.benchmarks import Spelling, image_family
from submissions.rank_file.columns import Codes, Columns
from submissions.rank_file.content import Budget
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, shown
from submissions.rank_file.model import TREC, TURN, turn_key

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from submissions.rank_file.model import Method, RankFile

    Places = NDArray[np.int64]

COLUMNS = 6
SUBSET = "#subset"
"""Behind a query whose subset is ranked."""

MAX_TURN = 100
"""A session has at most so many turns: a number far beyond would make as many empty rankings."""

_BLOCK = 1_000
"""Lines that are put together at a time."""
_MARK = "\ufeff"
"""A byte order mark: before a text, readers drop it."""
_TURN_NUMBER = re.compile(r"[1-9][0-9]{0,2}")
_RANK_DIGITS = 9
_RANK = re.compile(rb"[0-9]{1,%d}" % _RANK_DIGITS)
_BELOW_ZERO = re.compile(rb"-[0-9]+")
_SCORE = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[iI]nf(?:inity)?")


def parse(content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read a TREC run.

    Args:
        content: the file's bytes.
        context: findings, benchmarks, and what was asked for; the run does not name its benchmark.

    Returns:
        What could be read, or None where a line cannot be read.
    """
    findings, budget = context.findings, context.budget
    lines = _Lines(findings, budget)
    if content.count(b"\n") > budget.limit("lines"):
        raise budget.over("lines")
    for number, line in enumerate(io.BytesIO(content), start=1):
        words = line.split()
        if words:
            lines.take(number, words)
    return None if lines.broken else unchecked_run(lines, context, TREC, "a TREC run")


class RunLike(Protocol):
    """Scored images by qid, in any form of a run."""

    qids: list[str]
    method: str
    """The method's name; empty where the run does not say it."""

    def columns(self, spelling: Spelling) -> Columns:
        """By qid its images in a spelling, the best first."""


def unchecked_run(run: RunLike, context: ReaderContext, form: str, title: str) -> UncheckedFile | None:
    """What a run of any form answers: its turns by session, and the rankings of subsets apart.

    Args:
        run: what was read.
        context: findings, benchmarks and budget; the run does not name its benchmark.
        form: the format's name.
        title: the format in words.
    """
    from submissions.formats.servers import AskedForm, asked_benchmark

    budget, subset_answers = context.budget, None
    spec = asked_benchmark(context, AskedForm(form, title, (), "cirr/val"), ids=run.qids)
    if spec is None:
        return None
    columns = run.columns(Spelling(image_family(spec), context.benchmarks.gallery(spec) or ()))
    rankings, subsets = _by_section(columns, spec, context.findings, budget)
    if rankings is None:
        return None
    if subsets is not None:
        subset_answers = read_rankings(subsets, spec, context, section="subset_rankings", budget=budget)
    answers, method = (
        read_rankings(rankings, spec, context, budget=budget),
        named_method(run.method or context.label),
    )
    return UncheckedFile(spec, spec.card.version, method, answers, subset_answers, form)


def dump(rank_file: RankFile) -> bytes:
    """The TREC run; scores fall by one from the length of a ranking to 1, so that nothing ties.

    Args:
        rank_file: what to write; a ranking without images has no line.

    Raises:
        ConversionError: an id holds a blank, or reads like the id of a turn or a subset.
    """
    tag, known, written = tag_of(rank_file), set[str](), io.BytesIO()
    for qid, ids in rankings_by_qid(rank_file):
        # Ids in their order, so that of several that cannot be written the first is named.
        fresh = [word for word in dict.fromkeys((qid, *ids)) if word not in known]
        for word in fresh:
            if word.split() != [word]:
                why = "holds a blank, which ends a column" if word else "is not a column"
                raise unwritable(qid, f"{shown(word)} {why} of a TREC run")
        known.update(fresh)
        if ids and not written.tell() and qid.startswith(_MARK):
            raise unwritable(qid, "a TREC run cannot start with a byte order mark, which readers drop")
        for start in range(0, len(ids), _BLOCK):
            places = enumerate(ids[start : start + _BLOCK], start=start)
            lines = [f"{qid} Q0 {image} {at + 1} {len(ids) - at} {tag}\n" for at, image in places]
            written.write("".join(lines).encode())
    return written.getvalue()


def rankings_by_qid(rank_file: RankFile) -> Iterator[tuple[str, list[str]]]:
    """Every ranking of a rank file with the qid that a run writes it under.

    Raises:
        ConversionError: an id reads like that of a subset.
    """
    for query, answer in rank_file.rankings.items():
        if answer and not isinstance(answer[0], str):
            yield from ((turn_key(query, turn), ids) for turn, ids in enumerate(answer, start=1))
        elif query.endswith(SUBSET):
            raise unwritable(query, f"a run takes the ending {SUBSET} for a subset's ranking")
        else:
            yield query, answer
    for query, ids in (rank_file.subset_rankings or {}).items():
        yield f"{query}{SUBSET}", ids


def unwritable(qid: str, why: str) -> ConversionError:
    """The error of a ranking that a run cannot hold."""
    return ConversionError(f"query {shown(qid)}: {why}. Fix: choose another format with --to.")


def tag_of(rank_file: RankFile) -> str:
    """The method's name as a run's tag, which holds no blanks."""
    return re.sub(r"\s+", "_", rank_file.method.name)


class _Lines:
    """The lines of a run as columns of numbers, which take a tenth of the memory of lists.

    Args:
        findings: collects what is wrong, with the number of the line.
        budget: what reading the file may cost.
    """

    def __init__(self, findings: Findings, budget: Budget) -> None:
        self.findings, self.budget = findings, budget
        self.broken = False
        self.tag: bytes | None = None
        self.method = ""
        self._queries: dict[bytes, int] = {}
        self._images: dict[bytes, int] = {}
        self.qids: list[str] = []
        self._image_names: list[str] = []
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
            self.tag, self.method = tag, tag.decode("utf-8", errors="replace")
        elif tag != self.tag:
            what = f"the tag is {_said(tag)}, before it was {_said(self.tag)}; a rank file is one method's."
            self._refuse(number, what, "tag", code="bad-metadata", fix=_ONE_TAG)
            return
        query = self._queries.get(qid)
        image = self._images.get(docid)
        if query is None:
            query = self._new(number, qid, self._queries, self.qids)
        if image is None:
            image = self._new(number, docid, self._images, self._image_names)
        if query is None or image is None:
            return
        self._query.append(query)
        self._image.append(image)
        self._rank.append(int(rank))
        self._score.append(float(score))
        self._number.append(number)

    def columns(self, spelling: Spelling) -> Columns:
        """By qid, in the order of its first line, its images, the best first and none twice.

        Args:
            spelling: which the image ids get.
        """
        queries, images = _int32(self._query), _int32(self._image)
        if changed := spelling.changes(self._image_names):
            codes: dict[str, int] = {}
            names = (changed.get(name, name) for name in self._image_names)
            images = np.array([codes.setdefault(name, len(codes)) for name in names], dtype=np.int32)[images]
            self._image_names = list(codes)
        self.budget.spend("lists", len(self.qids))
        # Line by line of each qid, an image's first line only.
        lines = np.argsort(queries, kind="stable")
        pairs = queries.astype(np.int64) * max(1, len(self._image_names)) + images
        _, first = np.unique(pairs, return_index=True)
        if len(first) < len(pairs):
            once = np.zeros(len(pairs), dtype=np.bool_)
            once[first] = True
            again = lines[~once[lines]]
            padded = self._padded(queries, pairs, again)
            self._repeated(again[~padded[queries[again]]], pairs, first)
            lines = lines[once[lines]]
        scores = np.frombuffer(self._score)[lines]
        lines = lines[best_first(scores, queries[lines], images[lines], self.qids, self._image_names)]
        self._compare(lines, queries, images)
        lengths = np.bincount(queries[lines], minlength=len(self.qids))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        named = id_array(self._image_names)
        return Columns(self.qids, images[lines], offsets, named)

    def _compare(self, lines: Places, queries: Codes, images: Codes) -> None:
        """Note where the rank column orders two neighbours the other way round."""
        owners, ranks, scores = queries[lines], _int32(self._rank)[lines], np.frombuffer(self._score)[lines]
        against = np.flatnonzero((owners[1:] == owners[:-1]) & (ranks[1:] < ranks[:-1]))
        found, first, counts = np.unique(owners[against], return_index=True, return_counts=True)
        for owner, at, count in zip(found.tolist(), against[first].tolist(), counts.tolist(), strict=True):
            high, low = scores[at : at + 2].tolist()

            def message(at: int = at, high: float = high, low: float = low) -> str:
                better, worse = (shown(self._image_names[images[line]]) for line in lines[at : at + 2])
                if high == low:
                    what = f"{better} and {worse} both have the score {high:.6g}"
                    what += ", which a hash of qid and docid orders"
                else:
                    what = f"{better} has the score {high:.6g} and {worse} {low:.6g}"
                had = f"{int(ranks[at])} and {int(ranks[at + 1])}"
                return f"{what}, but their ranks are {had}; the rank column is not used."

            cause = "tie" if high == low else "order"
            query = self.qids[owner]
            self.findings.add("rank-score-disagree", message, cause=cause, query=query, count=count)

    def _padded(self, queries: Codes, pairs: NDArray[np.int64], again: Places) -> NDArray[np.bool_]:
        """The qids all of whose lines are there again, as often and with the same scores; noted once each."""
        places, numbers, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        owners = places // max(1, len(self._image_names))
        fewest, most = np.full(len(self.qids), len(pairs)), np.zeros(len(self.qids), np.int64)
        np.minimum.at(fewest, owners, counts)
        np.maximum.at(most, owners, counts)
        scores = np.frombuffer(self._score)
        low, high = np.full(len(places), np.inf), np.full(len(places), -np.inf)
        np.minimum.at(low, numbers.reshape(-1), scores)
        np.maximum.at(high, numbers.reshape(-1), scores)
        padded: NDArray[np.bool_] = (fewest == most) & (most > 1)
        padded[owners[low != high]] = False
        for query, at in zip(*np.unique(queries[again], return_index=True), strict=True):
            if padded[query]:
                said = f"line {self._number[again[at]]:,}: it is there already."
                self.findings.add("repeated-query", said, query=self.qids[query])
        return padded

    def _repeated(self, again: Places, pairs: NDArray[np.int64], first: Places) -> None:
        """Note every line that names an image of its qid again."""
        numbers = _int32(self._number)
        firsts = pairs[first]
        for line in again[:MAX_EXAMPLES].tolist():
            before, place = numbers[first[np.searchsorted(firsts, pairs[line])]], numbers[line]
            name = self._image_names[pairs[line] % len(self._image_names)]
            message = f"{shown(name)} stands in line {before:,} and in line {place:,}."
            query = self.qids[self._query[line]]
            self.findings.add("duplicate-image", message, cause="lines", query=query, value=name)
        if len(again) > MAX_EXAMPLES:
            self.findings.add("duplicate-image", "", cause="lines", count=len(again) - MAX_EXAMPLES)

    def _new(self, number: int, word: bytes, codes: dict[bytes, int], names: list[str]) -> int | None:
        try:
            names.append(word.decode("utf-8"))
        except UnicodeDecodeError:
            self._refuse(number, f"{_said(word)} is not UTF-8 text.", "text", code="unreadable")
            return None
        return codes.setdefault(word, len(codes))

    def _refuse(
        self, number: int, what: str, cause: str, *, code: str = "malformed", fix: str | None = None
    ) -> None:
        self.broken = True
        message = f"line {number:,}: {what}"
        self.findings.add(code, message, cause=cause, value=f"line {number:,}", fix=fix or _SIX)
        self.budget.spend("broken", where=f"line {number:,}: ")


_SIX = "write six columns a line: qid Q0 docid rank score tag"
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


def _int32(values: array[int]) -> Codes:
    return np.frombuffer(values, dtype=np.int32)


def _by_section(
    columns: Columns, spec: BenchmarkSpec, findings: Findings, budget: Budget
) -> tuple[Columns | None, Columns | None]:
    """The rankings by query or session, and those of subsets where there are any."""
    if spec.kind == "multi_turn":
        return _by_session(columns, findings, budget), None
    parts = [qid for qid in columns.names if qid.endswith(SUBSET)]
    if spec.config.subset is None or not parts:
        return columns, None
    subsets = columns.picked(parts, called=[qid.removesuffix(SUBSET) for qid in parts])
    return columns.without(parts), subsets


def _by_session(columns: Columns, findings: Findings, budget: Budget) -> Columns | None:
    sessions: dict[str, int] = {}
    broken = False
    for qid in columns.names:
        session, sign, turn = qid.rpartition(TURN)
        number = int(turn) if _TURN_NUMBER.fullmatch(turn) else 0
        if not sign or not 1 <= number <= MAX_TURN:
            message = f"the qid {shown(qid)} names no turn of a session."
            findings.add("bad-type", message, cause="turn", query=qid, value=qid, fix=_TURN)
            broken = True
        sessions[session] = max(number, sessions.get(session, 0))
    if broken:
        return None
    budget.spend("lists", sum(sessions.values()))
    # A turn that is left out has an empty ranking.
    qids = [turn_key(session, turn) for session, last in sessions.items() for turn in range(1, last + 1)]
    ends = np.cumsum([0, *sessions.values()])
    return columns.picked(qids, called=list(sessions), turn_offsets=ends)


_TURN = f"write SESSION{TURN}TURN as the qid, turns from 1 to {MAX_TURN}"


def best_first(
    scores: NDArray[np.float64], owners: Codes, images: Codes, qids: Sequence[str], image_ids: Sequence[str]
) -> Places:
    """The places of scored images, those of a qid ordered by score where they are not; ties by `tie_keys`.

    Args:
        scores: of each image, those of a qid one after the other.
        owners: place of each one's qid in `qids`.
        images: place of each in `image_ids`.
        qids: query ids, of turns `SESSION#TURN`.
        image_ids: in the benchmark's spelling.
    """
    from cir_metrics.ties import Ties

    ordered = np.arange(len(scores))
    wrong = np.flatnonzero((owners[1:] == owners[:-1]) & ~(scores[1:] < scores[:-1]))
    if not len(wrong):
        return ordered
    odd = np.zeros(len(qids), dtype=np.bool_)
    odd[owners[wrong]] = True
    places = np.flatnonzero(odd[owners])
    own = owners[places].astype(np.int64)
    keys = Ties(image_ids).keys(qids, images[places].astype(np.int64), own)
    ordered[places] = places[np.lexsort((keys, -scores[places], own))]
    return ordered


def named_method(name: str) -> Method:
    """The method that a run names, without what a name cannot hold."""
    from pydantic import ValidationError

    from submissions.formats.native import nameless_method
    from submissions.rank_file.model import Method

    try:
        return Method(name=name)
    except ValidationError:
        return nameless_method(name)
