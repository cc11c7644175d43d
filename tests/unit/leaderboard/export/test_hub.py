"""What is exported for the Hub's own boards, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from leaderboard_world import BOARD, as_bytes, cir, rank_file
from says import says

from cir_metrics.catalogue import package_version
from cir_metrics.errors import CallError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.export.hub import Exporter, hub_files, select
from leaderboard.intake import Cover
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.standings import Entry

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "hub"
AT = datetime(2026, 9, 1, 12, tzinfo=UTC)
CODE = "https://huggingface.co/them/linked"
EXPORTER = Exporter(
    "us/shapes",
    "Our board",
    "https://board.example.org",
    revision="0123456789abcdef0123456789abcdef01234567",
    models={"Ours": "us/ours"},
)
SHAPES = boards.board(BOARD)


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """A board of shapes, judged here, with ids and times that are the same each time."""
    server = Server.open(Settings(tmp_path_factory.mktemp("home")))
    sent = [
        (rank_file(1, "Ours", hits=0.5, backbone="ViT-B/32", zero_shot=True), False),
        (rank_file(2, "Linked", hits=0.3, code=CODE), False),
        (rank_file(3, "Linked again", hits=0.2, code=CODE), False),
        (rank_file(4, "Elsewhere", hits=0.1, code="https://github.com/them/code"), False),
        (rank_file(5, "Chance"), True),
    ]
    for document, baseline in sent:
        taken, _ = server.intake.take(BOARD, [as_bytes(document)], Cover("run.json", baseline=baseline))
        assert server.worker.process(taken).state == "published"
    found = [
        replace(entry, submission=_fixed(entry.submission, f"{number:012d}"))
        for number, entry in enumerate(server.entries(SHAPES), start=1)
    ]
    server.close()
    return found


def _fixed(submission: Any, name: str) -> Any:
    events = tuple(replace(event, at=AT) for event in submission.events)
    return replace(submission, id=name, received_at=AT, events=events)


def exported(entries: list[Entry], exporter: Exporter = EXPORTER) -> dict[str, str]:
    results, _ = select([(SHAPES, entries)], exporter.models)
    files = hub_files([SHAPES], results, exporter)
    version = f"v:{package_version()}"
    return {path: content.decode().replace(version, "v:VERSION") for path, content in files.items()}


def test_the_files_are_the_golden_ones(entries: list[Entry]) -> None:
    golden = {
        str(path.relative_to(GOLDEN)): path.read_text(encoding="utf-8")
        for path in GOLDEN.rglob("*")
        if path.is_file()
    }
    assert exported(entries) == golden


def test_a_result_is_what_the_hubs_own_reader_reads(entries: list[Entry]) -> None:
    from huggingface_hub import eval_result_entries_to_yaml, parse_eval_result_entries

    files = exported(entries)
    written = yaml.safe_load(files["models/us/ours/.eval_results/shapes_val.yaml"])
    (read,) = parse_eval_result_entries(written)
    assert eval_result_entries_to_yaml([read]) == written
    assert (read.dataset_id, read.task_id, read.dataset_revision) == (
        "us/shapes",
        "shapes_val",
        EXPORTER.revision,
    )
    assert read.value == round(100 * entries[0].value, 2)
    assert read.source_url == "https://board.example.org/b/shapes/val?entry=000000000001#entry-000000000001"
    assert read.verify_token is None
    tasks = yaml.safe_load(files["dataset/eval.yaml"])["tasks"]
    assert tasks == [{"id": read.task_id, "config": "val", "split": "validation"}]


def test_a_task_of_the_export_is_a_configuration_as_it_is_published(tmp_path: Path) -> None:
    import cir_datasets

    (done,) = cir_datasets.publish("shapes/val", tmp_path)
    files = hub_files([SHAPES], [], EXPORTER)
    (task,) = yaml.safe_load(files["dataset/eval.yaml"])["tasks"]
    assert {(config.name, config.split) for config in done.configs} >= {(task["config"], task["split"])}


def test_baselines_unranked_entries_and_second_values_stay_out(entries: list[Entry]) -> None:
    standing = [entries[0], *entries[1:4], replace(entries[4], rank=None), entries[4]]
    assert [entry.submission.baseline for entry in standing] == [False] * 4 + [True] * 2
    unranked = replace(entries[0], rank=None)
    results, left_out = select([(SHAPES, [*standing, unranked])], {})
    assert [(one.entry.name, one.repository) for one in results] == [("Linked", "them/linked")]
    assert len(left_out) == 3
    says(left_out[0], "shapes/val: 'Ours' (000000000001)", "Fix: ", "--model 000000000001=OWNER/NAME")
    says(left_out[1], "'Linked again'", "a better entry stands for them/linked", "one value a task")
    says(left_out[2], "'Elsewhere'", "has no model repository")


@pytest.mark.parametrize(
    "code",
    [
        "https://huggingface.co/datasets/them/linked",
        "https://huggingface.co/spaces/x",
        "https://huggingface.co/them/linked/../../other",
        "https://huggingface.co/../etc",
        "https://huggingface.co.evil.example/them/linked",
        "https://huggingface.co/them",
        "https://huggingface.co/them/--x",
    ],
)
def test_a_link_that_is_not_a_models_gives_no_repository(entries: list[Entry], code: str) -> None:
    method = {"name": "Linked", "code": code}
    linked = replace(entries[1], submission=replace(entries[1].submission, method=method))
    assert select([(SHAPES, [linked])], {})[0] == []


def test_names_and_texts_of_strangers_are_inert(entries: list[Entry]) -> None:
    name = '"]}\n- dataset: {id: evil/x}\n  value: 1 # <script>&{{ \\'
    method = {"name": name, "notes": "!!python/object/apply:os.system [id]", "backbone": "- a: &x *x"}
    hostile = replace(entries[0], submission=replace(entries[0].submission, method=method))
    texts = exported([hostile], replace(EXPORTER, models={name: "us/ours"}, server="x: {y}\n- z"))
    assert len(texts) == 2
    (result,) = yaml.safe_load(texts["models/us/ours/.eval_results/shapes_val.yaml"])
    assert result["dataset"]["id"] == "us/shapes"
    assert result["source"]["name"] == "x: {y}\n- z"
    assert all(re.fullmatch(r"[\w./-]+", path) and ".." not in path for path in texts)


def test_without_its_own_address_a_server_names_no_source(entries: list[Entry]) -> None:
    text = exported(entries, replace(EXPORTER, url="", revision=None))
    assert set(yaml.safe_load(text["models/us/ours/.eval_results/shapes_val.yaml"])[0]) == {
        "dataset",
        "value",
        "date",
        "notes",
    }


def changed(**fields: Any) -> Board:
    return SHAPES.model_copy(update=fields)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            [SHAPES, boards.board("cirr/val")],
            ["2 datasets (shapes, cirr)", "Fix: name boards of one dataset"],
        ),
        ([changed(primary_direction="lower")], ["'shapes/val'", "lower values", "Fix: leave this board out"]),
        (
            [boards.board("fashioniq/val")],
            ["the mean of 3 benchmarks", "Fix: name the boards of its members"],
        ),
        ([SHAPES, changed(id="shapes_val")], ["same task id (shapes_val, shapes_val)", "Fix: "]),
    ],
)
def test_boards_that_the_format_cannot_hold_are_refused(wanted: list[Board], words: list[str]) -> None:
    with pytest.raises(CallError) as error:
        hub_files(wanted, [], EXPORTER)
    says(error, *words)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dataset": "shapes"}, ["--dataset: 'shapes'", "Fix: write OWNER/NAME"]),
        ({"dataset": "../x"}, ["--dataset: '../x'", "Fix: "]),
        ({"models": {"Ours": "us/../x"}}, ["--model: 'us/../x'", "Fix: "]),
        ({"revision": "main"}, ["--revision: 'main'", "Fix: write its 40 hex digits"]),
    ],
)
def test_a_malformed_repository_or_revision_is_refused(fields: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(CallError) as error:
        replace(EXPORTER, **fields)
    says(error, *words)


def test_a_model_for_nobody_or_for_several_is_refused(entries: list[Entry]) -> None:
    with pytest.raises(CallError) as error:
        select([(SHAPES, entries)], {"Our": "us/ours"})
    says(error, "'Our'", "Did you mean 'Ours'?", "Fix: ")
    with pytest.raises(CallError) as error:
        select([(SHAPES, entries)], {"Chance": "us/ours"})
    says(error, "no ranked entry", "'Chance'")
    twin = replace(entries[1], submission=replace(entries[1].submission, method={"name": "Ours"}))
    with pytest.raises(CallError) as error:
        select([(SHAPES, [entries[0], twin])], {"Ours": "us/ours"})
    says(error, "2 entries of shapes/val are named 'Ours'", "Fix: ", "000000000001, 000000000002")
    results, _ = select([(SHAPES, [entries[0], twin])], {"000000000002": "us/ours"})
    assert [one.entry for one in results] == [twin]


def test_the_command_writes_the_files_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "hub"
    for seed, name in enumerate(("A = B", "Other"), start=1):
        (tmp_path / "run.json").write_bytes(as_bytes(rank_file(seed, name, hits=0.2 * seed)))
        assert cir("leaderboard", "add", "--home", str(home), str(tmp_path / "run.json")).returncode == 0
    call = [
        "leaderboard",
        "export-hub",
        BOARD,
        "--dataset",
        "us/shapes",
        "--home",
        str(home),
        "--out",
        str(out),
    ]
    done = cir(*call, "--model", "A = B=us/ours", "--framework", "ours")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {str(path) for path in out.rglob("*") if path.is_file()}
    says(done.stderr, "left out: shapes/val: 'Other'", "Fix: ")
    assert yaml.safe_load((out / "dataset" / "eval.yaml").read_text())["evaluation_framework"] == "ours"
    again = cir(*call)
    assert again.returncode == 2
    says(again.stderr, f"--out: {out} is not an empty folder", "Fix: ")
    for written, words in (("us/ours", "has no name"), ("Nobody=us/ours", "is named 'Nobody'")):
        refused = cir(*call[:-1], str(tmp_path / "new"), "--model", written)
        assert refused.returncode == 2
        says(refused.stderr, words, "Fix: ")
    assert not (tmp_path / "new").exists()


if __name__ == "__main__":  # writes the golden files anew

    class _Folder:
        def mktemp(self, name: str) -> Path:
            import tempfile

            return Path(tempfile.mkdtemp()) / name

    for path, text in exported(entries.__wrapped__(_Folder())).items():  # type: ignore[attr-defined]
        (GOLDEN / path).parent.mkdir(parents=True, exist_ok=True)
        (GOLDEN / path).write_text(text, encoding="utf-8")
