"""A page of rankings: its counts are those of `cir score`, and a bad call says what to do."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from benchmark_world import fashioniq, fashioniq_bundle
from bs4 import BeautifulSoup

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CirError
from submissions.report.ranking_page import browse_rankings

ENTRIES = resources.files("submissions.entries")
SUM, IMAGE = (str(ENTRIES / f"{name}-shapes.shapes-val.json.gz") for name in ("image_text_sum", "image_only"))
TURNS = str(ENTRIES / "image_text_sum-shapes-weighted.shapes-multiturn_val.json.gz")


def rows_of(page: Path) -> Any:
    (found,) = re.findall(r'id="data">(.*?)</script>', page.read_text("utf-8"))
    return json.loads(gzip.decompress(base64.b64decode(found)))["rows"]


def lists_of(row: Any) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Of each list of a card its heading, and the mark, id (no pictures) and label of each image."""
    card = BeautifulSoup(row["html"], "html.parser")
    return [
        (
            listed.select_one("h3").get_text(),
            [(" ".join(one.get("class", [])), *one.stripped_strings) for one in listed.select("figure")],
        )
        for listed in card.select(".list")
    ]


def test_hits_are_those_of_the_score(tmp_path: Path) -> None:
    page = browse_rankings([SUM, IMAGE], out=tmp_path / "page.html", pictures="none")
    found = Counter(row["outcome"] for row in rows_of(page))
    first, second = (round(300 * submissions.score(each).metrics["recall@10"]) for each in (SUM, IMAGE))
    assert found["won"] + found["both hit"] == first
    assert found["lost"] + found["both hit"] == second
    assert f"{found['won']} won, {found['lost']} lost" in page.read_text("utf-8")


def test_the_last_turn_of_a_session_decides(tmp_path: Path) -> None:
    page = browse_rankings([TURNS], out=tmp_path / "page.html", pictures="none", k=10)
    hits = sum(row["outcome"] == "hit" for row in rows_of(page))
    assert hits == round(200 * submissions.score(TURNS).metrics["final_recall@10"])


def test_targets_and_hard_negatives_are_marked(tmp_path: Path) -> None:
    page = browse_rankings([SUM], out=tmp_path / "page.html", pictures="none", k=5)
    for query, row in zip(cir_datasets.load("shapes/val").rows(), rows_of(page), strict=True):
        _, listed = lists_of(row)[0]
        assert len(listed) == 5
        for kind, image, _ in listed:
            assert (kind == "good") is (image == query["target_image_id"])
            assert (kind in ("good", "right")) is (image in query["positive_image_ids"])
            assert (kind == "bad") is (image in query["negative_image_ids"])


def test_all_members_of_a_subset_are_shown_ranked_or_not(tmp_path: Path) -> None:
    page = browse_rankings([IMAGE, SUM], out=tmp_path / "page.html", pictures="none")
    run, hits = submissions.read(SUM), 0
    for query, row in zip(cir_datasets.load("shapes/val").rows(), rows_of(page), strict=True):
        lists = lists_of(row)
        assert [": the subset" in heading for heading, _ in lists] == [False, False, True, True]
        heading, listed = lists[3]
        names, ranked = (
            [image for _, image, _ in listed],
            list((run.subset_rankings or {})[query["query_id"]]),
        )
        assert names[: len(ranked)] == ranked
        assert [label.split()[0] for *_, label in listed[: len(ranked)]] == [
            str(place) for place in range(1, len(ranked) + 1)
        ]
        assert sorted(names) == sorted(query["subset_image_ids"])
        assert (names[-1], listed[-1][2].split()[0]) == (query["reference_image_id"], "reference")
        assert [kind == "good" for kind, *_ in listed] == [each == query["target_image_id"] for each in names]
        hits += heading.endswith("target at rank 1")
    assert hits == round(300 * submissions.score(SUM).metrics["recall_subset@1"])


def test_of_a_bundle_the_named_member_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    members = {each.id: each for each in map(fashioniq, ("dress", "shirt", "toptee"))}
    monkeypatch.setattr("cir_datasets.load", members.__getitem__)
    bundle = json.dumps(fashioniq_bundle(list(members.values()))).encode()
    out, name = tmp_path / "page.html", "fashioniq/shirt_val"
    with pytest.raises(CirError, match=r"Fix: name the member to look at with --benchmark: .*shirt_val"):
        browse_rankings([bundle], out=out, pictures="none")
    with pytest.raises(CirError, match=r"Did you mean 'fashioniq/shirt_val'\?"):
        browse_rankings([bundle], "fashioniq/shit_val", out=out, pictures="none")
    page = browse_rankings([bundle], name, out=out, pictures="none")
    assert [row["id"] for row in rows_of(page)] == members[name].query_ids
    assert f"<title>{name}#" in page.read_text("utf-8")


BAD = "</script><img src=x onerror=alert(1)>"


def test_foreign_words_stay_words(tmp_path: Path) -> None:
    whole = cir_datasets.load("shapes/val")
    row = whole.rows()[0] | {"query_id": BAD, "captions": [BAD], "aspects": [BAD]}
    one = Benchmark.from_rows(whole.spec, [row], whole.gallery)
    run = submissions.RankFile(
        whole.id,
        whole.version,
        submissions.Method(name="words"),
        {BAD: [each for each in whole.gallery or () if each != row["reference_image_id"]][:50]},
        {BAD: [each for each in row["subset_image_ids"] if each != row["reference_image_id"]]},
    )
    page = browse_rankings([run], one, out=tmp_path / "page.html", pictures="none")
    assert "<img" not in page.read_text("utf-8")
    assert rows_of(page)[0]["id"] == BAD


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
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_call_says_what_to_do(
    files: list[Any], options: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CirError, match=re.escape(words)):
        browse_rankings(files, **{"out": "page.html", "pictures": "none", **options})
    assert list(tmp_path.iterdir()) == []
