"""What else an evaluator takes: scores, rankings, several vectors, an own similarity; the best step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world.user_scores import BENCHMARK, IMAGES, KEYS, SESSIONS, TURNS, best_first, small_suite
from says import refusal

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import SUBSET, AskedRanking
from submissions.errors import MethodError, WithheldError
from submissions.evaluator.ranking import Block, TurnPlaces, ranked

DRAWN = np.random.default_rng(3)
SCORES = DRAWN.integers(0, 9, (len(KEYS), len(IMAGES))).astype(np.float32)
SCORES[1, 5:40] = -np.inf
SCORES[2] = 4
SECOND = AskedRanking(SUBSET, removes_reference=True, on_board=True)
KEPT = small_suite()["fashioniq/dress_val"]


@pytest.mark.parametrize("kind", ["numpy", "float32", "bfloat16"])
def test_scores_are_ranked_as_a_rank_file_ranks_them(kind: str) -> None:
    torch = pytest.importorskip("torch")
    scores: Any = SCORES if kind == "numpy" else torch.from_numpy(SCORES.copy()).to(getattr(torch, kind))
    answer = submissions.rank_file_from_scores(
        BENCHMARK, SCORES, method="Evaluator", query_ids=KEYS, image_ids=IMAGES
    )
    evaluator = submissions.Evaluator(BENCHMARK)
    columns = np.arange(len(IMAGES))[::-1].copy()
    for rows in ([4, 0, 5], [1, 2, 3]):
        part = scores[rows][:, columns]
        evaluator.update(
            scores=part,
            query_ids=[KEYS[row] for row in rows],
            image_ids=[IMAGES[column] for column in columns],
        )
    values = evaluator.compute()
    assert evaluator.best().rankings.to_json() == answer.to_json()
    assert values == submissions.Evaluator(BENCHMARK)(scores=SCORES)
    given = SCORES.copy()
    submissions.Evaluator(BENCHMARK)(scores=given)
    np.testing.assert_array_equal(given, SCORES)


def test_scores_on_a_device_are_ranked_as_arrays_are() -> None:
    """A tensor takes this way on a device alone: elsewhere it becomes an array first."""
    torch = pytest.importorskip("torch")
    scores = np.random.default_rng(8).integers(0, 4, (3, 9)).astype(np.float32)
    few, turns = np.array([[4, 1, 7], [0, 2, -1], [8, 3, 5]]), np.arange(3)
    keys, excluded, none = ["a", "b", "c"], np.array([2, -1, 0]), np.full((3, 1), -1)
    for own in (None, few):
        places = TurnPlaces([f"im{n}" for n in range(9)], keys, excluded, none, own, few)
        lists = [
            [each.columns.tolist() for each in ranked([Block(given, np.zeros(3))], places, turns, 4) if each]
            for given in (scores, torch.from_numpy(scores))
        ]
        assert lists[0] == lists[1]
        assert len(lists[0]) == 2


def test_scores_of_sessions_and_of_references_that_are_masked() -> None:
    draws = np.random.default_rng(4)
    scores = draws.standard_normal((len(TURNS), len(SESSIONS.gallery or ())))
    answer = submissions.rank_file_from_scores(SESSIONS, scores, method="Evaluator", by_position=True)
    evaluator = submissions.Evaluator(SESSIONS)
    evaluator(scores=scores)
    assert evaluator.best().rankings.to_json() == answer.to_json()
    images = list(KEPT.gallery or ())
    for masked in (False, True):
        scores = draws.standard_normal((len(KEPT), len(images)))
        if masked:
            for row, reference in zip(scores, KEPT.column("reference_image_id"), strict=True):
                row[images.index(reference)] = -np.inf
        answer = submissions.rank_file_from_scores(KEPT, scores, method="Evaluator", by_position=True)
        evaluator = submissions.Evaluator(KEPT)
        evaluator(scores=scores)
        assert evaluator.best().rankings.to_json() == answer.to_json()


def test_rankings_are_taken_as_a_rank_file_takes_them() -> None:
    lists = {
        query: best_first(dict(zip(IMAGES, row, strict=True)), query)
        for query, row in zip(KEYS, SCORES, strict=True)
    }
    answer = submissions.rank_file_from_lists(BENCHMARK, lists, method="Evaluator")
    evaluator = submissions.Evaluator(BENCHMARK)
    evaluator(ranked_ids=[lists[query] for query in KEYS], query_ids=KEYS)
    assert evaluator.best().rankings.to_json() == answer.to_json()
    subsets = {row["query_id"]: SECOND.images(row)[::-1] for row in BENCHMARK.rows()}
    short = {
        query: [image for image in images if image != BENCHMARK.rows()[row]["reference_image_id"]][:50]
        for row, (query, images) in enumerate(lists.items())
    }
    answer = submissions.rank_file_from_lists(BENCHMARK, short, subsets, method="Evaluator")
    evaluator(ranked_ids=list(short.values()), query_ids=KEYS, subset_ids=list(subsets.values()))
    assert submissions.Evaluator(BENCHMARK)(
        ranked_ids=list(short.values()), subset_ids=list(subsets.values())
    ) == {
        f"{BENCHMARK.id}/{name}": value
        for name, value in submissions.score(answer, BENCHMARK).metrics.items()
    }


def test_lists_without_second_ones_have_the_metrics_of_the_first(tmp_path: Path) -> None:
    firsts = [[image for image in IMAGES if image not in SECOND.images(row)] for row in BENCHMARK.rows()]
    evaluator = submissions.Evaluator(BENCHMARK, metrics=["recall@10"])
    values = evaluator(ranked_ids=[images[:60] for images in firsts])
    assert values == {f"{BENCHMARK.id}/recall@10": 0}
    with pytest.raises(MethodError, match="subset_ids="):
        evaluator.write(tmp_path / "best.json", method="Ours", metric="recall@10")
    with pytest.raises(MethodError, match="add subset_ids"):
        submissions.Evaluator(BENCHMARK)(ranked_ids=[images[:60] for images in firsts])


def test_the_numbers_are_split_by_which_modality_solves_a_query() -> None:
    ours, text, image = (
        submissions.rank_file_from_scores(BENCHMARK, draws, method=name, by_position=True)
        for name, draws in zip(("Ours", "Text", "Image"), DRAWN.random((3, *SCORES.shape)), strict=True)
    )
    evaluator = submissions.Evaluator(BENCHMARK, metrics=["recall@10", "map@5"])
    with pytest.raises(MethodError, match="compute"):
        evaluator.beside(text, image)
    evaluator.update(ranked_ids=list(ours.rankings.values()), subset_ids=list(ours.subset_rankings.values()))
    evaluator.compute()
    split = evaluator.beside(text, image)
    report, *others = (submissions.score(one, BENCHMARK) for one in (ours, text, image))
    groups = submissions.beside(submissions.full_report(report), *others).groupings["beside:recall@10"].groups
    name = f"{BENCHMARK.id}/recall@10"
    assert {key.removeprefix(f"{name}/").partition("/")[0] for key in split} == {one.key for one in groups}
    for group in groups:
        assert split[f"{name}/{group.key}/share"] == group.values["share"]
        assert split[f"{name}/{group.key}/share_high"] == group.values["share high"]
        assert split.get(f"{name}/{group.key}") == group.values["recall@10"]


@pytest.mark.parametrize("holder", ["numpy", "torch"])
@pytest.mark.parametrize("over", ["max", "mean"])
def test_several_vectors_are_compared_pair_by_pair(over: Any, holder: str) -> None:
    draws = np.random.default_rng(6)
    queries, images = draws.standard_normal((len(KEYS), 2, 5)), draws.standard_normal((len(IMAGES), 3, 5))
    images[9] = images[4]
    near = (each / np.linalg.norm(each, axis=2, keepdims=True) for each in (queries, images))
    pairs = np.einsum("qad,ibd->qiab", *near)
    scores = pairs.max((2, 3)) if over == "max" else pairs.mean((2, 3))
    if holder == "torch":
        torch = pytest.importorskip("torch")
        queries, images = torch.from_numpy(queries), torch.from_numpy(images)
    evaluator = submissions.Evaluator(BENCHMARK, over_vectors=over, block_size=5)
    evaluator(queries=queries, images=images)
    found = evaluator.best().rankings
    for row, own in zip(BENCHMARK.rows(), scores.round(6), strict=True):
        key, of = row["query_id"], dict(zip(IMAGES, own.tolist(), strict=True))
        assert (
            found.subset_rankings[key]
            == best_first({image: of[image] for image in SECOND.images(row)}, key)[:3]
        )
        del of[row["reference_image_id"]]
        assert found.rankings[key] == best_first(of, key)[:50]


def test_a_similarity_of_ones_own_is_called_block_by_block() -> None:
    torch = pytest.importorskip("torch")
    shapes = []

    def distance(queries: Any, images: Any) -> Any:
        shapes.append((tuple(queries.shape), tuple(images.shape)))
        return -torch.cdist(queries, images).half()

    draws = torch.Generator().manual_seed(0)
    queries, images = torch.randn(len(KEYS), 4, generator=draws), torch.randn(len(IMAGES), 4, generator=draws)
    evaluator = submissions.Evaluator(BENCHMARK, similarity=distance, block_size=4)
    evaluator(queries=queries, images=images)
    assert shapes == [((4, 4), (60, 4)), ((2, 4), (60, 4))]
    scores = distance(queries, images)
    answer = submissions.rank_file_from_scores(BENCHMARK, scores, method="Evaluator", by_position=True)
    assert evaluator.best().rankings.to_json() == answer.to_json()


def test_the_best_step_is_kept_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = small_suite()
    monkeypatch.setattr(cir_datasets, "load", lambda benchmark_id, **_: own[benchmark_id])
    evaluator = submissions.Evaluator("fashioniq/val", metrics=["recall@10", "recall@1"])
    seen = []
    for step in range(10, 15):
        draws = np.random.default_rng(step)
        for name, benchmark in own.items():
            member = name.partition("/")[2]
            evaluator.update(
                queries=draws.standard_normal((4, 3)), query_ids=benchmark.query_ids, member=member
            )
            evaluator.update(
                images=draws.standard_normal((80, 3)), image_ids=benchmark.gallery, member=member
            )
        seen.append(evaluator.compute(step=step))
        evaluator.reset()
    assert set(seen[0]) == {
        f"fashioniq/val/{member}{name}"
        for member in ("", "dress/", "shirt/", "toptee/")
        for name in ("recall@10", "recall@1")
    } | {f"fashioniq/val/{name}" for name in ("main", "recall@10@micro", "recall@1@micro")}
    for metric in ("recall@10", "dress/recall@1", "fashioniq/val/main"):
        best = evaluator.best(metric)
        values = [each[best.metric] for each in seen]
        assert best.value == max(values)
        assert best.step == 10 + values.index(best.value)
    file = evaluator.write(
        tmp_path / "best.json", method={"name": "Mine", "notes": "Ours."}, metric="recall@10"
    )
    report = submissions.score(file, own)
    assert report.metrics["recall@10"] == evaluator.best("recall@10").value
    assert report.runs[0].signature.reference_declared == "kept"
    for run in json.loads(file.read_text())["runs"]:
        assert run["method"]["notes"].startswith("Ours. ")
        assert run["method"]["notes"].count("papers report") == 1


def test_of_a_batch_that_is_refused_nothing_stays() -> None:
    drawn = {"queries": DRAWN.random((len(KEYS), 4)), "images": DRAWN.random((len(IMAGES), 4))}
    evaluator = submissions.Evaluator(BENCHMARK)
    evaluator.update(queries=drawn["queries"][:2])
    for wrong in (
        {"images": drawn["images"][None, None]},
        {"images": drawn["images"], "image_ids": IMAGES[:1]},
    ):
        with pytest.raises(MethodError):
            evaluator.update(queries=drawn["queries"][2:], **wrong)
    evaluator.update(queries=drawn["queries"][2:], images=drawn["images"])
    assert evaluator.compute() == submissions.Evaluator(BENCHMARK)(**drawn)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"scores": SCORES[:, :-1]}, "scores: shape (6, 59); there are 60 images"),
        ({"scores": np.full_like(SCORES, np.nan)}, "scores holds NaN"),
        ({"scores": SCORES, "query_ids": ["x", *KEYS[1:]]}, "query_ids[0] is 'x'"),
        ({"scores": SCORES, "queries": SCORES}, "update takes"),
        ({"queries": SCORES, "query_ids": KEYS[1:]}, "query_ids: 5 ids for 6 rows"),
        ({"queries": SCORES[0]}, "queries: shape (60,)"),
        ({"queries": "vectors.npy"}, "queries: of type str"),
        ({"queries": SCORES + 1}, "images: nothing was given"),
        ({"queries": np.ones((6, 3)), "images": np.ones((60, 4))}, "3 dimensions, images 4"),
        ({"queries": np.zeros((6, 3)), "images": np.ones((60, 3))}, "queries[0] is all zeros"),
        ({"ranked_ids": [IMAGES], "query_ids": KEYS[:1]}, "ranked_ids: 5 of 6"),
        ({"scores": SCORES, "member": "dress"}, "member='dress'"),
        ({"ranked_ids": {KEYS[0]: IMAGES}}, "ranked_ids: of type dict"),
        ({"queries": np.ones((1, 3)), "query_ids": ["x"]}, "query_ids[0] is 'x'"),
        ({"images": np.ones((1, 3)), "image_ids": ["x"]}, "image_ids[0] is 'x'"),
        ({"query_ids": KEYS}, "update takes ... Fix: give one of them"),
        ({"queries": np.ones((6, 3), int), "images": np.ones((60, 3))}, "queries: type int64"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], text: str) -> None:
    with refusal(text, MethodError):
        submissions.Evaluator(BENCHMARK)(**change)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_buffer_that_is_used_again_is_refused(kind: str) -> None:
    buffer: Any = np.ones((1, 3), np.float32)
    if kind == "torch":
        buffer = pytest.importorskip("torch").from_numpy(buffer)
    evaluator = submissions.Evaluator(BENCHMARK)
    evaluator.update(queries=buffer, query_ids=KEYS[:1])
    evaluator.update(queries=buffer, query_ids=KEYS[:1])  # A padded row is the same row.
    with refusal("queries: lies where an earlier batch lies ... copy", MethodError):
        evaluator.update(queries=buffer, query_ids=KEYS[1:2])
    unnamed = submissions.Evaluator(BENCHMARK)
    unnamed.update(queries=buffer)
    with refusal("queries: lies where an earlier batch lies ... copy", MethodError):
        unnamed.update(queries=buffer)
    for place in range(1, len(KEYS)):
        evaluator.update(queries=np.ones((1, 3)), query_ids=KEYS[place : place + 1])
    evaluator.update(images=np.ones((len(IMAGES), 3), np.float32))
    assert evaluator.compute()


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (
            {"similarity": lambda asked, images: np.ones((len(asked) - 1, len(images)))},
            "similarity: 5 rows ... 6 queries",
        ),
        ({"similarity": lambda asked, images: np.ones((9, len(images)))}, "similarity: 9 rows ... 6 queries"),
        ({"similarity": "dot"}, "products are too large"),
        ({"block_size": -1}, "block_size=-1"),
        ({"block_size": 1.5}, "block_size=1.5"),
        ({"metrics": []}, "metrics=[]"),
    ],
)
def test_options_that_do_not_fit_are_refused(option: dict[str, Any], text: str) -> None:
    with refusal(text, MethodError):
        submissions.Evaluator(BENCHMARK, **option)(
            queries=np.full((6, 3), 1e30, np.float32), images=np.full((60, 3), 1e30, np.float32)
        )


@pytest.mark.real_data
def test_a_withheld_split_is_refused_before_the_loop(data_home: Path) -> None:
    with refusal("withheld ... rank_file_from_embeddings", WithheldError):
        submissions.Evaluator("cirr/test1", data_dir=data_home)


def test_a_fix_names_what_works(tmp_path: Path) -> None:
    evaluator = submissions.Evaluator(BENCHMARK, metrics=["recall@2"])
    evaluator(scores=SCORES)
    with refusal("pass metric= ... recall@2", MethodError):
        evaluator.write(tmp_path / "best.json", method="Mine")
    with refusal("the method's zeroshot ... is refused ... zero_shot", MethodError):
        evaluator.write(tmp_path / "best.json", method={"name": "Mine", "zeroshot": True}, metric="recall@2")
    torch = pytest.importorskip("torch")
    with refusal("Fix: convert it, .float()", MethodError):
        submissions.Evaluator(BENCHMARK)(queries=torch.ones(6, 3).int(), images=torch.ones(60, 3))
