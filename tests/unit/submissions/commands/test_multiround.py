"""`cir multiround`: what it prints and writes, and what it refuses before the work."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from benchmark_world.dialogues import another_program
from cir_here import invoked as cir
from language_server import LanguageServer

from cir_datasets.shapes import changes, scene
from cir_datasets.shapes.language import relative_caption
from cir_datasets.shapes.queries import aspects
from cir_metrics.errors import CallError, CirError, UnknownNameError
from submissions.errors import MethodError, SubmissionError
from submissions.transcripts.checking import check_transcript
from submissions.transcripts.reading import read_transcript

PLAY = ("multiround", "--benchmark", "shapes/val", "--method", "random", "--simulator", "oracle")
FEW = (*PLAY, "--limit", "3", "--max-rounds", "2")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, plain_language: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_files_are_named_on_stdout_and_numbers_stand_on_stderr(tmp_path: Path) -> None:
    done = cir(*FEW, code=0)
    assert done.stdout == "random.shapes-val.jsonl\n"
    assert "round 2 of 2: 0 sessions solved so far, 0 still open" in done.stderr
    assert "By round" in done.stderr
    assert "3 sessions ended: last round 3." in done.stderr
    assert not (tmp_path / "random.shapes-val.jsonl.journal").exists()


def test_every_choice_stands_in_the_header(tmp_path: Path) -> None:
    chosen = {"max_rounds": 2, "k": 3, "after_success": "continue", "candidate": "random-top7"}
    chosen |= {"history": "weighted", "normalise": False, "feedback": "unchanged", "aim": "best"}
    chosen |= {"aspect": "change", "words": 4, "start": "random", "seed": 9}
    options = [
        part
        for name, value in chosen.items()
        for part in (["--no-normalise"] if value is False else [f"--{name.replace('_', '-')}", str(value)])
    ]
    cir(*PLAY, *options, "--limit", "4", "--way", "pictures", "--out", "made.parquet", code=0)
    made = read_transcript(tmp_path / "made.parquet")
    assert made.settings == chosen
    assert made.user["way"] == "pictures"
    assert len(made.sessions()) == 4
    for value in ("k:3", "random-top7", "weighted", "unchanged", "seed:9"):
        assert value in made.choices.text_of()


@pytest.mark.parametrize("aspect", ["background", "change", "addition"])
def test_feedback_names_changes_of_its_aspect_alone_and_ends_where_none_is_left(aspect: str) -> None:
    few = ("--limit", "40", "--k", "1", "--aspect", aspect)
    cir(*PLAY, *few, "--out", "made.jsonl", code=0)
    made = read_transcript("made.jsonl")
    feedback = [played for played in made.rounds if played.round > 1 and played.caption]
    assert feedback
    for played in feedback:
        of_aspect = [
            change
            for change in changes(scene(played.reference), scene(played.target), viewpoint=True)
            if aspect in aspects([change])
        ]
        some = (picked for n in range(1, 4) for picked in itertools.combinations(of_aspect, n))
        assert played.caption in map(relative_caption, some)
    ends = [rounds[-1].end for rounds in made.sessions().values()]
    assert f"silent: no change of the aspect {aspect} is left" in ends


def test_page_sessions_and_rank_file_are_written_beside_the_transcript(tmp_path: Path) -> None:
    options = ("--html", "page.html", "--sessions", "sessions.json", "--rank-file", "runs.json.gz", "--json")
    done = cir(*FEW, "--out", "made.jsonl", *options, code=0)
    said = json.loads(done.stdout)
    assert list(said["files"]) == ["transcript", "html", "sessions", "rank_file"]
    assert all(Path(path).is_file() for path in said["files"].values())
    assert (said["sessions"], said["ended"]) == (3, {"last round": 3})
    assert len(json.loads((tmp_path / "sessions.json").read_text())) == 3


def test_a_journal_takes_only_its_own_files_away(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    assert cir(*FEW, "--journal", "mine").exit_code == 0
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_what_a_simulator_cost_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prices.yaml").write_text("tiny: {input: 1.0, output: 2.0}")
    monkeypatch.setenv("CIR_LANGUAGE_PRICES", str(tmp_path / "prices.yaml"))
    with LanguageServer(answer=lambda prompt: '{"instruction": "in red"}') as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = cir(*FEW, "--simulator", "openai:tiny", "--way", "pictures")
    assert done.exit_code == 0, done.output
    assert "3 answered (3 requests, 300 + 30 tokens, cost 0.00036), 0 from the cache" in done.stderr


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (("--out", "made.json"), CallError, r"--out made.json: it is written as .jsonl or .parquet"),
        (("--html", "page.htm"), CallError, r"--html page.htm: it is written as .html"),
        (("--sessions", "s.jsonl"), CallError, r"--sessions s.jsonl: it is written as .json"),
        (("--rank-file", "run.csv"), CallError, r"--rank-file run.csv: it is written as .json or .json.gz"),
        (("--rank-file", "o.jsonl"), CallError, r"--rank-file o.jsonl: it is written as .json or .json.gz"),
        (("--sessions", "o.json", "--rank-file", "./o.json"), CallError, "--sessions and --rank-file both"),
        (("--out", "o.jsonl", "--sessions", "o.jsonl"), CallError, "--out and --sessions both name o.jsonl"),
        (("--html", "o.html", "--rank-file", "o.html"), CallError, "--html and --rank-file both name o.html"),
        (("--out", "/proc/made.jsonl"), SubmissionError, "/proc/made.jsonl.journal.*: cannot be written"),
        (("--way", "words"), UnknownNameError, "no simulator 'words'"),
        (("--simulator", "orakle"), UnknownNameError, "no language backend 'orakle'"),
        (("--history", "none at all"), UnknownNameError, "is not a choice"),
        (("--candidate", "random-top99"), UnknownNameError, "M from 1 to 50"),
        (("--aspect", "colours"), MethodError, "has no query of the aspect 'colours'"),
        (("--benchmark", "shapes/multiturn_val"), MethodError, "has recorded sessions"),
        (("--prompts", "nowhere"), CallError, "no option 'prompts'"),
    ],
)
def test_what_cannot_be_played_or_written_is_refused(
    options: tuple[str, ...], error: type[CirError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        raise cir(*FEW, *options).exception
    assert not list(tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize("limit", ["0", "-3"])
def test_a_limit_below_1_is_refused(limit: str, tmp_path: Path) -> None:
    done = cir(*PLAY, "--limit", limit, code=2)
    assert "--limit" in done.stderr
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_second_program_does_not_play_into_the_same_journal(tmp_path: Path) -> None:
    with another_program(tmp_path / "made.jsonl.journal"):
        with pytest.raises(CallError, match=r"made.jsonl.journal: another cir multiround writes it\. Fix:"):
            raise cir(*FEW, "--out", "made.jsonl").exception
        assert not (tmp_path / "made.jsonl").exists()
    assert cir(*FEW, "--out", "new/made.jsonl").exit_code == 0
    assert not list(tmp_path.rglob("*.journal*"))


@pytest.mark.parametrize("option", ["--out", "--html", "--sessions", "--rank-file"])
def test_a_folder_that_is_a_file_is_said_of_the_option_that_names_it(tmp_path: Path, option: str) -> None:
    (tmp_path / "taken").touch()
    ending = {"--out": "jsonl", "--html": "html"}.get(option, "json")
    with pytest.raises(CallError, match=rf"^{option}: .*taken is a file"):
        raise cir(*FEW, option, f"taken/made.{ending}").exception


@pytest.mark.slow
def test_a_local_model_that_writes_no_json_plays_its_sessions_and_loses_none(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    import language_models

    language_models.save_image_text_model(tmp_path / "model")
    local = (*PLAY[:-1], f"transformers:{tmp_path / 'model'}", "--way", "pictures", *FEW[-4:], "--k", "1")
    for name in ("first.jsonl", "again.jsonl"):
        cir(*local, "--out", name, code=0)
    made = read_transcript(tmp_path / "first.jsonl")
    assert made.user["language"]["backend"] == "transformers"
    # Words of a model that was never trained may look like another language.
    ends = [played[-1].end for played in made.sessions().values()]
    assert "last round" in ends
    assert set(ends) <= {"last round", "silent: it answers in another language than English"}
    assert all(played.caption or played.end.startswith("silent") for played in made.rounds)
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()
    assert check_transcript(tmp_path / "first.jsonl").report.ok


@pytest.mark.parametrize("way", ["captions", "pictures"])
def test_a_dry_run_says_what_the_user_would_be_asked_and_plays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    def total() -> list[str]:
        done = cir(*asked, "--dry-run", code=0)
        said = done.stdout
        return next(line.split()[1:] for line in said.splitlines() if line.startswith("together"))

    with LanguageServer(answer=lambda prompt: '{"instruction": "in red"}') as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        asked = [*PLAY[:-1], "openai:tiny", "--limit", "3", "--max-rounds", "3"]
        asked += ["--way", way, "--k", "1"]
        calls, tokens_in, _, _ = total()
        refused = cir(*asked, "--dry-run", "--out", "a.jsonl", "--html", "a.html")
        assert "--out, --html: --dry-run writes no file." in str(refused.exception)
        assert not server.answered
        assert not list(tmp_path.glob("*.jsonl*"))
        # Two further rounds of three sessions; by captions, each target and each candidate, too.
        assert int(calls) == (6 + 9 if way == "captions" else 6)
        assert int(tokens_in.replace(",", "")) > 0
        cir(*asked, code=0)
        assert 0 < server.answered.total() <= int(calls)
