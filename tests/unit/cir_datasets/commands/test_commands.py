"""`cir datasets list`, `show` and `prepare`, run as a user runs them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path

import cir_here
import datasets_publishers as made
import pytest
from programs import run_program
from slowly import with_slow
from typer.testing import CliRunner

from cir_datasets import registry
from cir_datasets.audit.describe import described, described_text, example_rank_file
from cir_datasets.registry.suites import suite, suite_ids
from leaderboard.cli import build

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "CIR_CACHE_HOME": str(tmp_path / "cache"),
        "CIR_DATA_HOME": str(tmp_path / "home"),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_ENDPOINT": "http://127.0.0.1:1",
        "CIR_GITHUB_ENDPOINT": "http://127.0.0.1:1",
        "PYTHONWARNINGS": "ignore",
    }


def cir(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return cir_here.cir("datasets", *arguments, **environment)


def process(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """For the Hub's cache: huggingface_hub reads where it is when it is imported."""
    return run_program(
        [sys.executable, "-m", "leaderboard.cli", "datasets", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        code=None,
    )


def test_what_new_says_next_can_be_typed_where_a_name_has_blanks(
    environment: dict[str, str], tmp_path: Path
) -> None:
    said = cir(environment, "new", "mine", "--out", str(tmp_path / "own folder")).stderr
    words = shlex.split(said.rpartition("then  ")[2])
    assert words[:3] == ["cir", "datasets", "check"]
    assert cir(environment, *words[2:]).returncode == 0


def test_list_shows_every_benchmark(environment: dict[str, str]) -> None:
    done = cir(environment, "list", "--json")
    rows = json.loads(done.stdout)
    assert [row["id"] for row in rows] == [*registry.benchmark_ids(), *suite_ids()]
    assert {
        "id": "fashioniq/dress_val",
        "queries": 2017,
        "gallery": 3817,
        "turns": "1",
        "reference": "kept",
        "main_metric": "mean(recall@10, recall@50)",
        "license": "CDLA-Permissive",
        "status": "published",
        "benchmarks": None,
    } in rows
    assert {
        "id": "fashioniq/val",
        "queries": 6016,
        "gallery": None,
        "turns": "1",
        "reference": "kept",
        "main_metric": "mean(recall@10, recall@50)",
        "license": "CDLA-Permissive",
        "status": "suite",
        "benchmarks": ["fashioniq/dress_val", "fashioniq/shirt_val", "fashioniq/toptee_val"],
    } in rows
    lines = cir(environment, "list").stdout.splitlines()
    assert len(lines) == len(rows) + 3  # two head lines, one blank
    assert lines[len(registry.benchmark_ids()) + 2].split() == [
        *["SUITE", "QUERIES", "TURNS", "MAIN", "METRIC", "MEMBERS"]
    ]
    assert lines[-1].endswith("6: cardinality, addition, negation, change, background, complex")
    assert lines[0].split() == [
        "ID",
        "QUERIES",
        "GALLERY",
        "TURNS",
        "REFERENCE",
        "MAIN",
        "METRIC",
        "LICENSE",
        "STATUS",
    ]


def test_show_tells_protocol_files_and_traps(environment: dict[str, str]) -> None:
    text = cir(environment, "show", "cirr/val").stdout
    for words in (
        "reference  removed from the ranking",
        "captions/cap.rc2.val.json  pinned ",
        "What users get wrong",
        "licence    annotations: MIT",
        "note       The paper's Table 2 says 4,184 queries",
    ):
        assert words in text
    assert "cirr/test1" not in text
    assert "cirr/test1" in cir(environment, "show", "cirr").stdout
    (protocol,) = json.loads(cir(environment, "show", "circled/circo_val", "--json").stdout)["benchmarks"]
    assert protocol["gallery_from"] == "circo/val"
    assert protocol["turns"] == {"2": 36, "3": 5, "4": 11, "5": 2}
    assert protocol["files"] == [{"name": "data/circo_val.json", "pinned": None, "got": None}]


@pytest.mark.parametrize("suite_id", suite_ids())
def test_show_tells_how_a_suite_is_averaged_and_what_each_member_needs(suite_id: str) -> None:
    found, text = described(suite_id), described_text(suite_id)
    declared = found if suite_id not in registry.names() else found["suite"]
    assert [member["id"] for member in declared["benchmarks"]] == list(suite(suite_id).benchmarks)
    assert declared["queries"] == sum(member["queries"] for member in declared["benchmarks"])
    assert f"members  {', '.join(suite(suite_id).benchmarks)}" in text
    assert "each member weighs the same" in text
    assert ("@micro" in text) == ("micro" in suite(suite_id).averages)
    for member in suite(suite_id).benchmarks:
        assert f"\n{member}\n" in text
    for file in registry.spec(suite(suite_id).benchmarks[0]).config.files:
        assert f"file       {file}  " in text
    bundle = json.loads(example_rank_file(suite_id))
    assert (bundle["format"], bundle["suite"]) == ("cir-rank-bundle", suite_id)
    assert [run["benchmark"] for run in bundle["runs"]] == list(suite(suite_id).benchmarks)


def test_show_names_the_suites_of_a_benchmark() -> None:
    assert "suites     fashioniq/train, fashioniq/val, fashioniq/val_union, " in described_text("fashioniq")
    assert described("fashioniq/dress_val_union")["suites"] == ["fashioniq/val_union"]
    assert (described("cirr")["suites"], described("cirr")["suite"]) == ([], None)
    assert "suites" not in described_text("cirr/val")


def test_show_tells_what_was_got_where_nothing_is_pinned(environment: dict[str, str], tmp_path: Path) -> None:
    made.write_circled(tmp_path / "home", "cirr_val")
    assert cir(environment, "prepare", "circled/cirr_val", "--no-checks", "--no-hub-cache").returncode == 0
    text = cir(environment, "show", "circled/cirr_val").stdout
    size = (tmp_path / "home/CIRCLED/data/cirr_val.json").stat().st_size
    assert " bytes, from CIR_DATA_HOME" in text
    assert "unpinned; got " in text
    assert f"{size:,} bytes" in text


@pytest.mark.parametrize(
    "benchmark_id", with_slow(registry.benchmark_ids(), "shapes/train", "shapes/multiturn_train")
)
def test_the_example_rank_file_has_the_form_of_its_benchmark(benchmark_id: str) -> None:
    example = json.loads(example_rank_file(benchmark_id))
    several = "fashioniq" in benchmark_id.split("/")[0]
    assert example["method"]["text_fields"] == ["captions" if several else "relative_caption"]
    spec = registry.spec(benchmark_id)
    assert (example["format"], example["benchmark"]) == ("cir-rank-file", benchmark_id)
    assert example["benchmark_version"] == spec.card.version
    (ranking,) = example["rankings"].values()
    assert all(isinstance(entry, list if spec.kind == "multi_turn" else str) for entry in ranking)
    if "dialogues" in benchmark_id:
        assert len(ranking) == (10 if "across" in benchmark_id else 5)
    assert ("subset_rankings" in example) == (spec.config.subset is not None)


def test_format_prints_a_row_of_the_data_that_is_here(environment: dict[str, str], tmp_path: Path) -> None:
    done = cir(environment, "show", "cirr/val", "--format")
    example = json.loads(done.stdout)
    assert list(example["rankings"]) == [registry.card("cirr").examples["val"].query]
    made.write_cirr(tmp_path / "home", "val")
    example = json.loads(cir(environment, "show", "cirr/val", "--format").stdout)
    images = made.cirr_images("val")
    assert example["rankings"] == {"900": images[1:4]}  # without the reference, which is removed
    assert example["subset_rankings"] == {"900": images[1:4]}
    assert "benchmark's own" in example["method"]["notes"]


def test_format_prints_a_row_of_what_was_prepared(environment: dict[str, str], tmp_path: Path) -> None:
    invented = json.loads(cir(environment, "show", "fisd/change", "--format").stdout)
    assert "were not checked" in invented["method"]["notes"]
    folder = made.write_template(tmp_path / "given", "zerosight")
    options = ["--data-dir", str(folder), "--no-checks", "--no-hub-cache"]
    assert cir(environment, "prepare", "zerosight/test", *options).returncode == 0
    example = json.loads(cir(environment, "show", "zerosight/test", "--format").stdout)
    assert list(example["rankings"]) == [json.loads((folder / "test.json").read_text())[0]["id"]]
    assert "benchmark's own" in example["method"]["notes"]


def test_format_of_sessions_has_a_ranking_a_turn_and_needs_no_gallery(
    environment: dict[str, str], tmp_path: Path
) -> None:
    made.write_circled(tmp_path / "home", "circo_val")
    example = json.loads(cir(environment, "show", "circled/circo_val", "--format").stdout)
    (rankings,) = example["rankings"].values()
    assert len(rankings) == 2
    assert set(rankings[0]) == {"000000123456", "000000000009"}  # references; no list of the gallery is here


def test_show_says_what_ids_are_with_an_example(environment: dict[str, str]) -> None:
    text = cir(environment, "show", "cirr").stdout
    card = registry.card("cirr")
    assert f"ids        {card.ids}" in text
    for name, example in card.examples.items():
        noun = "session" if name.startswith("dialogues_") else "query"
        assert f"example    {noun} {example.query}, image {example.images[0]}" in text
    shown = json.loads(cir(environment, "show", "cirr/test1", "--json").stdout)
    assert shown["ids"] == card.ids
    ids = card.examples["test1"].model_dump(mode="json", exclude={"turns"})  # a query has none
    assert shown["benchmarks"][0]["example"] == ids


def test_prepare_fills_both_caches_and_says_where(environment: dict[str, str], tmp_path: Path) -> None:
    made.write_cirr(tmp_path / "home", "val")
    done = process(environment, "prepare", "cirr/val", "--no-checks")
    assert done.returncode == 0, done.stderr
    head, *folders = done.stdout.splitlines()
    assert head == "cirr/val: 3 queries, 8 images in the gallery, unpinned, counts not checked"
    assert [Path(folder.strip()).is_dir() for folder in folders] == [True, True, True]
    assert str(tmp_path / "hf/datasets/cirr/val") in folders[1]


def test_prepare_without_the_hub_cache_is_json_too(environment: dict[str, str], tmp_path: Path) -> None:
    made.write_circo(tmp_path / "given", "val", gallery=False)
    done = process(
        environment,
        "prepare",
        "circo/val",
        "--data-dir",
        str(tmp_path / "given"),
        "--no-checks",
        "--no-hub-cache",
        "--json",
    )
    (outcome,) = json.loads(done.stdout)
    assert (outcome["rows"], outcome["gallery"], outcome["hub_cache"]) == (2, None, [])
    assert outcome["checks_skipped"] == ["counts"]
    assert not (tmp_path / "hf").exists()


def test_one_failure_does_not_stop_the_others(environment: dict[str, str], tmp_path: Path) -> None:
    made.write_cirr(tmp_path / "home", "val")
    done = cir(environment, "prepare", "cirr", "--no-checks", "--no-hub-cache")
    assert done.stdout.startswith("cirr/val: 3 queries")
    assert "cirr/train: the publisher's file captions/cap.rc2.train.json is not available" in done.stderr
    assert "cir: 6 of 7 benchmarks could not be prepared, see above." in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["prepare", "cirr/val"], 1, "but the card says 4,181"),
        (["prepare", "cirr/nothing"], 2, "no benchmark 'cirr/nothing'"),
        (["prepare", "cirr/test1"], 2, "is not available"),
        (["show", "nothing"], 2, "no benchmark 'nothing'"),
    ],
)
def test_what_goes_wrong_is_said_without_a_traceback(
    arguments: list[str], code: int, words: str, environment: dict[str, str], tmp_path: Path
) -> None:
    made.write_cirr(tmp_path / "home", "val")
    done = cir(environment, *arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")
@pytest.mark.parametrize(
    "arguments",
    [
        ["qrels", "cirr/val", "--out", "cirr.qrels"],
        ["export", "cirr/val", "--out", "queries.json"],
        ["prepare", "cirr/val", "--no-hub-cache"],
        ["stats", "cirr/val", "--no-tags"],
        ["publish", "cirr/val", "--to", "published"],
        ["images", "cirr/val", "--root", "."],
        ["hash", "cirr/val", "--root", ".", "--out", "hashes.parquet"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_variable_that_the_error_names_is_obeyed(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made.write_cirr(tmp_path / "home", "val")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CIR_VERIFICATION_MODE", raising=False)
    refused = CliRunner().invoke(build(), ["datasets", *arguments])
    assert "CIR_VERIFICATION_MODE=no_checks" in str(refused.exception or refused.output)
    monkeypatch.setenv("CIR_VERIFICATION_MODE", "no_checks")
    done = CliRunner().invoke(build(), ["datasets", *arguments])
    # The pictures are not there, which both commands say; the counts are not what stops them.
    wanted = 1 if arguments[0] in ("images", "hash") else 0
    assert (done.exit_code, "the card says" in str(done.exception)) == (wanted, False)


def test_a_suite_stands_for_its_members() -> None:
    from cir_datasets.registry import ids_of

    assert ids_of("fashioniq/val") == suite("fashioniq/val").benchmarks
    assert ids_of("cirr/val") == ("cirr/val",)
    assert len(ids_of("circled")) == 9


def test_a_data_dir_without_any_publishers_file_is_refused(tmp_path: Path) -> None:
    run = resources.files("submissions.entries") / "random.shapes-val.json.gz"
    (tmp_path / "cirr" / "captions").mkdir(parents=True)
    call = ["score", str(run), "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(build(), call)
    assert str(done.exception).startswith(f"--data-dir {tmp_path}: no publisher's file of any benchmark")
    assert "Fix: name the folder" in str(done.exception)
    (tmp_path / "cirr" / "captions" / "cap.rc2.val.json").write_text("[]", encoding="utf-8")
    assert CliRunner().invoke(build(), call).exit_code == 0
