"""What CIR_PREPARE names is prepared when a server starts, from its publisher or the host's repository."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from http_hub import TOKEN, Hub

from cir_metrics.errors import CallError
from leaderboard import boards, settings
from leaderboard.boards import data
from leaderboard.server.preparing import Preparing


def prepared(names: tuple[str, ...], home: Path) -> dict[str, tuple[str, str]]:
    """Prepare, and wait until nothing is begun any more."""
    preparing = Preparing(names, home)
    assert {step["state"] for step in preparing.view()} == {"waiting"}
    preparing.start()
    while any(step.state in ("waiting", "preparing") for step in preparing.steps):
        time.sleep(0.02)
    preparing.stop()
    return {step.name: (step.state, step.message) for step in preparing.steps}


def test_names_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CIR_PREPARE", " shapes/val fashioniq/val shapes/val ")
    assert settings.read(tmp_path).prepare == ("shapes/val", "fashioniq/val")
    monkeypatch.setenv("CIR_PREPARE", "shapes/vol")
    with pytest.raises(CallError, match=r"CIR_PREPARE.*shapes/val.*Fix"):
        settings.read(tmp_path)


def test_what_cannot_be_fetched_stops_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hub: Hub
) -> None:
    monkeypatch.setenv("CIR_GITHUB_ENDPOINT", hub.url)
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    found = prepared(("cirr/val", "shapes/val"), tmp_path)
    assert found["shapes/val"] == ("ready", "")
    state, message = found["cirr/val"]
    assert state == "failed"
    assert message
    assert str(tmp_path) not in message


def test_a_repository_of_the_host_brings_files_challenges_and_boards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hub: Hub
) -> None:
    home = tmp_path / "home"
    for name, value in {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}.items():
        monkeypatch.setenv(name, value)
    # As where the library is imported with HF_ENDPOINT set.
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("CIR_CHALLENGES", str(tmp_path / "challenges"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    monkeypatch.setattr(boards, "_home", home)
    own = "id: mine\ntitle: Mine\nbenchmark: shapes/val\nprimary: recall@1\n"
    repository = hub.repository("me/data")
    repository.commit({"boards/mine.yaml": own.encode(), "truth/autumn.jsonl": b"{}"})
    found = prepared(("shapes/val", "hf://datasets/me/data"), home)
    assert list(found) == ["hf://datasets/me/data", "shapes/val"]
    assert {state for state, _ in found.values()} == {"ready"}, found
    assert (home / "boards" / "mine.yaml").read_text() == own
    assert not list(tmp_path.rglob("autumn.jsonl"))
    assert data.problem(boards.board("shapes/val")) is None
