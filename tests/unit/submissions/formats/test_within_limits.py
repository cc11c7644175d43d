"""Files just within the limits: their own file, so that two workers share what hostile files cost."""

from __future__ import annotations

from pathlib import Path

import bombs
import pytest

WITHIN = [name for name in bombs.BOMBS if name.startswith("within-")]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("name", WITHIN),
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="a process's own peak memory is read from /proc"
    ),
]


def test_what_is_just_within_the_limits_is_read_in_bounded_memory(name: str, tmp_path: Path) -> None:
    bombs.check(
        name, tmp_path, "judge", *bombs.turns(("validate", "score", "compare", "fuse", "overlay"), name)
    )


def test_what_is_just_within_the_limits_is_converted_in_bounded_memory(name: str, tmp_path: Path) -> None:
    bombs.check(
        name,
        tmp_path,
        *bombs.turns([f"convert to {to}" for to in ("native", "lines", "trec", "parquet")], name),
    )
    under = [f"convert under gzip to {to}" for to in ("native", "lines", "trec")]
    bombs.check(name, tmp_path, *bombs.turns(under, name, 1))
