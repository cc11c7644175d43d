"""docs/make.md, subsets: its commands run on shapes, or are read by those that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_shell import Shell, parsed, section

from cir_datasets.construction.cirr.pipeline import STAGES

PAGE = section("make.md", "Subsets, as CIRR")
WRITTEN = re.findall(r"^cir .+$", PAGE, re.MULTILINE)
OPTIONS = sorted(set(re.findall(r"`(--[a-z-]+)", PAGE)))


@pytest.mark.parametrize("command", WRITTEN)
def test_every_command_is_read_by_the_command_that_it_names(command: str) -> None:
    assert parsed(command).params


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_that_is_named_is_one(option: str) -> None:
    command = parsed("cir make cirr --images a --out b").command
    assert option in {name for each in command.params for name in each.opts}


def test_the_table_of_stages_is_whole() -> None:
    named = [name for row in re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE) for name in row.split(", ")]
    assert [name.strip("`") for name in named] == list(STAGES["people"])


@pytest.mark.slow
def test_shapes_become_a_benchmark_as_it_is_written(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shell = Shell(tmp_path, CIR_CACHE_HOME=str(tmp_path / "cache"))
    said = {line: shell.run(line) for block in blocks for line in block.splitlines()}
    assert "recall_subset@1" in said["cir score ranks.json"]
    assert "final_recall@10" in said["cir score dialogues.json"]
