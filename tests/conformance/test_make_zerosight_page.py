"""docs/make.md, hard negatives: its commands run on clips, or are read by those that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_shell import Shell, parsed, section

from cir_datasets.common.yaml import parse_yaml
from cir_datasets.construction.zerosight.options import presets
from cir_datasets.construction.zerosight.pipeline import STAGES

PAGE = section("make.md", "Hard negatives, as ZeroSight")
JOINED = PAGE.replace("\\\n", " ")
WRITTEN = re.findall(r"^cir make .+$", JOINED, re.MULTILINE)
OPTIONS = sorted(set(re.findall(r"`(--[a-z-]+)", PAGE)))


@pytest.mark.parametrize("command", WRITTEN)
def test_every_command_is_read_by_the_command_that_it_names(command: str) -> None:
    assert parsed(command).params


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_that_is_named_is_one(option: str) -> None:
    commands = [
        parsed("cir make zerosight --videos a --out b").command,
        parsed("cir make again a --from b").command,
    ]
    known = {name for one in commands for each in one.params for name in (*each.opts, *each.secondary_opts)}
    assert option in known


def test_the_table_of_stages_is_whole() -> None:
    named = [name for row in re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE) for name in row.split(", ")]
    assert [name.strip("`") for name in named] == list(STAGES)


def test_the_thresholds_that_are_shown_are_the_papers() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert parse_yaml(shown) == presets()["paper"].model_dump(mode="json")


@pytest.mark.slow
def test_clips_become_a_benchmark_as_it_is_written(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `retrieval`")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shell = Shell(tmp_path)
    said = [shell.run(line) for block in blocks for line in block.splitlines()]
    assert "PNR-mAP" in said[-1] or "pnr_map" in said[-1]
