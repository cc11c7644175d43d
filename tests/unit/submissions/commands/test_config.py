"""Files of options: of every command that has one, through the command itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_cli import COMMANDS
from typer.testing import CliRunner, Result

from cir_datasets.errors import SourceError
from cir_metrics.errors import CallError
from leaderboard.cli import build
from submissions import read

FAMILIES = {
    " ".join(path): command for path, command in COMMANDS if getattr(command.callback, "in_file", None)
}
RUN = ("run", "--benchmark", "shapes/val", "--method", "random")


def cir(*words: object) -> Result:
    return CliRunner().invoke(build(), [str(word) for word in words], prog_name="cir")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> Path:
        path = tmp_path / "options.yaml"
        path.write_text(text, "utf-8")
        return path

    return write


def every_option(command: Any) -> list[Any]:
    """What a command parses, but for what is not of a file."""
    context = command.make_context("cir", ["--help"], resilient_parsing=True)
    unfiled = {"help", "config", "write_config", "as_json"}
    return [
        each
        for each in command.get_params(context)
        if each.param_type_name == "option" and each.name not in unfiled
    ]


def test_the_making_wing_has_files_of_options() -> None:
    trained = {f"train {name}" for name in ("concat", "pic2word", "magiclens", "cirplant", "tirg")}
    made = {f"make {name}" for name in ("circled", "cirr", "fisd", "zerosight", "judge")}
    assert set(FAMILIES) == {"run", "rerank", "embed", "multiround", "play", *trained, *made}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_written_file_names_every_option_with_its_help_and_is_read_again(name: str, config: Any) -> None:
    written = cir(*name.split(), "--write-config")
    assert written.exit_code == 0, written.output
    values = yaml.safe_load(written.stdout)
    options = {max(each.opts, key=len)[2:].replace("-", "_"): each for each in every_option(FAMILIES[name])}
    assert values.keys() == options.keys()
    plain = " ".join(line.removeprefix("# ") for line in written.stdout.splitlines())
    assert [key for key, each in options.items() if " ".join(each.help.split()) not in plain] == []
    path = config(written.stdout)
    command = FAMILIES[name]
    with command.make_context("cir", ["--config", str(path)], resilient_parsing=True) as context:
        with_file = dict(context.params)
    with command.make_context("cir", [], resilient_parsing=True) as context:
        assert with_file | {"config": None} == context.params | {"config": None}


@pytest.mark.parametrize("name", FAMILIES)
def test_an_option_that_left_the_line_warns_and_says_where_it_went(name: str) -> None:
    command = FAMILIES[name]
    assert command.hidden_params, "what only a file has is still read from the line"
    shown = cir(*name.split(), "--help").output
    program = command.make_context("cir", [], resilient_parsing=True)
    for each in command.hidden_params:
        long = max(each.opts, key=len)
        assert f"{long} " not in shown
        if each.name in ("data_dir", "no_checks"):  # they have not moved: behind a command, too
            continue
        words = [long] if each.is_flag else [long, *["8"] * each.nargs]
        place = f"`{long[2:].replace('-', '_')}: VALUE`"
        if not command.callback.was_on_line:  # type: ignore[union-attr]
            refused = cir(*name.split(), "run.json", *words).exception
            assert re.search(rf"{long} is not taken behind cir {name}\. Fix: .*{place}", str(refused))
            continue
        said = rf"{long} is deprecated behind .*{name} and .*{place}"
        with pytest.warns(FutureWarning, match=said):
            command.make_context(name, words, parent=program, resilient_parsing=True).close()


def test_no_checks_may_stand_behind_the_command(config: Any, recwarn: pytest.WarningsRecorder) -> None:
    assert cir(*RUN, "--no-checks", "--out", "run.json").exit_code == 0
    assert list(recwarn) == []


def test_a_maker_that_moved_says_where_it_is() -> None:
    done = cir("make", "clips", "--out", "clips")
    assert re.search(r"python -m examples\.clips", f"{done.output} {done.exception}")


def test_the_line_goes_before_the_file_and_the_file_before_the_default(config: Any) -> None:
    path = config("k: 7\nout: of_file.json\n")
    assert cir(*RUN, "--config", path).exit_code == 0
    assert {len(each) for each in read("of_file.json").rankings.values()} == {7}
    done = cir(*RUN, "--config", path, "--k", "5", "--out", "of_line.json")
    assert (done.exit_code, Path(done.stdout.strip()).name) == (0, "of_line.json")
    assert {len(each) for each in read("of_line.json").rankings.values()} == {5}


def test_what_must_be_given_may_be_given_in_the_file(config: Any) -> None:
    path = config("benchmark: shapes/val\nmethod: random\nk: 3\n")
    assert cir("run", "--config", path, "--out", "whole.json").exit_code == 0
    cir(*RUN, "--k", "3", "--out", "line.json")
    assert Path("whole.json").read_bytes() == Path("line.json").read_bytes()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("k: 7\nrerank_tops: 3\n", r"rerank_tops \(line 2\): .*Did you mean 'rerank_top'\?"),
        ("k: seven\n", r"k \(line 1\): must be a whole number, not 'seven'"),
        ("k: 7\nk: 8\n", r"line 2: the key 'k' is there twice \(first in line 1\)"),
        ("\nbatch_size: 0\n", r"batch_size \(line 2\): must be 1 or more, not 0"),
        ("skip_missing: 1\n", r"skip_missing \(line 1\): must be true or false, not 1"),
        ("revision: 1234567\n", r"revision \(line 1\): must be text, not 1234567"),
        ("k: 1001\n", r"k \(line 1\): .*1000, not 1001"),
        ("- k\n", "it does not hold fields"),
        ("json: true\n", r"json \(line 1\): there is no such field"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_line(config: Any, text: str, said: str) -> None:
    path = config(text)
    error = cir(*RUN, "--config", path, "--out", "made.json").exception
    assert isinstance(error, CallError)
    assert re.search(rf"^{re.escape(str(path))}: .*{said}", str(error)), error
    assert "Fix: " in str(error)
    assert not Path("made.json").exists()


def test_what_the_options_do_not_allow_together_is_refused_with_its_line_or_its_option(config: Any) -> None:
    path = config("out: made\nsize: 2\n")
    error = cir("make", "cirr", "--config", path).exception
    assert str(error).startswith(f"{path}: size (line 2): size=2: subsets of 2 images")
    with pytest.warns(FutureWarning, match="--size is deprecated"):
        error = cir("make", "cirr", "--size", "2", "--out", "made").exception
    assert str(error).startswith("--size 2: subsets of 2 images")
    assert not Path("made").exists()


def test_a_file_that_is_not_there_is_refused(config: Any) -> None:
    error = cir(*RUN, "--config", "nowhere.yaml").exception
    assert isinstance(error, CallError)
    assert "nowhere.yaml: cannot be read" in str(error)


def test_a_rare_option_of_a_file_acts_as_it_did_on_the_line(config: Any) -> None:
    call = ("multiround", "--benchmark", "shapes/val", "--method", "image_text_sum_pixels", "--simulator")
    call = (*call, "oracle", "--limit", "3", "--json", "--out")
    path = config("history: none\nnormalise: false\naim: best\nsessions: made.json\n")
    of_file = json.loads(cir(*call, "file.jsonl", "--config", path).stdout)
    kept = Path("made.json").read_bytes()
    rare = ("--history", "none", "--no-normalise", "--aim", "best", "--sessions", "made.json")
    with pytest.warns(FutureWarning, match="--history is deprecated"):
        done = cir(*call, "line.jsonl", *rare)
    of_line = json.loads(done.stdout)
    assert of_file["ended"] == of_line["ended"]
    assert Path("file.jsonl").read_bytes() == Path("line.jsonl").read_bytes()
    assert Path("made.json").read_bytes() == kept


def test_the_publishers_folder_is_said_before_the_command(config: Any) -> None:
    Path("files").mkdir()
    for call in (
        ("--data-dir", "files", "explain", "run.json"),
        ("explain", "run.json", "--data-dir", "files"),
    ):
        error = cir(*call).exception
        assert isinstance(error, SourceError)
        assert str(error).startswith("--data-dir files: no publisher's file of any benchmark is in it")


def test_a_second_file_is_refused(config: Any) -> None:
    path = config("seed: 1\n")
    for second in (["--config", path], [f"--config={path}"]):
        error = cir(*RUN, "--config", path, *second).exception
        assert isinstance(error, CallError)
        assert str(error).startswith("--config is given more than once")


def test_an_exponent_without_a_point_is_a_number(config: Any) -> None:
    path = config("learning_rate: 1e-4\n")
    command = FAMILIES["train concat"]
    with command.make_context("cir", ["--config", str(path)], resilient_parsing=True) as context:
        assert context.params["learning_rate"] == 1e-4
