"""What tests of every kind share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from http_hub import Hub
from language_server import LanguageServer


@pytest.fixture
def hub() -> Iterator[Hub]:
    """GitHub's raw files and the Hugging Face Hub, on 127.0.0.1."""
    with Hub() as running:
        yield running


@pytest.fixture
def language_server() -> Iterator[LanguageServer]:
    """A chat server on 127.0.0.1."""
    with LanguageServer() as running:
        yield running
