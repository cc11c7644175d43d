"""`cir make fisd`: its result is checked, run, scored, played and published; calls that are wrong say why."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest
from cir_here import invoked
from docs_shell import section
from fisd_runs import content, edits, shapes_captions
from language_server import Fault, LanguageServer
from typer.testing import CliRunner

import cir_datasets
import submissions
from cir_datasets.errors import ConstructionError
from cir_metrics.errors import CirError
from leaderboard.cli import build
from submissions.report import full_report

PAGE = section("make.md", "Aspects, as FISD")
FEW = ("make", "fisd", "--captions", "captions.txt", "--per-aspect", "2", "--spare", "1", "--out", "mine")
ORACLE = (*FEW, "--language", "oracle")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("OPENAI_BASE_URL", "CIR_PROMPTS", "CIR_BENCHMARKS", "CIR_LANGUAGE_PRICES"):
        monkeypatch.delenv(name, raising=False)
    shapes_captions(tmp_path)
    (tmp_path / "paper.yaml").write_text("templates: paper\n")


cir = functools.partial(invoked, code=0)


def test_the_result_is_checked_run_scored_by_aspect_played_and_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = cir(*ORACLE)
    assert "12 queries; 6 triplets left out" in done.stderr
    folder = tmp_path / "mine" / "benchmark"
    cir("datasets", "check", str(folder))
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    loaded = cir_datasets.load("mine/test")
    assert len(loaded.query_ids) == 12
    assert len(loaded.gallery) == 36
    cir("run", "--benchmark", "mine/test", "--method", "random", "--out", "run.json")
    scored = cir("score", "run.json").stdout
    assert all(word in scored for word in ("By aspect", "Cardinality", "Complex", "macro mean"))
    cir("datasets", "publish", "mine", "--to", "published")
    assert (tmp_path / "published" / "mine" / "README.md").is_file()
    before = content(tmp_path / "mine")
    cir(*ORACLE)
    assert content(tmp_path / "mine") == before


def test_an_aspect_that_is_missing_is_named_before_the_work_and_in_the_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = ("make", "fisd", "--captions", "cardinality=captions.txt", "--per-aspect", "1", "--out", "mine")
    refused = CliRunner().invoke(build(), counts)
    assert isinstance(refused.exception, ConstructionError)
    assert "no caption of addition, negation, change, background, complex" in str(refused.exception)
    assert not (tmp_path / "mine").exists()
    cir(*counts, "--allow-missing")
    monkeypatch.setenv("CIR_BENCHMARKS", str(tmp_path / "mine" / "benchmark"))
    report = submissions.score(submissions.make_rank_file("mine/test", "random"))
    gone = ("addition", "background", "change", "complex", "negation")
    assert report.signatures["recall@1"].missing_aspects == gone
    assert "missing:addition,background,change,complex,negation" in str(report.signatures["recall@1"])
    assert "the mean over 1 of 6 aspects" in " ".join(full_report(report).groupings["by_aspect"].notes)


def test_an_aspect_that_people_dropped_is_named_at_the_end(tmp_path: Path) -> None:
    few = (*ORACLE[:5], "1", "--spare", "0", *ORACLE[8:])
    cir(*few)
    table = tmp_path / "mine" / "review.csv"
    table.write_text(re.sub(r"(?m)^(complex_000,\d+),", r"\1,drop", table.read_text("utf-8")), "utf-8")
    dropped = CliRunner().invoke(build(), [*few, "--review", str(table)])
    assert isinstance(dropped.exception, ConstructionError)
    assert "no query of complex: a mean over aspects would be over 5 of 6" in str(dropped.exception)
    cir(*few, "--review", str(table), "--allow-missing")


@pytest.mark.slow
def test_multiround_plays_the_queries_own_aspects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    cir(*ORACLE)
    monkeypatch.setenv("CIR_BENCHMARKS", str(tmp_path / "mine" / "benchmark"))
    play = ("multiround", "--benchmark", "mine/test", "--method", "image_text_sum", "--encoder", "shapes")
    cir(*play, "--simulator", "oracle", "--aspect", "own", "--k", "1", "--out", "d.jsonl")
    header, *rounds = map(json.loads, (tmp_path / "d.jsonl").read_text().splitlines())
    assert header["settings"]["aspect"] == "own"
    said = [each for each in rounds if each["round"] > 1 and each["session"].startswith("background")]
    assert len(rounds) > 12
    assert all(len(each["caption"].split()) <= 12 for each in said)
    assert "hits@1" in cir("score", "d.jsonl").stdout


def test_a_server_that_goes_wrong_costs_questions_and_no_answer_is_bought_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faults(prompt: str, times: int) -> Fault | None:
        kinds = {1: Fault("nonsense"), 2: Fault("status", 503, {"Retry-After": "0"})}
        return kinds.get(times) if len(prompt) % 3 == 0 else None

    with LanguageServer(fault=faults, look=edits) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        aspects = ("--aspect", "background", "--aspect", "change")
        call = (*FEW, "--language", "openai:tiny,concurrency=2", *aspects)
        cir(*call)
        bought = server.answered.copy()
        assert max(bought.values()) == 1
        cir(*call)
        cir("make", "again", "mine", "--from", "edits")
        cir(*call)
        assert server.answered == bought
    settings = json.loads(cir("make", "status", "mine", "--json").stdout)["settings"]
    assert settings["prompts"]["edit_change"].startswith("edit_change 2 (")
    for row in (tmp_path / "mine" / "08-benchmark.jsonl").read_text().splitlines():
        assert "127.0.0.1" not in row


def test_a_model_that_answers_nonsense_leaves_nothing_and_its_refusals_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"relative_caption": "a red circle", "target_caption": "a red circle and a blue cross"}
    with LanguageServer(look=lambda asked: json.dumps(words)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        call = [*FEW, "--language", "openai:tiny", "--aspect", "change", "--aspect", "addition"]
        done = CliRunner().invoke(build(), call)
    assert isinstance(done.exception, ConstructionError)
    assert "no triplet is left" in str(done.exception)
    assert len(server.requests) == 3 * 6
    assert (
        sum("a red circle -> a red circle and a blue cross (" in each.prompt for each in server.requests)
        == 12
    )
    said = cir("make", "status", "mine").stdout
    assert re.search(r"addition\s+no_scene\s+9\s+3", said)
    assert re.search(r"change\s+no_scene\s+9\s+3", said)
    assert "no_scene" in (tmp_path / "mine" / "report.html").read_text()


def test_a_dry_run_says_what_would_be_asked_and_drawn_and_writes_nothing(tmp_path: Path) -> None:
    said = cir(*ORACLE, "--dry-run").stdout
    assert "18 triplets" in said
    (total,) = re.findall(r"together\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)", said)
    calls, asked, answered, pictures, hours = total
    assert pictures == "54"
    assert (calls, answered) == ("30", "1,800")
    assert int(asked.replace(",", "")) > 30 * 100
    assert float(hours) == pytest.approx(30 * 1.5 / 3600, abs=0.005)
    slow = cir(*FEW, "--language", "openai:gpt-4o,concurrency=16", "--picture-seconds", "100", "--dry-run")
    assert "16 at once" in slow.stdout
    assert re.search(r"pictures of addition\s+0\s+0\s+0\s+9\s+0\.25", slow.stdout)
    assert re.search(r"together\s.*\s54\s+1\.50", slow.stdout)
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--captions", "none.txt"), "none.txt: cannot be read"),
        (("--captions", "colour=captions.txt"), "no aspect 'colour'"),
        (("--captions", "captions.txt", "--aspect", "adition"), "Did you mean 'addition'?"),
        ((), "no captions are given. Fix: add --captions FILE"),
        (("--captions", "change=captions.txt", "--aspect", "negation"), "no captions for negation"),
        (("--captions", "captions.txt", "--generator", "paint"), "--generator 'paint' is not known"),
        (("--captions", "captions.txt", "--steps", "5"), "--steps: of a diffusion pipeline"),
        (("--captions", "captions.txt", "--gallery", "all"), "--gallery 'all' is not a choice"),
        (("--captions", "captions.txt", "--engine", "spark"), "no engine 'spark'"),
        (("--captions", "captions.txt", "--address", "auto"), "--address: of a Ray cluster"),
        (("--captions", "captions.txt", "--nouns", "captions.txt"), "--nouns is of English"),
        (("--captions", "captions.txt", "--config", "paper.yaml"), "--templates is of English"),
        (("--captions", "captions.txt"), "edits of captions need a language backend"),
    ],
)
def test_calls_that_are_wrong_say_why(arguments: tuple[str, ...], why: str) -> None:
    done = CliRunner().invoke(build(), ["make", "fisd", "--out", "mine", *arguments])
    assert done.exit_code != 0
    assert why in str(done.exception) + done.output


COUNTS = ("make", "fisd", "--captions", "captions.txt", "--aspect", "cardinality", "--per-aspect", "1")
HEAD = "id,seed,verdict\n"


@pytest.mark.parametrize(
    ("files", "more", "said"),
    [
        ({"captions.txt/a": ""}, (), "captions.txt: cannot be read: it is no regular file"),
        ({"a.json": "[" * 100_000}, ("--captions", "a.json"), "a.json: it is not JSON"),
        ({"a.jsonl": "{}\n"}, ("--captions", "a.jsonl"), "a.jsonl: line 1: it has no caption"),
        ({"a.csv": 'caption\n"A dog\n'}, ("--captions", "a.csv"), "a.csv: line 2: it is not CSV"),
        ({"a.csv": "caption\nA,B\n"}, ("--captions", "a.csv"), "a.csv: line 2: 2 fields, and line 1 names 1"),
        ({"a.token": "1.jpg#0\n"}, ("--captions", "a.token"), "a.token: line 1: it has no caption"),
        ({"mine": ""}, (), "mine: cannot be written: File exists"),
        ({"mine/make.json": "{"}, (), "mine/make.json: it is damaged"),
        ({"mine/benchmark": ""}, (), "mine/benchmark/images/cardinality/"),
        ({"mine/review.csv/a": ""}, (), "mine: cannot be written: Is a directory"),
        ({}, ("--review", "none.csv"), "none.csv: cannot be read: No such file"),
        ({"r.csv": HEAD + '"cardinality_000,'}, ("--review", "r.csv"), "r.csv: line 2: it is not CSV"),
        (
            {"r.csv": HEAD + "cardinality_9,1,keep\n"},
            ("--review", "r.csv"),
            "line 2, triplet 'cardinality_9': there is no such triplet",
        ),
        ({"r.csv": "a,b\n"}, ("--review", "r.csv"), "r.csv: line 1 does not name the columns id"),
        ({"r.csv": "\0"}, ("--review", "r.csv"), "r.csv: line 1 "),
    ],
)
def test_what_is_damaged_is_said_with_its_place_and_what_to_do(
    tmp_path: Path, files: dict[str, str], more: tuple[str, ...], said: str
) -> None:
    for name, text in files.items():
        if name.startswith("captions.txt/"):
            (tmp_path / "captions.txt").unlink()
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = CliRunner().invoke(build(), [*COUNTS, "--spare", "0", "--out", "mine", *more])
    assert isinstance(done.exception, CirError), done.output
    assert said in str(done.exception)
    assert "Fix: " in str(done.exception)


def test_a_limit_of_nothing_is_refused() -> None:
    done = cir(*COUNTS, "--limit", "0", "--out", "mine", code=2)
    assert "--limit" in done.output


def test_the_papers_sources_are_in_the_help_and_on_the_page() -> None:
    said = " ".join(cir("make", "fisd", "--help").stdout.split())
    for name in ("COCO", "Flickr30k", "NoCaps", "CC3M", "HQ-Edit", "Mixtral-8x7B"):
        assert name in said
    for name in ("COCO val", "Flickr30k val and test", "NoCaps val", "CC3M val", "HQ-Edit"):
        assert name in PAGE
