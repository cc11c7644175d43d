"""Published rows below a paper's table: words find a method in every spelling, or are named."""

from __future__ import annotations

import pytest

from cir_datasets.registry.published import published
from cir_metrics.errors import UnknownNameError
from submissions.papers.published_rows import choose

SPRC = {"SPRC", "SPRC (retrained)", "SPRC, No History", "SPRC, Cap. Unchanged"}
SPRC |= {"SPRC, Top-10 random", "SPRC, as in Table 2"}


@pytest.mark.parametrize(
    ("word", "methods"),
    [
        ("sprc", SPRC),
        ("SPRC (retrained)", {"SPRC (retrained)"}),
        ("BLIP4CIR+Bi", {"BLIP4CIR+Bi", "Bi-BLIP4CIR"}),
        ("VAL", {"VAL", "VAL w/ GloVe", "VAL (init. GloVe)"}),
        ("CIRPLANT", {"CIRPLANT", "CIRPLANT (no init.)", "CIRPLANT (init. OSCAR)"}),
        ("CLIP4CIR", {"CLIP4CIR", "CLIP4Cir (v3)"}),
        ("TIRG", {"TIRG"}),
    ],
)
def test_a_method_is_found_in_every_spelling(word: str, methods: set[str]) -> None:
    assert {row.method for row in choose([word], published())} == methods


def test_a_method_of_one_source_is_chosen_by_both() -> None:
    found = choose(["CIRR:cirplant"], published())
    assert {row.source for row in found} == {"cirr"}
    assert {row.method for row in found} == {"CIRPLANT (no init.)", "CIRPLANT (init. OSCAR)"}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("fisd:CIRPLANT", "no published row 'fisd:CIRPLANT'. Did you mean 'cirr:CIRPLANT'? There are: cirr:"),
        ("cirr:CIRPLAN", "Did you mean 'cirr:CIRPLANT'? There are: cirr:"),
        ("nothing at all", "no published row 'nothing at all'. There are: cirr, fisd"),
    ],
    ids=["of another source", "misspelt", "unknown"],
)
def test_what_chooses_nothing_is_named(word: str, said: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        choose([word], published(), "cir show all")
    assert said in str(caught.value)
    assert "Fix: " in str(caught.value) or str(caught.value).endswith("more; cir show all shows all.")
