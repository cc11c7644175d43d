"""Commands that take transcripts beside rank files: validate, score, compare."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from benchmark_world.dialogues import shapes_dialogue
from cir_here import cir

from submissions.transcripts.settings import RoundSettings
from submissions.transcripts.transcript import Transcript, write_transcript

SETTINGS = RoundSettings(max_rounds=2, k=5)


@pytest.fixture(scope="module")
def transcript() -> Transcript:
    return shapes_dialogue(SETTINGS, sessions=3, hits=0.0, words="another <b>one</b>")


def call(*words: object) -> Any:
    return cir(*map(str, words), folder=Path.cwd())


@pytest.mark.parametrize("form", ["jsonl", "parquet", "jsonl.gz"])
def test_score_takes_every_form(transcript: Transcript, tmp_path: Path, form: str) -> None:
    path = write_transcript(transcript, tmp_path / f"talk.{form.removesuffix('.gz')}")
    if form.endswith(".gz"):
        packed = tmp_path / "talk.jsonl.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    done = call("score", path, "--json", "--intervals", "--draws", "50")
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["main_metric"] == "hits@5@turn2"
    assert [row["round"] for row in said["by_turn"]] == [1, 2]
    assert said["intervals"]["resampled"] == "sessions"


def test_score_puts_several_side_by_side(transcript: Transcript, tmp_path: Path) -> None:
    paths = [write_transcript(transcript, tmp_path / f"{name}.jsonl") for name in "ab"]
    done = call("score", *paths, "--format", "markdown")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "### Hits@5 by round" in done.stdout
    assert "Made up (a.jsonl)" in done.stdout


def test_validate_shows_contradictions_and_score_refuses_them(transcript: Transcript, tmp_path: Path) -> None:
    wrong = [
        each.model_copy(update={"rank": 3}) if n == 0 else each for n, each in enumerate(transcript.rounds)
    ]
    path = write_transcript(transcript.model_copy(update={"rounds": wrong}), tmp_path / "talk.jsonl")
    done = call("validate", path)
    assert done.returncode == 1
    assert "wrong-rank" in done.stdout
    assert "line 2: rank 3" in " ".join(done.stdout.split())
    assert call("score", path).returncode == 1
    refused = call("score", path, "--json")
    assert json.loads(refused.stdout)["findings"][0]["code"] == "wrong-rank"


def test_options_of_rank_files_are_those_of_transcripts(transcript: Transcript, tmp_path: Path) -> None:
    one, other = (write_transcript(transcript, tmp_path / f"{name}.jsonl") for name in "ab")
    rows = tmp_path / "each.jsonl"
    for files, named in (([one], []), ([one, other], ["file"])):
        assert call("score", *files, "--per-query", rows, "--metric", "recall@5").returncode == 0
        values = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
        assert len(values) == 3 * len(files)
        assert {*values[0]} == {*named, "query_id", "recall@5@turn1", "recall@5@turn2"}
    assert call("compare", one, other, "--flips", tmp_path / "flips.jsonl").returncode == 0
    assert (tmp_path / "flips.jsonl").read_bytes() == b""


@pytest.mark.parametrize("count", [1, 2])
def test_metric_selects(transcript: Transcript, tmp_path: Path, count: int) -> None:
    path = write_transcript(transcript, tmp_path / "talk.jsonl")
    shown = json.loads(call("score", *[path] * count, "--json", "--metric", "recall@5").stdout)
    for each in shown.get("transcripts", [shown]):
        assert {name.partition("@turn")[0] for name in each["metrics"]} == {"recall@5"}
        assert {*each["by_turn"][0]} == {"round", "name", "sessions", "recall@5", "random"}
    for metric in ("recall@5", "hits@5", "map@5", "mean_rank"):
        drawn = call("score", *[path] * count, "--metric", metric, "--plot", tmp_path / "plot.svg")
        # Side by side the plot is of the Hits that end a session.
        expected = 0 if metric == "hits@5" or (count == 1 and metric != "mean_rank") else 2
        assert drawn.returncode == expected, drawn.stderr


def test_words_of_a_file_cannot_steer_a_terminal(transcript: Transcript, tmp_path: Path) -> None:
    user = {"kind": "\x1b[31mred", "language": {"model": "a|b\nc"}}
    path = write_transcript(transcript.model_copy(update={"user": user}), tmp_path / "talk.jsonl")
    for command in ("validate", "score"):
        done = call(command, path)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["score", "compare"])
def test_a_rank_file_beside_a_transcript_is_named(
    transcript: Transcript, tmp_path: Path, command: str
) -> None:
    talk = write_transcript(transcript, tmp_path / "talk.jsonl")
    run = tmp_path / "run.json"
    run.write_text('{"format": "cir-rank-file", "format_version": 1, "benchmark": "shapes/val"}')
    for files in ([talk, run], [run, talk]):
        done = call(command, *files)
        assert done.returncode == 2
        assert f"{talk} is a transcript of dialogues, and {run} is not." in done.stderr
        assert "Fix: give transcripts alone, or rank files alone." in done.stderr
