"""Whether sessions are epsilon-consistent and tau-diverse, by any encoder (section 3.3 of CIRCLED).

Both definitions are relative to an encoder. A session is replayed here: its references are given, its merged
captions are those that it was made with (without them, of sessions made elsewhere, the relative captions
alone), and the queries move on by equation 9 among the images that this encoder shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cir_datasets.construction.backends import Features
from cir_datasets.construction.circled.filters import largest_fall
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.steps import Vectors, moved_on
from cir_datasets.construction.circled.turns import nearest_pair
from cir_metrics.gallery import Gallery

Row = dict[str, Any]


@dataclass(frozen=True)
class Checked:
    """One session by both definitions.

    Args:
        session: its id.
        ranks: of its best target at each turn, by this encoder.
        fall: by how many places it falls at most.
        nearest: the highest similarity of two captions.
        consistent: whether no fall is above epsilon.
        diverse: whether no similarity reaches tau.
    """

    session: str
    ranks: tuple[int, ...]
    fall: int
    nearest: float
    consistent: bool
    diverse: bool


def check_definitions(
    sessions: Sequence[Row],
    gallery: Sequence[str],
    features: Features,
    diversity: Features,
    settings: CircledSettings | None = None,
    *,
    merged: Mapping[str, Sequence[str]] | None = None,
    vectors: Vectors | None = None,
) -> list[Checked]:
    """Replay sessions, and look at their ranks and captions.

    Args:
        sessions: rows in the published form; each reference, and one target at least, is in the gallery.
        gallery: ids of the images that are searched.
        features: the encoder E of the search.
        diversity: the encoder that tells captions apart.
        settings: K, the weights, epsilon and tau; None is the paper's.
        merged: by session the merged caption of each turn.
        vectors: of the gallery, where they are there already.
    """
    chosen = settings or CircledSettings()
    if not sessions:
        return []
    images = features.images(gallery) if vectors is None else vectors
    ranks = _replayed(sessions, gallery, images, features, chosen, merged or {})
    captions = [[turn["relative_caption"] for turn in row["turns"]] for row in sessions]
    nearest = nearest_pair(diversity, captions)
    return [
        Checked(
            row["session_id"],
            tuple(own),
            fall := largest_fall(own),
            near,
            consistent=fall <= chosen.epsilon,
            diverse=near < chosen.tau,
        )
        for row, own, near in zip(sessions, ranks, nearest, strict=True)
    ]


def _replayed(
    sessions: Sequence[Row],
    gallery: Sequence[str],
    images: Vectors,
    features: Features,
    settings: CircledSettings,
    merged: Mapping[str, Sequence[str]],
) -> list[list[int]]:
    """The rank of the best target of each session at each of its turns."""
    row_of = {image: row for row, image in enumerate(gallery)}
    searched = Gallery(images, list(gallery))
    texts = [
        list(merged.get(row["session_id"]) or [turn["relative_caption"] for turn in row["turns"]])
        for row in sessions
    ]
    said = features.texts([text for own in texts for text in own])
    starts = np.cumsum([0, *map(len, texts)])[:-1]
    targets = [
        np.array([row_of[one] for one in row["ground_truth_ids"] if one in row_of]) for row in sessions
    ]
    ranks: list[list[int]] = [[] for _ in sessions]
    queries, shown = said[starts], np.zeros((0, 0), np.int64)
    here = np.arange(len(sessions))
    for turn in range(max(map(len, texts))):
        if turn:
            going = np.array([len(texts[one]) > turn for one in here])
            here, queries, shown = here[going], queries[going], shown[going]
            given = (sessions[one]["turns"][turn]["reference_image_id"] for one in here.tolist())
            picked = np.array([row_of.get(image, -1) for image in given])
            queries = moved_on(queries, picked, shown, said[starts[here] + turn], images, settings)
        names = [sessions[one]["session_id"] for one in here.tolist()]
        wanted = [targets[one] for one in here]
        found = searched.search(queries, settings.k, query_ids=names, targets=wanted, best_only=True)
        shown = np.array([[row_of[image] for image in own] for own in found.rankings or []])
        reached = [] if found.best_ranks is None else found.best_ranks.tolist()
        for one, rank in zip(here, reached, strict=True):
            ranks[one].append(rank)
    return ranks
