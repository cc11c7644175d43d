"""The loop: rank, see whether the target is found, have the user say what is to change, rank again.

Sessions go side by side, round by round: one pass of the encoder and one blocked product a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.terminal import counted
from submissions.errors import MethodError
from submissions.methods.turns import Turn, gallery_of, removed_reference
from submissions.multiround.users import LONGEST, NOTHING, Exchange, Silence, style_of, usual_aspect
from submissions.rank_file.model import turn_key
from submissions.transcripts.openings import (
    OWN,
    aim_of,
    drawn_openings,
    end_of,
    first_of,
    left_by_silence,
    next_reference,
    published_openings,
)
from submissions.transcripts.transcript import SILENT, SOLVED, Round

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.turns import Candidates
    from submissions.multiround.journal import Journal
    from submissions.multiround.models import RoundModel
    from submissions.multiround.users import User
    from submissions.transcripts.openings import Opening
    from submissions.transcripts.settings import RoundSettings

_MOST_WHY = 300
"""Characters of a reason that a transcript keeps."""


@dataclass
class Session:
    """One dialogue while it goes on.

    Args:
        opening: how it begins.
        first: the published query; of one that starts at random without words, which the user says.
        aspect: what feedback is limited to, or None.
        rounds: what was played.
    """

    opening: Opening
    first: Turn
    aspect: str | None
    rounds: list[Round] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The query's."""
        return self.opening.session

    @property
    def targets(self) -> tuple[str, ...]:
        """All images that are right, the annotated one first."""
        return self.opening.targets

    @property
    def said(self) -> tuple[str, ...]:
        """Captions so far."""
        return tuple(each.caption for each in self.rounds)


def sessions_of(benchmark: Benchmark, settings: RoundSettings, limit: int | None = None) -> list[Session]:
    """A session for each query: what round 1 asks, and what is wanted.

    Args:
        benchmark: its queries.
        settings: which aspect is played, and the seed.
        limit: sessions at most, drawn by the seed and in the order in which they were drawn, so that a
            higher limit adds to them; None takes all, in the benchmark's order.

    Raises:
        MethodError: the benchmark has sessions of its own, its ground truth is not public, its gallery is not
            available, or no query has the aspect.
    """
    wanted = settings.aspect or usual_aspect(benchmark.spec.card.name)
    found = []
    openings = published_openings(benchmark, settings)
    for each in openings if limit is None else first_of(openings, settings, limit):
        aspect = next(iter(each.aspects), None) if wanted == OWN else wanted
        turn = Turn(each.session, each.reference, each.caption or "", each.captions)
        found.append(Session(each, turn, aspect))
    if not found:
        raise _no_aspect(benchmark, wanted)
    return found


def drawn_sessions(benchmark: Benchmark, settings: RoundSettings, number: int) -> list[Session]:
    """Sessions between any two images of the gallery, for benchmarks with few queries or easy ones.

    Args:
        benchmark: whose gallery it is.
        settings: seed, and what feedback is limited to.
        number: sessions.

    Raises:
        MethodError: the gallery is not available, holds fewer than two images, or no query has the aspect.
    """
    ids = gallery_of(benchmark).ids
    if len(ids) < 2:
        raise MethodError(f"{benchmark.id} has a gallery of {len(ids)} image. Fix: use a larger one.")
    known = _aspects(benchmark)
    if settings.aspect is not None and settings.aspect not in known:
        raise _no_aspect(benchmark, settings.aspect)
    found = []
    for each in drawn_openings(ids, settings, number):
        turn = Turn(turn_key(each.session, 1), each.reference, "")
        found.append(Session(each, turn, settings.aspect))
    return found


def _aspects(benchmark: Benchmark) -> list[str]:
    return sorted({aspect for row in benchmark.rows() for aspect in row.get("aspects") or []})


def _no_aspect(benchmark: Benchmark, wanted: str | None) -> MethodError:
    known = _aspects(benchmark)
    return MethodError(
        f"{benchmark.id} has no query of the aspect {wanted!r}. "
        f"Fix: {'use one of ' + ', '.join(known) if known else 'leave --aspect out'}."
    )


def play(
    sessions: Sequence[Session],
    model: RoundModel,
    user: User,
    gallery: Candidates,
    settings: RoundSettings,
    journal: Journal | None = None,
    after_round: Callable[[int, int, int], object] = lambda number, solved, going: None,
) -> list[Round]:
    """All rounds of all sessions.

    Args:
        sessions: as `sessions_of` gives them.
        model: the method, which remembers; of what was played with it before, nothing.
        user: who says what is to change.
        gallery: what is ranked.
        settings: the choices.
        journal: where finished rounds are kept, and gone on from.
        after_round: called with the round, how many sessions are solved, and how many go on.

    Returns:
        The rounds, session by session, in the order of `sessions`.

    Raises:
        LanguageError: the user's backend answers nothing more; what was played is in the journal.
        MethodError: the method or the user gives something else than it should.
    """
    dialogue = _Dialogue(sessions, model, user, gallery, settings)
    start = 0 if journal is None else journal.rounds()
    model.memory = np.zeros_like(model.memory)
    if journal is not None and start:
        for number in range(1, start + 1):
            dialogue.take(journal.read(number))
        model.memory = journal.memory(start)
    for number in range(start + 1, settings.max_rounds + 1):
        if not dialogue.going:
            break
        played = dialogue.play(number)
        if journal is not None:
            journal.write(number, played, model.memory)
        dialogue.take(played)
        after_round(number, dialogue.solved, len(dialogue.going))
    return [each for session in sessions for each in session.rounds]


class _Dialogue:
    """All sessions of a run."""

    def __init__(
        self,
        sessions: Sequence[Session],
        model: RoundModel,
        user: User,
        gallery: Candidates,
        settings: RoundSettings,
    ) -> None:
        self._sessions = sessions
        self._by_id = {session.id: place for place, session in enumerate(sessions)}
        self._model = model
        self._user = user
        self._gallery = gallery
        self._settings = settings
        self.going = list(range(len(sessions)))
        self.solved = 0

    def take(self, played: Sequence[Round]) -> None:
        """Add a finished round; sessions that it does not end go on."""
        self.going = []
        for each in played:
            place = self._by_id[each.session]
            self._sessions[place].rounds.append(each)
            self.solved += each.end == SOLVED
            if not each.end:
                self.going.append(place)

    def play(self, number: int) -> list[Round]:
        """Play one round of all sessions that go on."""
        turns, silent = self._turns(number)
        places = np.array(sorted(turns), dtype=np.int64)
        asked = [turns[place] for place in places.tolist()]
        played = {place: self._ended(place, number, *last) for place, last in silent.items()}
        if asked:
            self._model.hear(places, asked)
            ranked = self._model.rank(
                places,
                [turn.key for turn in asked],
                np.array([self._left_out(turn, number) for turn in asked], dtype=np.int64),
                [self._target_rows(place) for place in places.tolist()],
            )
            for place, turn, top, rank in zip(
                places.tolist(), asked, ranked.top, ranked.ranks.tolist(), strict=True
            ):
                played[place] = self._round(place, number, turn, top, rank)
        return [played[place] for place in sorted(played)]

    def _turns(self, number: int) -> tuple[dict[int, Turn], dict[int, tuple[str, Silence]]]:
        """The next query of each session; or, where the user says nothing of use, its reference and why."""
        published = self._settings.start == "published"
        if number == 1 and published:
            return {place: self._sessions[place].first for place in self.going}, {}
        candidates = {place: self._candidate(self._sessions[place]) for place in self.going}
        turns: dict[int, Turn] = {}
        silent = {}
        for place, words in zip(self.going, self._said(candidates, number), strict=True):
            session = self._sessions[place]
            if isinstance(words, Silence):
                silent[place] = (candidates[place], words)
                continue
            key = turn_key(session.id, number)
            captions = session.first.captions if words == session.first.text else (words,)
            turns[place] = Turn(key, candidates[place], words, captions)
        return turns, silent

    def _ended(self, place: int, number: int, reference: str, silence: Silence) -> Round:
        """The last round of a session whose user says nothing of use."""
        session = self._sessions[place]
        ranked = self._last_rank(reference)
        target, rank, top = left_by_silence(session.opening, session.rounds, ranked)
        return Round(
            session=session.id,
            round=number,
            reference=reference,
            caption="",
            target=target,
            rank=rank,
            top=top,
            end=f"{SILENT}{silence.why}"[:_MOST_WHY],
        )

    def _last_rank(self, reference: str) -> int:
        removed = removed_reference(Turn("", reference, ""), self._gallery) is not None
        return len(self._gallery.ids) - removed

    def _said(self, candidates: Mapping[int, str], number: int) -> list[str | Silence]:
        if self._settings.feedback == "unchanged" and number > 1:
            return [self._sessions[place].said[0] for place in candidates]
        name = self._gallery.benchmark.spec.card.name
        exchanges = []
        for place, candidate in candidates.items():
            session = self._sessions[place]
            target = session.rounds[-1].target if session.rounds else session.targets[0]
            style = style_of(name, session.aspect, self._settings.words)
            most = self._settings.most_repeats
            exchanges.append(Exchange(session.id, candidate, target, style, session.said, most))
        return _answers(self._user, exchanges)

    def _candidate(self, session: Session) -> str:
        """The next reference: the first one, or from the last round's list."""
        if not session.rounds:
            return str(session.first.reference)
        return next_reference(self._settings, session.opening, session.rounds)

    def _left_out(self, turn: Turn, number: int) -> int:
        """Row of the reference where the protocol removes it; -1 where it stays."""
        stays = number > 1 and self._settings.after_success == "continue"
        removed = None if stays else removed_reference(turn, self._gallery)
        return -1 if removed is None else self._gallery.place.get(removed, -1)

    def _target_rows(self, place: int) -> NDArray[np.int64]:
        rows = [self._gallery.place[image] for image in self._sessions[place].targets]
        return np.array(rows, dtype=np.int64)

    def _round(self, place: int, number: int, turn: Turn, top: list[str], rank: int) -> Round:
        session = self._sessions[place]
        # Where images tie, as duplicates do, the list that the user sees says which comes first.
        rank = next((at for at, image in enumerate(top, start=1) if image in session.targets), rank)
        aim = aim_of(self._settings, session.targets, top, rank)
        return Round(
            session=session.id,
            round=number,
            reference=turn.reference,
            caption=turn.text,
            target=self._model.best(place, session.targets, turn.key) if aim is None else aim,
            rank=rank,
            top=top,
            end=end_of(self._settings, number, rank),
        )


def _answers(user: User, exchanges: Sequence[Exchange]) -> list[str | Silence]:
    """What a user says, one answer an exchange; words without any are silence.

    Raises:
        MethodError: another number of answers, or one that no transcript can hold.
    """
    name = type(user).__name__
    given: object = user.say(exchanges)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise MethodError(
            f"the user {name} gave {type(given).__name__} as answers. "
            "Fix: say() gives a list, one answer an exchange."
        )
    answers = list(given)
    if len(answers) != len(exchanges):
        raise MethodError(
            f"the user {name} gave {counted(len(answers), 'answer')} to "
            f"{counted(len(exchanges), 'exchange')}. Fix: say() gives one for each, in their order."
        )
    return [_answer(name, answer, each) for answer, each in zip(answers, exchanges, strict=True)]


def _answer(name: str, answer: object, exchange: Exchange) -> str | Silence:
    said = answer.why if isinstance(answer, Silence) else answer
    where = f"the user {name}, session {exchange.session}, round {len(exchange.said) + 1}"
    if not isinstance(said, str):
        what = "Silence of " if isinstance(answer, Silence) else ""
        raise MethodError(
            f"{where}: the answer is {what}{type(said).__name__}. "
            "Fix: say() gives a str, or Silence(why) with a reason in words, for each exchange."
        )
    try:
        said.encode()
    except UnicodeEncodeError as error:
        raise MethodError(
            f"{where}: the answer holds U+{ord(said[error.start]):04X}, half of a character, at "
            f"{error.start:,}. Fix: give whole characters; text.encode('utf-8', 'replace').decode() has none."
        ) from error
    if isinstance(answer, Silence):
        return answer
    if len(said) > LONGEST:
        raise MethodError(
            f"{where}: the answer has {len(said):,} characters; a transcript holds {LONGEST:,}. "
            "Fix: shorten it, or give Silence(why)."
        )
    # Without the types of other libraries, which no JSON can hold.
    return str(said) if said.strip() else NOTHING
