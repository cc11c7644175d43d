"""What the end-to-end tests share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture(scope="session")
def world() -> ModuleType:
    """The module `tests/fixtures/leaderboard_world.py`."""
    name = "leaderboard_world"
    spec = importlib.util.spec_from_file_location(name, _FIXTURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
