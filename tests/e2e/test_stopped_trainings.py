"""Trainings that are interrupted keep their state and say so."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from waiting import wait_for

pytest.importorskip("torch", reason="needs the extra `retrieval`")
pytest.importorskip("transformers", reason="needs the extra `retrieval`")

import torch
from benchmark_world.embeddings import shapes_pictures
from retrieval_models import save_clip

from submissions.training.loop import STATE


@pytest.mark.slow
def test_a_command_that_is_interrupted_keeps_its_state_and_says_so(tmp_path: Path) -> None:
    shown, folder = shapes_pictures(6), tmp_path / "pictures"
    folder.mkdir()
    for place, name in enumerate(shown.ids):
        shown.open(place).save(folder / f"{name}.png")
    model = save_clip(tmp_path / "model")
    out = tmp_path / "head"
    command = [sys.executable, "-m", "leaderboard.cli", "train", "pic2word", "--images", str(folder)]
    (tmp_path / "rare.yaml").write_text("threads: 1\nhidden_size: 8\nbatch_size: 2\n")
    command += ["--encoder", str(model), "--out", str(out), "--config", str(tmp_path / "rare.yaml")]
    command += ["--steps", "1000000"]
    process = forked.Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for((out / STATE).exists, process=process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "interrupted; the same command goes on from here.\n"
    assert torch.load(out / STATE, weights_only=True)["losses"]
