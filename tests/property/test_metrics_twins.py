"""Every metric equals a slow reading of its formula, by every way in: see `metrics_twins`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_rows import GALLERY, KS, evaluated, measured, queries, random_rows, results_of, rows_of
from metrics_twins import TWINS, average_precision, best_rank, hit

from cir_metrics import evaluate_multi_turn, measures
from cir_metrics import evaluation as coding
from cir_metrics.catalogue import METRICS

COMPUTATIONS = [(name, variant) for name, entry in METRICS.items() for variant in entry.variants]


def close(actual: dict[str, float], expected: dict[str, Any]) -> None:
    assert list(actual) == list(expected)
    assert actual == pytest.approx({name: float(value) for name, value in expected.items()}, abs=1e-12, rel=0)


def test_every_metric_has_a_twin() -> None:
    assert set(TWINS) == set(METRICS)


@pytest.mark.parametrize(("name", "variant"), COMPUTATIONS)
@given(data=st.data())
def test_evaluation_equals_the_twin(name: str, variant: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(name))
    close(evaluated(name, rows, KS, variant), TWINS[name](rows, KS, variant))


@pytest.mark.parametrize(("name", "variant"), COMPUTATIONS)
@given(data=st.data())
def test_plain_functions_equal_the_twin(name: str, variant: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(name))
    close(measured(name, rows, KS, variant), TWINS[name](rows, KS, variant))


@pytest.mark.parametrize(("name", "variant"), COMPUTATIONS)
def test_all_ways_in_agree_on_a_thousand_rows(name: str, variant: str, tmp_path: Path) -> None:
    import evaluate

    rows = random_rows(name, 1000, seed=6)
    expected = TWINS[name](rows, KS, variant)
    close(evaluated(name, rows, KS, variant), expected)
    close(measured(name, rows, KS, variant), expected)
    module = evaluate.load(name, keep_in_memory=True, cache_dir=str(tmp_path))
    keywords = {"ks": KS, "variant": variant} if name == "pnr_map" else {"ks": KS}
    if name == "mean_rank":
        keywords = {}
    references = [{field: row["reference"][field] for field in METRICS[name].fields} for row in rows]
    values = module.compute(
        predictions=[row["prediction"] for row in rows], references=references, **keywords
    )
    close(values, expected)


@given(sessions=rows_of("hits_at_k"))
def test_mean_rank_of_sessions_is_that_of_their_last_turns(sessions: Any) -> None:
    turns = [row["prediction"] for row in sessions]
    references = [row["reference"] for row in sessions]
    values = evaluate_multi_turn(["mean_rank"], turns, references).values
    close(values, TWINS["mean_rank"](sessions, (), "equation"))
    last = [{"prediction": row["prediction"][-1], "reference": row["reference"]} for row in sessions]
    assert evaluated("mean_rank", last, ()) == values


@given(st.lists(queries(), min_size=1, max_size=8), st.sampled_from(KS))
def test_values_a_query_are_the_twins_terms(rows: Any, k: int) -> None:
    ap = [average_precision(row["prediction"], row["reference"]["positives"], k) for row in rows]
    assert results_of("map_at_k", rows, (k,)).per_query[f"map@{k}"] == pytest.approx(
        [float(each) for each in ap], abs=1e-12
    )
    hits = [hit(best_rank(row["prediction"], [row["reference"]["target"]]), k) for row in rows]
    assert results_of("recall_at_k", rows, (k,)).per_query[f"recall@{k}"].tolist() == [
        float(each) for each in hits
    ]


@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=6), min_size=1, max_size=8))
def test_plain_functions_of_sessions_read_nothing_behind_the_last_turn(table: list[list[int]]) -> None:
    num_turns = np.array([len(ranks) for ranks in table])
    padded = [np.full((len(table), 7), fill, dtype=np.int64) for fill in (0, 1)]
    for array in padded:
        for row, ranks in zip(array, table, strict=True):
            row[: len(ranks)] = ranks
    for k in KS:
        of_sessions = (measures.final_recall, measures.final_mrr, measures.hits_auc, measures.turn_recall)
        for measure in (measures.hits_at_k, *of_sessions):
            one, two = (np.asarray(measure(array, num_turns, k)) for array in padded)
            assert one.tolist() == two.tolist()


@given(st.lists(queries(), min_size=1, max_size=8))
def test_marking_all_queries_at_once_equals_looking_up_each(rows: Any) -> None:
    depth = max(len(row["prediction"]) for row in rows)
    numbers = {image: number for number, image in enumerate(GALLERY)}
    codes = np.full((len(rows), depth), -1, dtype=np.int32)
    for line, row in zip(codes, rows, strict=True):
        line[: len(row["prediction"])] = [numbers[image] for image in row["prediction"]]
    groups, expected = [], []
    for field in ("positives", "negatives"):
        members = [row["reference"][field] for row in rows]
        offsets = np.cumsum([0, *map(len, members)])
        groups.append((offsets, np.array([numbers[x] for each in members for x in each], dtype=np.int32)))
        expected += coding.mark_ids([row["prediction"] for row in rows], [members], depth)
    for mask, wanted in zip(coding.mark(codes, groups, len(GALLERY)), expected, strict=True):
        assert (mask == wanted).all()
