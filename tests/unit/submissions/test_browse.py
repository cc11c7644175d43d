"""A page of rankings: its counts are those of `cir score`, and a bad call says what to do."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import cir_datasets
import submissions
from cir_metrics.errors import CirError
from submissions.browse import browse_rankings

ENTRIES = resources.files("submissions.entries")
SUM, IMAGE, TURNS = (
    str(ENTRIES / f"{name}.json.gz")
    for name in (
        "image_text_sum-shapes.shapes-val",
        "image_only-shapes.shapes-val",
        "image_text_sum-shapes-weighted.shapes-multiturn_val",
    )
)


def rows_of(page: Path) -> Any:
    (found,) = re.findall(r'id="data">(.*?)</script>', page.read_text("utf-8"))
    return json.loads(found)["rows"]


def test_hits_are_those_of_the_score(tmp_path: Path) -> None:
    page = browse_rankings([SUM, IMAGE], out=tmp_path / "page.html", pictures="none")
    found = Counter(row[6] for row in rows_of(page))
    first, second = (round(300 * submissions.score(each).metrics["recall@10"]) for each in (SUM, IMAGE))
    assert found["won"] + found["both hit"] == first
    assert found["lost"] + found["both hit"] == second
    assert f"{found['won']} won, {found['lost']} lost" in page.read_text("utf-8")


def test_the_last_turn_of_a_session_decides(tmp_path: Path) -> None:
    page = browse_rankings([TURNS], out=tmp_path / "page.html", pictures="none", k=10)
    hits = sum(row[6] == "hit" for row in rows_of(page))
    assert hits == round(200 * submissions.score(TURNS).metrics["final_recall@10"])


def test_targets_and_hard_negatives_are_marked(tmp_path: Path) -> None:
    page = browse_rankings([SUM], out=tmp_path / "page.html", pictures="none", k=5)
    images = json.loads(re.findall(r'id="data">(.*?)</script>', page.read_text("utf-8"))[0])["images"]
    for query, row in zip(cir_datasets.load("shapes/val").rows(), rows_of(page), strict=True):
        ((_, top, marks),) = row[5][0][2]
        names = [images[place] for place in top]
        assert len(names) == 5
        assert [mark == "+" for mark in marks] == [each == query["target_image_id"] for each in names]
        assert [mark in "+*" for mark in marks] == [each in query["positive_image_ids"] for each in names]
        assert [mark == "-" for mark in marks] == [each in query["negative_image_ids"] for each in names]


@pytest.mark.parametrize(
    ("files", "options", "words"),
    [
        ([], {}, "0 rank files"),
        ([SUM, SUM, SUM], {}, "3 rank files"),
        ([SUM], {"k": 0}, "--k 0"),
        ([SUM], {"k": 101}, "1 to 100"),
        (["missing.json"], {}, "missing.json"),
        ([b'{"format": "cir-rank-file"'], {}, "malformed"),
        ([SUM, TURNS], {}, "Fix: name two for one benchmark"),
        ([SUM], {"benchmark": "cirr/val"}, "wrong-benchmark"),
        ([SUM], {"benchmark": "no/such"}, "no benchmark"),
        ([SUM], {"out": "page.json"}, "page ends in .html"),
        ([SUM], {"pictures": "inline"}, "not a way to show pictures"),
        ([b"not a rank file"], {"benchmark": "shapes/val"}, "malformed"),
    ],
    ids=[
        *("none", "three", "k_zero", "k_large", "missing", "cut_off", "two_benchmarks", "other_benchmark"),
        *("unknown_benchmark", "ending", "way", "text"),
    ],
)
def test_a_bad_call_says_what_to_do(
    files: list[Any], options: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CirError, match=re.escape(words)):
        browse_rankings(files, **{"out": "page.html", "pictures": "none", **options})
    assert list(tmp_path.iterdir()) == []
