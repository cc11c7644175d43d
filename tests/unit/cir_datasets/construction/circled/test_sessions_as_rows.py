"""Whatever makes sessions makes rows that every benchmark's check takes: drawn worlds, real annotations."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world import small_shapes
from benchmark_world.encoders import unit, word
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import cir_datasets
from cir_datasets import registry
from cir_datasets.construction.backends import Failed, Question
from cir_datasets.construction.circled.comparison import WAYS, compared
from cir_datasets.construction.circled.pipeline import MadeSessions, make_circled
from cir_datasets.construction.circled.queries import queries_of
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.turns import CircledModels
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.errors import ConstructionError
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.checks import session_fault

HOME = os.environ.get("CIR_DATA_HOME", "")
real = (pytest.mark.real_data, pytest.mark.skipif(not HOME, reason="CIR_DATA_HOME is not set"))
SPLITS = [
    "cirr/val",
    *(
        f"fashioniq/{name}"
        for name, config in registry.card("fashioniq").configs.items()
        if config.ground_truth == "public"
    ),
]


def in_benchmark(folder: Path, rows: Sequence[Mapping[str, Any]], images: Sequence[str]) -> int:
    """How many rows a folder holds that is written of them, which checks every one."""
    write_benchmark(
        folder, name="rows", title="Rows", configs={"test": rows}, galleries=images, reference="kept"
    )
    return len((folder / "queries.jsonl").read_bytes().splitlines())


@st.composite
def worlds(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Queries among few images, of several targets, so that many lead back."""
    names = "abcdef"
    found = []
    for number in range(draw(st.integers(2, 12))):
        reference = draw(st.sampled_from(names))
        targets = draw(
            st.lists(st.sampled_from(names.replace(reference, "")), min_size=1, max_size=3, unique=True)
        )
        query = {"query": str(number), "reference": reference, "caption": "in red", "targets": targets}
        found.append({**query, "annotated": targets[0]})
    return found


@given(worlds(), st.sampled_from(WAYS), st.integers(0, 3))
def test_no_way_to_put_queries_together_shows_a_target_first(
    queries: list[dict[str, Any]], way: str, seed: int
) -> None:
    try:
        rows = compared(queries, way, "s", seed=seed)
    except ConstructionError:
        # Of two queries that ask for one another's references no order is a session.
        rows = []
    assert all(session_fault(row) is None and row["num_turns"] > 1 for row in rows)
    if rows and way == "concatenation":
        assert len(rows) == len(queries)


def test_queries_that_only_lead_back_are_refused() -> None:
    both = [
        {"query": one, "reference": one, "caption": "in red", "targets": [other], "annotated": other}
        for one, other in ("ab", "ba")
    ]
    with pytest.raises(ConstructionError, match="use more queries"):
        compared(both, "concatenation", "s")
    with pytest.raises(ConstructionError, match="too few queries"):
        compared(both[:1], "concatenation", "s")


@pytest.mark.parametrize("benchmark_id", [pytest.param(one, marks=real) for one in SPLITS])
def test_single_queries_of_real_annotations_are_put_together_without_a_limit(
    benchmark_id: str, tmp_path: Path
) -> None:
    benchmark = cir_datasets.load(benchmark_id)
    queries = queries_of(benchmark)
    asked = [query for query in queries if query["caption"]]
    assert len(compared(queries, "concatenation", "s")) == len(asked)
    for way, seed in [*itertools.product(WAYS[:1], range(3)), (WAYS[1], 0)]:
        rows = compared(queries, way, f"s{seed}", seed=seed)
        assert [session_fault(row) for row in rows if session_fault(row)] == []
    assert in_benchmark(tmp_path, rows, benchmark.gallery or ()) == len(rows)


@pytest.mark.parametrize("way", [pytest.param(way, marks=real) for way in WAYS])
def test_queries_of_several_targets_are_put_together(way: str) -> None:
    queries = [
        {
            "query": row["query_id"],
            "reference": row["reference_image_id"],
            "caption": row["relative_caption"],
            "targets": row["positive_image_ids"],
            "annotated": row["target_image_id"],
        }
        for row in cir_datasets.load("circo/val").rows()
    ]
    if way == "concatenation":
        assert len(compared(queries, way, "circo_val")) == len(queries)
    else:
        with pytest.raises(ConstructionError, match="no query's target is another one's reference"):
            compared(queries, way, "circo_val")


class Names:
    """Vectors of words, an image's that of its id; a user whose words name the target."""

    identity: Mapping[str, Any] = {"names": 1}

    def __init__(self, dimensions: int = 192) -> None:
        self.noise = functools.cache(functools.partial(word, dimensions=dimensions))

    def images(self, ids: Sequence[str]) -> NDArray[np.float32]:
        return unit(np.stack([self.noise(one) for one in ids]))

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit(np.stack([np.sum([self.noise(word) for word in text.split()], axis=0) for text in texts]))

    def caption(self, images: Sequence[str], prompt: str = "caption") -> list[str | Failed]:
        return [f"a-picture-of-{image}" for image in images]

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str | Failed]:
        return [f"{caption} {change}" for caption, change in zip(captions, changes, strict=True)]

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str | Failed]:
        raise NotImplementedError

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        return [{"instruction": f"{one.pictures[1]} not {one.pictures[0]}"} for one in questions]


def played(benchmark: Benchmark, folder: Path, **settings: Any) -> MadeSessions:
    """Sessions of all queries; every ninth target is the same picture as its reference."""
    models = CircledModels(Names(), Names(), Names())
    twins = {query["annotated"]: query["reference"] for query in queries_of(benchmark)[::9]}
    chosen = CircledSettings(**settings)
    return make_circled(
        benchmark, folder, models, chosen, fingerprint=lambda ids: [twins.get(one, one) for one in ids]
    )


def test_a_target_that_is_the_picture_of_the_reference_is_in_neither_folder(tmp_path: Path) -> None:
    found = played(small_shapes(rows=120, gallery=400), tmp_path / "run", tau=0.05)
    quality = found.counts["rank margin"] + found.counts["text redundancy"]
    assert 0 < len(found.unfiltered) < quality, "some went at a quality filter and show their target"
    assert in_benchmark(tmp_path / "rows", found.unfiltered, found.images) == len(found.unfiltered)


@pytest.mark.parametrize(
    "benchmark_id",
    [pytest.param(one, marks=real) for one in SPLITS[:1]]
    + [pytest.param(one, marks=(*real, pytest.mark.slow)) for one in SPLITS[1:]],
)
def test_sessions_made_of_real_annotations_are_rows_without_a_limit(
    benchmark_id: str, tmp_path: Path
) -> None:
    found = played(cir_datasets.load(benchmark_id), tmp_path / "run", epsilon=300)
    assert in_benchmark(tmp_path / "kept", found.sessions, found.images) == len(found.sessions) > 0
    if found.unfiltered:  # there are none where all that was filtered out shows its target
        assert in_benchmark(tmp_path / "rest", found.unfiltered, found.images) == len(found.unfiltered)
