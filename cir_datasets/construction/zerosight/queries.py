"""Queries: the targets of each reference, a caption of each pair, what captions agree on, and its words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.backends import Failed, Features, Question, Words
from cir_datasets.construction.zerosight.consensus import agreed
from cir_datasets.construction.zerosight.likeness import Cosines, Vectors, in_bands, similar, too_like
from cir_datasets.construction.zerosight.options import Thresholds, ZeroSightOptions

FEWEST_TARGETS = 2
PAIR_PROMPT, SUMMARY_PROMPT = "frame_change", "summary"


def target_rows(
    video: str,
    references: Sequence[str],
    images: Sequence[str],
    visual: Vectors,
    semantic: Vectors,
    thresholds: Thresholds,
) -> Iterator[Row]:
    """A row a reference of one video: its targets, with both similarities.

    Args:
        video: its id.
        references: images among `images`.
        images: all frames of the video, in order.
        visual: shape (images, dimensions).
        semantic: shape (images, dimensions).
        thresholds: the bands, and from where on two targets are too alike.
    """
    places = {image: place for place, image in enumerate(images)}
    for reference, fitting in in_bands([places[image] for image in references], visual, semantic, thresholds):
        like = too_like(visual, fitting, thresholds.mutual_visual)
        kept = [place for place, other in zip(fitting, like, strict=True) if other is None]
        seen, meant = (
            similar(np.broadcast_to(vectors[reference], (len(kept), vectors.shape[1])), vectors[kept])
            for vectors in (visual, semantic)
        )
        row: Row = {
            "query": images[reference].rpartition(".")[0],
            "video": video,
            "reference": images[reference],
            "in_bands": len(fitting),
            "targets": [
                {"image": images[place], "visual": float(see), "semantic": float(mean)}
                for place, see, mean in zip(kept, seen, meant, strict=True)
            ],
        }
        if len(kept) < FEWEST_TARGETS:
            row[FAILED] = f"it has {len(kept)} targets, and {FEWEST_TARGETS} are needed"
        yield row


def candidate_rows(words: Words, pairs: Sequence[tuple[str, str, str]]) -> list[Row]:
    """A row a pair of query, reference and target: what leads from the one picture to the other."""
    questions = [Question(pictures=(reference, target)) for _, reference, target in pairs]
    rows = []
    for (query, reference, target), answer in zip(pairs, words.ask(PAIR_PROMPT, questions), strict=True):
        row: Row = {"query": query, "reference": reference, "target": target}
        if isinstance(answer, Failed):
            rows.append(row | {FAILED: answer.why})
        else:
            rows.append(row | {"caption": answer["instruction"], "category": answer["category"]})
    return rows


def consensus_rows(
    sentences: Features, candidates: Sequence[Row], options: ZeroSightOptions
) -> Iterator[Row]:
    """A row a query: which captions agree, and with that which targets are positives."""
    for query, group in itertools.groupby(candidates, key=lambda row: str(row["query"])):
        every = list(group)
        said = [row for row in every if not row.get(FAILED)]
        row: Row = {"query": query, "reference": every[0]["reference"]}
        if len(said) < FEWEST_TARGETS:
            yield row | {
                FAILED: f"{len(said)} of {len(every)} pairs have a caption; {FEWEST_TARGETS} are needed"
            }
            continue
        captions = [str(one["caption"]) for one in said]
        found = agreed(similarity_table(sentences, captions), options.consensus, options.thresholds.neighbour)
        if found is None:
            near = options.thresholds.neighbour
            yield row | {FAILED: f"no two of {len(said)} captions have a similarity of {near} or more"}
            continue
        targets = [str(one["target"]) for one in said]
        members = set(found.members)
        yield row | {
            "value": round(found.value, 6),
            "centre": targets[found.centre],
            "captions": [captions[place] for place in found.members],
            "positives": [targets[place] for place in found.members],
            "negatives": [target for place, target in enumerate(targets) if place not in members],
        }


def similarity_table(sentences: Features, captions: Sequence[str]) -> Cosines:
    """Similarities of captions, shape (n, n), rounded to six digits."""
    vectors = sentences.texts(list(captions))
    number = len(captions)
    table = np.ones((number, number))
    for first, second in itertools.combinations(range(number), 2):
        table[first, second] = table[second, first] = similar(vectors[first][None], vectors[second][None])[0]
    return table


def final_rows(words: Words, agreements: Sequence[Row]) -> list[Row]:
    """A row a query: the caption that sums up those that agree, and its category."""
    questions = [
        Question({"captions": "\n".join(f"- {caption}" for caption in dict.fromkeys(row["captions"]))})
        for row in agreements
    ]
    rows = []
    for row, answer in zip(agreements, words.ask(SUMMARY_PROMPT, questions), strict=True):
        kept: Row = {key: row[key] for key in ("query", "reference", "positives", "negatives")}
        if isinstance(answer, Failed):
            rows.append(kept | {FAILED: answer.why})
        else:
            rows.append(kept | {"caption": answer["instruction"], "category": answer["category"]})
    return rows


def used_videos(targets: Sequence[Row]) -> set[str]:
    """The videos that a set of targets was made of."""
    return {str(row["video"]) for row in targets if not row.get(FAILED)}


def pool_rows(targets: Sequence[Row], references: Sequence[str], others: Sequence[Row]) -> list[Row]:
    """A row an image of the gallery, each once: all targets, the references, then frames of other videos.

    The paper does not say whether references are in it. Here they are, as a benchmark whose references stay
    in the ranking needs them.

    Args:
        targets: rows of all references.
        references: of the queries.
        others: frames of videos that no target is of.
    """
    found: dict[str, str] = {}
    for row in targets:
        if not row.get(FAILED):
            for target in row["targets"]:
                found.setdefault(str(target["image"]), "target")
    for image in references:
        found.setdefault(image, "reference")
    for row in others:
        found.setdefault(str(row["image"]), "other video")
    return [{"image": image, "from": origin} for image, origin in found.items()]
