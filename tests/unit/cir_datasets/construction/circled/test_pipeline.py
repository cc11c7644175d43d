"""CIRCLED's construction as a whole: counts, definitions, the same bytes, the released code's choices."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmark_world import small_shapes
from benchmark_world.circled_models import oracle_models

from cir_datasets.construction.backends import Failed, Question
from cir_datasets.construction.circled.pipeline import MadeSessions, make_circled, stages_of
from cir_datasets.construction.circled.settings import CircledSettings
from cir_datasets.construction.circled.turns import CircledModels
from cir_datasets.errors import ConstructionError

BENCHMARK = small_shapes(rows=60, gallery=300)
FEW = CircledSettings(k=6)


def made(
    folder: Path, settings: CircledSettings = FEW, models: CircledModels | None = None, **more: Any
) -> MadeSessions:
    more.setdefault("fingerprint", list)
    return make_circled(BENCHMARK, folder, models or oracle_models(BENCHMARK), settings, **more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> MadeSessions:
    return made(tmp_path_factory.mktemp("whole"))


def test_counts_add_up_to_the_input_and_every_drop_has_a_reason(whole: MadeSessions) -> None:
    found = whole.counts
    assert found["begun"] == len(BENCHMARK) == len(whole.verdicts)
    assert sum(found.values()) == 2 * found["begun"]
    assert found["kept"] == len(whole.sessions) > 0
    assert found["several turns"] > 0
    assert all(row["why"] for row in whole.verdicts if not row["kept"])
    assert all(row["filter"] is None for row in whole.verdicts if row["kept"])


def test_kept_sessions_obey_both_definitions_when_they_are_replayed(whole: MadeSessions) -> None:
    assert len(whole.checked) == len(whole.sessions)
    for row in whole.checked:
        assert row["ranks"] == row["replayed_ranks"]
        assert row["ranks"][-1] <= FEW.k < min(row["ranks"][:-1])
        assert all(b <= a + FEW.epsilon for a, b in itertools.pairwise(row["ranks"]))
        assert row["nearest"] < FEW.tau
        assert (row["consistent"], row["diverse"]) == (True, True)


def test_sessions_have_the_published_form_and_begin_with_the_published_query(whole: MadeSessions) -> None:
    rows = {row["query_id"]: row for row in BENCHMARK.rows()}
    for number, (session, checked) in enumerate(zip(whole.sessions, whole.checked, strict=True)):
        assert list(session) == ["session_id", "subset", "ground_truth_ids", "num_turns", "turns"]
        assert session["session_id"] == f"shapes_val_{number:04d}"
        assert [turn["turn"] for turn in session["turns"]] == list(range(1, session["num_turns"] + 1))
        published = rows[checked["query"]]
        assert session["turns"][0]["reference_image_id"] == published["reference_image_id"]
        assert session["turns"][0]["relative_caption"] == published["relative_caption"]


def test_a_reference_was_shown_before_and_is_new(whole: MadeSessions) -> None:
    later = 0
    for session in whole.played:
        assert len(set(session.references)) == len(session.references)
        for before, turn in itertools.pairwise(session.turns):
            assert turn["reference"] in before["shown"]
            assert turn["rank"] >= 1
            later += 1
    assert later > 10


def test_no_further_turn_follows_a_success(whole: MadeSessions) -> None:
    for session in whole.played:
        assert all(rank > FEW.k for rank in session.ranks[:-1])
        assert len(session.ranks) <= FEW.max_turns


def test_the_released_choices_change_what_is_asked(tmp_path: Path) -> None:
    asked: dict[str, list[Question]] = {}
    for name, settings in {
        "paper": FEW,
        "released": dataclasses.replace(FEW, history="released"),
        "annotated": dataclasses.replace(FEW, circo_target="annotated"),
        "seven": dataclasses.replace(FEW, max_turns=7),
    }.items():
        models = oracle_models(BENCHMARK)
        listening = Listening(models.words)
        made(tmp_path / name, settings, dataclasses.replace(models, words=listening))
        asked[name] = listening.questions
    assert any(one.words["history"] == "- (none)" for one in asked["released"])
    assert not any(one.words["history"] == "- (none)" for one in asked["paper"])
    annotated = {row["target_image_id"] for row in BENCHMARK.rows()}
    assert all(one.pictures[1] in annotated for one in asked["annotated"])
    assert not all(one.pictures[1] in annotated for one in asked["paper"])
    assert len(asked["seven"]) > len(asked["paper"])
    assert "turn-7" in stages_of(dataclasses.replace(FEW, max_turns=7))


def test_without_weights_the_search_stands_still(tmp_path: Path) -> None:
    still = made(tmp_path, dataclasses.replace(FEW, selected=0.0, rejected=0.0, words=0.0))
    assert {len(set(session.ranks)) for session in still.played} == {1}
    assert still.counts["kept"] == 0
    with pytest.raises(ConstructionError, match="words"):
        CircledSettings(words=-1.0)


def test_what_is_published_names_the_target_that_the_last_words_aimed_at(whole: MadeSessions) -> None:
    several = 0
    for session, told in zip(
        [*whole.sessions, *whole.unfiltered], [*whole.checked, *whole.unfiltered_traces], strict=True
    ):
        (played,) = (one for one in whole.played if one.query["query"] == told["query"])
        assert told["session_id"] == session["session_id"]
        assert told["aim"] == played.turns[-1]["aim"] in session["ground_truth_ids"]
        several += told["aim"] != session["ground_truth_ids"][0]
    assert several > 0


class Listening:
    """Words of another, and what was asked of it; some answers are missing, or always the same."""

    def __init__(self, words: Any, *, deaf: str = "", same: str = "") -> None:
        self.words = words
        self.deaf = deaf
        self.same = same
        self.questions: list[Question] = []
        self.identity = {"listening": deaf, "same": same}

    def caption(self, images: Sequence[str], prompt: str = "caption") -> list[str | Failed]:
        said = self.words.caption(images, prompt)
        return [
            Failed("cannot see") if one == self.deaf else text for one, text in zip(images, said, strict=True)
        ]

    def merge(self, captions: Sequence[str], changes: Sequence[str]) -> list[str | Failed]:
        return self.words.merge(captions, changes)

    def difference(self, first: Sequence[str], second: Sequence[str]) -> list[str | Failed]:
        raise NotImplementedError

    def ask(self, prompt: str, questions: Sequence[Question]) -> list[dict[str, Any] | Failed]:
        self.questions += questions
        if self.same:
            return [{"instruction": self.same} for _ in questions]
        return self.words.ask(prompt, questions)


def test_a_reference_without_caption_fails_with_its_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    models = oracle_models(BENCHMARK)
    deaf = BENCHMARK.column("reference_image_id")[0]
    found = made(tmp_path, models=dataclasses.replace(models, words=Listening(models.words, deaf=deaf)))
    (row,) = [row for row in found.verdicts if row["query"] == BENCHMARK.query_ids[0]]
    assert (row["filter"], row["turns"]) == ("failed", 0)
    assert "no caption" in row["why"]
    assert found.counts["kept"] > 0


def test_a_caption_said_before_is_asked_for_three_times_and_its_session_goes(tmp_path: Path) -> None:
    models = oracle_models(BENCHMARK)
    again = "also a small red star"
    listening = Listening(models.words, same=again)
    found = made(tmp_path, models=dataclasses.replace(models, words=listening))
    third = [one for one in listening.questions if one.words["retry"].count(again) == 2]
    assert third, "the third attempt names both refused answers"
    assert not any(one.words["retry"].count(again) > 2 for one in listening.questions)
    assert all(row["num_turns"] == 2 for row in found.sessions)
    assert found.counts["text redundancy"] > 0
    assert {row["session_id"] for row in found.unfiltered} == {
        f"shapes_val_unfiltered_{number:04d}"
        for number in range(found.counts["text redundancy"] + found.counts["rank margin"])
    }


def test_twins_are_searched_once_and_are_never_picked(tmp_path: Path) -> None:
    gallery = list(BENCHMARK.gallery or ())
    target = BENCHMARK.positives[0][0]
    earlier = next(image for image in gallery if image != target)
    double = {
        max(target, earlier, key=gallery.index): "same",
        min(target, earlier, key=gallery.index): "same",
    }
    found = made(tmp_path, fingerprint=lambda ids: [double.get(one, one) for one in ids])
    (row,) = (tmp_path / "02-twins.jsonl").read_text().splitlines()
    assert {target, earlier} == set(re.findall(r"val-\d+", row))
    gone = max(target, earlier, key=gallery.index)
    assert all(gone not in turn["shown"] for session in found.played for turn in session.turns)


def test_an_image_that_another_split_has_first_leaves_the_gallery(tmp_path: Path) -> None:
    lost = {image for targets in BENCHMARK.positives[:1] for image in targets}
    found = made(
        tmp_path,
        dataclasses.replace(FEW, duplicates="released"),
        fingerprint=lambda ids: [
            f"={one}".replace("=train-", "") if one.startswith("train-") else one for one in ids
        ],
        others=[f"train-{image}" for image in lost],
    )
    (row,) = [row for row in found.verdicts if row["query"] == BENCHMARK.query_ids[0]]
    assert (row["filter"], row["turns"]) == ("success", 0)
    assert "no target" in row["why"]


def test_a_limit_draws_by_the_seed_and_keeps_the_order(tmp_path: Path) -> None:
    drawn = [
        [
            session.query["query"]
            for session in made(tmp_path / str(seed), dataclasses.replace(FEW, limit=5, seed=seed)).played
        ]
        for seed in (0, 1)
    ]
    assert drawn[0] != drawn[1]
    assert all(one == sorted(one, key=BENCHMARK.query_ids.index) and len(one) == 5 for one in drawn)


def test_sessions_are_not_made_of_sessions(tmp_path: Path) -> None:
    import cir_datasets

    with pytest.raises(ConstructionError, match="its rows are sessions already"):
        make_circled(
            cir_datasets.load("shapes/multiturn_val"),
            tmp_path,
            oracle_models(BENCHMARK),
            FEW,
            fingerprint=list,
        )
