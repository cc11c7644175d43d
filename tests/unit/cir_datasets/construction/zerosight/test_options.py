"""Files of thresholds that hold something else are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from cir_datasets.construction.zerosight.options import load_thresholds
from cir_datasets.errors import ConstructionError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it does not hold fields"),
        (b"- 1\n", "it does not hold fields"),
        (b"0.5", "it does not hold fields"),
        (b"mutual_visual: [0.5\n", "line "),
        (b"a: 1\n\xff", "byte 5 is not UTF-8"),
        (b"1: 2\n", "faults"),
    ],
    ids=["empty", "list", "number", "cut", "letters", "fields"],
)
def test_a_file_that_is_something_else_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(ConstructionError, match=said) as caught:
        load_thresholds(str(path))
    assert "mine.yaml" in str(caught.value)
    assert "Fix: " in str(caught.value)
