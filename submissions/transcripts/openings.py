"""How sessions begin, what each round goes on from, and how it ends: settings and data decide it.

Who plays a dialogue and who checks one ask here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_datasets.registry.caption_rules import published_text
from submissions.errors import MethodError
from submissions.transcripts.transcript import LAST, SOLVED

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.transcripts.settings import RoundSettings
    from submissions.transcripts.transcript import Round

OWN = "own"
"""As an aspect: each query's own."""
DRAWN = 500
"""Sessions between random images where their number is not said."""


@dataclass(frozen=True)
class Opening:
    """The beginning of a session.

    Args:
        session: its id, the query's.
        reference: the first reference.
        caption: the first words as one text; None where the user says them.
        captions: the same as published; empty where the user says them.
        targets: all images that are right, the annotated one first.
        aspects: of the query.
    """

    session: str
    reference: str | None
    caption: str | None
    captions: tuple[str, ...]
    targets: tuple[str, ...]
    aspects: tuple[str, ...] = ()


def published_openings(benchmark: Benchmark, settings: RoundSettings) -> list[Opening]:
    """A session for each query of a benchmark, in its order.

    Args:
        benchmark: its queries.
        settings: of which aspect.

    Raises:
        MethodError: the benchmark has sessions of its own, or its ground truth is not public.
    """
    if benchmark.multi_turn:
        raise MethodError(
            f"{benchmark.id} has recorded sessions. Fix: use a benchmark of single queries, "
            "which a user goes on from."
        )
    if benchmark.ground_truth_withheld:
        raise MethodError(
            f"the ground truth of {benchmark.id} is withheld, and a user needs a target. "
            "Fix: use a split whose ground truth is public, such as val."
        )
    found: list[Opening] = []
    for row in benchmark.rows():
        aspects = tuple(row.get("aspects") or ())
        if settings.aspect not in (None, OWN) and settings.aspect not in aspects:
            continue
        text, captions = published_text(row)
        first = [row["target_image_id"]] if row.get("target_image_id") else []
        targets = tuple(dict.fromkeys([*first, *row["positive_image_ids"]]))
        found.append(Opening(row["query_id"], row["reference_image_id"], text, captions, targets, aspects))
    return found


def first_of(openings: Sequence[Opening], settings: RoundSettings, limit: int) -> list[Opening]:
    """Some of the sessions, drawn by the seed, in the order of the draw: a higher limit adds to them.

    Args:
        openings: all of them.
        settings: the seed.
        limit: how many.
    """
    return sorted(openings, key=lambda each: drawn(f"{settings.seed}/{each.session}", 2**64))[:limit]


def drawn_openings(gallery: Sequence[str], settings: RoundSettings, number: int) -> list[Opening]:
    """Sessions between any two images of a gallery, the same for the same seed everywhere.

    Args:
        gallery: image ids, two or more, in the manifest's order.
        settings: the seed.
        number: sessions.

    Example:
        >>> from submissions.transcripts.settings import RoundSettings
        >>> drawn_openings(["a", "b", "c"], RoundSettings(start="random", seed=1), 1)[0].session
        'random-1-00000'
    """
    found = []
    for place in range(number):
        session = f"random-{settings.seed}-{place:05d}"
        first = drawn(f"{session}/reference", len(gallery))
        # Any image but that one.
        second = (first + 1 + drawn(f"{session}/target", len(gallery) - 1)) % len(gallery)
        found.append(Opening(session, gallery[first], None, (), (gallery[second],)))
    return found


def next_reference(settings: RoundSettings, opening: Opening, before: Sequence[Round]) -> str:
    """The image that a round goes on from.

    Args:
        settings: how it is chosen.
        opening: of its session, whose id a draw depends on.
        before: the rounds so far, the last of which has a list.

    Example:
        >>> from submissions.transcripts.settings import RoundSettings
        >>> from submissions.transcripts.transcript import Round
        >>> opening = Opening("7", "a", "darker", ("darker",), ("b",))
        >>> top = ["a", "b", "c"]
        >>> first = Round(session="7", round=1, reference="a", caption="darker", target="b", rank=2, top=top)
        >>> next_reference(RoundSettings(), opening, [first])
        'c'
    """
    shown = before[-1].top
    if settings.after_success == "stop":
        # Whoever is shown the target has found it.
        shown = [image for image in shown if image not in opening.targets] or shown
    if settings.drawn_from:
        among = shown[: settings.drawn_from]
        return among[drawn(f"{settings.seed}/{opening.session}/{len(before) + 1}", len(among))]
    if settings.candidate == "unseen":
        references = {each.reference for each in before}
        return next((image for image in shown if image not in references), shown[0])
    return shown[0]


def end_of(settings: RoundSettings, number: int, rank: int) -> str:
    """How a round whose query was ranked ends its session; empty where another round follows.

    Example:
        >>> from submissions.transcripts.settings import RoundSettings
        >>> end_of(RoundSettings(k=10), 1, 7), end_of(RoundSettings(k=10), 5, 11)
        ('solved', 'last round')
    """
    if rank <= settings.k and settings.after_success == "stop":
        return SOLVED
    return LAST if number == settings.max_rounds else ""


def aim_of(settings: RoundSettings, targets: Sequence[str], top: Sequence[str], rank: int) -> str | None:
    """The target that the user has in mind from a round on; None for the best-ranked one behind the list."""
    if settings.aim == "target" or len(targets) == 1:
        return targets[0]
    best = top[rank - 1] if rank <= len(top) else None
    return best if best in targets else None


def left_by_silence(opening: Opening, before: Sequence[Round], ranked: int) -> tuple[str, int, list[str]]:
    """Target, rank and list of a round in which the user says nothing of use, so that nothing is ranked.

    All stays as it was; where there was no round, nothing was found, and the target is behind all images.

    Args:
        opening: of the session.
        before: the rounds so far.
        ranked: how many images would be ranked.
    """
    last = before[-1] if before else None
    return (opening.targets[0], ranked, []) if last is None else (last.target, last.rank, last.top)


def drawn(key: str, among: int) -> int:
    """A number from 0 to `among` - 1, the same for the same key everywhere.

    Example:
        >>> drawn("7/a/2", 10)
        9
    """
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % among
