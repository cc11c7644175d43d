"""What contradicts itself in a transcript: rank against list, a reference that was never shown, and the like.

The sessions' beginnings, and which image each round goes on from, follow from the settings and the data, so
that both are checked and not believed. What a method ranked and what a user said are believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from cir_datasets.rows import id_array
from cir_metrics.errors import CirError
from submissions.errors import MethodError
from submissions.formats.native import UncheckedFile
from submissions.rank_file.benchmarks import (
    AskedLists,
    Benchmarks,
    Depth,
    Queries,
    References,
    Spelling,
    image_family,
)
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import MAX_BYTES
from submissions.rank_file.findings import Findings, ValidationReport, shown
from submissions.rank_file.model import RankFile
from submissions.transcripts.openings import (
    Opening,
    aim_of,
    drawn_openings,
    end_of,
    first_of,
    left_by_silence,
    next_reference,
    published_openings,
)
from submissions.transcripts.reading import parse_transcript
from submissions.transcripts.sessions import MISSING, CheckedTranscript
from submissions.transcripts.settings import DEPTH
from submissions.transcripts.transcript import FORMAT, SILENT, Round, Transcript, by_session
from submissions.validation import check_rankings, check_words

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.rank_file.benchmarks import BenchmarkLike
    from submissions.rank_file.content import Source


def check_transcript(
    file: Source,
    benchmark: BenchmarkLike = None,
    *,
    max_bytes: int = MAX_BYTES,
    name: str | None = None,
    form: Mapping[str, Any] | None = None,
) -> CheckedTranscript:
    """Read a transcript and find everything that contradicts itself.

    Args:
        file: a path, or the file's bytes.
        benchmark: what it must have been played on: an id, a `Benchmark`, a mapping of benchmarks by id, or
            None for what the file says itself.
        max_bytes: bytes that are read at most.
        name: the file's name in messages, where `file` is bytes.
        form: fields of the method that came beside the file.

    Raises:
        MissingFileError: no file has that name.
        UnknownNameError: `benchmark` is not a benchmark.
        SourceError: the benchmark's own data is not available.
    """
    benchmarks = Benchmarks(benchmark)
    findings = Findings(name or ("transcript" if isinstance(file, bytes) else str(file)), benchmarks.expected)
    read = parse_transcript(file, findings, max_bytes=max_bytes)
    loaded = None if read is None else _benchmark(read.transcript, benchmarks, findings)
    if read is None or loaded is None:
        report = ValidationReport.of(findings.file, findings.listed())
        return CheckedTranscript(report, None if read is None else read.transcript)
    findings.benchmark = loaded.id
    spelling = Spelling(image_family(loaded.spec), loaded.gallery or ())
    transcript = read.transcript.respelled(spelling)
    try:
        openings, limit = _openings(transcript, loaded)
    except CirError as error:
        check_words(transcript.method.to_dict(), loaded.spec, findings)
        findings.add_error("wrong-benchmark", error)
        return CheckedTranscript(ValidationReport.of(findings.file, findings.listed(), loaded.id), transcript)
    declared = transcript.method.reference or (form or {}).get("reference", "")
    checks = _Checks(transcript, loaded, openings, declared, findings)
    rounds = checks.run(zip(transcript.rounds, read.places, strict=True))
    # What a silent user's list repeats is said of the round before.
    lists = {
        session: [list(dict.fromkeys(each.top)) if each.silent else each.top for each in listed]
        for session, listed in rounds.items()
    }
    columns = Columns.of_lists(lists, by_turn=True)
    unchecked = UncheckedFile(loaded.spec, loaded.version, transcript.method, columns, None, FORMAT)
    queries = checks.queries(rounds)
    check_rankings(unchecked, benchmarks, findings, form or {}, queries_of=lambda _, __: queries)
    answers = {name: [each.top for each in session] for name, session in transcript.sessions().items()}
    rank_file = RankFile(loaded.id, loaded.version, transcript.method, answers)
    report = ValidationReport.of(findings.file, findings.listed(), loaded.id, rank_file, len(answers))
    return CheckedTranscript(report, transcript, loaded, tuple(openings), limit)


def _benchmark(transcript: Transcript, benchmarks: Benchmarks, findings: Findings) -> Benchmark | None:
    said = transcript.benchmark
    if benchmarks.expected not in (None, said):
        findings.add(
            "wrong-benchmark",
            f"it was played on {shown(said)}, and {benchmarks.expected} was asked for.",
            value=said,
        )
        return None
    try:
        spec = benchmarks.spec(said)
    except CirError as error:
        findings.add_error("wrong-benchmark", error, value=said)
        return None
    if transcript.benchmark_version != spec.card.version:
        findings.add(
            "wrong-version",
            f"it was played on version {transcript.benchmark_version} of {said}; "
            f"{spec.card.version} is in use.",
        )
        return None
    return benchmarks.load(said)


def _openings(transcript: Transcript, benchmark: Benchmark) -> tuple[list[Opening], int | None]:
    """The sessions that the file should hold, and how many they are where that is not all there can be.

    A run with a limit holds the first sessions of the seed's draw; nothing else may be left out.
    """
    settings, there = transcript.choices, transcript.sessions().keys()
    if settings.start == "random":
        if benchmark.gallery is None or len(benchmark.gallery) < 2:
            raise MethodError(f"the gallery list of {benchmark.id} is not available to draw sessions from.")
        # A file without sessions lacks the first.
        drawn = drawn_openings(benchmark.gallery, settings, len(there) or 1)
        return drawn, len(drawn)
    every = published_openings(benchmark, settings)
    drawn = first_of(every, settings, len(there))
    if 0 < len(drawn) < len(every) and {each.session for each in drawn} == there:
        return drawn, len(drawn)
    return every, None


class _Checks:
    """The checks that only rounds need; what a list may hold, the rules of all rankings say.

    Args:
        transcript: the file.
        benchmark: what was played.
        openings: the sessions that it should hold.
        declared: what is declared of the reference, in the file or beside it.
        findings: collects what is wrong.
    """

    def __init__(
        self,
        transcript: Transcript,
        benchmark: Benchmark,
        openings: Sequence[Opening],
        declared: str,
        findings: Findings,
    ) -> None:
        """See the class."""
        self._settings, self._findings, self._benchmark = transcript.choices, findings, benchmark
        self._openings = {each.session: each for each in openings}
        self._removes = benchmark.excludes_reference or declared == "removed"
        self._skipped = transcript.method.skipped_images or 0

    def run(self, rounds: Iterable[tuple[Round, str]]) -> dict[str, list[Round]]:
        """Check rounds, each with its place; by session those with lists, as far as they were looked at."""
        first: dict[tuple[str | None, int | None], str] = {}
        played: list[Round] = []
        for each, place in rounds:
            key = each.session, each.round
            # Of one that is there twice, that which is looked at.
            self._findings.places[key] = place
            if each.session not in self._openings:
                said = f"no session of these settings has the id {shown(each.session)}."
                self._say(each, "unknown-query", said)
            elif key in first:
                self._say(each, "repeated-round", f"round {each.round} stands in {first[key]} already.")
            else:
                first[key] = place
                played.append(each)
        self._findings.places.update(first)
        sessions = by_session(played)
        reached: dict[str, list[Round]] = {}
        for name, opening in self._openings.items():
            if name not in sessions:
                self._findings.add(
                    MISSING,
                    "the session is not in the file; leaving it out would change the numbers.",
                    query=name,
                    fix="play all sessions, or the first of the seed's draw with --limit; "
                    "cir score --allow-missing leaves these out, for your own eyes",
                )
                continue
            looked_at = self._session(opening, sessions[name])
            if listed := [each for each in looked_at if each.top or not each.silent]:
                reached[name] = listed
        return reached

    def queries(self, sessions: Mapping[str, Sequence[Round]]) -> Queries:
        """What the lists of these rounds have to be; that of a silent user's repeats the one before."""
        num_turns = {session: len(rounds) for session, rounds in sessions.items()}
        played = chain.from_iterable(sessions.values())
        references = ["" if each.silent else self._removed(each) or "" for each in played]
        asked = AskedLists(
            "rankings",
            Depth(DEPTH, DEPTH),
            References(num_turns, id_array(references)),
            self._benchmark.gallery,
            removes=True,
            readers="; a transcript keeps",
            lengths={session: list(map(self._length, rounds)) for session, rounds in sessions.items()},
        )
        return Queries(
            benchmark=self._benchmark.id,
            title=self._benchmark.spec.card.short_title,
            num_turns=num_turns,
            multi_turn=True,
            asked=(asked,),
        )

    def _removed(self, each: Round) -> str | None:
        """The reference, where it is left out of a round's ranking."""
        stays = self._settings.after_success == "continue" and each.round > 1
        return each.reference if self._removes and not stays else None

    def _size(self, each: Round) -> int | None:
        """How many images are ranked in a round; None where the gallery is not known."""
        gallery = self._benchmark.gallery_set
        return None if gallery is None else len(gallery) - (self._removed(each) in gallery)

    def _length(self, each: Round) -> int:
        size = self._size(each)
        return 0 if size is None or each.silent else max(0, min(DEPTH, size - self._skipped))

    def _say(self, each: Round, code: str, what: str, cause: str = "", *, value: object = None) -> None:
        self._findings.add(code, what, cause=cause, query=each.session, turn=each.round, value=value)

    def _session(self, opening: Opening, rounds: Sequence[Round]) -> list[Round]:
        """Check the rounds of a session; those that were looked at."""
        before: list[Round] = []
        for number, each in enumerate(rounds, start=1):
            if each.round != number:
                self._say(each, "missing-round", f"round {number} is not there.")
                return before
            over = self._over(each, before)
            if over:
                self._say(each, "round-after-end", over)
                return before
            if before:
                self._reference(opening, each, before)
            else:
                self._start(opening, each)
            if each.silent:
                self._silence(opening, each, before)
            else:
                self._caption(each, before)
                self._rank(opening, each)
                self._target(opening, each)
                self._end(each)
            before.append(each)
        if not before[-1].end:
            self._say(before[-1], "missing-round", "the session stops here, and does not say why.")
        return before

    def _over(self, each: Round, before: Sequence[Round]) -> str:
        """Why a round may not follow; empty where it may."""
        for last in before[-1:]:
            if last.end:
                return f"round {last.round} has ended the session: {shown(last.end)}."
            if self._settings.after_success == "stop" and last.rank <= self._settings.k:
                return f"the target was found in round {last.round}."
        if each.round > self._settings.max_rounds:
            return f"round {each.round} is beyond the last one, {self._settings.max_rounds}."
        return ""

    def _start(self, opening: Opening, each: Round) -> None:
        if each.reference != opening.reference:
            said = f"it starts from {_id(each.reference)}; the session starts from {_id(opening.reference)}."
            self._say(each, "wrong-start", said, value=each.reference)
        if opening.caption is not None and each.caption != opening.caption:
            self._say(each, "wrong-start", "its caption is not the published one.", "caption")

    def _reference(self, opening: Opening, each: Round, before: Sequence[Round]) -> None:
        if not before[-1].top:
            return
        wanted = next_reference(self._settings, opening, before)
        if each.reference == wanted:
            return
        was = "was" if each.reference in before[-1].top else "was not"
        said = f"{_id(each.reference)} {was} in the list of round {each.round - 1}; "
        said += f"candidate={self._settings.candidate} goes on from {_id(wanted)}."
        self._say(each, "wrong-reference", said, was, value=each.reference)

    def _caption(self, each: Round, before: Sequence[Round]) -> None:
        if (before or self._settings.start == "random") and not each.caption.strip():
            said = "there are no words, and the session does not end as silent."
            self._say(each, "wrong-caption", said, "none")
        elif self._settings.feedback == "unchanged" and before and each.caption != before[0].caption:
            said = "feedback=unchanged repeats the first caption, and this is another."
            self._say(each, "wrong-caption", said, "changed")

    def _rank(self, opening: Opening, each: Round) -> None:
        right = set(opening.targets)
        places = [place for place, image in enumerate(each.top, start=1) if image in right]
        ranked = self._size(each)
        if places and each.rank != places[0]:
            said = f"rank {each.rank:,}; the best positive stands at {places[0]} in the list."
            self._say(each, "wrong-rank", said, "place")
        elif not places and each.rank <= (len(each.top) if ranked is None or ranked < DEPTH else DEPTH):
            # A list that is shorter for images that could not be read leaves no room for a hit.
            said = f"rank {each.rank:,}; none of the list's {len(each.top)} images is a positive."
            self._say(each, "wrong-rank", said, "absent")
        elif ranked is not None and each.rank > ranked:
            self._say(each, "wrong-rank", f"rank {each.rank:,}; {ranked:,} images are ranked.", "gallery")

    def _target(self, opening: Opening, each: Round) -> None:
        aim = aim_of(self._settings, opening.targets, each.top, each.rank)
        if each.target not in opening.targets:
            self._say(each, "wrong-target", f"{_id(each.target)} is not a positive.", value=each.target)
        elif aim is not None and each.target != aim:
            annotated = self._settings.aim == "target" or len(opening.targets) == 1
            kind = "annotated target" if annotated else "best-ranked positive"
            said = f"{_id(each.target)} is not the {kind}, {_id(aim)}."
            self._say(each, "wrong-target", said, value=each.target)

    def _silence(self, opening: Opening, each: Round, before: Sequence[Round]) -> None:
        """Nothing was said, and nothing was ranked."""
        if each.caption:
            self._say(each, "wrong-caption", "the user is silent, and there are words.", "silent")
        ranked = self._size(each)
        target, rank, top = left_by_silence(opening, before, each.rank if ranked is None else ranked)
        if (each.rank, each.top) != (rank, top):
            was = "those of the round before" if before else "the last one and none"
            said = f"the user is silent, and rank or list are not {was}."
            self._say(each, "wrong-rank", said, "silent")
        if each.target != target:
            said = f"the user is silent, and the target is not {_id(target)}."
            self._say(each, "wrong-target", said, "silent")
        if not each.end.removeprefix(SILENT).strip():
            self._say(each, "wrong-end", f"its end is {shown(each.end)}, without a reason.", "reason")
        if not before and self._settings.start == "published":
            said = "the user is silent in round 1, whose words are published."
            self._say(each, "wrong-end", said, "silent")

    def _end(self, each: Round) -> None:
        end = end_of(self._settings, each.round, each.rank)
        if each.end != end:
            said = f"its end is {shown(each.end)}; by its rank and round it is {shown(end)}."
            self._say(each, "wrong-end", said, value=each.end)


def _id(image: str | None) -> str:
    return "no image" if image is None else shown(image)
