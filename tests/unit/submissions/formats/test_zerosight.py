"""ZeroSight results files: the benchmark says which they are; read, written and scored like native ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from says import says

import submissions
from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import Benchmark
from submissions import ConversionError, RankFile, RefusedError
from submissions.formats import servers
from submissions.rank_file.benchmarks import Benchmarks

POOL = [f"video-{number // 8:05d}/{25 * (number % 8):06d}.jpg" for number in range(64)]


def world() -> Benchmark:
    """Three queries with numeric ids, the positives of query i being images i, i + 1."""
    rows = [
        worlds.query(
            str(number),
            POOL[40 + number],
            "",
            target_image_id=None,
            positive_image_ids=POOL[number : number + 2],
            negative_image_ids=POOL[10 + number : 10 + 2 * number],
            aspects=["addition"],
        )
        for number in range(3)
    ]
    return Benchmark.from_rows(spec("zerosight/test"), rows, POOL)


ZEROSIGHT = world()
RESULTS = {str(number): POOL[number:] + POOL[:number] for number in range(3)}
CONTENT = json.dumps({query: ids[:50] for query, ids in RESULTS.items()}).encode()


def test_the_benchmark_tells_it_from_a_circo_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ids are named as a benchmark's where one that was prepared has them, by another test, too.
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path))
    found = submissions.read(CONTENT, benchmark=ZEROSIGHT, name="sc4cir.json")
    assert (found.format, found.benchmark, found.method.name) == ("zerosight", "zerosight/test", "sc4cir")
    assert found.rankings["1"][0] == POOL[1]
    for nameless in (CONTENT, json.dumps({f"q{query}": ids for query, ids in RESULTS.items()}).encode()):
        with pytest.raises(RefusedError) as caught:
            submissions.read(nameless)
        (finding,) = caught.value.report.findings
        assert finding.code == "wrong-benchmark"
        says(finding.message, "the file holds lists by query id and does not name its benchmark.")
        says(finding.fix, "say which it answers", "--benchmark circo/")
        if nameless is not CONTENT:  # whose ids are of a known benchmark, which is named alone
            says(finding.fix, "--benchmark circo/test", "--benchmark zerosight/test")
    for benchmark in (None, "cirr/val"):
        with pytest.raises(RefusedError, match="nor a file of the CIRR or CIRCO server, nor ZeroSight"):
            submissions.read(b'{"a": 1}', benchmark=benchmark)
    numbers = {"0": [f"{number:012d}" for number in range(1, 51)]}
    circo = submissions.read(json.dumps(numbers).encode(), benchmark="circo/val")
    assert circo.format == "circo-server"


def test_ids_that_are_not_numbers_are_read_too() -> None:
    found = submissions.read(b'{"q-a": ["video-00000/000000.jpg"]}', benchmark="zerosight/all")
    assert found.rankings == {"q-a": ["video-00000/000000.jpg"]}


def test_fewer_than_fifty_are_refused() -> None:
    short = submissions.read(json.dumps({"0": POOL[:49]}).encode(), benchmark=ZEROSIGHT)
    assert isinstance(short, RankFile)
    with pytest.raises(
        ConversionError, match=r"49 images; the ZeroSight evaluator wants 50\. Fix: rank at least"
    ):
        servers.dump(short, "zerosight", Benchmarks(None))


def codes(document: dict[str, Any]) -> list[str]:
    report = submissions.validate(json.dumps(document).encode(), ZEROSIGHT)
    return [finding.code for finding in report.findings]


def test_validation_finds_what_the_evaluator_would_pass_over() -> None:
    assert codes(json.loads(CONTENT)) == []
    assert codes({query: RESULTS[query] for query in "01"}) == ["missing-query", "deep-ranking"]
    assert codes({query: [f"/images/{name}" for name in ids[:50]] for query, ids in RESULTS.items()}) == []
    other = {query: [f"other-{name}" for name in ids[:50]] for query, ids in RESULTS.items()}
    assert codes(other) == ["unknown-image"]
    assert codes({query: ids[:20] for query, ids in RESULTS.items()}) == ["short-ranking"]


def test_its_score_is_the_mean_of_pnr_map() -> None:
    score = submissions.score(CONTENT, ZEROSIGHT)
    assert set(score.metrics) == {f"{name}@{k}" for name in ("map", "pnr_map") for k in (5, 10, 25, 50)}
    assert score.main == pytest.approx(sum(score.metrics[f"pnr_map@{k}"] for k in (5, 10, 25, 50)) / 4)
    assert score.metrics["map@5"] == 1.0
