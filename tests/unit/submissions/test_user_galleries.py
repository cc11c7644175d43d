"""A benchmark whose queries rank lists of their own, of 3, 15 and 900 images: from its folder to a score."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world import user_galleries as world

import cir_datasets
import submissions
from cir_datasets.construction.circled.queries import queries_of
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.errors import CardError, ConstructionError, RecordError
from cir_datasets.registry import BenchmarkSpec
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.hashing import galleries_hash
from cir_metrics.signature import differences
from submissions.errors import MethodError
from submissions.multiround.making import make_transcript
from submissions.rank_file.model import Method
from submissions.report.grouping import chance, random_floor
from submissions.running.options import RunOptions
from submissions.running.user_embeddings import rank_file_from_embeddings
from submissions.running.user_lists import rank_file_from_lists
from submissions.running.user_scores import rank_file_from_scores
from submissions.transcripts.settings import RoundSettings


def codes(benchmark: Benchmark, rankings: dict[str, list[str]]) -> list[str]:
    content = json.dumps(world.document(rankings)).encode()
    return [finding.code for finding in submissions.validate(content, benchmark).findings]


def lists_of(benchmark: Benchmark) -> dict[str, list[str]]:
    """What each query ranks, by the plain reading of its row."""
    removed = benchmark.excludes_reference
    left_out = {row["query_id"]: row["reference_image_id"] if removed else "" for row in benchmark.rows()}
    return {
        row["query_id"]: [each for each in row["gallery_image_ids"] if each != left_out[row["query_id"]]]
        for row in benchmark.rows()
    }


def test_its_gallery_is_the_union_of_the_lists() -> None:
    benchmark = world.loaded()
    lists = {row["query_id"]: row["gallery_image_ids"] for row in world.rows()}
    assert set(benchmark.gallery or ()) == {image for own in lists.values() for image in own}
    assert benchmark.gallery_hash == galleries_hash(lists)
    assert (benchmark.per_query, benchmark.reference_use) == (True, "removed")
    memory = Benchmark.from_rows(benchmark.spec, benchmark.rows(), None)
    assert set(memory.gallery or ()) == set(benchmark.gallery or ())
    assert memory.gallery_hash == benchmark.gallery_hash
    outside = [{**row, "reference_image_id": "elsewhere"} for row in benchmark.rows()]
    assert Benchmark.from_rows(benchmark.spec, outside, None).reference_use == "outside"


@pytest.mark.parametrize("reference", ["removed", "kept"])
def test_rankings_of_each_list_are_valid_and_signed(reference: str) -> None:
    benchmark = world.loaded(reference)
    content = json.dumps(world.document(world.ranked(benchmark))).encode()
    assert submissions.validate(content, benchmark).findings == ()
    scored = submissions.score(content, benchmark)
    ranked = lists_of(benchmark)
    hits = [ranked[row["query_id"]].index(row["target_image_id"]) < 10 for row in benchmark.rows()]
    assert scored.metrics["recall@10"] == sum(hits) / len(hits)
    signature = scored.signatures["recall@1"]
    assert f"gallery:per-query:931:{benchmark.gallery_hash}" in signature.key
    shared = dataclasses.replace(signature, gallery_kind="shared")  # type: ignore[type-var]
    assert differences(signature, shared)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "images", "expected"),
    [
        ("q1", ["im0800"], ["not-in-gallery"]),
        ("q4", ["nonsense"], ["unknown-image"]),
        ("q0", ["im0000"], ["reference-ranked"]),
        ("q4", ["im0030", "im0030"], ["duplicate-image"]),
    ],
)
def test_what_a_query_does_not_rank_is_refused(query: str, images: list[str], expected: list[str]) -> None:
    rankings = world.ranked(world.loaded())
    rankings[query] = [*images, *(each for each in rankings[query] if each not in images)][:10]
    assert codes(world.loaded(), rankings) == expected


def test_a_ranking_is_as_long_as_the_metrics_use_or_as_its_list() -> None:
    benchmark = world.loaded()
    rankings = world.ranked(benchmark)
    assert {query: len(ranking) for query, ranking in rankings.items()} == {
        "q0": 2, "q1": 10, "q2": 10, "q3": 3, "q4": 10, "q5": 10
    }  # fmt: skip
    for query in rankings:
        shorter = {**rankings, query: rankings[query][:-1]}
        assert codes(benchmark, shorter) == ["short-ranking"]
    whole = {**rankings, "q5": lists_of(benchmark)["q5"]}
    assert codes(benchmark, whole) == ["deep-ranking"]


@pytest.mark.parametrize("declared", ["", "removed"])
def test_a_short_list_may_leave_out_the_reference_where_the_protocol_keeps_it(declared: str) -> None:
    benchmark = world.loaded("kept")
    references = {row["query_id"]: row["reference_image_id"] for row in benchmark.rows()}
    without = {
        query: [image for image in images if image != references[query]][:10]
        for query, images in lists_of(benchmark).items()
    }
    document = world.document(without)
    document["method"]["reference"] = declared
    content = json.dumps(document).encode()
    assert submissions.validate(content, benchmark).findings == ()
    assert submissions.score(content, benchmark).signatures["recall@1"].reference_held == (0, len(without))
    short = min(without, key=lambda query: len(without[query]))
    assert codes(benchmark, {**without, short: without[short][:-1]}) == ["short-ranking"]


def test_a_ranking_longer_than_its_list_is_told_to_add_nothing() -> None:
    benchmark = world.loaded()
    rankings = world.ranked(benchmark)
    content = json.dumps(world.document({**rankings, "q0": [*rankings["q0"], rankings["q0"][0]]})).encode()
    [finding] = submissions.validate(content, benchmark).findings
    assert (finding.code, finding.query) == ("duplicate-image", "q0")
    assert "add nothing" in finding.fix


@pytest.mark.parametrize("reference", ["removed", "kept"])
def test_methods_rank_the_querys_own_list_alone(reference: str) -> None:
    benchmark = world.loaded(reference)
    made = submissions.make_rank_file(benchmark, "random", k=1000)
    assert {query: sorted(ranking) for query, ranking in made.rankings.items()} == {
        query: sorted(images) for query, images in lists_of(benchmark).items()
    }

    class Backwards:
        def method(self) -> Method:
            return Method(name="Backwards")

        def rank(self, turns: Any, gallery: Any, k: int) -> list[list[str]]:
            return [sorted(gallery.ids, reverse=True)[:k] for _ in turns]

    listed = submissions.make_rank_file(benchmark, Backwards(), k=1000)
    assert dict(listed.rankings) == {
        query: sorted(images, reverse=True) for query, images in lists_of(benchmark).items()
    }


def test_scores_and_lists_of_ones_own_are_of_the_querys_list() -> None:
    benchmark = world.loaded()
    images = list(benchmark.gallery or ())
    scores = np.tile(np.arange(len(images), dtype=np.float64), (len(benchmark), 1))
    made = rank_file_from_scores(
        benchmark, scores, query_ids=benchmark.query_ids, image_ids=images, method="Last first", k=1000
    )
    expected = {query: sorted(own, reverse=True) for query, own in lists_of(benchmark).items()}
    assert made.rankings == expected  # type: ignore[union-attr]
    again = rank_file_from_lists(benchmark, expected, method="Last first", k=1000)
    assert again.rankings == expected  # type: ignore[union-attr]
    with pytest.raises(MethodError, match="own gallery"):
        rank_file_from_lists(benchmark, {**expected, "q0": ["im0500"]}, method="Last first")


def test_chance_is_that_of_each_list() -> None:
    benchmark = world.loaded()
    at_random = chance(benchmark)
    lengths = [len(images) for images in lists_of(benchmark).values()]
    expected = sum(min(10, length) / length for length in lengths) / len(lengths)
    assert random_floor(at_random, ["recall@10"])["recall@10"] == pytest.approx(expected, abs=1e-12)
    of_ranks = at_random.values("mean_rank")
    # The mean of min(rank, 11) where the rank is any of a list's.
    means = [sum(min(rank, 11) for rank in range(1, n + 1)) / n for n in lengths]
    assert of_ranks.tolist() == pytest.approx(means, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"gallery_image_ids": ["im0003", "im0002"]}, "positive 'im0001' is not in its gallery_image_ids"),
        ({"gallery_image_ids": ["im0000", "im0001"]}, "2 images or more to rank beside the reference"),
        ({"gallery_image_ids": ["im0001", "im0001", "im0002"]}, "'im0001' twice"),
        ({"gallery_image_ids": ["im0001", "im0002", "im9999"]}, "'im9999' is not in the gallery"),
    ],
)
def test_a_row_whose_list_is_wrong_is_refused_with_its_place(
    change: dict[str, Any], fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = world.write_folder(tmp_path / world.NAME)
    rows = [{**row, **(change if row["query_id"] == "q0" else {})} for row in world.rows()]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    with pytest.raises(RecordError, match="line 1") as error:
        cir_datasets.load(f"{world.NAME}/test")
    assert fault in str(error.value)
    # The row's reference is in no list, and may be.
    rows[0]["reference_image_id"] = "elsewhere"
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert not [each for each in check_folder(folder).errors if "reference" in each]


def test_a_card_and_its_rows_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.write_folder(tmp_path / world.NAME)
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    with (folder / "images.txt").open("a") as images:
        images.write("unlisted\n")
    [fault] = check_folder(folder).faults
    assert fault.place.startswith(f"{folder / 'images.txt'}: line ")
    assert "'unlisted' is in no query's gallery_image_ids" in fault.said
    with pytest.raises(RecordError, match="'unlisted' of its gallery is in no query's gallery_image_ids"):
        cir_datasets.load(f"{world.NAME}/test")
    card = json.loads((folder / "card.yaml").read_text())
    (folder / "card.yaml").write_text(json.dumps({**card, "gallery": "common"}))
    with pytest.raises(RecordError, match="does not say `gallery: per_query`"):
        cir_datasets.load(f"{world.NAME}/test")


def test_sessions_rank_a_common_gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.write_folder(tmp_path / world.NAME)
    turn = {"turn": 1, "reference_image_id": "im0000", "relative_caption": "made up"}
    session = {"session_id": "s", "ground_truth_ids": ["im0001"], "turns": [turn]}
    (folder / "queries.jsonl").write_text(json.dumps(session) + "\n")
    card = json.loads((folder / "card.yaml").read_text())
    card |= {"metrics": ["hits@1"], "main_metric": "hits@1"}
    (folder / "card.yaml").write_text(json.dumps(card))
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    with pytest.raises(CardError, match="per_query"):
        cir_datasets.load(f"{world.NAME}/test")


def test_rows_in_python_say_it_by_their_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIR_BENCHMARKS", raising=False)
    made = cir_datasets.custom_benchmark(
        "from_rows", world.rows(), folder=tmp_path / "from_rows", metrics=["recall@1"], main_metric="recall@1"
    )
    assert made.per_query
    assert made.gallery_hash == world.loaded().gallery_hash


@pytest.fixture(scope="module")
def drawn() -> tuple[Benchmark, Benchmark]:
    """Thirty queries of shapes with galleries of their own, of 3, 15 and 900 images, and without."""
    whole = cir_datasets.load("shapes/val")
    draw, gallery = random.Random(0), list(whole.gallery or ())
    rows = []
    for number, row in enumerate(whole.rows()[:30]):
        named = {row["target_image_id"], *row["positive_image_ids"], *row["negative_image_ids"]}
        others = draw.sample(gallery, world.LENGTHS[number % 3])
        rows.append({**row, "gallery_image_ids": sorted({*named, *others} - {None})})
    card = whole.spec.card.model_copy(update={"gallery": "per_query"})
    own = BenchmarkSpec(card, "val")
    return Benchmark.from_rows(own, rows, gallery), Benchmark.from_rows(whole.spec, rows, gallery)


@pytest.mark.parametrize("method", ["random", "image_only_pixels", "text_only_pixels"])
def test_baselines_rank_a_list_as_they_rank_the_gallery(
    method: str, drawn: tuple[Benchmark, Benchmark]
) -> None:
    own, whole = drawn
    made = submissions.make_rank_file(own, method, k=1000)
    common = submissions.make_rank_file(whole, method, k=1000)
    assert submissions.validate(made, own).errors == ()
    for query, images in lists_of(own).items():
        assert sorted(made.rankings[query]) == images
        known = [image for image in common.rankings[query] if image in set(images)]
        assert made.rankings[query][: len(known)] == known
    assert made.subset_rankings == common.subset_rankings


def test_embeddings_rank_a_list_as_they_rank_the_gallery(drawn: tuple[Benchmark, Benchmark]) -> None:
    own, whole = drawn
    numbers = np.random.default_rng(0)
    queries = numbers.standard_normal((len(own), 8), dtype=np.float32)
    images = numbers.standard_normal((len(own.gallery or ()), 8), dtype=np.float32)
    ids = {"query_ids": own.query_ids, "image_ids": own.gallery}
    made, common = (
        rank_file_from_embeddings(each, queries, images, method="Drawn", k=1000, **ids)  # type: ignore[arg-type]
        for each in (own, whole)
    )
    for query, listed in lists_of(own).items():
        assert sorted(made.rankings[query]) == listed  # type: ignore[union-attr]
        known = [image for image in common.rankings[query] if image in set(listed)]  # type: ignore[union-attr]
        assert made.rankings[query][: len(known)] == known  # type: ignore[union-attr]
    assert made.subset_rankings == common.subset_rankings  # type: ignore[union-attr]


def test_no_dialogue_is_played_and_no_sessions_are_made_over_lists_that_differ() -> None:
    benchmark = world.loaded()
    # Neither the encoder nor the pictures that it has not are asked for before.
    with pytest.raises(MethodError, match="gallery of its own"):
        make_transcript(benchmark, "image_text_sum", "oracle", RoundSettings(), RunOptions())
    with pytest.raises(ConstructionError, match="gallery of its own"):
        queries_of(benchmark)
