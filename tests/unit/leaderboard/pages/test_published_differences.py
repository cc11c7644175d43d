"""Methods of several published numbers: all are found, none by rounding, and what explains them is true."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cir_datasets.common.yaml import package_yaml
from cir_datasets.registry.published import Number, published
from leaderboard.pages.published_differences import UNEXPLAINED, MethodDifferences, differences

FASHIONIQ_MEAN = ("fashioniq/val", "mean(recall@10, recall@50)")
CIRR_MEAN = ("cirr/test1", "mean(recall@5, recall_subset@1)")


def difference(method: str, benchmark: str) -> MethodDifferences:
    return next(one for one in differences() if (one.method, one.benchmark) == (method, benchmark))


@pytest.mark.parametrize(
    ("method", "of", "said"),
    [
        ("SPRC", FASHIONIQ_MEAN, [("opencodepapers", "64.85"), ("qure", "62.135")]),
        ("BLIP4CIR+Bi", CIRR_MEAN, [("opencodepapers", "72.59"), ("qure", "63.95")]),
        ("VAL", FASHIONIQ_MEAN, [("cirr", "35.40"), ("opencodepapers", "35.38")]),
        ("TIRG", FASHIONIQ_MEAN, [("cirr", "27.40"), ("cirr", "16.95")]),
    ],
    ids=["SPRC", "BLIP4CIR+Bi", "VAL", "TIRG"],
)
def test_both_numbers_stand_side_by_side(
    method: str, of: tuple[str, str], said: list[tuple[str, str]]
) -> None:
    benchmark, metric = of
    found = difference(method, benchmark)
    assert [(row.source, number.text) for row, number in found.numbers[metric]] == said
    assert found.why != UNEXPLAINED


def test_a_mean_that_is_not_printed_is_marked_so() -> None:
    benchmark, metric = FASHIONIQ_MEAN
    found = difference("SPRC", benchmark).numbers[metric]
    assert [number.is_derived for _, number in found] == [False, True]


@pytest.mark.parametrize("method", ["CIReVL", "SEIZE", "LinCIR", "Pic2Word", "SEARLE", "CIRPLANT", "QuRe"])
def test_versions_that_tables_tell_apart_are_not_differences(method: str) -> None:
    """They have rows of several numbers, by backbone or by version, and sources that agree on each."""
    assert len([row for row in published() if row.names[-1] == method]) > 1
    assert method not in {one.method for one in differences()}


def test_only_numbers_that_differ_are_listed() -> None:
    for one in differences():
        assert all(largest > Decimal() for largest in one.largest)
        assert all(len(numbers) > 1 for numbers in one.numbers.values())
    assert len(differences()) == len({(one.method, one.benchmark) for one in differences()}) == 17


def test_what_explains_is_about_a_difference_that_is_there() -> None:
    explained = {
        (one["method"].casefold(), benchmark)
        for one in package_yaml("leaderboard", "pages/published_explanations.yaml")
        for benchmark in one["benchmarks"]
    }
    assert explained <= {(one.method.casefold(), one.benchmark) for one in differences()}


def test_hugs_numbers_of_case_are_the_means_of_zerosights_categories() -> None:
    case = {row.source: row.numbers for row in published() if row.method == "CASE"}
    for metric in ("recall@10", "recall@50"):
        members = [
            case["zerosight"][f"fashioniq/{name}_val", metric].value for name in ("dress", "shirt", "toptee")
        ]
        assert round(sum(members) / 3, 2) == case["hug"]["fashioniq/val", metric].value
        assert case["zerosight"]["fashioniq/val", metric].value != case["hug"]["fashioniq/val", metric].value


def test_a_mean_and_a_printed_number_of_one_digit_may_be_one_number() -> None:
    derived = Number(Decimal("62.135"), "62.135", True)
    assert Number(Decimal("62.1"), "62.1", False).may_be(derived)
    assert derived.may_be(Number(Decimal("62.13"), "62.13", False))
    assert not Number(Decimal("62.3"), "62.3", False).may_be(derived)
    assert not Number(Decimal("62.15"), "62.15", False).may_be(derived)
