"""Numbers of transcripts: by hand, against a plain-Python twin, and as they are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transcript_twins as twins
from benchmark_world import dialogues as world

from submissions.rank_file.model import Method
from submissions.report import full_report
from submissions.report.side_by_side import SideBySide
from submissions.scoring.intervals import intervals
from submissions.scoring.score_report import ScoreReport
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.sessions import ends, user_text
from submissions.transcripts.settings import RoundSettings, round_metrics
from submissions.transcripts.transcript import Transcript, write_transcript


def scored(benchmark: Any, transcript: Transcript, folder: Path, name: str = "talk.jsonl") -> ScoreReport:
    path = write_transcript(transcript, folder / name)
    return check_transcript(path, benchmark).score()


def by_hand(folder: Path) -> ScoreReport:
    return scored(world.small_benchmark(), world.transcript(), folder)


def test_three_dialogues_have_the_numbers_that_were_worked_out_by_hand(tmp_path: Path) -> None:
    report = by_hand(tmp_path)
    # Ranks by round are (4, 1, 1), (9, 7, 9) and (6, 6, 6).
    third = 1 / 3
    assert [report.metrics[f"hits@1@turn{number}"] for number in (1, 2, 3)] == [0, third, third]
    assert [report.metrics[f"hits@5@turn{number}"] for number in (1, 2, 3)] == [third, third, third]
    assert [report.metrics[f"hits@10@turn{number}"] for number in (1, 2, 3)] == [1, 1, 1]
    assert [report.metrics[f"mean_rank@turn{number}"] for number in (1, 2, 3)] == [19 / 3, 14 / 3, 16 / 3]
    assert report.metrics["hits_auc@1"] == 0.25
    assert (report.main_metric, report.main) == ("hits@1@turn3", third)
    assert "map@5@turn1" not in report.metrics


@pytest.mark.parametrize("after_success", ["stop", "continue"])
def test_where_rounds_stand_in_the_file_changes_nothing(tmp_path: Path, after_success: str) -> None:
    settings = RoundSettings(max_rounds=4, k=7, after_success=after_success)
    benchmark, transcript = twins.random_dialogue(3, settings, sessions=9)
    turned = transcript.model_copy(update={"rounds": transcript.rounds[::-1]})
    first = scored(benchmark, transcript, tmp_path)
    second = scored(benchmark, turned, tmp_path, "turned.jsonl")
    assert first.metrics == second.metrics
    assert ends(transcript) == ends(turned)


def test_users_that_differ_behind_the_cut_of_a_signature_are_others() -> None:
    described = [
        world.transcript().model_copy(update={"user": {"language": f"{'sees by a long name ' * 9}{size}B"}})
        for size in (8, 70)
    ]
    first, second = map(user_text, described)
    assert first != second
    assert len(first) == len(second) <= 160


def test_a_backend_whose_model_has_its_name_is_named_once() -> None:
    oracle = {"backend": "oracle", "model": "oracle", "settings": "scene graphs of shapes"}
    served = {"backend": "openai", "model": "gpt-4o"}
    named = [
        user_text(world.transcript().model_copy(update={"user": {"language": language}, "prompts": {}}))
        for language in (oracle, served)
    ]
    assert named == ["oracle, scene graphs of shapes", "openai, gpt-4o"]


@pytest.mark.parametrize("after_success", ["stop", "continue"])
@pytest.mark.parametrize("card", ["shapes/val", "circo/val"])
@pytest.mark.parametrize("seed", range(4))
def test_every_number_is_the_twins(tmp_path: Path, seed: int, card: str, after_success: str) -> None:
    settings = RoundSettings(max_rounds=4, k=7, after_success=after_success)
    benchmark, transcript = twins.random_dialogue(seed, settings, card=card, sessions=9)
    report = scored(benchmark, transcript, tmp_path)
    rounds = [each.model_dump() for each in transcript.rounds]
    targets = {row["query_id"]: row["positive_image_ids"] for row in benchmark.rows()}
    assert report.metrics == pytest.approx(twins.numbers(rounds, targets, 4, 7), abs=1e-15)
    assert list(report.metrics) == round_metrics(7, 4, several_targets=True)


def test_the_name_that_a_score_had_still_works(tmp_path: Path) -> None:
    score = by_hand(tmp_path)
    with pytest.warns(DeprecationWarning, match="leave .report out"):
        assert score.report is score


def test_one_round_has_no_curve(tmp_path: Path) -> None:
    benchmark, transcript = twins.random_dialogue(1, RoundSettings(max_rounds=1, k=10))
    metrics = scored(benchmark, transcript, tmp_path).metrics
    assert metrics["hits_auc@10"] == metrics["hits@10@turn1"]


def test_the_signature_says_settings_and_user(tmp_path: Path) -> None:
    report = by_hand(tmp_path)
    for name, signature in report.signatures.items():
        assert "dialogue:rounds:3 k:1 after_success:stop" in str(signature), name
        assert "user:scripted" in signature.key
    other = RoundSettings(max_rounds=3, k=1, history="none")
    changed = scored(world.small_benchmark(), world.transcript(other), tmp_path)
    assert changed.signature_key("hits@1@turn1") != report.signature_key("hits@1@turn1")


def test_the_report_says_rounds_and_silence(tmp_path: Path) -> None:
    score = by_hand(tmp_path)
    assert ends(world.transcript()) == {"last round": 1, "silent: it says nothing": 1, "solved": 1}
    report = full_report(score, intervals(score, draws=200))
    groups = report.groupings["by_turn"].groups
    assert [group.n for group in groups] == [3, 3, 1]
    assert [group.values["solved"] for group in groups] == [0, 1 / 3, 1 / 3]
    assert [group.values["silent"] for group in groups] == [0, 1 / 3, 1 / 3]
    text = report.render()
    assert "1 session ended unsolved since the user was silent: it says nothing (1)." in text
    assert "95 % percentile bootstrap over sessions" in text
    for format in ("csv", "latex", "markdown"):
        assert report.render(format)
    assert json.loads(report.render("json"))["by_turn"][2]["mean_rank"] == 16 / 3


def test_shares_behind_the_list_are_said(tmp_path: Path) -> None:
    benchmark, transcript = twins.random_dialogue(3, RoundSettings(k=1, max_rounds=1), sessions=20)
    behind = sum(each.rank > 50 for each in transcript.rounds)
    score = scored(benchmark, transcript, tmp_path)
    [group] = full_report(score).groupings["by_turn"].groups
    assert behind
    assert group.values["unlisted"] == behind / 20


def test_several_stand_side_by_side(tmp_path: Path) -> None:
    settings = RoundSettings(max_rounds=2, k=5)
    scores = []
    for seed, history in enumerate(("average", "none")):
        benchmark, transcript = twins.random_dialogue(7, settings)
        named = transcript.model_copy(update={"settings": {**settings.to_dict(), "history": history}})
        scores.append(scored(benchmark, named, tmp_path, f"talk{seed}.jsonl"))
    shown = SideBySide([full_report(each, intervals(each, draws=100)) for each in scores])
    assert shown.labels == ["Made up", "history=none"]
    titles = [table.title for table in shown.tables()]
    assert titles[0] == "Transcripts on shapes/val#2"
    assert {"Hits@5 by round", "Recall@50 by round", "mAP@5 by round", "Mean rank by round"} <= set(titles)
    table = next(table for table in shown.tables() if table.title == "Hits@5 by round")
    assert table.columns == ("transcript", "round 1", "low 1", "high 1", "round 2", "low 2", "high 2")
    assert table.rows[1][4].value == scores[1].metrics["hits@5@turn2"]
    for format in ("table", "csv", "latex", "markdown"):
        assert "history=none" in shown.render(format)
    assert len(json.loads(shown.render("json"))["transcripts"]) == 2


def test_dialogues_that_kept_and_that_removed_the_reference_are_blocks(tmp_path: Path) -> None:
    settings, card = RoundSettings(max_rounds=1, k=5), "fashioniq/dress_val"
    benchmark, kept = twins.random_dialogue(7, settings, card=card)
    _, removed = twins.random_dialogue(7, settings)  # of a benchmark that removes it
    renamed = {"benchmark": card, "benchmark_version": kept.benchmark_version}
    made = {
        "Removes": removed.model_copy(
            update={**renamed, "method": Method(name="Removes", reference="removed")}
        ),
        "Keeps": kept.model_copy(update={"method": Method(name="Keeps")}),
        "Unsaid": removed.model_copy(update={**renamed, "method": Method(name="Unsaid")}),
    }
    scores = [scored(benchmark, talk, tmp_path, f"{name}.jsonl") for name, talk in made.items()]
    first, *tables = SideBySide(list(map(full_report, scores))).tables()
    for table in tables:
        assert [row[0].text for row in table.rows] == ["Keeps", "Unsaid", "Removes"]
        assert table.rules == (2,)
    notes = " ".join(first.notes)
    assert "reference kept: Keeps, Unsaid; reference removed: Removes." in notes
    assert "Unsaid is unverified" in notes


def test_side_by_side_is_drawn(tmp_path: Path) -> None:
    settings = RoundSettings(max_rounds=2, k=5)
    benchmark, transcript = twins.random_dialogue(7, settings)
    score = scored(benchmark, transcript, tmp_path)
    drawn = SideBySide([full_report(score)] * 2).plot(tmp_path / "rounds.svg")
    assert "Hits@5 by round on shapes/val" in drawn.read_text(encoding="utf-8")
    alone = full_report(score, intervals(score, draws=100)).plot(tmp_path / "one.svg")
    assert "round (sessions that have it)" in alone.read_text(encoding="utf-8")
