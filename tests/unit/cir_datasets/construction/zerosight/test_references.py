"""Windows with answers from a script, and references that are too alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cir_datasets.construction.backends import Failed, Question
from cir_datasets.construction.zerosight.options import load_thresholds
from cir_datasets.construction.zerosight.references import choose, kept_references


class Scripted:
    """Answers in the order of the questions, and keeps what it was asked."""

    def __init__(self, *answers: int | Failed) -> None:
        self.identity: dict[str, Any] = {}
        self.answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        self.asked += [(prompt, question.pictures) for question in questions]
        assert all(question.words == {"number": str(len(question.pictures))} for question in questions)
        answers = [self.answers.pop(0) for _ in questions]
        return [one if isinstance(one, Failed) else {"choice": one} for one in answers]


FRAMES = [f"v/{number:06d}.jpg" for number in range(34)]


def test_after_a_pick_a_window_is_the_reference_and_the_next_nine() -> None:
    words = Scripted(0, 3, 1, 10)
    rows = choose(words, [("v", FRAMES)])
    assert words.asked == [
        ("frame", tuple(FRAMES[:10])),
        ("frame", tuple(FRAMES[10:20])),
        ("next_frame", (FRAMES[12], *FRAMES[20:29])),
        ("next_frame", (FRAMES[12], *FRAMES[29:])),
    ]
    # 10 names none of the last window's six pictures.
    assert [row["reference"] for row in rows] == [None, FRAMES[12], None, None]
    assert rows[3]["failed"] == "the answer 10 names none of 6 pictures"
    assert "failed" not in rows[0]


def test_a_pick_is_the_reference_of_what_follows() -> None:
    words = Scripted(1, 2, 4)
    rows = choose(words, [("v", FRAMES[:25])])
    assert [row["reference"] for row in rows] == [FRAMES[0], FRAMES[10], FRAMES[21]]
    assert words.asked[2] == ("next_frame", (FRAMES[10], *FRAMES[19:25]))


def test_a_question_without_an_answer_is_kept_and_the_video_goes_on() -> None:
    rows = choose(Scripted(Failed("cut off"), 2), [("v", FRAMES[:12])])
    assert rows[0]["failed"] == "cut off"
    assert rows[1]["reference"] == FRAMES[11]


def test_videos_are_asked_about_beside_each_other() -> None:
    words = Scripted(1, 0, 1)
    rows = choose(words, [("a", FRAMES[:3]), ("b", FRAMES[3:6]), ("c", FRAMES[6:7])])
    assert [(row["video"], row["reference"]) for row in rows] == [
        ("a", FRAMES[0]),
        ("b", None),
        ("c", FRAMES[6]),
    ]


def test_sight_comes_before_meaning_and_videos_stand_alone() -> None:
    images = ["a/0.jpg", "a/1.jpg", "a/2.jpg", "b/0.jpg"]
    visual = np.array([[1, 0], [0.6, 0.8], [0, 1], [1, 0]], np.float32)
    semantic = np.array([[1, 0], [0, 1], [0.8, 0.6], [1, 0]], np.float32)
    rows = kept_references(
        [(image[0], image) for image in images],
        {image: place for place, image in enumerate(images)},
        visual,
        semantic,
        load_thresholds("paper"),
    )
    assert [row.get("failed") for row in rows] == [
        None,
        "its visual similarity to a/0.jpg is 0.6",
        "its semantic similarity to a/0.jpg is 0.8",
        None,
    ]
