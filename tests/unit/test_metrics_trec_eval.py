"""trec_eval agrees where it defines the same thing, and differs where the cards say it does."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from cir_metrics.evaluation import evaluate_single_turn

DEPTH, GALLERY, QUERIES = 30, 40, 200


def runs(seed: int, n_positives: int) -> tuple[list[list[str]], list[dict[str, object]]]:
    random = np.random.default_rng(seed)
    ids = [f"image_{number:02d}" for number in range(GALLERY)]
    rankings = [[ids[each] for each in random.permutation(GALLERY)[:DEPTH]] for _ in range(QUERIES)]
    references = []
    for _ in range(QUERIES):
        positives = [ids[each] for each in random.permutation(GALLERY)[: random.integers(1, n_positives + 1)]]
        references.append({"target": positives[0], "positives": positives})
    return rankings, references


def trec(rankings: list[list[str]], relevant: list[list[str]], measures: set[str]) -> dict[str, float]:
    qrel = {str(query): dict.fromkeys(ids, 1) for query, ids in enumerate(relevant)}
    run = {
        str(query): {image: float(DEPTH - place) for place, image in enumerate(ranking)}
        for query, ranking in enumerate(rankings)
    }
    values = pytrec_eval.RelevanceEvaluator(qrel, measures).evaluate(run)
    return {
        name: float(np.mean([each[name] for each in values.values()])) for name in next(iter(values.values()))
    }


def test_recall_is_success() -> None:
    rankings, references = runs(seed=1, n_positives=1)
    ours = evaluate_single_turn(["recall@1", "recall@5", "recall@10"], rankings, references).values
    theirs = trec(rankings, [[str(each["target"])] for each in references], {"success.1,5,10"})
    for k in (1, 5, 10):
        assert ours[f"recall@{k}"] == pytest.approx(theirs[f"success_{k}"], abs=1e-12)


def test_map_agrees_where_k_reaches_the_number_of_positives() -> None:
    rankings, references = runs(seed=2, n_positives=6)
    ours = evaluate_single_turn(["map@10", "map@30", "map@3"], rankings, references).values
    positives = [list(map(str, each["positives"])) for each in references]  # type: ignore[call-overload]
    theirs = trec(rankings, positives, {"map_cut.3,10,30"})
    for k in (10, 30):
        assert ours[f"map@{k}"] == pytest.approx(theirs[f"map_cut_{k}"], abs=1e-12)
    # With more positives than K trec_eval divides by all of them.
    assert ours["map@3"] > theirs["map_cut_3"] + 1e-3
