"""Text that a spreadsheet would compute is guarded, and every text comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.common.tables import guarded, unguarded


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", " =1", "'=1", "\t=1", "\rx"])
def test_what_a_spreadsheet_would_compute_has_an_apostrophe_before_it(text: str) -> None:
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a star", "'", "'t was", "1-1", "a=b", "*"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert guarded(text) == text == unguarded(text)


@given(st.text(st.sampled_from("=+-@\t\r\n＝'a 1")) | st.text())
def test_every_text_comes_back(text: str) -> None:
    assert unguarded(guarded(text)) == text
