"""What tests of every kind share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from http_hub import Hub

from cir_datasets.common.paths import FOLDERS_VARIABLE
from cir_datasets.sources import download

# anyio imports its parts when they are used, in threads of a server here, and pytest, whose plugin it is,
# parses them: two threads that parse at once end in a SystemError of Python 3.11 (gh-106905).
for _name in dir(anyio):
    getattr(anyio, _name)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes are named by their length: a packed file holds the time, and workers must agree on names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def no_wait_between_attempts() -> Iterator[None]:
    """A server is asked as often as ever, at once: waiting for one that is not there took minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(download, "_FIRST_WAIT_SECONDS", 0.001)
        patch.setattr("submissions.language.server._FIRST_WAIT", 0.001)
        yield


@pytest.fixture(autouse=True)
def no_benchmark_of_another_test() -> Iterator[None]:
    """`custom_benchmark` makes a folder known to its process: later hints would name its benchmark."""
    before = os.environ.get(FOLDERS_VARIABLE)
    yield
    os.environ.pop(FOLDERS_VARIABLE, None)
    if before is not None:
        os.environ[FOLDERS_VARIABLE] = before


@pytest.fixture
def hub() -> Iterator[Hub]:
    """GitHub's raw files and the Hugging Face Hub, on 127.0.0.1."""
    with Hub() as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The start of URLs of a real PostgreSQL server's databases."""
    import postgres_server

    why = postgres_server.missing()
    if why:
        pytest.skip(why)
    with postgres_server.serving() as address:
        yield address


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def new_database(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Makes URLs of empty databases: what leaderboards answer over HTTP, they answer on both."""
    if request.param == "sqlite":
        return lambda: ""  # the one in the home

    import postgres_server

    address = request.getfixturevalue("postgres")
    return lambda: postgres_server.new_database(address)


@pytest.fixture
def plain_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Language backends keep their answers in the test's own folder, and take no settings from outside."""
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("OPENAI_BASE_URL", "CIR_PROMPTS", "CIR_LANGUAGE_PRICES"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Torch computes with one thread, so that its sums have one order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
