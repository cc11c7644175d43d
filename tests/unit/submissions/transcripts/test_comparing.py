"""Transcripts in pairs: differences by round, agreement of ranks, and what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
import transcript_twins as twins
from benchmark_world.dialogues import shapes_dialogue

from cir_metrics.significance import kendall_tau
from submissions.errors import ComparisonError
from submissions.transcripts.comparing import compare_transcripts
from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import Transcript, write_transcript

SETTINGS = RoundSettings(max_rounds=3, k=8)


def two(folder: Path, **more: Any) -> tuple[Path, Path, Transcript]:
    """The same dialogue by a person and by a simulator, who differ in the last session."""
    _, transcript = twins.random_dialogue(2, SETTINGS, sessions=8)
    person = transcript.model_copy(update={"user": {"kind": "human"}, **more})
    return (
        write_transcript(transcript, folder / "a.jsonl"),
        write_transcript(person, folder / "b.jsonl"),
        person,
    )


def test_a_person_and_a_simulator_are_compared_round_by_round(tmp_path: Path) -> None:
    benchmark, _ = twins.random_dialogue(2, SETTINGS, sessions=8)
    _, other = twins.random_dialogue(2, RoundSettings(max_rounds=3, k=8, seed=1), sessions=8)
    first = write_transcript(other.model_copy(update={"user": {"kind": "human"}}), tmp_path / "human.jsonl")
    _, second, _ = two(tmp_path, user={"kind": "simulated"})
    found = compare_transcripts([first, second], benchmark, draws=200)
    assert [method.name for method in found.methods] == ["human, seed=1", "simulated"]
    text = found.text()
    assert "Mean rank of the target, first and last round" in text
    assert "The transcripts differ in their user: human against simulated." in text
    [pair] = found.pairs
    assert set(pair.differences) == {
        f"{name}@turn{number}" for name in ("hits@8", "mean_rank") for number in (1, 2, 3)
    }
    [agreement] = json.loads(found.text("json"))["agreement"]
    assert agreement["k"] == 8
    counts = [[each[name] for name in ("both", "first", "second", "neither")] for each in agreement["rounds"]]
    assert list(map(sum, counts)) == [8, 8, 8]


def test_the_same_ranks_agree_wholly(tmp_path: Path) -> None:
    benchmark, _ = twins.random_dialogue(2, SETTINGS, sessions=8)
    first, second, _ = two(tmp_path)
    found = compare_transcripts([first, second], benchmark, draws=100)
    [agreement] = found.to_dict()["agreement"]
    assert [each["tau"] for each in agreement["rounds"]] == [1.0, 1.0, 1.0]
    assert all(each["first"] == each["second"] == 0 for each in agreement["rounds"])


def test_only_sessions_that_both_have_are_compared(tmp_path: Path) -> None:
    benchmark, _ = twins.random_dialogue(2, SETTINGS, sessions=8)
    first, _, person = two(tmp_path)
    few = [each for each in person.rounds if each.session in ("q3", "q5", "q6")]
    second = write_transcript(person.model_copy(update={"rounds": few}), tmp_path / "few.jsonl")
    found = compare_transcripts([first, second], benchmark, draws=100)
    assert found.n == 3
    assert any("has 5 more sessions, which are left out" in note for note in found.notes)
    none = write_transcript(person.model_copy(update={"rounds": few[:1]}), tmp_path / "none.jsonl")
    with pytest.raises(ValueError, match="missing-round"):
        compare_transcripts([first, none], benchmark)


def test_a_run_with_a_limit_is_compared_over_the_sessions_that_it_drew(tmp_path: Path) -> None:
    settings = RoundSettings(max_rounds=2)
    files = []
    for number, sessions in enumerate((None, 20)):
        dialogue = shapes_dialogue(settings, seed=number, sessions=sessions, name=f"Method {number}")
        files.append(write_transcript(dialogue, tmp_path / f"{number}.jsonl"))
    for order in (files, files[::-1]):
        found = compare_transcripts(order, draws=50)
        assert found.n == 20
        assert any("has 280 more sessions, which are left out" in note for note in found.notes)


def test_dialogues_that_start_otherwise_are_not_compared(tmp_path: Path) -> None:
    benchmark, transcript = twins.random_dialogue(2, SETTINGS)
    drawn = twins.random_dialogue(2, RoundSettings(max_rounds=3, k=8, start="random"))[1]
    files = [write_transcript(each, tmp_path / f"{n}.jsonl") for n, each in enumerate((transcript, drawn))]
    with pytest.raises(ComparisonError, match="start: published against random"):
        compare_transcripts(files, benchmark)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([4, 1, 1, 9, 3], [2, 2, 1, 8, 8]),
        ([1, 2, 3], [3, 2, 1]),
        (list(range(40)), [n % 7 for n in range(40)]),
    ],
)
def test_tau_is_scipys(first: list[int], second: list[int]) -> None:
    assert kendall_tau(first, second) == pytest.approx(scipy.stats.kendalltau(first, second).statistic)


def test_tau_of_one_value_is_none() -> None:
    assert kendall_tau([1, 1, 1], [1, 2, 3]) is None
