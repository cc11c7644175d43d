"""The estimate of windows is never below what choosing asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cir_datasets.construction.backends import Question
from cir_datasets.construction.zerosight.estimate import estimate
from cir_datasets.construction.zerosight.references import choose


class Picks:
    """Takes the second picture of each window."""

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any]]:
        return [{"choice": min(2, len(question.pictures))} for question in questions]


@pytest.mark.parametrize("frames", [1, 2, 10, 11, 19, 20, 95, 1000])
def test_windows_are_those_of_a_video_with_a_pick_in_each(frames: int) -> None:
    asked = choose(Picks(), [("v", [f"v/{number}" for number in range(frames)])])  # type: ignore[arg-type]
    assert estimate([{"seconds": float(frames)}], 85).work[0].calls == len(asked)
