"""What must hold of every benchmark's rows: one broken record a rule, named with file, record, id and fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest

import cir_datasets
from cir_datasets import registry
from cir_datasets.errors import RecordError
from cir_datasets.rows.checks import checked_rows

Change = Callable[[Any], Any]
pytestmark = pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning")


@pytest.fixture(autouse=True)
def _caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)


def load(benchmark_id: str, home: Path) -> cir_datasets.Benchmark:
    return cir_datasets.load(benchmark_id, data_dir=home, verification_mode="no_checks")


CIRCO, SPLIT = "annotations/val.json", "image_splits/split.rc2.val.json"
COCO = "COCO2017_unlabeled/annotations/image_info_unlabeled2017.json"
DRESS, UNION = "captions/cap.dress.val.json", "captions/cap.shirt.val.json"
CIRCLED, MULTITURN = "data/circo_val.json", "data/dress.val.json"
FISD, ZEROSIGHT = "negation/queries.json", "test.json"

# Benchmark, file, what is done to it, what the message says.
BROKEN: list[tuple[str, str, Change, str]] = [
    (
        "circo/val",
        CIRCO,
        lambda r: r[0].update(target_img_id=345678),
        r"record 1 \(query_id 0\): its target '000000345678' is not among its positives \['000000234567'",
    ),
    (
        "circo/val",
        CIRCO,
        lambda r: r[1].update(semantic_aspects=["cardinality", "colour"]),
        r"record 2 \(query_id 1\): it has the aspect 'colour', which is not one of cardinality, addition, ",
    ),
    (
        "circo/val",
        CIRCO,
        lambda r: r[1].update(semantic_aspects=["addition", "addition"]),
        r"\(query_id 1\): it has an aspect twice: \['addition', 'addition'\]",
    ),
    (
        "circo/val",
        CIRCO,
        lambda r: r[0]["gt_img_ids"].append(r[0]["reference_img_id"]),
        r"record 1 \(query_id 0\): its reference '000000123456' is a positive\.",
    ),
    (
        "circo/val",
        COCO,
        lambda r: r["images"][0].update(file_name="000000000077.jpg"),
        r"record 1: the file of image 000000000009 must be 000000000009\.jpg, not '000000000077\.jpg'",
    ),
    (
        "fashioniq/dress_val",
        DRESS,
        lambda r: r[1].update(captions=["one only"]),
        r"\(query_id dress_val_00001\): the field 'captions' must hold 2 strings, not \['one only'\]",
    ),
    (
        "fashioniq/dress_test",
        DRESS.replace("val", "test"),
        lambda r: r[1].update(captions=["a", "b", "c"]),
        r"\(query_id dress_test_00001\): the field 'captions' must hold 2 strings, not \['a', 'b', 'c'\]",
    ),
    (
        "fashioniq/shirt_val_union",
        UNION,
        lambda r: r[2].update(target=r[2]["candidate"]),
        r"record 3 \(query_id shirt_val_00002\): its reference 'BSV0000003' is its target\.",
    ),
    (
        "fisd/negation",
        FISD,
        lambda r: r[1].update(target_image_id=r[1]["reference_image_id"]),
        r"record 2 \(query_id negation_001\): its reference 'negation/001_reference.png' is its target\.",
    ),
    (
        "fisd/negation",
        FISD,
        lambda r: r[1].update(negative_image_ids=[r[1]["reference_image_id"]]),
        r"record 2 \(query_id negation_001\): its reference .*001_reference.png' is one of its hard",
    ),
    (
        "zerosight/test",
        ZEROSIGHT,
        lambda r: r[1]["groundtruths"].append(r[1]["reference"]),
        r"record 2 \(query_id 4\): its reference 'video-\d+/\d+\.jpg' is a positive\.",
    ),
    (
        "cirr/val",
        SPLIT,
        lambda r: r.update({"val-1-0-img1": r["val-0-0-img0"]}),
        r"image 'val-1-0-img1': its path '\./val/val-0-0-img0\.png' is of another image",
    ),
    (
        "circled/circo_val",
        CIRCLED,
        lambda r: r[1]["turns"][1].update(reference_image_id=r[1]["ground_truth_ids"][0]),
        r"record 2 \(session_id circo_val_0001\): the reference of turn 2, '000000234567', is a ground truth",
    ),
    (
        "multiturn_fashioniq/dress_val",
        MULTITURN,
        lambda r: r[1].update(target=["http://example.org/x.jpg", r[1]["reference"][0][2]]),
        r"record 2 \(session_id dress_val_0001\): the reference of turn 1, 'BDV0000001', is a ground truth",
    ),
]


@pytest.mark.parametrize(("benchmark_id", "file", "change", "words"), BROKEN)
def test_a_record_that_breaks_a_rule_is_named(
    benchmark_id: str, file: str, change: Change, words: str, tmp_path: Path
) -> None:
    root = made.write_for(tmp_path, benchmark_id)
    assert load(benchmark_id, root).query_ids
    made.edit(root / file, change)
    with pytest.raises(RecordError, match=words) as error:
        load(benchmark_id, root)
    assert str(root / file) in str(error.value)
    assert "Fix: " in str(error.value)


def row(**changes: Any) -> dict[str, Any]:
    """A query of shapes, whose rows no publisher's file can spoil."""
    return {
        "query_id": "q",
        "reference_image_id": "r",
        "captions": ["made up"],
        "relative_caption": "made up",
        "target_image_id": "t",
        "positive_image_ids": ["t"],
        "negative_image_ids": ["n"],
        "subset_image_ids": ["r", "t", "n", "a", "b", "c"],
        "aspects": ["change"],
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"positive_image_ids": [], "target_image_id": None},
            "it has no positive, and the ground truth is pub",
        ),
        ({"positive_image_ids": ["a"]}, r"its target 't' is not among its positives \['a'\]"),
        ({"target_image_id": "r"}, r"its target 'r' is not among its positives \['t'\]"),
        ({"positive_image_ids": ["t", "r"]}, "its reference 'r' is a positive, but is removed from the ran"),
        ({"positive_image_ids": ["t", "t"]}, "its positive_image_ids name an image twice"),
        ({"negative_image_ids": ["n", "n"]}, "its negative_image_ids name an image twice"),
        ({"negative_image_ids": ["t"]}, "image 't' is both a positive and a hard negative"),
        ({"aspects": ["colour"]}, "it has the aspect 'colour', which is not one of change, complex, "),
        ({"subset_image_ids": ["r", "t", "n", "a", "b"]}, "its subset must hold 6 different images"),
        ({"subset_image_ids": ["r", "t", "n", "a", "b", "b"]}, "its subset must hold 6 different images"),
        (
            {"subset_image_ids": ["x", "t", "n", "a", "b", "c"]},
            "its reference_image_id 'r' is not in its subset",
        ),
        (
            {"subset_image_ids": ["r", "x", "n", "a", "b", "c"]},
            "its target_image_id 't' is not in its subset",
        ),
    ],
)
def test_a_query_that_breaks_a_rule_is_named(changes: dict[str, Any], words: str) -> None:
    spec = registry.spec("shapes/val")
    assert list(checked_rows(spec, [row()], None, str))
    with pytest.raises(RecordError, match=rf"^1 \(query_id q\): {words}"):
        list(checked_rows(spec, [row(**changes)], None, str))


def test_an_image_file_belongs_to_one_id() -> None:
    from cir_datasets.rows.checks import checked_images
    from cir_datasets.rows.records import image_row

    rows = [image_row("a", relative_path="a.png"), image_row("b"), image_row("c")]
    assert list(checked_images(rows, "list")) == rows
    rows.append(image_row("d", relative_path="a.png"))
    words = r"^list: record 4: image 'd' has the path 'a\.png' of another \(first in record 1\)\. Fix: "
    with pytest.raises(RecordError, match=words):
        list(checked_images(rows, "list"))
