"""The arithmetic of CIRCLED's construction, on vectors whose results are known."""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_world.circled_models import BagOfWords

from cir_datasets.construction.circled.definitions import check_definitions
from cir_datasets.construction.circled.estimate import estimates
from cir_datasets.construction.circled.filters import counts, filtered
from cir_datasets.construction.circled.queries import queries_of
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.steps import moved_on, picks
from cir_datasets.construction.circled.turns import PlayedSession
from cir_datasets.errors import ConstructionError
from cir_datasets.rows.benchmark import Benchmark
from cir_datasets.rows.records import query_row
from cir_metrics.errors import UnknownNameError
from submissions.running.aggregation import feedback_weights

CHOSEN = CircledSettings()


def test_the_weights_are_those_of_the_feedback_aggregation() -> None:
    used = feedback_weights()
    assert (CHOSEN.selected, CHOSEN.rejected, CHOSEN.words, CHOSEN.k) == (
        used.selected,
        used.rejected,
        used.words,
        used.shown,
    )


def test_a_query_moves_by_equation_9() -> None:
    random = np.random.default_rng(3)
    gallery, said, before = (random.standard_normal((rows, 8)) for rows in (12, 3, 3))
    gallery, said, before = (each / np.linalg.norm(each, axis=1)[:, None] for each in (gallery, said, before))
    shown = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    picked = np.array([2, 4, 3])
    found = moved_on(
        before.astype(np.float32),
        picked,
        shown,
        said.astype(np.float32),
        gallery.astype(np.float32),
        CHOSEN,
    )
    for row in range(3):
        others = [image for image in shown[row] if image != picked[row]]
        expected = (
            before[row] + 0.08 * gallery[picked[row]] - 0.29 * gallery[others].mean(axis=0) + 0.44 * said[row]
        )
        assert found[row] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


def test_a_pick_is_the_nearest_that_is_allowed_and_the_better_ranked_of_equals() -> None:
    captions = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.6, 0.8]], np.float32)
    aims = captions[[0, 1, 1]]
    shown = [[0, 1, 2], [3, 2, 0], [0, 1, 2]]
    allowed = [[True] * 3, [True] * 3, [False] * 3]
    assert picks(shown, allowed, aims, captions) == [(0, 1.0), (0, 0.8), None]


def session(name: str, ranks: list[int], *captions: str, references: str = "abcdef") -> PlayedSession:
    turns = [
        {"reference": image, "caption": caption, "rank": rank}
        for image, caption, rank in zip(references, captions, ranks, strict=False)
    ]
    first = captions[0] if captions else ""
    return PlayedSession({"query": name, "caption": first, "reference": "a"}, ["z"], turns)


def test_each_session_goes_at_the_first_filter_that_holds() -> None:
    silent = session("failed", [40], "one")
    silent.failed, silent.ended = True, "turn 2: no answer"
    played = [
        silent,
        session("never", [40, 11], "one", "two"),
        session("at once", [10], "one"),
        session("empty", [], ""),
        session("falls", [40, 71, 2], "one", "two", "three"),
        session("just not", [40, 70, 2], "one", "two", "three"),
        session("repeats", [40, 3], "a red star", "a red star"),
        session("twice", [40, 3], "one", "two", references="az"),
        session("twin", [40, 3], "one", "two", references="ay"),
        session("good", [40, 3], "one", "two"),
    ]
    rows = filtered(played, BagOfWords(), {"y": "z"}, CHOSEN)
    assert {row["query"]: row["filter"] for row in rows} == {
        "failed": "failed",
        "never": "success",
        "at once": "several turns",
        "empty": "empty caption",
        "falls": "rank margin",
        "just not": None,
        "repeats": "text redundancy",
        "twice": "duplicate image",
        "twin": "duplicate image",
        "good": None,
    }
    found = counts(rows)
    assert found["begun"] == 10
    assert found["kept"] == 2
    assert sum(found.values()) == 20


def test_sessions_that_fall_or_repeat_are_found_by_any_encoder() -> None:
    ids = [f"val-{number:06d}" for number in range(60)]
    encoder = BagOfWords(4.0)
    rows = [
        {
            "session_id": name,
            "ground_truth_ids": [ids[7]],
            "turns": [
                {"turn": turn, "reference_image_id": ids[turn], "relative_caption": caption}
                for turn, caption in enumerate(captions, start=1)
            ],
        }
        for name, captions in {
            "repeats": ["a red star", "a star red"],
            "differs": ["a red star", "on a mossy wall"],
            "one": ["a red star"],
        }.items()
    ]
    found = check_definitions(rows, ids, encoder, BagOfWords())
    assert [one.diverse for one in found] == [False, True, True]
    assert [len(one.ranks) for one in found] == [2, 2, 1]
    strict = check_definitions(rows, ids, encoder, BagOfWords(), CircledSettings(epsilon=0))
    for one, other in zip(found, strict, strict=True):
        assert one.fall == other.fall == max([0, *np.diff(one.ranks)])
        assert other.consistent == (one.fall == 0)
    assert check_definitions([], ids, encoder, encoder) == []


def test_every_caption_of_a_query_begins_a_session_and_blanks_go() -> None:
    import cir_datasets

    known = {"reference_image_id": "val-000001", "target_image_id": "val-000002"}
    known["positive_image_ids"] = ["val-000002"]  # type: ignore[assignment]
    rows = [
        query_row("7", captions=[" is red ", "", "and small"], **known),
        query_row("8", relative_caption="blue", captions=["blue"], **known),
    ]
    spec = cir_datasets.load("shapes/val").spec
    found = queries_of(Benchmark.from_rows(spec, rows, ["val-000001", "val-000002"]))
    assert [(row["query"], row["caption"]) for row in found] == [
        ("7-1", "is red"),
        ("7-2", ""),
        ("7-3", "and small"),
        ("8", "blue"),
    ]


def test_the_estimate_grows_with_turns_and_never_exceeds_the_most() -> None:
    likely, most = estimates(1000, 5000, CHOSEN)
    longer, _ = estimates(1000, 5000, CircledSettings(max_turns=7))
    assert likely.total.calls < longer.total.calls <= most.total.calls
    assert likely.work[0].what == "captions"
    assert likely.work[0].calls <= 5000


@pytest.mark.parametrize(
    ("choice", "error"),
    [
        ({"k": 1}, ConstructionError),
        ({"max_turns": 1}, ConstructionError),
        ({"tau": 0.0}, ConstructionError),
        ({"limit": 0}, ConstructionError),
        ({"history": "all"}, UnknownNameError),
        ({"circo_target": "annotate"}, UnknownNameError),
        ({"duplicates": "md5"}, UnknownNameError),
    ],
)
def test_choices_out_of_range_are_refused(choice: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        CircledSettings(**choice)  # type: ignore[arg-type]
