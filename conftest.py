"""Every test run keeps to caches of its own, away from the user's; xdist's workers share them."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run: few in `make test`, many in `make test-slow`; `--hypothesis-profile random`
# looks further. A busy machine is not a failure: what an example may take is not asserted.
for _name, _examples, _same in (
    ("quick", 15, True),
    ("deep", 30, True),
    ("thorough", 200, True),
    ("random", 200, False),
):
    settings.register_profile(
        _name,
        deadline=None,
        derandomize=_same,
        max_examples=_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("quick")

collect_ignore = ["submissions/evaluator/lightning.py"]
"""No doctest is in it, and the library that it imports takes four seconds."""

# A shell's jobs in the background ignore Ctrl-C, and so would what is started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_OWNER = "CIR_TEST_HOME_OWNER"

if "CIR_TEST_HOME" not in os.environ:
    os.environ["CIR_TEST_HOME"] = tempfile.mkdtemp(prefix="cir-tests-")
    os.environ[_OWNER] = str(os.getpid())

_home = Path(os.environ["CIR_TEST_HOME"])
os.environ["CIR_CACHE_HOME"] = str(_home / "cache")
os.environ["CIR_LEADERBOARD_HOME"] = str(_home / "leaderboard")
os.environ["HF_HOME"] = str(_home / "huggingface")
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
# A width of its own, so that help texts and tables are the same in every terminal, and no table is cut.
os.environ["COLUMNS"] = "400"
os.environ["NO_COLOR"] = "1"


def pytest_collection_finish() -> None:
    """What is imported by now stays: no collection of garbage looks at it again, a twentieth of the time."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Remove the caches when the process that made them ends."""
    if os.environ.get(_OWNER) == str(os.getpid()):
        shutil.rmtree(_home, ignore_errors=True)


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the publishers' real annotations; the test is skipped where it is not set."""
    configured = os.environ.get("CIR_DATA_HOME")
    if not configured:
        pytest.skip("CIR_DATA_HOME is not set: this test needs the publishers' real annotations")
    return Path(configured)
