"""The beginnings of a file's rankings, kept beside its values per query as arrays and a JSON object.

`leaderboard.inspection.lists` reads them. The process that scores the file makes them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leaderboard.queue import LISTS

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from leaderboard.queue.judging import Validated
    from submissions.rank_file.columns import Columns
    from submissions.rank_file.model import RankFile
    from submissions.scoring.evidence import Evidence
    from submissions.scoring.score_report import ScoreReport
    from submissions.transcripts.transcript import Round

SHOWN = 10
"""Images of each ranking that readers are shown."""
UNLISTED = 0
"""Stands for the rank of a right answer that no list holds."""


def packed_lists(judged: Validated, report: ScoreReport, right_by: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The beginnings of a scored file's rankings, as arrays.

    Args:
        judged: the file, from `leaderboard.queue.judging.judge_file`.
        report: its score.
        right_by: the metrics that say which images are right answers.

    Returns:
        By `lists/<number of the benchmark>/<name>`: `about` (JSON as bytes), `top` (codes of the first images
        a list, -1 behind the end), `rank` (of the best right answer, 0 where it is not listed), `listed`
        (images a list), `starts` (where each query's lists start), of a benchmark with subsets `subset` and
        `subset_rank`, and the arrays of the score's evidence.
    """
    from submissions.rank_file.model import runs_of

    runs = {run.benchmark: run for run in runs_of(judged.rank_file)}
    transcript = None if judged.transcript is None else judged.transcript.transcript
    rounds = None if transcript is None else transcript.sessions()
    packed: dict[str, NDArray[Any]] = {}
    for number, each in enumerate(report.parts):
        if each.evidence is None:
            raise ValueError(f"{each.benchmark}: the score holds no values per query")
        arrays = _arrays(runs[each.benchmark], each.evidence, rounds, right_by)
        packed |= {f"{LISTS}{number}/{name}": array for name, array in arrays.items()}
    return packed


def _arrays(
    rank_file: RankFile,
    evidence: Evidence,
    rounds: Mapping[str, Sequence[Round]] | None,
    right_by: Sequence[str],
) -> dict[str, NDArray[Any]]:
    """One rank file against its benchmark; of a transcript with its rounds by session."""
    from cir_datasets.rows.benchmark import second_ranking
    from cir_datasets.rows.right import right_answers
    from submissions.rank_file.benchmarks import board_depth
    from submissions.rank_file.model import as_columns

    benchmark, names = evidence.benchmark, evidence.query_ids
    columns = as_columns(rank_file.rankings, by_turn=benchmark.multi_turn or rounds is not None)
    # Sessions of a dialogue say themselves where their target stands.
    rows = [] if rounds is not None else benchmark.rows()
    lists, starts = _lists_of(columns, names)
    # Whole lists, also where the board scores their beginning alone.
    codes = columns.places(lists, int(columns.lengths.max(initial=1)))
    images: list[str] = columns.images.to_pylist()
    places = {image: place for place, image in enumerate(images)}
    about: dict[str, Any] = {"benchmark": benchmark.id, "names": names}
    counts = np.diff(starts).tolist()
    right = [
        right_answers(row, right_by, turn)
        for row, count in zip(rows, counts, strict=False)
        for turn in range(count)
    ]
    if rounds is None:
        ranks = _best_ranks(codes, right, places)
    else:
        played = [each for name in names for each in rounds[name]]
        ranks = np.array([each.rank for each in played], dtype=np.int32)
        about["captions"] = [each.caption for each in played]
        about["references"] = [each.reference for each in played]
    about |= _gallery_facts(benchmark, codes, images)
    about["scored"] = None if rounds is not None else board_depth(benchmark).used
    arrays: dict[str, NDArray[Any]] = {
        "rank": ranks,
        "listed": (codes >= 0).sum(axis=1).astype(np.int32),
        "starts": starts,
        **_evidence_arrays(evidence),
    }
    shown = [codes[:, :SHOWN]]
    if rank_file.subset_rankings:
        ranked = rank_file.subset_rankings
        second = second_ranking(benchmark.spec)
        others = [set() if second is None else {*second.images(row)} for row in rows]
        width = max(map(len, others))
        subsets = _subset_codes([ranked[name] for name in names], width, images, places)
        left_out = [other.difference(ranked[name]) for other, name in zip(others, names, strict=True)]
        about |= _subset_facts(codes, subsets, _known_codes(left_out, width, places))
        arrays["subset_rank"] = _best_ranks(subsets, right, places)
        shown.append(subsets)
    # Of the images that are named only those that are shown.
    used = np.unique(np.concatenate([each.ravel() for each in shown]))
    used = used[used >= 0]
    about["images"] = [images[place] for place in used.tolist()]
    for name, each in zip(("top", "subset"), shown, strict=False):
        arrays[name] = np.where(each >= 0, np.searchsorted(used, each), -1).astype(np.int32)
    return {"about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **arrays}


def _lists_of(columns: Columns, names: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the rankings of each name, one behind the other, and where each name's begin."""
    places = np.array([columns.position[name] for name in names], dtype=np.int64)
    if columns.turn_offsets is None:
        return places, np.arange(len(names) + 1)
    counts = np.diff(columns.turn_offsets)[places]
    starts = np.concatenate([[0], np.cumsum(counts)])
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    return np.repeat(columns.turn_offsets[places], counts) + within, starts


def _best_ranks(
    codes: NDArray[np.int32], right: Sequence[Sequence[str]], places: Mapping[str, int]
) -> NDArray[np.int32]:
    """Rank of the best right answer of each list, `UNLISTED` where it holds none, shape (lists,)."""
    ranks = np.full(len(codes), UNLISTED, dtype=np.int32)
    for number, images in enumerate(right):
        known = [places[image] for image in images if image in places]
        found = np.flatnonzero(np.isin(codes[number], known))
        if len(found):
            ranks[number] = found[0] + 1
    return ranks


def _gallery_facts(benchmark: Benchmark, codes: NDArray[np.int32], images: Sequence[str]) -> dict[str, Any]:
    """How many images no list ranks, where the gallery is known, and how long the lists are."""
    named = {images[place] for place in np.unique(codes).tolist() if place >= 0}
    lengths = (codes >= 0).sum(axis=1)
    gallery = benchmark.gallery_set
    return {
        "gallery": None if gallery is None else len(gallery),
        "never_ranked": None if gallery is None else len(gallery - named),
        "lists": len(codes),
        "shortest": int(lengths.min()),
        "longest": int(lengths.max()),
    }


def _subset_codes(
    rankings: Sequence[Sequence[str]], width: int, images: list[str], places: dict[str, int]
) -> NDArray[np.int32]:
    """Subset rankings as codes, -1 behind the end, shape (queries, width); new images are put behind."""
    codes = np.full((len(rankings), width), -1, dtype=np.int32)
    for row, ranking in zip(codes, rankings, strict=True):
        for place, image in enumerate(ranking):
            if image not in places:
                places[image] = len(images)
                images.append(image)
            row[place] = places[image]
    return codes


def _known_codes(
    images: Sequence[Collection[str]], width: int, places: Mapping[str, int]
) -> NDArray[np.int32]:
    """Codes of some images of each query, as `_subset_codes` has them; those without one are left out."""
    codes = np.full((len(images), width), -1, dtype=np.int32)
    for row, each in zip(codes, images, strict=True):
        known = [places[image] for image in each if image in places]
        row[: len(known)] = known
    return codes


def _subset_facts(
    codes: NDArray[np.int32], subsets: NDArray[np.int32], left_out: NDArray[np.int32]
) -> dict[str, Any]:
    """Of how many queries the gallery's list orders the subset, and of how many as the subset ranking does.

    An image that the list does not hold stands behind all that it holds, and one that the subset ranking
    leaves out behind all that this ranks. The order of two images that a list does not hold is unknown.
    """
    ranked = subsets >= 0
    places, others = _places_in(codes, subsets), _places_in(codes, left_out)
    falls = ((np.diff(places, axis=1) < 0) & ranked[:, 1:]).any(axis=1)
    last = np.where(ranked, places, -1).max(axis=1)
    falls |= others.min(axis=1) < last
    compared = (np.minimum(places.min(axis=1), others.min(axis=1)) < codes.shape[1]) & ranked.any(axis=1)
    return {
        "subsets": len(subsets),
        "subsets_compared": int(compared.sum()),
        "subsets_consistent": int((compared & ~falls).sum()),
    }


def _places_in(codes: NDArray[np.int32], images: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where images stand in the list of their query; behind its end where they do not, or where it is -1."""
    held = (images[:, :, None] == codes[:, None, :]) & (images >= 0)[:, :, None]
    found: NDArray[np.int64] = np.where(held.any(axis=2), held.argmax(axis=2), codes.shape[1])
    return found


def _evidence_arrays(evidence: Evidence) -> dict[str, NDArray[Any]]:
    """What a score's report by group is made of, beside the values per query that the store keeps anyway."""
    from submissions.scoring.evidence import RANKED

    named = {name: getattr(evidence, name) for name in RANKED}
    return {f"evidence_{name}": np.asarray(each) for name, each in named.items() if each is not None}
