"""The evaluator's numbers are those of `rank_file_from_embeddings` and `score`, whatever it is given."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from benchmark_world import user_galleries
from benchmark_world.user_scores import BENCHMARK, IMAGES, KEYS, SESSIONS, small_suite
from says import refusal

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import Benchmark
from submissions.errors import MethodError
from submissions.methods.turns import turns_of

DRAWN = np.random.default_rng(5)
QUERIES = DRAWN.standard_normal((len(KEYS), 8)).astype(np.float32)
VECTORS = DRAWN.standard_normal((len(IMAGES), 8)).astype(np.float32)


def keys_of(benchmark: Benchmark) -> list[str]:
    return [turn.key for row in benchmark.rows() for turn in turns_of(row)]


def drawn(benchmark: Benchmark, kind: str) -> tuple[Any, Any]:
    """Vectors of a benchmark's queries and images; whole ones tie often."""
    draws = np.random.default_rng(1)
    shapes = [(len(keys_of(benchmark)), 6), (len(benchmark.gallery or ()), 6)]
    if kind == "whole":
        return draws.integers(1, 3, shapes[0]) * 1.0, draws.integers(1, 3, shapes[1]) * 1.0
    queries, images = (draws.standard_normal(shape).astype(np.float32) for shape in shapes)
    if kind == "copies":
        images[: len(images) // 2] = images[0]
    return queries, images


def check_equal(evaluator: Any, values: dict[str, float], answer: Any, benchmark: Any) -> None:
    """Numbers, signatures and rankings are those of a rank file."""
    report = submissions.score(answer, benchmark)
    scored = {f"{report.benchmark}/{name}": value for name, value in report.metrics.items()}
    assert {name: value for name, value in values.items() if not name.endswith("/main")} == scored
    assert evaluator.best().rankings.to_json() == answer.to_json()
    for name in report.metrics:
        assert evaluator.signature(name) == report.signature_text(name)


BENCHMARKS = {
    "queries": BENCHMARK,
    "sessions": SESSIONS,
    "kept": small_suite()["fashioniq/dress_val"],
    "own lists": user_galleries.loaded(),
}


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("kind", ["normal", "whole", "copies"])
@pytest.mark.parametrize("name", BENCHMARKS)
def test_embeddings_are_ranked_as_a_rank_file_ranks_them(name: str, kind: str, similarity: Any) -> None:
    benchmark = BENCHMARKS[name]
    queries, images = drawn(benchmark, kind)
    answer = submissions.rank_file_from_embeddings(
        benchmark, queries, images, method="Evaluator", by_position=True, normalise=similarity == "cosine"
    )
    evaluator = submissions.Evaluator(benchmark, similarity=similarity, block_size=4)
    check_equal(evaluator, evaluator(queries=queries, images=images), answer, benchmark)
    torch = pytest.importorskip("torch")
    again = submissions.Evaluator(benchmark, similarity=similarity)
    values = again(queries=torch.from_numpy(queries), images=torch.from_numpy(images))
    check_equal(again, values, answer, benchmark)


@pytest.mark.parametrize("noise", [1e-7, 1e-5])
def test_images_near_each_other_have_their_places_whether_a_step_is_the_best_or_not(noise: float) -> None:
    shapes = cir_datasets.load("shapes/val")
    draws = np.random.default_rng(2)
    images = np.repeat(draws.standard_normal((len(shapes.gallery or ()) // 10, 16)), 10, axis=0)
    images += noise * draws.standard_normal(images.shape)
    queries = draws.standard_normal((len(shapes), 16))
    answer = submissions.rank_file_from_embeddings(
        shapes, queries, images, method="Evaluator", by_position=True
    )
    evaluator = submissions.Evaluator(shapes, block_size=100)
    # Only the first of two equal steps is the best one, whose lists are put in order to their end.
    for _ in range(2):
        check_equal(evaluator, evaluator(queries=queries, images=images), answer, shapes)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_types_are_compared_as_a_rank_file_compares_them(kind: str) -> None:
    torch = pytest.importorskip("torch")
    queries, images = (torch.from_numpy(each).to(getattr(torch, kind)) for each in drawn(BENCHMARK, "normal"))
    answer = submissions.rank_file_from_embeddings(
        BENCHMARK, queries, images, method="Evaluator", by_position=True
    )
    evaluator = submissions.Evaluator(BENCHMARK)
    check_equal(evaluator, evaluator(queries=queries, images=images), answer, BENCHMARK)


def test_a_model_that_finds_all_images_alike_takes_no_more_memory() -> None:
    torch = pytest.importorskip("torch")
    shapes = cir_datasets.load("shapes/val")
    near = 1 + 1e-7 * np.random.default_rng(6).standard_normal((len(shapes) + len(shapes.gallery or ()), 8))
    queries, images = torch.from_numpy(near).float().split([len(shapes), len(shapes.gallery or ())])
    answer = submissions.rank_file_from_embeddings(
        shapes, queries, images, method="Evaluator", by_position=True
    )
    evaluator = submissions.Evaluator(shapes)
    evaluator(queries=queries, images=images)
    tracemalloc.start()
    values = evaluator(queries=queries, images=images)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 64 * 2**20
    check_equal(evaluator, values, answer, shapes)


@pytest.mark.parametrize("scale", [(1e-25, 1), (1e-30, 1e30), (1e20, 1)])
def test_vectors_of_any_length_are_ranked_as_a_rank_file_ranks_them(scale: tuple[float, float]) -> None:
    draws = np.random.default_rng(5)
    near = 1 + 1e-7 * draws.standard_normal((len(KEYS) + len(IMAGES), 64))
    queries, images = (near[: len(KEYS)] * scale[0]).astype("f4"), (near[len(KEYS) :] * scale[1]).astype("f4")
    answer = submissions.rank_file_from_embeddings(
        BENCHMARK, queries, images, method="Evaluator", by_position=True, normalise=False
    )
    evaluator = submissions.Evaluator(BENCHMARK, similarity="dot")
    check_equal(evaluator, evaluator(queries=queries, images=images), answer, BENCHMARK)


def test_what_a_training_sets_changes_no_product_and_stays() -> None:
    torch = pytest.importorskip("torch")
    matmul = torch.backends.mkldnn.matmul
    before, matmul.fp32_precision = matmul.fp32_precision, "bf16"
    try:
        # Read-only and turned, as of a memory map.
        queries = np.broadcast_to(QUERIES[:, ::-1], QUERIES.shape)
        images = torch.from_numpy(VECTORS[:, ::-1].copy())
        evaluator = submissions.Evaluator(BENCHMARK, similarity="dot")
        values = evaluator(queries=queries, images=images)
        assert matmul.fp32_precision == "bf16"
    finally:
        matmul.fp32_precision = before
    answer = submissions.rank_file_from_embeddings(
        BENCHMARK, queries, images, method="Evaluator", by_position=True, normalise=False
    )
    check_equal(evaluator, values, answer, BENCHMARK)


def test_batches_come_in_any_order_and_repeats_count_once() -> None:
    torch = pytest.importorskip("torch")
    expected = submissions.Evaluator(BENCHMARK)(queries=QUERIES, images=VECTORS)
    evaluator = submissions.Evaluator(BENCHMARK)
    for start in range(0, len(IMAGES), 7):
        part = slice(start, start + 7)
        evaluator.update(images=torch.from_numpy(VECTORS[::-1].copy())[part], image_ids=IMAGES[::-1][part])
    for rows in ([3, 1], [0, 2, 4], [5, 3]):
        evaluator.update(queries=QUERIES[rows], query_ids=[KEYS[row] for row in rows])
    assert evaluator.compute() == expected
    turned = {"images": VECTORS[::-1], "image_ids": IMAGES[::-1]}
    for kept in (turned, {"scores": np.ones((6, 60)), "image_ids": IMAGES}, turned, turned):
        # Another list between two epochs changes nothing of them.
        given = {"queries": QUERIES} if "images" in kept else {}
        values = evaluator(**kept, **given, query_ids=KEYS)
        assert (values == expected) == ("images" in kept)
    assert evaluator.compute() == expected
    assert evaluator.notes == ()
    assert evaluator.compute() == expected
    assert evaluator.best().step == 1
    evaluator.update(queries=-QUERIES[:1], query_ids=KEYS[:1])
    with refusal(f"queries: '{KEYS[0]}' is there twice ... reset()", MethodError):
        evaluator.compute()


def test_the_publishers_order_is_taken_and_said() -> None:
    evaluator = submissions.Evaluator(BENCHMARK)
    evaluator.update(images=VECTORS)
    evaluator.update(queries=QUERIES[:4])
    evaluator.update(queries=QUERIES[4:])
    assert evaluator.compute() == submissions.Evaluator(BENCHMARK)(
        queries=QUERIES, query_ids=KEYS, images=VECTORS, image_ids=IMAGES
    )
    assert "order" in evaluator.notes[0]
    evaluator.update(queries=QUERIES.copy())
    with pytest.raises(MethodError, match="12 rows without ids"):
        evaluator.compute()


@pytest.mark.parametrize("of", ["query", "image"])
def test_what_is_missing_is_refused_or_left_out_and_said(of: str) -> None:
    rows = {"queries": QUERIES, "query_ids": KEYS, "images": VECTORS, "image_ids": IMAGES}
    kept = {name: rows[name][2:] if of[:3] in name else rows[name] for name in rows}
    gone = (KEYS if of == "query" else IMAGES)[:2]
    with refusal(f"2 of ... '{gone[0]}' ... partial=True", MethodError):
        submissions.Evaluator(BENCHMARK)(**kept)
    evaluator = submissions.Evaluator(BENCHMARK, partial=True)
    with pytest.warns(UserWarning, match="2 of"):
        values = evaluator(**kept)
    assert set(values) == set(submissions.Evaluator(BENCHMARK)(**rows))
    assert "complete" in evaluator.signature("recall@10")
    with pytest.raises(MethodError, match="part"):
        evaluator.write("refused.json", method="Mine")
    if of == "query":
        part = Benchmark.from_rows(BENCHMARK.spec, BENCHMARK.rows()[2:], IMAGES)
        assert values == submissions.Evaluator(part)(**kept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluator(**rows)


def test_a_suite_is_given_by_member(monkeypatch: pytest.MonkeyPatch) -> None:
    own = small_suite()
    monkeypatch.setattr(cir_datasets, "load", lambda benchmark_id, **_: own[benchmark_id])
    vectors = {name.partition("/")[2][:-4]: drawn(each, "normal") for name, each in own.items()}
    evaluator = submissions.Evaluator("fashioniq/val")
    for name, (queries, images) in vectors.items():
        evaluator.update(queries=queries, images=images, member=name)
    values = evaluator.compute()
    queries, images = ({name: each[side] for name, each in vectors.items()} for side in (0, 1))
    answer = submissions.rank_file_from_embeddings(
        "fashioniq/val", queries, images, method="Evaluator", by_position=True
    )
    report = submissions.score(answer, own)
    assert values["fashioniq/val/recall@10"] == report.metrics["recall@10"]
    assert values["fashioniq/val/main"] == report.main
    assert values["fashioniq/val/toptee/recall@50"] == report.runs[2].metrics["recall@50"]
    assert evaluator.best().rankings.to_json() == answer.to_json()
    assert evaluator.signature("dress/recall@10") == report.runs[0].signature_text("recall@10")
    assert submissions.Evaluator("fashioniq/val")(queries=queries, images=images) == values
    with pytest.raises(MethodError, match="toptee"):
        evaluator.update(queries=QUERIES, member="shoes")
    with refusal("pass member=, one of dress, shirt, toptee", MethodError):
        evaluator.update(queries=QUERIES)
