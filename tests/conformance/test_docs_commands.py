"""Commands on pages of the docs are read by those that they name; options and stages there are theirs."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import pytest
from docs_shell import ROOT, Shell, parsed, section

from cir_datasets.common.yaml import parse_yaml
from cir_datasets.construction.cirr import pipeline as cirr
from cir_datasets.construction.zerosight import pipeline as zerosight
from cir_datasets.construction.zerosight.options import presets

PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name != "cli.md")
SUBSETS = section("make.md", "Subsets, as CIRR")
HARD_NEGATIVES = section("make.md", "Hard negatives, as ZeroSight")
DIALOGUE = (ROOT / "docs" / "dialogue.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_read_by_the_command_that_it_names(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for line in re.findall(r"^printf .+$", text, re.MULTILINE):  # the files of options
        subprocess.run(["sh", "-c", line], check=True)
    joined = text.replace("\\\n", " ")
    for command in re.findall(r"^(?:[A-Z_]+=\S+ )?(cir .+)$", joined, re.MULTILINE):
        assert parsed(command).command.name, command


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        (SUBSETS, ["cir make cirr --images a --out b"]),
        (HARD_NEGATIVES, ["cir make zerosight --videos a --out b", "cir make again a --from b"]),
        (DIALOGUE, ["cir multiround -b a -m b -s c", "cir score a"]),
    ],
    ids=["cirr", "zerosight", "multiround"],
)
def test_every_option_that_is_named_is_one(text: str, commands: list[str]) -> None:
    options = [option for command in commands for option in parsed(command).command.params]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    assert set(re.findall(r"`(--[a-z-]+)", text)) - known == set()


@pytest.mark.parametrize(
    ("text", "stages"),
    [(SUBSETS, cirr.STAGES["people"]), (HARD_NEGATIVES, zerosight.STAGES)],
    ids=["cirr", "zerosight"],
)
def test_the_table_of_stages_is_whole(text: str, stages: dict[str, str]) -> None:
    named = [name for row in re.findall(r"^\| (`.+?) \|", text, re.MULTILINE) for name in row.split(", ")]
    assert [name.strip("`") for name in named] == list(stages)


def test_the_thresholds_that_are_shown_are_the_papers() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", HARD_NEGATIVES, re.MULTILINE | re.DOTALL)
    assert parse_yaml(shown) == presets()["paper"].model_dump(mode="json")


def test_the_papers_setting_takes_four_commands() -> None:
    text = section("dialogue.md", "The paper's setting with real models")
    assert len(re.findall(r"^cir ", text, re.MULTILINE)) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (SUBSETS, {"cir score ranks.json": "recall_subset@1", "cir score dialogues.json": "final_recall@10"}),
        (HARD_NEGATIVES, {"": "pnr_map"}),
        (DIALOGUE, {"": "By round"}),
    ],
    ids=["cirr", "zerosight", "multiround"],
)
def test_blocks_of_commands_run_as_they_are_written(
    tmp_path: Path, text: str, numbers: dict[str, str]
) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shell = Shell(tmp_path, CIR_CACHE_HOME=str(tmp_path / "cache"))
    said = {line: shell.run(line) for block in blocks for line in block.splitlines()}
    for command, number in numbers.items():
        assert number in said[command or list(said)[-1]].replace("PNR-mAP", "pnr_map")


@pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")
def test_the_example_of_circleds_file_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    failed, tried = doctest.testfile(str(ROOT / "docs" / "make.md"), module_relative=False)
    assert (failed, tried > 10) == (0, True)
