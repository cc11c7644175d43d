"""How long search and bookkeeping of CIRCLED's construction take, beside the published loop.

    python perf/construction.py                  # 2,000 queries of shapes/train over its 22,392 images
    python perf/construction.py --queries 200 --benchmark shapes/val      # a quick look

The whole pipeline runs, stages on disk included, with the oracle as language backend and the shipped encoder.
What the encoder and the oracle take is taken off: what is left is search, picks, updates, rows and files.
The features of the gallery are encoded before, and its pictures are not compared with each other.

    ours       all that is left, a session-turn
    published  one query's product with the gallery, a Python list of (id, score) pairs, sorted, then the
               target's index looked up: the shape of the released loop, over --sampled queries of turn 1

Both give the same ranks where no scores tie, which is checked.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fresh import Verdict, add_bound_option, at_least

import cir_datasets
from cir_datasets.construction.circled.pipeline import make_circled
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.turns import CircledModels
from submissions.encoders.loading import load_encoder
from submissions.language import load_language
from submissions.making.circled import models_for

RATIO = "published loop / ours, a session-turn"
BOUNDS = {RATIO: at_least(100)}


class Asked:
    """A model whose time is added up."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._timed(found) if callable(found) else found

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*given)
            finally:
                self.seconds += time.perf_counter() - started

        return call


def published(query: Any, vectors: Any, ids: list[str], target: str) -> int:
    """The rank of a target by a list of pairs, sorted."""
    pairs = [(image, float(score)) for image, score in zip(ids, vectors @ query, strict=True)]
    pairs.sort(key=lambda pair: pair[1], reverse=True)
    return [image for image, _ in pairs].index(target) + 1


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--benchmark", default="shapes/train")
    options.add_argument("--queries", type=int, default=2_000)
    options.add_argument("--sampled", type=int, default=40, help="queries of the published loop")
    add_bound_option(options)
    given = options.parse_args()
    verdict = Verdict(BOUNDS, given.bound)
    benchmark = cir_datasets.load(given.benchmark)
    encoder = load_encoder("shapes")
    models = models_for(benchmark, encoder, encoder, load_language("oracle"))
    ids = list(benchmark.gallery or ())
    models.features.images(ids)
    features, words = Asked(models.features), Asked(models.words)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        made = make_circled(
            benchmark,
            folder,
            CircledModels(features, features, words),
            CircledSettings(limit=given.queries),
            fingerprint=list,
        )
        whole = time.perf_counter() - started
        turns = sum(len(session.turns) for session in made.played)
        ours = (whole - features.seconds - words.seconds) / turns
        vectors = np.load(Path(folder) / "03-features.npy")
        queries = np.load(Path(folder) / "07-query-1.npy")
    searched = made.images[: len(vectors)]
    taken, same, clear = [], 0, 0
    played = [session for session in made.played if session.turns]
    for query, session in list(zip(queries, played, strict=True))[: given.sampled]:
        started = time.perf_counter()
        ranks = [published(query, vectors, searched, session.targets[0])]
        taken.append(time.perf_counter() - started)
        if len(session.targets) == 1:
            clear += 1
            same += ranks[0] == session.ranks[0]
    loop = statistics.median(taken)
    print(
        f"{len(made.played):,} sessions, {turns:,} session-turns, {len(vectors):,} images, "
        f"{vectors.shape[1]} dimensions; {made.counts['kept']:,} kept"
    )
    print(f"{'whole run':24} {whole:9.2f} s: {features.seconds:.2f} s encoder, {words.seconds:.2f} s oracle")
    print(f"{'ours, a session-turn':24} {1000 * ours:9.3f} ms")
    print(f"{'published, a query':24} {1000 * loop:9.3f} ms (median of {len(taken)})")
    print(f"same rank at turn 1, queries with one target: {same} of {clear}")
    if same < clear:
        print("the rest have scores that tie, or nearly, which the list breaks by its order or a last bit")
    verdict.head()
    verdict.show(RATIO, loop / ours)
    verdict.end()


if __name__ == "__main__":
    main()
