"""Suites: which there are, and macro and micro means against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from cir_datasets import registry
from cir_datasets.registry.suites import Suite, suite, suite_ids


def declared(**changes: Any) -> Suite:
    return Suite.model_validate({**suite("fashioniq/val").model_dump(), **changes})


def test_macro_and_micro_part_where_members_differ_in_size() -> None:
    # dress 2 of 10, shirt 9 of 30, toptee 48 of 60: macro (0.2 + 0.3 + 0.8) / 3, micro 59 of 100.
    values = [dict.fromkeys(suite("fashioniq/val").metrics, value) for value in (0.2, 0.3, 0.8)]
    found = suite("fashioniq/val").reduce(values, [10, 30, 60])
    assert list(found) == [
        *("recall@1", "recall@5", "recall@10", "recall@50"),
        *("recall@1@micro", "recall@5@micro", "recall@10@micro", "recall@50@micro"),
    ]
    assert found["recall@10"] == pytest.approx(1.3 / 3)
    assert found["recall@10@micro"] == pytest.approx(0.59)


def test_macro_alone_is_what_a_suite_without_micro_gives() -> None:
    values = [{"recall@1": 0.5, "recall@10": 1.0}] * 3
    small = declared(averages=["macro"], metrics=["recall@1", "recall@10"], main_metric="recall@10")
    assert small.reduce(values, [1, 1, 1]) == {"recall@1": 0.5, "recall@10": 1.0}


def test_what_a_member_lacks_has_no_mean() -> None:
    values = [{"recall@1": 0.5, "mean_rank": 4.0}, {"recall@1": 0.5, "mean_rank": None}, {"recall@1": 0.5}]
    assert suite("fashioniq/val").reduce(values, [1, 1, 1]) == {"recall@1": 0.5, "recall@1@micro": 0.5}


@pytest.mark.parametrize(
    ("answered", "misfits"),
    [
        (["dress_val", "shirt_val", "toptee_val"], []),
        (["toptee_val", "dress_val"], [("missing", "fashioniq/shirt_val", 0)]),
        (
            ["dress_val", "dress_val", "other"],
            [("twice", "fashioniq/dress_val", 2), ("alien", "fashioniq/other", 0)],
        ),
        (["dress_val", None], [("nameless", None, 1)]),
    ],
    ids=["whole", "one missing", "one twice and a stranger", "one without a name"],
)
def test_what_does_not_fit_is_named(
    answered: list[str | None], misfits: list[tuple[str, str | None, int]]
) -> None:
    ids = [None if config is None else f"fashioniq/{config}" for config in answered]
    found = [(each.cause, each.name, each.number) for each in suite("fashioniq/val").fit(ids)]
    assert found == misfits


def test_suites_list_the_members_that_their_papers_average() -> None:
    nine = [found for found in registry.benchmark_ids() if found.startswith("circled/")]
    assert list(suite("circled").benchmarks) == nine
    assert len(nine) == 9
    assert list(suite("circled/val").benchmarks) == [found for found in nine if found.endswith("_val")]
    assert list(suite("circled/train").benchmarks) == [found for found in nine if found.endswith("_train")]
    fashioniq = suite("fashioniq/val")
    assert fashioniq.averages == ("macro", "micro")
    assert fashioniq.main_metric == "mean(recall@10, recall@50)"
    assert [f"fisd/{aspect}" for aspect in registry.card("fisd").configs] == list(suite("fisd").benchmarks)


@pytest.mark.parametrize("suite_id", suite_ids())
def test_every_member_computes_the_suites_metrics(suite_id: str) -> None:
    found = suite(suite_id)
    for member in found.benchmarks:
        assert set(found.metrics) <= set(registry.spec(member).metrics)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"averages": ["micro"]}, r"averages are \[macro\] or \[macro, micro\]"),
        ({"averages": []}, "averages are"),
        ({"metrics": ["hits_auc@10"], "main_metric": "hits_auc@10"}, "not a mean over queries"),
        ({"benchmarks": []}, "at least 1 item"),
        ({"main_metric": "recall@7"}, "main_metric uses 'recall@7'"),
    ],
)
def test_a_wrong_declaration_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        declared(**changes)
