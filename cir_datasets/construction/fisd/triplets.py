"""A triplet as it stands after drawing and review, what people have decided on it, and its query."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.fisd.wording import request_draws
from cir_datasets.rows.records import query_row

if TYPE_CHECKING:
    from cir_datasets.construction.fisd.manners import Manner

ROLES = ("reference", "target", "negative")


@dataclass(frozen=True)
class Decided:
    """What people have said of a triplet, over all files that were taken in.

    Args:
        id: of the triplet.
        attempt: how often its pictures were drawn anew.
        verdict: of its present pictures: `keep`, `drop`, or empty where nobody has looked at them.
        relative_caption: the corrected one, or empty.
        counts: corrected numbers of reference, target and negative, 0 where there is none; or empty.
        note: why.
        said: everything that was said, in order, also of earlier pictures.
    """

    id: str
    attempt: int = 0
    verdict: str = ""
    relative_caption: str = ""
    counts: Sequence[int] = ()
    note: str = ""
    said: Sequence[Row] = ()


@dataclass(frozen=True)
class ReviewedTriplet:
    """All that is known of a triplet after the last stage but one.

    Args:
        id: of its query.
        aspect: its aspect.
        captions: of reference, target and hard negative.
        relative_caption: what is asked.
        images: ids of the three, in the order of the captions; empty where none could be drawn.
        seed: of the pictures.
        decision: what people said.
        failed: why it is not a query, or None.
        original: captions and counts before a person corrected them, or None.
        noun: of cardinality what is counted.
        numbers: of cardinality the three numbers.
    """

    id: str
    aspect: str
    captions: tuple[str, ...]
    relative_caption: str
    images: tuple[str, ...]
    seed: int
    decision: Decided
    failed: str | None = None
    original: Row | None = None
    noun: str | None = None
    numbers: tuple[int, ...] = ()


def reviewed(
    parts: Row, pictures: Row | None, decision: Decided, manner: Manner, *, seed: int, only: bool
) -> ReviewedTriplet:
    """A triplet with a person's corrections.

    Args:
        parts: captions, relative caption and numbers, or why they are not there.
        pictures: its row of a stage of pictures.
        decision: what people said.
        manner: says new numbers.
        seed: of the run.
        only: whether a triplet that nobody decided on is left out.
    """
    failed = parts.get(FAILED)
    if failed is None and pictures is not None and pictures.get(FAILED):
        failed = f"pictures: {pictures[FAILED]}"
    captions = [parts.get(name, "") for name in ("caption", "target_caption", "negative_caption")]
    request, numbers = parts.get("relative_caption", ""), list(parts.get("numbers", ()))
    before = {"captions": captions, "relative_caption": request, "numbers": numbers}
    if failed is None and numbers and decision.counts:
        numbers = [new or old for new, old in zip(decision.counts, numbers, strict=True)]
        captions = [manner.counted(parts["noun"], number) for number in numbers]
        draws = request_draws(seed, decision.id)
        request = manner.number_request(parts["noun"], numbers[0], numbers[1], draws)
        if len(set(numbers)) < len(numbers):
            failed = f"review: its pictures show {', '.join(map(str, numbers))}, and two of them are the same"
    request = decision.relative_caption or request
    if failed is None and decision.verdict == "drop":
        failed = f"review: {decision.note or 'dropped'}"
    if failed is None and only and decision.verdict != "keep":
        failed = "review: nobody has decided on it"
    now = {"captions": captions, "relative_caption": request, "numbers": numbers}
    drawn = {} if pictures is None else pictures
    return ReviewedTriplet(
        id=decision.id,
        aspect=parts["aspect"],
        captions=tuple(captions),
        relative_caption=request,
        images=tuple(drawn.get("images", {}).values()),
        seed=drawn.get("seed", 0),
        decision=decision,
        failed=failed,
        original=None if now == before else before,
        noun=parts.get("noun"),
        numbers=tuple(numbers),
    )


def ended(triplets: Sequence[ReviewedTriplet], manner: Manner, per_aspect: int) -> Iterator[ReviewedTriplet]:
    """The triplets, those that are not needed or would have two right answers with the reason."""
    shown: dict[Hashable, str] = {}
    targets: dict[Hashable, str] = {}
    kept: dict[str, int] = {}
    for each in triplets:
        failed = each.failed
        if failed is None and kept.get(each.aspect, 0) == per_aspect:
            failed = f"spare: {per_aspect:,} of its aspect are there"
        if failed is None:
            meanings = [manner.meaning(caption) for caption in each.captions]
            other = shown.get(meanings[1]) or next((targets[m] for m in meanings if m in targets), None)
            if other is not None:
                failed = f"ambiguous: a picture of {other} would answer as well, or be answered by its target"
            else:
                kept[each.aspect] = kept.get(each.aspect, 0) + 1
                shown |= dict.fromkeys(meanings, each.id)
                targets[meanings[1]] = each.id
        yield replace(each, failed=failed)


def benchmark_row(triplet: ReviewedTriplet) -> Row:
    """A row of the last stage: its query, or why it is none."""
    row = {
        "id": triplet.id,
        "aspect": triplet.aspect,
        "captions": dict(zip(ROLES, triplet.captions, strict=True)),
        "seed": triplet.seed,
        "verdict": triplet.decision.verdict,
        "original": triplet.original,
        "query": None,
    }
    if triplet.failed is not None:
        return {**row, FAILED: triplet.failed}
    reference, target, negative = triplet.images
    return row | {
        "query": query_row(
            triplet.id,
            reference_image_id=reference,
            relative_caption=triplet.relative_caption,
            target_image_id=target,
            negative_image_ids=[negative],
            aspects=[triplet.aspect],
        )
    }


def gallery(queries: Sequence[Row]) -> list[str]:
    """All pictures of some queries, in order: reference, target and hard negatives of each, by id."""
    found = (
        image
        for query in queries
        for image in sorted(
            (query["reference_image_id"], query["target_image_id"], *query["negative_image_ids"])
        )
    )
    return list(dict.fromkeys(found))
