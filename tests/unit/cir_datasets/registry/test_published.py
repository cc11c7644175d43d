"""Published results: their averages agree with their numbers, and what they name exists."""

from __future__ import annotations

import pytest

from cir_datasets.registry import benchmark_ids
from cir_datasets.registry.published import Reported, published
from cir_datasets.registry.schema import main_metric_terms
from cir_datasets.registry.suites import suite, suite_ids

ROWS = published()
ROUNDED = 0.0101
"""How far a printed mean may be from the mean of printed numbers, in points."""
PRINTED_SO = {
    ("Image-only", "cirr", "Table 4", "recall@50"),
    ("Image-only", "cirr", "Table 4", "mean(recall@10, recall@50)"),
    ("VAL (init. GloVe)", "cirr", "Table 4", "mean(recall@10, recall@50)"),
    ("MAAF", "cirr", "Table 4", "recall@10"),
    ("MAAF", "cirr", "Table 4", "mean(recall@10, recall@50)"),
    ("CASE", "zerosight", "Table 11", "recall@10"),
    ("CASE", "zerosight", "Table 11", "recall@50"),
}
"""Means that their source prints further off: of more or fewer digits, or of other numbers."""


def test_every_number_is_of_a_benchmark_or_suite_or_set_apart() -> None:
    known = {*benchmark_ids(), *suite_ids()}
    assert {name for row in ROWS for name, _ in row.values} - known == {"mmeb/cirr", "mmeb/fashioniq"}


def test_every_row_has_a_short_source_of_its_table_and_an_id_of_its_own() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)
    by_key = {row.key: (row.paper.cite, row.table.name) for row in ROWS}
    assert len(by_key) == len({(row.paper.cite, row.table.name) for row in ROWS})
    assert by_key["QuRe 2025, T2/3/5"] == ("QuRe, arXiv 2507.12416", "Tables 2, 3 and 5")


def means(row: Reported) -> list[tuple[str, float, float]]:
    """Printed means beside those of the printed numbers, where all of these are printed."""
    found = []
    for (name, metric), text in row.values.items():
        terms = [(name, term) for term in main_metric_terms(metric)]
        if len(terms) == 1 and name in suite_ids():
            terms = [(member, metric) for member in suite(name).benchmarks]
        if len(terms) > 1 and all(term in row.values for term in terms):
            found.append((metric, float(text), sum(float(row.values[term]) for term in terms) / len(terms)))
    return found


def test_printed_means_are_those_of_the_printed_numbers() -> None:
    checked = [
        ((row.method, row.source, row.table.name, mean), a, b) for row in ROWS for mean, a, b in means(row)
    ]
    assert len(checked) > 100
    assert {key for key, printed, mean in checked if abs(printed - mean) > ROUNDED} == PRINTED_SO


def test_a_row_that_is_another_spelling_names_a_method_that_stands_nowhere_else_so() -> None:
    given = {
        row.method: row.names[-1] for row in published() if len(row.names) > 1 and " (" not in row.method
    }
    assert len(given) == 14
    assert set(given) & set(given.values()) == set()


@pytest.mark.parametrize("method", ["TransAgg(Laion-CIR-Combined)", "CoVR"])
def test_rows_whose_copy_is_damaged_are_left_out(method: str) -> None:
    assert not [
        row for row in ROWS if (row.source, row.table.name, row.method) == ("zerosight", "Table 11", method)
    ]
