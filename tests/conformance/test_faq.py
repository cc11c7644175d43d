"""docs/first_use.md: its figures are those of the publishers' files."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

import cir_datasets
import submissions
from submissions import Method, RankFile, SubmissionError

HOME = Path(os.environ.get("CIR_DATA_HOME", ""))
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "first_use.md").read_text(encoding="utf-8")
CATEGORIES = ("dress", "shirt", "toptee")

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(Path() == HOME, reason="CIR_DATA_HOME is not set: no real annotations"),
]


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same cache as the other tests on real annotations: nothing is prepared twice.
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "datasets-real-cache"))


def says(question: str, *figures: str) -> None:
    """The answer to a question holds these figures."""
    (answer,) = re.findall(rf"^### {re.escape(question)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    words = " ".join(answer.split())
    assert [figure for figure in figures if figure not in words] == []


def published(path: str) -> Any:
    return json.loads((HOME / path).read_bytes())


def test_cirr() -> None:
    queries = published("cirr/captions/cap.rc2.val.json")
    times = Counter((query["reference"], query["caption"]) for query in queries)
    repeated = sum(count - 1 for count in times.values())
    soft = sum(query["target_soft"].get(query["reference"], 0) > 0 for query in queries)
    members = {len(query["img_set"]["members"]) for query in queries}
    gallery = len(published("cirr/image_splits/split.rc2.val.json"))
    assert (len(queries), repeated, soft, members, gallery) == (4181, 6, 37, {6}, 2297)
    says("Why is my Recall@1 on CIRR lower here?", "2,297", "gallery:2297:", "ref:removed")
    says("Why does CIRR's validation split have 4,181 queries?", "4,181", "Six of them repeat")
    says("Why is my Recall_subset@1 different?", "six images", "20 %", "16.7 %")
    says('Does an image count when its caption was "soft" in CIRR?', "37 validation queries")
    benchmark = cir_datasets.load("cirr/val")
    report = submissions.score(submissions.make_rank_file(benchmark, "random"))
    signature = next(iter(report.signatures.values()))
    assert "gallery:2297:" in str(signature)
    assert "ref:removed" in str(signature)


def test_fashioniq_has_two_galleries() -> None:
    sizes: dict[str, list[str]] = {"val": [], "val_union": []}
    for category in CATEGORIES:
        queries = published(f"fashion-iq/captions/cap.{category}.val.json")
        used = {query[key] for query in queries for key in ("candidate", "target")}
        sizes["val"].append(f"{len(published(f'fashion-iq/image_splits/split.{category}.val.json')):,}")
        sizes["val_union"].append(f"{len(used):,}")
        for name, found in sizes.items():
            assert f"{len(cir_datasets.load(f'fashioniq/{category}_{name}').gallery):,}" == found[-1]
    for found in sizes.values():
        says("Which FashionIQ protocol is this?", " | ".join(found))


def test_map_of_a_perfect_ranking_of_circo() -> None:
    benchmark = cir_datasets.load("circo/val")
    positives = {row["query_id"]: list(row["positive_image_ids"]) for row in benchmark.rows()}
    others = sorted({image for images in positives.values() for image in images})
    perfect = {
        query: [*images, *(image for image in others if image not in images)][:50]
        for query, images in positives.items()
    }
    rank_file = RankFile(benchmark.id, benchmark.version, Method(name="Perfect"), perfect)
    report = submissions.score(rank_file)
    evaluator = pytrec_eval.RelevanceEvaluator(
        {query: dict.fromkeys(images, 1) for query, images in positives.items()}, {"map_cut.5"}
    )
    scores = {
        query: {image: -float(place) for place, image in enumerate(ids)} for query, ids in perfect.items()
    }
    theirs = [each["map_cut_5"] for each in evaluator.evaluate(scores).values()]
    many = sum(len(images) > 5 for images in positives.values())
    says(
        "Why does my mAP differ?",
        f"{many} of {len(positives)} queries",
        f"`map@5` {100 * report.metrics['map@5']:.2f}",
        f"`map_cut_5` {100 * sum(theirs) / len(theirs):.2f}",
    )
    assert "gallery:unknown" in str(next(iter(report.signatures.values())))


def test_a_withheld_split_names_the_command_for_its_server(tmp_path: Path) -> None:
    benchmark = cir_datasets.load("cirr/test1")
    path = tmp_path / "run.json"
    submissions.write(submissions.make_rank_file(benchmark, "random"), path)
    with pytest.raises(SubmissionError, match=r"withheld .* cir convert \S+run\.json --to cirr-server"):
        submissions.score(path)
    says("Where is the test server?", "`cir convert run.json --to cirr-server`")
