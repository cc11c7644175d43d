"""What a simulated user would be asked, in a file of its own: nothing is loaded, and nobody is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.estimates import ANSWER_TOKENS, CHARACTERS, Estimate, questions
from cir_datasets.common.terminal import counted
from submissions.language.asking import ModelQuestion
from submissions.language.forms import Instruction
from submissions.language.prompts import load_prompts
from submissions.multiround.making import sessions_to_play
from submissions.multiround.users import style_of
from submissions.transcripts.openings import OWN

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.transcripts.settings import RoundSettings


def estimate(
    benchmark: Benchmark,
    settings: RoundSettings,
    *,
    way: str = "captions",
    limit: int | None = None,
    prompts: Path | None = None,
    at_once: int = 1,
) -> Estimate:
    """What the user is asked at most: no session is solved before its last round.

    Args:
        benchmark: whose queries are played.
        settings: of the rounds.
        way: `captions` or `pictures`.
        limit: sessions at most, as for `make_transcript`.
        prompts: folder of prompts in the place of those of the package.
        at_once: questions that the backend is asked at once.

    Raises:
        MethodError: as for `sessions_to_play`.

    Example:
        >>> import cir_datasets
        >>> from submissions.transcripts.settings import RoundSettings
        >>> found = estimate(cir_datasets.load("shapes/val"), RoundSettings(max_rounds=3), limit=10)
        >>> [(work.what, work.calls) for work in found.work]
        [('a caption an image', 30), ('what is to change', 20)]
    """
    sessions = len(sessions_to_play(benchmark, settings, limit))
    aspect = None if settings.aspect == OWN else settings.aspect
    style = style_of(benchmark.spec.card.name, aspect, settings.words)
    templates = load_prompts(prompts)
    first = settings.start == "published"
    asked = range(first, settings.max_rounds) if settings.feedback == "fresh" or not first else range(0)
    caption = "x" * (ANSWER_TOKENS * CHARACTERS)
    filled = {"first": caption, "second": caption, "words": str(style.words), "limits": style.limits}
    prompt = "feedback" if way == "captions" else "feedback_pictures"
    letters = sum(
        len(ModelQuestion(templates[prompt], {**filled, "said": said}, form=Instruction).prompt)
        for said in ("\n".join([caption] * before) for before in asked)
    )
    answers = sessions * len(asked)
    images = min(len(benchmark.gallery or ()), sessions + answers) if way == "captions" and answers else 0
    words = len(ModelQuestion(templates[style.caption]).prompt)
    work = [
        *([questions("a caption an image", images, letters=images * words, pictures=1)] if images else []),
        questions("what is to change", answers, letters=sessions * letters, pictures=2 * (not images)),
    ]
    of = f"{counted(sessions, 'session')} of {settings.max_rounds} rounds"
    return Estimate(f"{of}, none solved before; the user alone", work, at_once=at_once)
