"""Files just within the limits: their own file, so that two workers share what hostile files cost."""

from __future__ import annotations

from pathlib import Path

import bombs
import pytest
from slowly import some

WITHIN = [name for name in bombs.BOMBS if name.startswith("within-")]

pytestmark = [
    pytest.mark.parametrize("name", some(WITHIN, WITHIN[::12])),
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="a process's own peak memory is read from /proc"
    ),
]


READING = ("validate", "score", "compare", "fuse", "overlay")
WRITING = (
    *(f"convert to {to}" for to in ("native", "lines", "trec", "parquet")),
    *(f"convert under gzip to {to}" for to in ("native", "lines", "trec")),
)


def test_what_is_just_within_the_limits_is_judged_read_and_converted_in_bounded_memory(
    name: str, tmp_path: Path
) -> None:
    bombs.check(name, tmp_path, "judge", *bombs.turns(READING, name, 1), *bombs.turns(WRITING, name, 1))
