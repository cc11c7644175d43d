"""A person as the user, one session after another, each played by the loop on its own (FISD, table 5).

The loop asks its user for words and goes on when it has them. A person's words come when they come, perhaps
tomorrow. So the loop starts anew for each of them, from the journal of the session: it plays the round that
the words make, and ends where it asks for the next ones. Nothing but files remembers, and a process that was
killed loses no word.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.errors import MissingImagesError
from cir_metrics.errors import CallError, CopiedError
from submissions.embeddings.pictures import pictures_of
from submissions.errors import SubmissionError
from submissions.methods.turns import gallery_of
from submissions.multiround.dialogue import play
from submissions.multiround.journal import Journal
from submissions.multiround.making import empty_transcript, model_of, sessions_to_play
from submissions.multiround.users import Exchange, Silence
from submissions.rank_file.texts import plain_text
from submissions.running.make import loaded_benchmark, named_method
from submissions.transcripts.reading import read_transcript
from submissions.transcripts.transcript import Round, Transcript, write_transcript

if TYPE_CHECKING:
    from PIL.Image import Image

    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.running.options import RunOptions
    from submissions.transcripts.settings import RoundSettings

LONGEST = 1000
"""Characters that a person may say at once."""
SHOWN = 6
"""Best images of the last round that a person is shown."""
SKIPPED = Silence("the person skips the session")


class WordsError(SubmissionError, ValueError):
    """What a person typed cannot be taken; nothing was played."""


@dataclass(frozen=True)
class Stage:
    """Where a session stands.

    Args:
        number: its place among all sessions, from 1.
        session: its id.
        rounds: what was played.
        exchange: what the person is shown and answers; None where the session has ended.
    """

    number: int
    session: str
    rounds: tuple[Round, ...]
    exchange: Exchange | None


class PersonDialogue:
    """Sessions that a person plays, kept in a transcript that grows by each of them.

    Beside the transcript stands the folder `NAME.journal` with the session that goes on.

    Args:
        benchmark: an id or a benchmark of single queries with public ground truth.
        method: as for `make_rank_file`.
        settings: the choices, as for simulated users; with the same ones and the same limit a simulated user
            plays the same sessions.
        options: of the method.
        out: the transcript; finished sessions that stand in it are not played again.
        limit: sessions at most, drawn by the seed; None for all, or 500 that start at random.
        form: how the person is shown all this, a word for the transcript: `page`, say.

    Raises:
        CirError: as for `make_transcript`.
        CallError: `out` holds another dialogue.
    """

    def __init__(
        self,
        benchmark: str | Benchmark,
        method: str | Composer | Scorer | Ranker,
        settings: RoundSettings,
        options: RunOptions,
        *,
        out: str | Path,
        limit: int | None,
        form: str,
    ) -> None:
        """See the class."""
        loaded = loaded_benchmark(benchmark)
        self.settings = settings
        drawn = limit if limit is not None or settings.start == "random" else max(1, len(loaded))
        # As drawn also without a limit: who leaves early has played the first of the draw, which scores.
        self._sessions = sessions_to_play(loaded, settings, drawn)
        self._ids = [session.id for session in self._sessions]
        name, who = named_method(method, options)
        options.check(loaded, name, who)
        self.gallery = gallery_of(loaded)
        self._model = model_of(name, who, self.gallery, self._sessions, settings, options, beside=1)
        self._empty = empty_transcript(loaded, self._model, _Typing(None, form), settings, {})
        self._form = form
        self.out = Path(out)
        self._journals = self.out.with_name(f"{self.out.name}.journal")
        self._done = self._finished()
        first = (session.first.reference for session in self._sessions)
        images = dict.fromkeys([*self.gallery.ids, *(image for image in first if image is not None)])
        self._pictures = pictures_of(loaded, images=options.images, ids=tuple(images))
        self._places = {image: place for place, image in enumerate(self._pictures.ids)}

    def __len__(self) -> int:
        """How many sessions there are to play."""
        return len(self._sessions)

    @property
    def left(self) -> int:
        """How many of them have not ended."""
        return len(self) - len(self._done)

    @property
    def transcript(self) -> Transcript:
        """The sessions that have ended, in the order in which they were drawn."""
        rounds = [each for session in self._ids for each in self._done.get(session, ())]
        return self._empty.model_copy(update={"rounds": rounds})

    def picture(self, image: str) -> Image | None:
        """The picture of an image of the gallery, or of a first reference; None where there is none."""
        place = self._places.get(image)
        if place is None:
            return None
        try:
            return self._pictures.open(place)
        except MissingImagesError:  # a reference that the method does not read, say
            return None

    def current(self) -> Stage | None:
        """The session that waits for words; None where all have ended.

        Sessions on the way whose published query finds the target end without a word.
        """
        for place, session in enumerate(self._ids):
            if session not in self._done:
                stage = self._stage(place, None)
                if stage.exchange is not None:
                    return stage
        return None

    def say(self, words: str | Silence) -> Stage:
        """Play the round of these words; `SKIPPED` ends the session, as unsolved.

        Raises:
            WordsError: they cannot be taken, or no session waits for any.
        """
        stage = self.current()
        if stage is None:
            raise WordsError("all sessions have been played. Fix: raise the limit.")
        return self._stage(stage.number - 1, person_words(words) if isinstance(words, str) else words)

    def _stage(self, place: int, words: str | Silence | None) -> Stage:
        """Where a session stands after these words; None says nothing yet."""
        session = replace(self._sessions[place], rounds=[])
        wanted = {"reference": session.first.reference, "targets": list(session.targets)}
        header = {**self._empty.header(), **wanted}
        journal = Journal(self._journals / f"{place + 1:05d}", header, [session.id], self._model.memory.shape)
        user = _Typing(words, self._form)
        try:
            rounds = play([session], self._model, user, self.gallery, self.settings, journal)
        except _NothingTypedError as waiting:
            return Stage(place + 1, session.id, tuple(session.rounds), waiting.exchange)
        self._done[session.id] = tuple(rounds)
        write_transcript(self.transcript, self.out)
        journal.remove()
        if not self.left:
            with contextlib.suppress(OSError):  # sessions beyond the limit may go on in it
                self._journals.rmdir()
        return Stage(place + 1, session.id, tuple(rounds), None)

    def _finished(self) -> dict[str, tuple[Round, ...]]:
        """Sessions that stand in the transcript already."""
        if not self.out.exists():
            return {}
        before = read_transcript(self.out)
        then, now = before.header(), self._empty.header()
        changed = [name for name in now if then.get(name) != now[name]]
        if changed:
            raise CallError(
                f"{self.out}: it holds another dialogue ({', '.join(changed)} differ). "
                "Fix: call as before to go on with it, or name another --out."
            )
        found = {session: tuple(rounds) for session, rounds in before.sessions().items()}
        # Of the same name there are other ones where a folder holds other pictures now.
        own = {session.id: session.first.reference for session in self._sessions}
        strange = next((s for s, rounds in found.items() if own.get(s, "") != rounds[0].reference), None)
        if strange is not None:
            raise CallError(
                f"{self.out}: it holds the session {strange}, which is not among these {len(self):,}. "
                "Fix: call with as many sessions as before or more, or name another --out."
            )
        for place, session in enumerate(self._ids):
            if session in found:  # a kill came between the transcript and this
                shutil.rmtree(self._journals / f"{place + 1:05d}", ignore_errors=True)
        return found


def person_words(words: str) -> str:
    """A person's words as one line.

    Any script is taken, unlike from a simulated user: what a method makes of it is what real users get.

    Args:
        words: as they were typed.

    Raises:
        WordsError: there are none, too many, or they hold what is not text, such as control characters.

    Example:
        >>> person_words("  a red\\tstar ")
        'a red star'
    """
    try:
        line = plain_text(words, LONGEST, "join")
    except ValueError as error:
        raise WordsError(f"these words cannot be taken: {error}. Fix: type them in another way.") from error
    if not line:
        raise WordsError("nothing was typed. Fix: say what is to change, or skip the session.")
    return line


class _NothingTypedError(CopiedError):
    """The loop asks, and the person has not answered yet."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange.session)
        self.exchange = exchange


class _Typing:
    """A person for one round of the loop: the words that were typed, once."""

    def __init__(self, words: str | Silence | None, form: str) -> None:
        self._words = words
        self._form = form

    @property
    def description(self) -> Mapping[str, Any]:
        shown = f"target, candidate, words, ranks, top {SHOWN}"
        return {"kind": "person", "form": self._form, "shown": shown}

    def say(self, exchanges: Sequence[Exchange]) -> list[str | Silence]:
        (exchange,) = exchanges
        words, self._words = self._words, None
        if words is None:
            raise _NothingTypedError(exchange)
        return [words]
