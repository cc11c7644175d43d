"""`cir run` and `cir methods`: what they print, where, and what they refuse."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmark_world import small_shapes
from benchmark_world.embeddings import fashioniq_pictures
from benchmark_world.encoders import PlainEncoder
from cir_here import invoked as cir
from language_server import LanguageServer
from says import says

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import SUBSET, AskedRanking, Benchmark
from cir_metrics.errors import CallError, CirError, UnknownNameError
from submissions import RunOptions
from submissions.errors import EncoderError, MethodError
from submissions.language.prompts import load_prompts
from submissions.methods import method_names
from submissions.running.rerank_estimate import estimated

SECOND = AskedRanking(SUBSET, removes_reference=True, on_board=True)

SESSIONS = ["run", "--benchmark", "shapes/multiturn_val", "--method", "image_only_pixels"]


def test_methods_are_listed_in_the_order_of_tables() -> None:
    done = cir("methods", "list", code=0)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "ENCODERS", "NEEDS", "SUMMARY"]
    assert [line.split()[0] for line in lines[1:]] == list(method_names())
    cards = json.loads(cir("methods", "list", "--json").stdout)
    assert [card["name"] for card in cards] == list(method_names())


def test_a_card_is_shown() -> None:
    lines = cir("methods", "show", "cirevl").stdout.splitlines()
    assert lines[0] == "CIReVL (cirevl)"
    assert "needs:     language" in lines
    assert "paper:     https://arxiv.org/abs/2310.09291" in lines
    assert json.loads(cir("methods", "show", "cirevl", "--json").stdout)["needs"] == ["language"]
    with pytest.raises(UnknownNameError, match=r"no method 'cirvl'\. Did you mean 'cirevl'\?"):
        raise cir("methods", "show", "cirvl").exception


@pytest.mark.slow
def test_a_run_can_be_compressed_and_names_the_next_command(tmp_path: Path) -> None:
    out = tmp_path / "run.json.gz"
    done = cir(*SESSIONS, "--aggregation", "weighted", "--alpha", "0.5", "--out", str(out), code=0)
    assert done.stdout == f"{out}\n"
    says(done.stderr, f"image_only_pixels: ranking shapes/multiturn_val ... cir score {out}")
    found = submissions.read(out)
    assert found.method.aggregation == "weighted (alpha 0.5)"
    assert gzip.decompress(out.read_bytes()) == found.to_json()
    cir(*SESSIONS, "--alpha", "0.5", "--out", str(tmp_path / "again.json.gz"), code=0)
    assert (tmp_path / "again.json.gz").read_bytes() == out.read_bytes()


def test_all_aggregations_are_a_file_each(tmp_path: Path) -> None:
    asked = ("run", "--benchmark", "shapes/multiturn_val", "--method", "random", "--k", "10")
    done = cir(*asked, "--aggregation", "all", "--out", str(tmp_path / "all"), code=0)
    names = [f"random-{how}.shapes-multiturn_val.json" for how in ("latest", "average", "weighted")]
    assert [Path(line).name for line in done.stdout.splitlines()] == names
    cir(*asked, "--aggregation", "average", "--out", str(tmp_path / "one.json"), code=0)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "all" / names[1]).read_bytes()


RANDOM, BASELINES = ["--method", "random"], ["--all-baselines"]
WEIGHTLESS, ENCODED = [*BASELINES, "--encoder", "none"], [*BASELINES, "--encoder", "a/model"]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (["--all-baselines", "--alpha", "0.5"], CirError, "--alpha is for one --method."),
        (["--all-baselines", "--aggregation", "latest"], CirError, "--aggregation is for one --method."),
        ([*RANDOM, "--encoder", "a/b", "--dtype", "float16"], MethodError, "no use for --dtype, --encoder."),
        (["--method", "cirevl", "--prompts", "folder"], CallError, "--prompts are those of a --language."),
        ([*WEIGHTLESS, "--language", "nope"], MethodError, "and none has a use for --language. Fix: "),
        ([*WEIGHTLESS, "--search", "hnsw"], MethodError, "a use for --search."),
        ([*BASELINES, "--encoder", "pixels"], EncoderError, "use --method image_only_pixels, text_only_"),
        (["--method", "image_only", "--encoder", "none"], EncoderError, "or --all-baselines with --encoder "),
        (["--method", "concat"], MethodError, "concat needs weights of its own. Fix: add --checkpoint"),
        (["--method", "image_onyl"], UnknownNameError, "Did you mean 'image_only'?"),
        ([*ENCODED, "--search", "zzz"], UnknownNameError, "no search 'zzz'."),
        ([*ENCODED, "--caption-rule", "zzz"], UnknownNameError, "no caption rule 'zzz'."),
        ([*BASELINES, "--encoder", "shapes", "--revision", "z"], MethodError, "only names on the Hub have"),
        (["--method", "random", "--aggregation", "lates"], UnknownNameError, "Did you mean 'latest'?"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_ranked(
    arguments: list[str], error: type[CirError], said: str
) -> None:
    done = cir("run", "--benchmark", "shapes/multiturn_val", *arguments, code=1)
    assert done.stdout == ""
    assert ": ranking" not in done.stderr
    assert isinstance(done.exception, error)
    assert said in str(done.exception)
    assert "Fix: " in str(done.exception)


def test_a_wrong_call_on_a_suite_is_refused_before_anything_is_ranked() -> None:
    done = cir("run", "--benchmark", "fashioniq/val", "--method", "concat")
    assert isinstance(done.exception, MethodError)
    assert "concat needs weights of its own." in str(done.exception)
    assert ": ranking" not in done.stderr


@pytest.mark.parametrize("name", ["folder", "run.parquet", "run.jsonl", "run.trec.gz", "file/run.json"])
@pytest.mark.parametrize("command", ["run", "fuse"])
def test_where_to_write_is_looked_at_before_the_work(tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    ranked = ["run", "--benchmark", "nosuch/benchmark", "--method", "random"]
    done = cir(*(ranked if command == "run" else ["fuse", "nosuch.json"]), "--out", str(tmp_path / name))
    assert done.exit_code != 0
    assert isinstance(done.exception, CallError)
    said = {"folder": "folder is a folder", "file/run.json": "file is a file, not a folder"}
    says(done.exception, "--out", said.get(name, "the native format is written"), "Fix: ")
    assert sorted(tmp_path.rglob("*")) == before


def test_all_baselines_want_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("kept")
    baselines = ["run", "-b", "shapes/val", "--all-baselines", "-e", "none"]
    done = cir(*baselines, "--out", str(tmp_path / "run.json"))
    assert isinstance(done.exception, CallError)
    says(done.exception, f"--out: {tmp_path / 'run.json'} is a file, not a folder. Fix: name a folder")
    assert done.stderr == ""
    assert (tmp_path / "run.json").read_text() == "kept"


def test_a_k_that_is_too_small_to_score_is_warned_of_before_the_work(tmp_path: Path) -> None:
    done = cir(*SESSIONS, "--k", "3", "--out", str(tmp_path / "run.json"), code=0)
    says(done.stderr.splitlines()[0], "--k 3", "shapes/multiturn_val use 10 images", "Leave --k out")
    assert cir("score", str(tmp_path / "run.json")).exit_code == 1
    enough = cir(*SESSIONS, "--k", "10", "--out", str(tmp_path / "run.json"))
    assert not [line for line in enough.stderr.splitlines() if "--k" in line]


def test_skipped_images_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark, folder = fashioniq_pictures(tmp_path, leave_out=["D005", "D060"])
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("cir_datasets.load", lambda name: benchmark)
    monkeypatch.setattr(
        "submissions.encoders.loading.load_encoder", lambda name, **options: PlainEncoder(name)
    )
    given = ["--images", str(folder), "--workers", "0", "--out", str(tmp_path / "run.json")]
    done = cir("run", "-b", benchmark.id, "-m", "text_only", "-e", "plain", "--skip-missing", *given, code=0)
    says(done.stderr, f"{benchmark.id}: 2 images missing or unreadable ... ranked behind all others")


def test_all_baselines_report_how_many_questions_the_language_backend_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = small_shapes()
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("cir_datasets.load", lambda name: benchmark)
    monkeypatch.setattr(
        "submissions.encoders.loading.load_encoder", lambda name, **options: PlainEncoder(name)
    )
    command = ["run", "-b", "shapes/val", "--all-baselines", "-e", "plain", "--workers", "0"]
    with LanguageServer(answer=lambda prompt: "a red star") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = cir(*command, "--language", "oracle+openai:tiny", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    usage = [line for line in done.stderr.splitlines() if line.startswith("openai:tiny: ")]
    assert len(usage) == 1
    assert usage[0].startswith("openai:tiny: 6 answered (6 requests, ")


RERANKED = ["run", "--benchmark", "shapes/val", "--method", "image_only_pixels", "--rerank", "sc4cir"]


def test_a_run_is_ranked_anew_and_says_what_that_took(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    more = ["--rerank-processes", "s1+s2", "--rerank-top", "2", "--language", "oracle,noise=0.1"]
    done = cir(*RERANKED, *more, "--out", str(out), code=0)
    assert done.stdout == f"{out}\n"
    assert "SC4CIR: 300 of 300 ranked anew; answered: 300 questions for T', 0 for T''; " in done.stderr
    found = submissions.read(out)
    assert found.method.name == "Image only + SC4CIR s1+s2 top 2 (oracle)"
    assert found.method.reranking == "SC4CIR (top 2, S1 + S2, words by oracle); 300 of 300 ranked anew"
    assert "oracle (scene graphs of shapes, noise 0.1, seed 0)" in found.method.notes
    assert "rerank:SC4CIR (top 2, S1 + S2, words by oracle)" in cir("score", str(out)).stdout


def test_a_dry_run_estimates_what_would_be_asked_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--language", "openai:tiny,concurrency=8", "--dry-run", "--picture-tokens", "1000"]
    done = cir(*RERANKED, *asked, "--call-seconds", "3", code=0)
    assert list(tmp_path.iterdir()) == []
    rows = {line[:22].strip(): line[22:].split() for line in done.stdout.splitlines()[2:]}
    # 300 queries; 30 candidates of each, and five members of its subset.
    assert {what: cells[0] for what, cells in rows.items()} == {
        "T', once a query": "300",
        "T'', once a candidate": "10,500",
        "together": "10,800",
    }
    tokens = int(rows["T'', once a candidate"][1].replace(",", ""))
    assert 10_500 * 2_000 < tokens < 10_500 * 2_500, "two pictures and the prompt"
    assert rows["together"][3] == f"{10_800 * 3 / 8 / 3600:.2f}"


def estimate(method: str, *more: str) -> dict[str, Any]:
    """The rows of an estimate of SC4CIR on shapes/val, by what is asked."""
    command = ["run", "--benchmark", "shapes/val", "--method", method, "--rerank", "sc4cir"]
    done = cir(*command, "--language", "oracle", "--dry-run", "--json", *more, code=0)
    return {row["what"]: row for row in json.loads(done.stdout)}


def test_a_dry_run_counts_what_the_method_asks_itself() -> None:
    benchmark = cir_datasets.load("shapes/val")
    shown = {row["reference_image_id"] for row in benchmark.rows()}
    images = len(shown.union(benchmark.gallery or ()))
    back = ["--rerank-top", "10", "--rerank-processes", "s1+s2"]
    found = estimate("cirevl", *back)
    # Forward one of each query, and one of each of 10 + 5 candidates of 300 queries.
    assert {what: row["calls"] for what, row in found.items()} == {
        "cirevl: a caption an image": images,
        "cirevl: a merge a text": 300 + 15 * 300,
        "T', once a query": 300,
    }
    few = estimate("cirevl", *back, "--rerank-top", "1")
    assert few["cirevl: a caption an image"]["calls"] == len(shown) + (1 + 1) * 300
    merges = found["cirevl: a merge a text"]
    words = len(load_prompts()["merge"].text) + 160
    assert merges["tokens_in"] * 4 > merges["calls"] * words, "the words are filled in"
    forward = estimate("captioning", "--rerank-processes", "s3", "--rerank-top", "1")
    assert {what: row["calls"] for what, row in forward.items()} == {
        "captioning: a caption an image": len(shown),
        "T'', once a candidate": (1 + 1) * 300,
    }


def test_a_dry_run_counts_the_whole_gallery_where_a_reference_lies_outside_it() -> None:
    whole = small_shapes()
    rows = whole.rows()
    outside = rows[0]["reference_image_id"]
    count = sum(row["reference_image_id"] == outside for row in rows)
    gallery = [image for image in whole.gallery or () if image != outside]
    benchmark = Benchmark.from_rows(whole.spec, rows, gallery)
    options = RunOptions(rerank="sc4cir", rerank_top=1000, rerank_processes="s3", language="oracle")
    (found,) = estimated(benchmark, "random", options, 85)
    beside = sum(len(SECOND.images(row)) for row in rows)
    assert found.calls == len(rows) * (len(gallery) - 1) + count + beside


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "random", "--dry-run"], "--dry-run estimates a re-ranker"),
        (["--all-baselines", "--rerank", "sc4cir", "--language", "oracle"], "--rerank is for one --method"),
        (["--all-baselines", "--rerank", "sc4cir", "--dry-run"], "--dry-run estimates one method"),
        (["--method", "random", "--picture-tokens", "5"], "--picture-tokens: only beside --dry-run"),
        (["--method", "random", "--call-seconds", "5"], "--call-seconds: only beside --dry-run"),
        (["--method", "random", "--dry-run", "--out", "x.json"], "--dry-run writes no file"),
    ],
)
def test_a_re_ranker_and_its_estimate_refuse_what_they_would_ignore(arguments: list[str], words: str) -> None:
    done = cir("run", "--benchmark", "shapes/val", *arguments)
    says(done.exception, words, "Fix: ")


def test_the_card_of_a_re_ranker_is_shown() -> None:
    assert "Re-rankers, which go with any of them (cir run --rerank): sc4cir" in cir("methods", "list").stderr
    lines = cir("methods", "show", "sc4cir").stdout.splitlines()
    assert lines[0] == "SC4CIR (sc4cir)"
    assert any(line.startswith("reported:  ZeroSight Table 2") for line in lines)


def test_a_class_of_the_working_directory_is_shown_as_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = 'class Shown:\n    """Ranks as the gallery lies."""\n    method = rank = lambda self, *_: None\n'
    (tmp_path / "shown_here.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(tmp_path))])
    card = json.loads(cir("methods", "show", "shown_here:Shown", "--json").stdout)
    assert card["summary"] == "Ranks as the gallery lies."
    lines = cir("methods", "show", "shown_here:Shown").stdout.splitlines()
    assert [line for line in lines if line.endswith(" -")] == [], "nobody wrote a card for it"
    assert {"Composer", "Ranker", "Scorer"} <= set(dir(submissions.methods)), "the kinds that it may be"
