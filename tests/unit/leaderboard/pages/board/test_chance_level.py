"""The chance level of dialogues, beside dialogues that are played at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from metrics_twins import average_precision

from leaderboard.pages.board.chance_level import dialogue_values
from submissions.report.grouping import Chance
from submissions.transcripts.settings import RoundSettings

IMAGES, ROUNDS, PLAYED = 30, 4, 4_000
POSITIVES = (1, 3, 7)


def random_ranker() -> Chance:
    positives = np.array(POSITIVES)
    none = np.zeros_like(positives)
    return Chance(IMAGES, IMAGES, positives, none, none, None)


@pytest.mark.parametrize("after", ["stop", "continue"])
@pytest.mark.parametrize("metric", ["hits@5@turn4", "hits@5@turn2", "map@5@turn4"])
def test_it_is_what_dialogues_at_random_score(metric: str, after: str) -> None:
    name, _, turn = metric.partition("@turn")
    random = np.random.default_rng(7)
    expected = dialogue_values(
        random_ranker(), metric, RoundSettings(max_rounds=ROUNDS, k=5, after_success=after)
    )
    for number, positives in enumerate(POSITIVES):
        scores = []
        for _ in range(PLAYED):
            hit, value = False, 0.0
            for _ in range(int(turn)):
                order = random.permutation(IMAGES)
                value = float(average_precision(order.tolist(), range(positives), 5))
                hit |= bool((order[:5] < positives).any())
                if hit and after == "stop":
                    break
            scores.append(float(hit) if name == "hits@5" else value)
        error = np.std(scores) / PLAYED**0.5
        assert abs(np.mean(scores) - expected[number]) < 4 * error, positives


def test_what_has_no_closed_form_is_not_guessed() -> None:
    settings = RoundSettings(max_rounds=ROUNDS, k=5)
    assert dialogue_values(random_ranker(), "hits@1@turn4", settings) is None
    assert dialogue_values(random_ranker(), "map@10@turn4", settings) is None
    assert dialogue_values(random_ranker(), "mean_rank@turn4", settings) is None
    goes_on = replace(settings, after_success="continue")
    one = dialogue_values(random_ranker(), "hits@1@turn4", goes_on)
    assert one[0] == pytest.approx(1 - (1 - 1 / IMAGES) ** 4, abs=1e-12)
