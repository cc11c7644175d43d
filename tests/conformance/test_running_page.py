"""What docs/running.md says is so: its tables, its formulas' figures, and the method that it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_world import small_shapes
from benchmark_world.encoders import PlainEncoder

import submissions
from cir_datasets import caption_rule, caption_rule_names
from submissions import make_rank_file
from submissions.embeddings.store import EmbeddingStore
from submissions.methods.card import method_cards
from submissions.running.aggregation import AGGREGATIONS, aggregation, feedback_weights
from submissions.running.search import MEASURED, SEARCHES, Searcher

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running.md"
TEXT = PAGE.read_text(encoding="utf-8")
FIRST = PAGE.with_name("first_use.md").read_text(encoding="utf-8")
CAPTIONS = ["is Shinier and Silver.", " has Longer sleeves, "]


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    lines = TEXT.partition(f"## {heading}\n")[2].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def test_all_methods_are_listed_with_what_they_need() -> None:
    rows = {row[0].strip("` "): row[-1] for row in table("Methods")}
    assert list(rows) == [card.name for card in method_cards()]
    for card in method_cards():
        needs = rows[card.name]
        assert ("an encoder" in needs) == ("any" in card.encoders)
        assert ("language backend" in needs) == ("language" in card.needs)
        assert ("checkpoint" in needs) == ("checkpoint" in card.needs)


def test_the_strings_of_caption_rules_are_shown_as_they_are() -> None:
    for name in caption_rule_names():
        assert f"`{name}`" in TEXT
    assert all(f"`{caption}`" in TEXT for caption in CAPTIONS)
    listed = re.findall(r"^\| `(\w+)` \| `(.+?)` \|$", TEXT, re.MULTILINE)
    assert {name for name, _ in listed} >= {"strip_capitalize_and", "reversed", "trim_and", "comma", "space"}
    for name, text in listed:
        assert caption_rule(name).texts(CAPTIONS) == [text]


def test_formulas_have_the_figures_of_the_code() -> None:
    weights = feedback_weights()
    assert f"+ {weights.selected} y+ - {weights.rejected} mean(y-) + {weights.words} f_l)" in TEXT
    assert f"alpha: {aggregation('weighted').alpha}" in TEXT
    assert weights.shown == 10
    assert "among the ten\nbest" in TEXT
    block = TEXT.partition("## History aggregation")[2].partition("```text\n")[2].partition("```")[0]
    assert [line.split()[0] for line in block.splitlines()] == list(AGGREGATIONS)


def test_the_page_names_every_search_and_its_settings() -> None:
    assert [row[0].strip("` ") for row in table("Search")] == list(SEARCHES)
    assert f"over up to {MEASURED:,} queries" in TEXT
    vectors = np.eye(300, 16, dtype=np.float32)
    note = Searcher(vectors, [str(n) for n in range(300)], "hnsw").search(vectors[:2], 3).note(3)
    assert note.partition(", recall")[0] in TEXT


def shown(begin: str) -> dict[str, Any]:
    """What the one block of Python that begins so defines, here or on the page of first use."""
    (source,) = re.findall(rf"```python\n({re.escape(begin)}.*?)```", TEXT + FIRST, re.DOTALL)
    made: dict[str, Any] = {}
    exec(source, made)
    return made


@pytest.mark.parametrize(
    ("begin", "name", "title"),
    [("# mine.py\n", "HalfTheText", "Half the text"), ("# mine.py, a ranker", "Second", "Second stage")],
    ids=["scorer", "ranker"],
)
@pytest.mark.parametrize("config", ["val", "multiturn_val"])
def test_methods_without_an_encoder_that_are_shown_run(
    begin: str, name: str, title: str, config: str
) -> None:
    benchmark = small_shapes(config, rows=3)
    rank_file = make_rank_file(benchmark, shown(begin)[name]())
    assert rank_file.method.name.startswith(title)
    assert submissions.validate(rank_file, benchmark).findings == ()


def test_the_method_that_is_shown_runs(tmp_path: Path) -> None:
    made = shown("# more.py\n")
    benchmark = small_shapes("multiturn_val", rows=3)
    rank_file = make_rank_file(
        benchmark, made["MoreText"](), encoder=PlainEncoder(), store=EmbeddingStore(tmp_path), workers=0
    )
    assert rank_file.method.name == "More text (plain, weighted)"
    assert submissions.validate(rank_file, benchmark).findings == ()
