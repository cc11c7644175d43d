"""What a run of CIRCLED's construction asks, in a file of its own: the paper's shares, without a stage."""

from __future__ import annotations

from collections.abc import Sequence

from cir_datasets.common.estimates import PICTURE_TOKENS, Estimate, questions
from cir_datasets.common.terminal import counted
from cir_datasets.common.yaml import package_yaml
from cir_datasets.construction.circled.settings import CircledSettings


def estimates(
    queries: int, gallery: int, settings: CircledSettings, at_once: int = 1
) -> tuple[Estimate, Estimate]:
    """What a run asks by the shares of the paper, and at most.

    Args:
        queries: sessions that are begun.
        gallery: images that are searched.
        settings: K, turns, attempts.
        at_once: questions that the backend is asked at once.

    Example:
        >>> likely, most = estimates(200, 2297, CircledSettings())
        >>> [work.calls for work in likely.work], [work.calls for work in most.work]
        ([2297, 660, 460], [2297, 1200, 3000])
    """
    known = package_yaml("cir_datasets", "construction/circled/estimate.yaml")
    shares = known["shares"]
    further = settings.max_turns - 1
    rest = 1 - shares["at_turn_1"] - shares["never"]
    turns = shares["never"] * further + rest * min(further, shares["turns_of_the_rest"] - 1)
    likely = round(queries * turns)
    of = f"{counted(queries, 'query', 'queries')}, {gallery:,} images"

    def estimate(assumed: str, numbers: Sequence[int], note: str) -> Estimate:
        kinds = zip(known["tokens"].items(), numbers, strict=True)
        work = [questions(what, number, **figures) for (what, figures), number in kinds]
        return Estimate(f"{of}, {assumed}", work, at_once=at_once, notes=(note,))

    captions = min(gallery, queries + likely * settings.k), min(gallery, queries * (2 + further * settings.k))
    by_shares = estimate(
        "by the paper's shares",
        (captions[0], queries + likely, likely),
        "30 % of the paper's queries succeed at turn 1, 32 % never do; one attempt each.",
    )
    at_most = estimate(
        "at most",
        (captions[1], queries * settings.max_turns, queries * further * settings.attempts),
        f"{PICTURE_TOKENS} tokens a picture, which servers count differently; without the encoder.",
    )
    return by_shares, at_most
