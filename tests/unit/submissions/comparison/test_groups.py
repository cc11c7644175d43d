"""Rank groups: a slow twin, ties, cases worked by hand, known strengths, the null case."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cir_metrics.errors import InputError
from cir_metrics.significance import paired_differences, randomisation_test
from cir_metrics.sums import FloatArray, exact_mean
from submissions.comparison.groups import Groups, leader_groups

ROOT = Path(__file__).resolve().parents[4]


def best_first(values: list[FloatArray]) -> list[FloatArray]:
    return sorted(values, key=lambda each: -exact_mean(each))


def random_board(seed: int, methods: int, queries: int, levels: int = 2) -> list[FloatArray]:
    """Methods of random strength, best first; values are multiples of 1 / (levels - 1), so that means tie."""
    random = np.random.default_rng(seed)
    ease, strengths = random.random(queries), random.uniform(-0.5, 0.5, methods)
    chances = np.clip(ease[None, :] + strengths[:, None], 0, 1)
    return best_first(list(random.binomial(levels - 1, chances) / (levels - 1)))


def hits(*places: range, queries: int = 40) -> FloatArray:
    values = np.zeros(queries)
    for each in places:
        values[list(each)] = 1
    return values


def p_value(one: FloatArray, other: FloatArray, draws: int) -> float:
    return randomisation_test(paired_differences(one, other), draws=draws)[0].p


def against(found: Groups) -> list[int | None]:
    return [None if test is None else test.against for test in found.decided]


def adjusted_p(found: Groups) -> list[float | None]:
    return [None if test is None else test.adjusted for test in found.decided]


def slow_groups(values: list[FloatArray], draws: int, alpha: float = 0.05) -> tuple[list[int], bool]:
    """The definition word for word, in lists: steps of equal means, walks, Holm step by step."""
    steps: list[list[int]] = []
    for place, each in enumerate(values):
        tied = steps and abs(exact_mean(each) - exact_mean(values[steps[-1][-1]])) <= 2e-12
        steps = [*steps[:-1], [*steps[-1], place]] if tied else [*steps, [place]]
    m = len(values) - 1

    def walk(factor: int) -> tuple[list[int], list[float], set[int]]:
        groups, p_values, begins, leading = [1] * len(steps[0]), [1.0] * (len(steps[0]) - 1), set(), steps[0]
        for step in steps[1:]:
            p = max(p_value(values[one], values[other], draws) for one in leading for other in step)
            apart = factor * p <= alpha
            if apart:
                leading, begins = step, begins | set(step)
            groups += [groups[-1] + apart] * len(step)
            p_values += [p] * len(step)
        return groups, p_values, begins

    def holm(p_values: list[float]) -> set[int]:
        rejected: set[int] = set()
        for number, place in enumerate(sorted(range(m), key=p_values.__getitem__)):
            if (m - number) * p_values[place] > alpha:
                break
            rejected.add(place + 1)
        return rejected

    factor, kept = m, [1] * len(values)
    while m:
        groups, p_values, begins = walk(factor)
        rejected = holm(p_values)
        if rejected < begins:
            return kept, False
        if rejected == begins:
            return groups, True
        factor, kept = m - len(rejected) + 1, groups
    return kept, True


@given(
    seed=st.integers(0, 10_000),
    methods=st.integers(1, 12),
    queries=st.sampled_from([5, 40, 150]),
    levels=st.sampled_from([2, 3, 31]),
)
def test_groups_are_their_slow_twin(seed: int, methods: int, queries: int, levels: int) -> None:
    values = random_board(seed, methods, queries, levels)
    found = leader_groups(values, draws=400)
    assert (list(found.group), found.settled) == slow_groups(values, draws=400)


def test_both_ends_of_the_search_occur_among_the_boards_of_the_twin() -> None:
    ends = {slow_groups(random_board(seed, 12, 150), draws=400)[1] for seed in range(60)}
    assert ends == {True, False}


def test_what_a_first_walk_leaves_holm_may_still_separate() -> None:
    # 6 queries to 0: p = 2 / 2^6 = 0.031, more than 0.05 / 2. 13 to 0: less. 7 to 0: p = 0.016.
    values = [hits(range(20)), hits(range(14)), hits(range(7))]
    found = leader_groups(values)
    assert [test and test.p for test in found.decided] == [None, 2 / 2**6, 2 / 2**7]
    assert adjusted_p(found) == [None, 2 / 2**6, 4 / 2**7]
    assert (found.group, against(found), found.settled) == ((1, 2, 3), [None, 0, 1], True)


def test_where_no_groups_agree_with_holm_the_stricter_walk_stands() -> None:
    # Against the first, 6 to 0 and 7 to 0: Holm rejects both. But then the third is tested against the second
    # (1 to 0, p = 1), and of 0.031 and 1 Holm rejects none.
    values = [hits(range(7)), hits(range(1)), hits()]
    found = leader_groups(values)
    assert (found.group, found.settled) == ((1, 1, 2), False)
    assert adjusted_p(found) == [None, 4 / 2**7, 4 / 2**7]


def test_methods_of_one_mean_stand_or_fall_together() -> None:
    # The third beats nobody and loses on 8; the second, of the same mean, wins 7 and loses 15: p = 0.13.
    first, second, third = hits(range(28)), hits(range(13), range(28, 35)), hits(range(20))
    assert exact_mean(second) == exact_mean(third)
    alone = [leader_groups([first, one]).group for one in (second, third)]
    assert alone == [(1, 1), (1, 2)]
    for order in ([second, third], [third, second]):
        assert leader_groups([first, *order]).group == (1, 1, 1)


def test_lower_values_may_be_the_better_ones() -> None:
    values = random_board(4, 20, 200)
    down, up = leader_groups(values), leader_groups([1 - each for each in values], higher=False)
    assert max(down.group) > 2
    assert up.group == down.group
    assert leader_groups(values, higher=False).group[-1] == 1


def strengths(methods: int, queries: int) -> list[FloatArray]:
    """Methods of distinct strength, in equal steps; a value is the mean of two hits."""
    random = np.random.default_rng(7)
    ease = random.random(queries)
    return best_first(
        [
            np.mean([random.random(queries) < ease + strength for _ in range(2)], axis=0)
            for strength in np.linspace(0.3, -0.3, methods)
        ]
    )


def test_300_methods_of_distinct_strength_end_in_many_groups() -> None:
    found = leader_groups(strengths(300, 1_000))
    assert (max(found.group), found.settled) == (11, True)
    assert found.draws == 10_000


def chance_of_a_split(methods: int) -> float:
    """Of a board of equal methods: the range of n normal variables, against Holm's first step."""
    z = stats.norm.isf(0.05 / (methods - 1) / 2)
    return float(stats.studentized_range.sf(np.sqrt(2) * z, methods, np.inf))


def test_the_docs_say_how_often_boards_of_equal_methods_split() -> None:
    text = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
    counts, shares = re.findall(r"^\| (?:equal methods|boards with a split) \|(.+)\|$", text, re.MULTILINE)
    said = dict(zip(re.findall(r"\d+", counts), re.findall(r"\d+ %", shares), strict=True))
    assert said == {count: f"{chance_of_a_split(int(count)):.0%}".replace("%", " %") for count in said}
    assert {"2", "3", "5", "60"} <= said.keys()


@pytest.mark.parametrize("methods", [2, 3, 5])
@pytest.mark.parametrize("levels", [2, 1001])
def test_boards_of_equal_methods_split_as_rarely_as_the_docs_say(methods: int, levels: int) -> None:
    limit, number = chance_of_a_split(methods), 1_000
    split = 0
    for seed in range(number):
        random = np.random.default_rng([seed, methods, levels])
        chances = np.tile(random.random(60), (methods, 1))
        values = best_first(list(random.binomial(levels - 1, chances) / (levels - 1)))
        split += leader_groups(values, draws=500, seed=seed).group[-1] > 1
    error = np.sqrt(limit * (1 - limit) / number)
    assert split / number <= limit + 3 * error
    # Boards do split: two methods of a graded metric as often as alpha says.
    assert split / number >= (limit - 3 * error if (methods, levels) == (2, 1001) else 0.01)


def test_what_is_known_changes_nothing_and_is_not_tested_again() -> None:
    values = random_board(5, 25, 120, levels=4)
    before = leader_groups(values[:10] + values[11:], draws=1000, key="cirr/val")
    anew = leader_groups(values, draws=1000, key="cirr/val")
    assert leader_groups(values, draws=1000, key="cirr/val", known=before.tests) == anew
    assert leader_groups(values, draws=1000, key="cirr/val", known=anew.tests) == anew
    # What no test would give shows that none was made.
    best, worst = values[0], values[-1]
    (name,) = leader_groups([best, worst]).tests
    assert leader_groups([best, worst]).group == (1, 2)
    assert leader_groups([best, worst], known={name: 1.0}).group == (1, 1)


@pytest.mark.parametrize("other", [{"draws": 2000}, {"seed": 1}, {"key": "circo/val"}])
def test_tests_of_other_draws_are_not_known(other: dict[str, Any]) -> None:
    values = random_board(5, 12, 120, levels=4)
    said = dict.fromkeys(leader_groups(values, draws=1000).tests, 1.0)
    options = {"draws": 1000, **other}
    assert leader_groups(values, **options, known=said) == leader_groups(values, **options)
    assert max(leader_groups(values, **options).group) > 1


def test_draws_are_enough_for_holms_first_step() -> None:
    few = [np.zeros(1)] * 501
    assert [leader_groups(few[:n]).draws for n in (1, 2, 500, 501)] == [10_000] * 4
    assert leader_groups([*few, few[0]]).draws == 20_000
    assert [leader_groups(few[:n], draws=150).draws for n in (8, 9)] == [150, 300]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leader_groups([np.array([np.nan])]), r"values\[0, 0\] is nan"),
        (lambda: leader_groups([np.ones(2)], alpha=1), r"alpha=1; a level of significance"),
        (lambda: leader_groups([np.ones(2)], draws=0), r"draws=0; draws are counted"),
    ],
)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
