"""A page of queries: all of them are in it, words stay words, and a bad call says what to do."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from datasets_publishers import write_circo
from typer.testing import CliRunner

import cir_datasets
from cir_datasets.browse import browse_queries, queries_html
from cir_datasets.commands.datasets import datasets_commands
from cir_datasets.construction.new_folder import new_folder
from cir_datasets.errors import DatasetError
from cir_datasets.images import COCO_PICTURES
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CirError

BAD = "</script><img src=x onerror=alert(1)>"


def data_of(page: Path) -> Any:
    (found,) = re.findall(r'id="data">(.*?)</script>', page.read_text("utf-8"))
    return json.loads(gzip.decompress(base64.b64decode(found)))


def of_one(**changed: Any) -> Benchmark:
    whole = cir_datasets.load("shapes/val")
    return Benchmark.from_rows(whole.spec, [whole.head(1)[0] | changed], list(whole.gallery or ()))


def test_all_queries_are_in_the_page_and_the_first_are_html(tmp_path: Path) -> None:
    benchmark = cir_datasets.load("shapes/val")
    page = browse_queries(benchmark, tmp_path / "a" / "page.html", pictures="none")
    assert [row["id"] for row in data_of(page)["rows"]] == benchmark.query_ids
    assert page.read_text("utf-8").count("<article") == 20
    assert not re.search(r"https?://", page.read_text("utf-8"))


def test_a_session_shows_its_turns(tmp_path: Path) -> None:
    benchmark = cir_datasets.load("shapes/multiturn_val")
    rows = data_of(browse_queries(benchmark, tmp_path / "page.html", pictures="none"))["rows"]
    turns = [row["num_turns"] for row in benchmark.rows()]
    assert (
        [row["turns"] for row in rows]
        == [row["html"].count("<figcaption>reference") for row in rows]
        == turns
    )


def test_foreign_words_stay_words(tmp_path: Path) -> None:
    page = browse_queries(
        of_one(query_id=BAD, captions=[BAD], aspects=[BAD]), tmp_path / "p.html", pictures="none"
    )
    assert "<img src=x" not in page.read_text("utf-8")
    (row,) = data_of(page)["rows"]
    assert row["id"] == BAD
    assert "<img src=x" not in row["html"]


def test_pictures_are_embedded_linked_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new_folder("looked_at", tmp_path / "my # folder")
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    own = cir_datasets.load("looked_at/test")
    linked = browse_queries(own, tmp_path / "linked.html").read_text("utf-8")
    assert 'src="my%20%23%20folder/images/val-' in linked
    (folder / "images" / f"{own.head(1)[0]['reference_image_id']}.png").write_bytes(b"not a picture")
    embedded = browse_queries(own, tmp_path / "embedded.html", pictures="embed").read_text("utf-8")
    assert "data:image/jpeg;base64," in embedded
    assert "it is for yourself" in embedded
    named = browse_queries(own, tmp_path / "named.html", pictures="none").read_text("utf-8")
    assert "<img" not in named


def test_cocos_pictures_come_from_coco_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_circo(tmp_path / "data", "val")
    monkeypatch.setenv("CIR_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    circo = cir_datasets.load("circo/val", verification_mode="no_checks")
    for way, there in (("none", False), ("publisher", True)):
        page = browse_queries(circo, tmp_path / "page.html", pictures=way).read_text("utf-8")
        assert (f'src="{COCO_PICTURES}000000' in page) is there
        assert (COCO_PICTURES in page.partition("style-src")[0]) is there


def test_a_notebook_shows_queries_with_pictures_and_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    for name, name_of_rows in (("shapes/val", "queries"), ("shapes/multiturn_val", "sessions")):
        benchmark = cir_datasets.load(name)
        row = benchmark.queries[7]
        assert row == benchmark.rows()[7] == benchmark.head(8)[7]
        html = row._repr_html_()
        answers = row["ground_truth_ids" if benchmark.multi_turn else "positive_image_ids"]
        for image in [turn["reference_image_id"] for turn in row.get("turns", [row])] + answers:
            assert f'title="{image}"' in html
        assert "<script" not in html
        assert len(html) < 60_000
        assert repr(benchmark.queries) == f"<{len(benchmark)} {name_of_rows} of {name}>"
        assert repr(benchmark.queries[:1]) == repr(benchmark.rows()[:1])
        assert benchmark.queries[7:8]._repr_html_() == html
        many = benchmark.queries._repr_html_()
        assert f"The first 5 of {len(benchmark):,}." in many
        assert len(many) < 200_000
    many_targets = of_one(positive_image_ids=list(benchmark.gallery or ())[:30]).head()._repr_html_()
    assert "and 26 more" in many_targets


def test_a_notebook_shows_ids_where_pictures_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_folder("looked_at", tmp_path / "own")
    monkeypatch.setenv("CIR_BENCHMARKS", str(folder))
    monkeypatch.delenv("CIR_IMAGES", raising=False)
    own = cir_datasets.load("looked_at/test")
    row = own.queries[0]
    assert "data:image/jpeg" in row._repr_html_()
    (folder / "images").rename(folder / "elsewhere")
    html = row._repr_html_()
    assert "<img" not in html
    assert f'<span class="id">{row["reference_image_id"]}</span>' in html
    assert "Set CIR_IMAGES" in html


def test_foreign_words_stay_words_in_a_notebook() -> None:
    one = of_one(query_id=BAD, captions=[BAD], aspects=[BAD])
    assert "<img src=x" not in one.head()._repr_html_()
    own = {name: [BAD] for name in ("positive_image_ids", "negative_image_ids")}
    assert BAD not in queries_html(one.spec, [dict(one.queries[0]) | own | {"target_image_id": None}])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cirr/vall"], "Did you mean"),
        (["nothing/at_all"], "no benchmark"),
        (["shapes"], "names several benchmarks. Fix"),
        (["shapes/val", "--out", "."], "is a folder. Fix"),
        (["shapes/val", "--out", "page.pdf"], "page ends in .html"),
        (["shapes/val", "--out", "page"], "page ends in .html"),
        (["shapes/val", "--pictures", "embedd"], "Did you mean 'embed'"),
        (["shapes/val", "--pictures", "link"], "no files to link to"),
        (["shapes/val", "--pictures", "publisher"], "shows no pictures. Fix"),
        (["shapes/val", "--images", "no/such/folder"], "no such folder. Fix"),
        (["shapes/val", "--out", "file.txt/page.html"], "cannot be written"),
    ],
    ids=[
        "typo",
        "unknown",
        "name",
        "folder",
        "pdf",
        "no_ending",
        "way",
        "link",
        "publisher",
        "images",
        "below_a_file",
    ],
)
def test_a_bad_call_says_what_to_do(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").touch()
    done = CliRunner().invoke(datasets_commands(), ["browse", *arguments])
    assert isinstance(done.exception, CirError)
    assert words in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_an_earlier_page_outlives_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = browse_queries(of_one(), tmp_path / "page.html", pictures="none")
    before = page.read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DatasetError, match="No space left"):
        browse_queries(of_one(query_id="other"), page, pictures="none")
    assert page.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
