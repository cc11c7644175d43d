"""Every format that is written, byte for byte: golden files of invented benchmarks, three queries at most.

The files of the CIRR and CIRCO servers, of ZeroSight's evaluator and of FashionIQ's starter kit have the keys
and types that their publishers describe; TREC's columns are trec_eval's. With tests/fixtures on PYTHONPATH
`python tests/golden/test_formats_golden.py` writes them anew: read the difference before you commit it.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pyarrow.parquet as pq
import pytest
from benchmark_world import rank_file_of

import submissions
from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import Benchmark
from submissions.rank_file.model import FORMATS

FOLDER = Path(__file__).resolve().parent / "formats"
POOL = [f"video-{number // 8}/{number % 8:03d}.jpg" for number in range(52)]


def zerosight() -> Benchmark:
    row = worlds.query("7", POOL[51], "", target_image_id=None, positive_image_ids=POOL[:2])
    return Benchmark.from_rows(spec("zerosight/test"), [row], POOL)


def document(benchmark: Benchmark, rankings: Any) -> dict[str, Any]:
    return rank_file_of(
        benchmark.id,
        rankings,
        method={"name": "toy sum", "backbone": "CLIP ViT-B/32", "zero_shot": True, "notes": 'é, "quoted"'},
    )


CIRR = worlds.cirr("val", queries=2, gallery=52)
CIRCLED = worlds.circled()
CIRCO = worlds.circo("val", queries=2)
DRESS = worlds.fashioniq("dress", queries=2)
ZEROSIGHT = zerosight()

SMALL = document(CIRR, {"100": ["im2", "im1"], "101": ["im0", "im2", "im1"]})
SMALL["subset_rankings"] = {"100": ["im2", "im1", "im3"]}
SESSIONS = document(CIRCLED, {"s0": [["im1", "im2"], ["im2", "im1"]], "s1": [["im3"], ["im1"], ["im2"]]})
SERVED = worlds.cirr_document(CIRR, 51)


@dataclass(frozen=True)
class Case:
    """A rank file, what it is converted to, and the golden file of each part."""

    to: str
    rank_file: dict[str, Any]
    benchmark: Benchmark
    files: dict[str, str]
    compress: bool = False

    def made(self) -> dict[str, bytes]:
        content = json.dumps(self.rank_file).encode()
        parts = submissions.convert([content], self.to, benchmark=self.benchmark, compress=self.compress)
        return {self.files[part.part]: part.content for part in parts}


CASES = [
    Case("native", SMALL, CIRR, {"": "single.native.json"}),
    Case("native", SMALL, CIRR, {"": "single.native.json.gz"}, compress=True),
    Case("native", SESSIONS, CIRCLED, {"": "sessions.native.json"}),
    Case("lines", SMALL, CIRR, {"": "single.jsonl"}),
    Case("lines", SESSIONS, CIRCLED, {"": "sessions.jsonl"}),
    Case("parquet", SMALL, CIRR, {"": "single.parquet"}),
    Case("parquet", SESSIONS, CIRCLED, {"": "sessions.parquet"}),
    Case("trec", SMALL, CIRR, {"": "single.trec"}),
    Case("trec", SESSIONS, CIRCLED, {"": "sessions.trec"}),
    Case("trec", SESSIONS, CIRCLED, {"": "sessions.trec.gz"}, compress=True),
    Case("json-run", SMALL, CIRR, {"": "single.json-run.json"}),
    Case("json-run", SESSIONS, CIRCLED, {"": "sessions.json-run.json"}),
    Case(
        "cirr-server",
        SERVED,
        CIRR,
        {"recall": "cirr-recall.json", "recall_subset": "cirr-recall_subset.json"},
    ),
    Case("circo-server", worlds.circo_document(CIRCO), CIRCO, {"": "circo.json"}),
    Case("zerosight", document(ZEROSIGHT, {"7": POOL[:51]}), ZEROSIGHT, {"": "zerosight.json"}),
    Case(
        "fashioniq",
        document(DRESS, {query: list(DRESS.gallery or ())[:50] for query in DRESS.query_ids}),
        DRESS,
        {"": "fashioniq.json"},
    ),
]


def plain(name: str, content: bytes) -> Any:
    """What of a file must stay the same: not zlib's choices, nor the version that Parquet's writer notes."""
    if name.endswith(".gz"):
        return gzip.decompress(content)
    if not name.endswith(".parquet"):
        return content
    file = pq.ParquetFile(io.BytesIO(content))
    group = file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    layout = [(each.path_in_schema, each.compression, sorted(each.encodings)) for each in columns]
    return file.schema_arrow.metadata, str(file.schema_arrow), file.read().to_pylist(), layout


@pytest.mark.parametrize("case", CASES, ids=[next(iter(case.files.values())) for case in CASES])
def test_every_format_is_written_as_stored(case: Case) -> None:
    made = case.made()
    assert list(made) == list(case.files.values())
    for name, content in made.items():
        assert plain(name, content) == plain(name, (FOLDER / name).read_bytes())


def test_every_format_has_a_golden_file_and_every_file_a_case() -> None:
    assert {case.to for case in CASES} == set(FORMATS)
    files = [name for case in CASES for name in case.files.values()]
    assert sorted(files) == sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("case", [case for case in CASES if case.to in ("native", "lines", "parquet")])
def test_a_golden_file_of_ours_is_read_back_whole(case: Case) -> None:
    content = (FOLDER / case.files[""]).read_bytes()
    assert submissions.read(content) == submissions.read(json.dumps(case.rank_file).encode())


@pytest.mark.parametrize("case", [case for case in CASES if case.to not in ("native", "lines", "parquet")])
def test_a_golden_file_of_others_is_read_back_with_its_rankings(case: Case) -> None:
    contents = [(FOLDER / name).read_bytes() for name in case.files.values()]
    (native,) = submissions.convert(contents, "native", benchmark=case.benchmark)
    found = json.loads(native.content)
    depth = 50 if case.to in ("cirr-server", "zerosight") else None
    cut = {query: ids[:depth] for query, ids in case.rank_file["rankings"].items()}
    assert found["rankings"] == cut
    assert found.get("subset_rankings") == case.rank_file.get("subset_rankings")


if __name__ == "__main__":
    for case in CASES:
        for name, content in case.made().items():
            (FOLDER / name).write_bytes(content)
            sys.stdout.write(f"{name}\n")
