"""Which caption is the source of which triplet: no caption twice, no number of a noun twice.

A gallery in which two references have one caption, or two pictures show three dogs, has questions with two
right answers. So every caption goes to one triplet at most, also where a template writes it, and the triplets
of one noun share no number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cir_datasets.common.stages import Row
from cir_datasets.construction.fisd.captions import CaptionFile, SourceCaption
from cir_datasets.construction.fisd.manners import Manner
from cir_datasets.construction.fisd.options import ASPECTS, CARDINALITY, COMPLEX
from cir_datasets.shapes.draws import Draws

SHOWN_REASONS = 12
_NUMBERS = 3
"""Pictures of a triplet, and so numbers of a noun that it takes."""


@dataclass(frozen=True)
class Dealt:
    """What was made of the files of captions.

    Args:
        rows: a row a triplet: `id`, `aspect`, `caption`, `source`, and of cardinality `noun` and `numbers`.
        counts: a row an aspect: how many captions its files hold, and what became of them; they add up.
    """

    rows: tuple[Row, ...]
    counts: tuple[Row, ...]


def deal(
    files: Mapping[str, Sequence[CaptionFile]],
    manner: Manner,
    number: int,
    seed: int,
    limit: int | None = None,
) -> Dealt:
    """Deal captions to aspects.

    Args:
        files: by aspect the files of its captions; in several aspects they may be the same.
        manner: says what a caption is good for.
        number: triplets wanted an aspect.
        seed: of the order in which captions are tried.
        limit: triplets in all, spread over the aspects; None for all.
    """
    used: set[Hashable] = set()
    dealt: dict[str, list[Row]] = {}
    counts = []
    # Aspects with the fewest captions choose first.
    sizes = {aspect: sum(len(file.sources) for file in files[aspect]) for aspect in files}
    for aspect in sorted(files, key=lambda each: (sizes[each], ASPECTS.index(each))):
        sources = [source for file in files[aspect] for source in file.sources]
        wanted = number if limit is None else _share(aspect, tuple(files), number, limit)
        if aspect == CARDINALITY:
            dealt[aspect], count = _counted(sources, manner, wanted, seed, used)
        else:
            dealt[aspect], count = _chosen(aspect, sources, manner, wanted, seed, used)
        names = ", ".join(file.name for file in files[aspect])
        counts.append({"aspect": aspect, "files": names, "wanted": wanted, **count})
    counts.sort(key=lambda row: ASPECTS.index(row["aspect"]))
    rows = [row for aspect in ASPECTS for row in dealt.get(aspect, ())]
    return Dealt(tuple(rows), tuple(counts))


def _share(aspect: str, aspects: Sequence[str], number: int, limit: int) -> int:
    """How many of a limited number of triplets an aspect gets: one after the other, in the paper's order."""
    place = sorted(aspects, key=ASPECTS.index).index(aspect)
    return min(number, limit // len(aspects) + (place < limit % len(aspects)))


def _chosen(
    aspect: str, sources: Sequence[SourceCaption], manner: Manner, wanted: int, seed: int, used: set[Hashable]
) -> tuple[list[Row], Row]:
    rows: list[Row] = []
    reasons: Counter[str] = Counter()
    repeats = looked = 0
    for source in Draws("fisd captions", seed, aspect).shuffled(sources):
        if len(rows) == wanted:
            break
        looked += 1
        meaning = manner.meaning(source.caption)
        if meaning in used:
            repeats += 1
            continue
        lacks = _given_lacks(source, aspect, manner) or manner.lacks(aspect, source.caption)
        if lacks is not None:
            reasons[lacks] += 1
            continue
        used.add(meaning)
        row: Row = {"id": f"{aspect}_{len(rows):03d}", "aspect": aspect, "caption": source.caption}
        if source.relative_caption is not None:
            row |= {"relative_caption": source.relative_caption, "target_caption": source.target_caption}
        rows.append({**row, "source": source.at})
    shown = dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN_REASONS])
    return rows, {
        "read": len(sources),
        "repeats": repeats,
        "unsuitable": sum(reasons.values()),
        "taken": len(rows),
        "left": len(sources) - looked,
        "why": shown,
    }


def _given_lacks(source: SourceCaption, aspect: str, manner: Manner) -> str | None:
    """Why an edit that a file brings cannot be used, or None."""
    if source.relative_caption is None or aspect != COMPLEX:
        return None
    words = len(source.relative_caption.split())
    least = manner.complex_words
    return None if words > least else f"its relative caption has no more than {least} words"


def _counted(
    sources: Sequence[SourceCaption], manner: Manner, wanted: int, seed: int, used: set[Hashable]
) -> tuple[list[Row], Row]:
    subjects = manner.subjects(source.caption for source in sources)
    draws = Draws("fisd numbers", seed)
    triples = list(_triples(draws.shuffled(subjects), manner.most, draws))
    rows: list[Row] = []
    repeats = looked = 0
    for noun, numbers in triples:
        if len(rows) == wanted:
            break
        looked += 1
        captions = [manner.counted(noun, number) for number in numbers]
        meanings = set(map(manner.meaning, captions))
        if meanings & used:
            repeats += 1
            continue
        used |= meanings
        rows.append(
            {
                "id": f"{CARDINALITY}_{len(rows):03d}",
                "aspect": CARDINALITY,
                "caption": captions[0],
                "noun": noun,
                "numbers": numbers,
                "source": "template",
            }
        )
    return rows, {
        "read": len(triples),
        "repeats": repeats,
        "unsuitable": 0,
        "taken": len(rows),
        "left": len(triples) - looked,
        "why": {},
    }


def _triples(nouns: Sequence[str], most: int, draws: Draws) -> Iterator[tuple[str, list[int]]]:
    """Nouns with three numbers each, every noun once before any comes again with other numbers."""
    numbers = {noun: draws.shuffled(range(1, most + 1)) for noun in nouns}
    for start in range(0, most - _NUMBERS + 1, _NUMBERS):
        for noun in nouns:
            yield noun, numbers[noun][start : start + _NUMBERS]
