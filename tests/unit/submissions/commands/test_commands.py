"""`cir validate`, `score`, `convert` and `run` as a person calls them: exit codes, streams, texts."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
from cir_here import cir
from says import says

import submissions
from submissions.methods.registry import scorer_names
from submissions.report import full_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a valid file (run.json), a broken one and one that leaves queries out."""
    folder = tmp_path_factory.mktemp("files")
    done = cir("run", "--benchmark", "shapes/val", "--method", "random", "--out", "run.json", folder=folder)
    assert (done.returncode, done.stdout) == (0, f"{folder / 'run.json'}\n")
    document = json.loads((folder / "run.json").read_text())
    queries = list(document["rankings"])
    partial = {**document, "rankings": {query: document["rankings"][query] for query in queries[:-3]}}
    (folder / "partial.json").write_text(json.dumps(partial))
    document["rankings"][queries[0]][1] = document["rankings"][queries[0]][0]
    (folder / "broken.json").write_text(json.dumps(document))
    return folder


def test_a_valid_file_is_called_valid_with_exit_code_0(folder: Path) -> None:
    done = cir("validate", "run.json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "run.json: valid for shapes/val, 300 answered\n"


def test_a_broken_file_ends_in_its_findings_and_exit_code_1(folder: Path) -> None:
    done = cir("validate", "broken.json", folder=folder, code=1)
    assert done.stdout.startswith('duplicate-image: broken.json: query "')
    assert "run  cir validate broken.json\n" in done.stdout
    assert done.stderr == ""


def test_validate_prints_findings_as_json(folder: Path) -> None:
    done = cir("validate", "broken.json", "--json", folder=folder)
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["ok"] is False
    assert [finding["code"] for finding in report["findings"]] == ["duplicate-image"]
    assert report["findings"][0]["examples"][0]["position"] == 2


def test_score_prints_a_table_with_signatures(folder: Path) -> None:
    done = cir("score", "run.json", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "Random on shapes/val#2, 300 answered"
    assert lines[1].split() == ["metric", "score", "random", "image", "only", "text", "only"]
    (recall,) = (line for line in lines if line.startswith("recall@10 "))
    (main,) = (line for line in lines if line.startswith("main: recall@10 "))
    assert recall.split()[1:] == main.split()[2:]
    (signature,) = (line for line in lines if line.startswith("signature: shapes/val#2 | data:"))
    assert "| ties:listed | metric:1 | sig:3 | declared:removed | n:300 | v:" in signature


def test_score_as_json_with_per_query_rows(folder: Path) -> None:
    done = cir("score", "run.json", "--json", "--per-query", "out.jsonl", folder=folder, code=0)
    report = json.loads(done.stdout)
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert len(rows) == report["n"] == 300
    assert report["submittable"] is True
    mean = sum(row["recall@50"] for row in rows) / 300
    assert mean == pytest.approx(report["metrics"]["recall@50"], abs=1e-12)
    assert str(folder / "out.jsonl") in done.stderr


def test_a_file_with_missing_queries_scores_only_when_that_is_allowed(folder: Path) -> None:
    done = cir("score", "partial.json", folder=folder, code=1)
    assert "3 of 300 have no ranking" in done.stderr
    done = cir("score", "partial.json", "--allow-missing", "--json", folder=folder, code=0)
    report = json.loads(done.stdout)
    assert (report["missing"], report["n"], report["submittable"]) == (3, 300, False)
    assert "missing rankings, which count as misses: 3; this score cannot be submitted." in done.stderr


@pytest.mark.parametrize("command", ["validate", "score"])
def test_a_file_that_is_not_there(folder: Path, command: str) -> None:
    done = cir(command, "missing.json", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    says(done.stderr, "cir: missing.json: no such file", "cir datasets show cirr/val --format")


def test_a_benchmark_that_is_not_there(folder: Path) -> None:
    done = cir("score", "run.json", "--benchmark", "cir/val", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no benchmark 'cir/val'. Did you mean 'cirr/val'?" in done.stderr


@pytest.mark.slow
def test_run_makes_all_baselines_into_a_folder(folder: Path) -> None:
    options = ("--all-baselines", "--encoder", "none", "--out", "rank_files", "--k", "12")
    done = cir("run", "--benchmark", "shapes/multiturn_val", *options, folder=folder, code=0)
    names = [f"{method}.shapes-multiturn_val.json" for method in scorer_names()]
    assert done.stdout.splitlines() == [str(folder / "rank_files" / name) for name in names]
    found = submissions.read(folder / "rank_files" / names[0])
    assert all(len(turn) == 12 for turns in found.rankings.values() for turn in turns)


def test_run_wants_one_method_or_all(folder: Path) -> None:
    for arguments in ([], ["--method", "random", "--all-baselines"]):
        done = cir("run", "--benchmark", "shapes/val", *arguments, folder=folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            f"add --method NAME ({', '.join(submissions.method_names())}) or --all-baselines" in done.stderr
        )


def test_convert_writes_beside_the_input_or_where_it_is_told(folder: Path) -> None:
    recall = {"version": "rc2", "metric": "recall", "1000000": ["dev-1-0-img0"]}
    subset = {"version": "rc2", "metric": "recall_subset", "1000000": ["dev-1-0-img0"]}
    (folder / "a.json").write_text(json.dumps(recall))
    (folder / "b.json").write_text(json.dumps(subset))
    done = cir("convert", "a.json", "b.json", "--to", "native", "--benchmark", "cirr/val", folder=folder)
    assert (done.returncode, done.stdout) == (0, f"{folder / 'a.native.json'}\n"), done.stderr
    found = submissions.read(folder / "a.native.json")
    assert found.method.name == "a"
    done = cir("convert", "a.json", "b.json", "--to", "native", "-b", "cirr/val", "-o", "made", folder=folder)
    assert done.stdout == f"{folder / 'made' / 'a.native.json'}\n"
    options = ["--out", "deep/joined.json", "--name", "CLIP sum"]
    done = cir("convert", "a.json", "b.json", "--to", "native", "-b", "cirr/val", *options, folder=folder)
    assert done.stdout == f"{folder / 'deep' / 'joined.json'}\n"
    assert json.loads((folder / "deep" / "joined.json").read_text())["method"] == {"name": "CLIP sum"}


def test_a_refused_file_is_json_for_a_program_and_words_for_a_person(folder: Path) -> None:
    done = cir("score", "broken.json", "--json", folder=folder, code=1)
    assert json.loads(done.stdout) == json.loads(
        cir("validate", "broken.json", "--json", folder=folder).stdout
    )
    assert done.stderr.startswith("cir: broken.json cannot be scored.\nduplicate-image: ")


def test_the_files_written_are_listed_as_json(folder: Path) -> None:
    done = cir("run", "-b", "shapes/val", "-m", "random", "-o", "listed.json", "--json", folder=folder)
    path = str(folder / "listed.json")
    assert json.loads(done.stdout) == [{"file": path, "benchmark": "shapes/val", "method": "random"}]
    done = cir("convert", "listed.json", "--to", "native", "-o", "copy.json", "--json", folder=folder)
    made = {"file": str(folder / "copy.json"), "format": "native", "part": "", "notes": []}
    assert json.loads(done.stdout) == [made]


@pytest.mark.parametrize("name", ["table", "csv", "latex", "markdown"])
def test_score_prints_the_report_in_every_format(folder: Path, name: str) -> None:
    done = cir("score", "run.json", "--format", name, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    scored = submissions.score(folder / "run.json")
    assert done.stdout == full_report(scored).render(name) + "\n"


def test_score_prints_further_metrics_intervals_and_a_plot(folder: Path) -> None:
    metrics = ("--metric", "recall@20", "--metric", "pnr_map@10:released_code")
    done = cir(
        "score", "run.json", "--json", *metrics, "--intervals", "--plot", "out.svg", folder=folder, code=0
    )
    assert done.stderr == f"{folder / 'out.svg'}: drawn\n"
    assert (folder / "out.svg").read_text().count("<text") > 10
    report = json.loads(done.stdout)
    assert list(report["extra"]) == ["recall@20", "pnr_map@10:released_code"]
    assert report["signatures"]["pnr_map@10:released_code"]["variant"] == "released_code"
    assert report["intervals"]["draws"] == 10_000
    assert report["floors"]["random"]["recall@20"] == pytest.approx(20 / 3939)
    assert report["metrics"] == {}
    assert set(report["intervals"]["metrics"]) == {"recall@20", "pnr_map@10:released_code"}
    assert [row["aspect"] for row in report["by_aspect"]][-2:] == ["macro", "micro"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "cvs"], "cir: no format 'cvs'. Did you mean 'csv'? Fix: use one of table, json, csv"),
        (["--json", "--format", "csv"], "cir: --json and --format csv ask for two formats. Fix: leave one"),
        (["--metric", "hits@10"], "cir: metric hits@10: a metric of sessions, and shapes/val has queries."),
        (
            ["--plot", "out.eps"],
            "cir: out.eps: a plot is written as .png, .svg or .pdf. Fix: name it out.png.\n",
        ),
    ],
)
def test_score_called_wrongly_exits_with_2(folder: Path, arguments: list[str], words: str) -> None:
    done = cir("score", "run.json", *arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(words)


def test_fuse_warns_of_an_option_that_goes(folder: Path) -> None:
    done = cir("fuse", "--by", "rrf", "missing.json", "missing.json", "--out", "fused.json", folder=folder)
    assert "cir: warning: --by is deprecated" in done.stderr


@pytest.mark.parametrize("name", ["intervals", "retrieval"])
def test_a_front_that_goes_warns_and_gives_what_it_gave(name: str) -> None:
    sys.modules.pop(f"submissions.{name}", None)
    with pytest.warns(DeprecationWarning, match=rf"submissions\.{name} is deprecated"):
        front = importlib.import_module(f"submissions.{name}")
    assert all(hasattr(front, each) for each in front.__all__)
