"""From a benchmark, a method and a user to a transcript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

from submissions.embeddings.pictures import pictures_of
from submissions.errors import MethodError
from submissions.language.loading import load_language
from submissions.methods.registry import kind_of_class
from submissions.methods.turns import gallery_of
from submissions.methods.user_methods import describe_method
from submissions.multiround.dialogue import drawn_sessions, play, sessions_of
from submissions.multiround.journal import Journal, only_program
from submissions.multiround.models import ScoreModel, VectorModel
from submissions.multiround.users import SimulatedUser, style_of
from submissions.running.aggregation import aggregation
from submissions.running.answers import declaring_reference
from submissions.running.by_embeddings import context_of
from submissions.running.describing import describe
from submissions.running.make import loaded_benchmark, named_method
from submissions.transcripts.openings import DRAWN, OWN
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import Transcript

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.language.protocol import Language
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.methods.turns import Candidates
    from submissions.multiround.dialogue import Session
    from submissions.multiround.models import RoundModel
    from submissions.multiround.users import User
    from submissions.running.options import RunOptions


def make_transcript(
    benchmark: str | Benchmark,
    method: str | Composer | Scorer | Ranker,
    user: str | Language | User,
    settings: RoundSettings,
    options: RunOptions,
    *,
    way: str = "captions",
    limit: int | None = None,
    journal: str | Path | None = None,
    after_round: Callable[[int, int, int], object] = lambda number, solved, going: None,
) -> Transcript:
    """Play every query of a benchmark as a dialogue (FISD, section 3.2).

    Args:
        benchmark: an id or a benchmark of single queries with public ground truth.
        method: as for `make_rank_file`.
        user: a language backend or its name, in the place of a person; or a `User` of your own.
        settings: the choices.
        options: of the method, as for `make_rank_file`; how history counts is said by `settings`.
        way: how a backend tells two pictures apart: `captions` or `pictures`.
        limit: sessions at most, from 1, drawn by the seed; None plays all queries, or 500 that start at
            random.
        journal: folder in which finished rounds are kept; the same call goes on from there.
        after_round: called with the round, how many sessions are solved, and how many go on.

    Returns:
        The transcript; the same call gives the same one on the same machine.

    Raises:
        CirError: as for `make_rank_file`; the benchmark cannot be played; the journal is of another run,
            or another program writes it.
        LanguageError: the user's backend answers nothing more; finished rounds are in the journal.
    """
    loaded = loaded_benchmark(benchmark)
    # First of all: where nothing can be played, nobody is asked for an encoder or for pictures.
    sessions = sessions_to_play(loaded, settings, limit)
    name, who = named_method(method, options)
    options.check(loaded, name, who)
    gallery = gallery_of(loaded)
    speaker = _user(user, loaded, options, way)
    model = model_of(name, who, gallery, sessions, settings, options)
    header = empty_transcript(loaded, model, speaker, settings, _prompts(speaker, settings, loaded))
    with ExitStack() as held:
        kept = None
        if journal is not None:
            held.enter_context(only_program(Path(journal), "program"))
            played = [session.id for session in sessions]
            kept = Journal(Path(journal), header.header(), played, model.memory.shape)
        rounds = play(sessions, model, speaker, gallery, settings, kept, after_round)
    return header.model_copy(update={"rounds": rounds})


def sessions_to_play(benchmark: Benchmark, settings: RoundSettings, limit: int | None) -> list[Session]:
    """The sessions that any user plays by these settings: of the published queries, or drawn.

    Raises:
        MethodError: as for `sessions_of` and `drawn_sessions`; the limit is not a whole number from 1 on;
            queries' own aspects are asked for where sessions have no query; queries rank galleries of their
            own.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise MethodError(
            f"limit={limit!r} is out of range. Fix: use a whole number from 1 on, or leave it out."
        )
    if benchmark.per_query:
        raise MethodError(
            f"{benchmark.id}: each query ranks a gallery of its own, and a dialogue searches one for all its "
            "rounds. Fix: use a benchmark with a common gallery, such as cirr/val."
        )
    if settings.start == "random":
        if settings.aspect == OWN:
            raise MethodError(
                "aspect='own' is of published queries, and sessions that start at random have none. "
                "Fix: start with the published queries, or name one aspect."
            )
        return drawn_sessions(benchmark, settings, DRAWN if limit is None else limit)
    return sessions_of(benchmark, settings, limit)


def empty_transcript(
    benchmark: Benchmark, model: RoundModel, user: User, settings: RoundSettings, prompts: dict[str, str]
) -> Transcript:
    """A transcript in which nothing has been played yet."""
    return Transcript(
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        method=declaring_reference(model.method(), benchmark),
        user=dict(user.description),
        prompts=prompts,
        settings=settings.header(),
        rounds=[],
    )


def model_of(
    name: str,
    who: Composer | Scorer | Ranker,
    gallery: Candidates,
    sessions: Sequence[Session],
    settings: RoundSettings,
    options: RunOptions,
    beside: int | None = None,
) -> RoundModel:
    """A method in dialogue, its encoder loaded and the gallery embedded.

    Args:
        name: the method's, for messages.
        who: the method.
        gallery: what is ranked.
        sessions: what is to be played.
        settings: how rounds become one query.
        options: of the method.
        beside: how many sessions are played side by side; None for all.

    Raises:
        MethodError: the method gives lists, or a re-ranker is named.
        CirError: as for `make_rank_file`.
    """
    if options.rerank is not None:
        raise MethodError("the rounds of a dialogue are ranked by the method alone. Fix: leave rerank= out.")
    turns = [session.first for session in sessions]
    number = len(sessions) if beside is None else beside
    kind = kind_of_class(who)
    if kind == "composer":
        composer = cast("Composer", who)
        context = context_of(name, composer, gallery, turns, options)
        described = describe(composer, context, turns, aggregation("latest"), "")
        return VectorModel(name, composer, context, gallery, settings, number, described)
    if kind == "scorer":
        scorer = cast("Scorer", who)
        return ScoreModel(name, scorer, gallery, settings, number, describe_method(name, scorer))
    raise MethodError(
        f"{name} gives lists, from which no history of rounds can be made. "
        "Fix: use a method that composes vectors or scores images."
    )


def _user(user: str | Language | User, benchmark: Benchmark, options: RunOptions, way: str) -> User:
    if hasattr(user, "say"):
        return cast("User", user)
    if isinstance(user, str):
        user = load_language(user, **({} if options.prompts is None else {"prompts": options.prompts}))
    return SimulatedUser(user, pictures_of(benchmark, images=options.images), way)


def _prompts(user: User, settings: RoundSettings, benchmark: Benchmark) -> dict[str, str]:
    """Version and hash of the prompts that simulated users are asked by."""
    if not isinstance(user, SimulatedUser):
        return {}
    if settings.feedback == "unchanged" and settings.start == "published":
        return {}
    return user.prompts(style_of(benchmark.spec.card.name, None, None).caption)
