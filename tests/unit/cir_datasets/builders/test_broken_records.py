"""One broken record a line: what is done to a publisher's file, and what the error says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets_publishers as made
import pytest
from datasets_publishers import load_unchecked

from cir_datasets.errors import RecordError

Change = Callable[[Any], Any]
pytestmark = [
    pytest.mark.usefixtures("no_publishers"),
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
]

# By benchmark and file.
BROKEN: dict[tuple[str, str], list[tuple[Change, str]]] = {
    ("cirr/val", "captions/cap.rc2.val.json"): [
        (lambda r: r[1].pop("caption"), r"record 2 \(pairid 901\): the field 'caption' is missing"),
        (lambda r: r[1].pop("pairid"), "record 2: the field 'pairid' is missing"),
        (lambda r: r[0].pop("target_hard"), "the field 'target_hard' is missing"),
        (lambda r: r[0].pop("target_soft"), "the field 'target_soft' is missing"),
        (lambda r: r[0]["img_set"].pop("members"), r"pairid 900, img_set\): the field 'members'"),
        (lambda r: r[0].update(caption=3), "the field 'caption' must be a string, not 3"),
        (lambda r: r[0].update(pairid="900"), "the field 'pairid' must be an integer, not '900'"),
        (lambda r: r[0].update(pairid=True), "the field 'pairid' must be an integer, not True"),
        (lambda r: r[0].update(img_set=[]), "the field 'img_set' must be an object"),
        (lambda r: r[0].update(reference=""), "the field 'reference' is an empty string"),
        (lambda r: r[0]["target_soft"].update(x="y"), "the score of 'x' must be a number, not 'y'"),
        (lambda r: r.append(r[0]), r"record 4 \(query_id 900\): its id occurs a second time .*record 1"),
        (lambda r: r[0]["img_set"]["members"].pop(), "its subset must hold 6 different images"),
        (lambda r: r[0]["img_set"]["members"].__setitem__(0, "x"), "is not in its subset"),
        (lambda r: r[0].update(target_hard="elsewhere"), "target_image_id 'elsewhere' is not in its subset"),
        (
            lambda r: r[0].update(target_hard=r[0]["reference"]),
            "is a positive, but is removed from the ranking",
        ),
        (lambda r: r[0]["img_set"].update(id=10**30), "record 1.*a value does not fit"),
        (lambda r: r.__setitem__(1, "text"), "record 2 must be an object, not 'text'"),
    ],
    ("circled/cirr_val", "data/cirr_val.json"): [
        (lambda r: r[0].update(ground_truth_ids=r[0]["ground_truth_ids"] * 2), "twice"),
        (lambda r: r[1].pop("turns"), r"cirr_val_0001\): the field 'turns'"),
        (lambda r: r[1].update(subset="cirr_train"), "its subset is 'cirr_train'"),
        (lambda r: r[1].update(num_turns=2), "num_turns is 2, but it has 3 turns"),
        (lambda r: r[1]["turns"].reverse(), r"out of order: \[3, 2, 1\]"),
        (lambda r: r[0].update(session_id="cirr_val_0001"), "occurs a second"),
        (lambda r: r[0].update(ground_truth_ids=[]), "'ground_truth_ids' must be"),
        (lambda r: r[0]["turns"][1].pop("turn"), "turn 2.: the field 'turn' is"),
        (lambda r: r[0]["turns"].__setitem__(0, 3), "turn 1 must be an object"),
    ],
    ("cirr/val", "captions_ext/cap.ext.rc2.val.json"): [
        (lambda r: r.pop(), "the file of auxiliary captions has no record of that pair id"),
        (lambda r: r.append(dict(r[0], pairid=1)), "cap.rc2.val.json has no query of that pair id"),
        (lambda r: r.append(r[0]), "pair id 902 occurs a second time .first in record 1"),
        (lambda r: r[2].update(reference="x"), "its reference is 'x', but the query's is 'val-0-0-img0'"),
        (lambda r: r[0]["caption_extend"].pop("3"), "caption_extend must have the keys 0, 1, 2, 3"),
    ],
    ("cirr/val", "image_splits/split.rc2.val.json"): [
        (lambda r: r.pop("val-5-0-img1"), "its subset member 'val-5-0-img1' is not in the gallery"),
        (lambda r: r.update(x=None), "image 'x': its path must be a string"),
        (
            lambda r: r.update({"val-1-0-img1": r["val-0-0-img0"]}),
            r"image 'val-1-0-img1': its path '\./val/val-0-0-img0\.png' is of another image",
        ),
    ],
    ("fashioniq/dress_val", "captions/cap.dress.val.json"): [
        (
            lambda r: r[0].pop("target"),
            r"record 1 \(query_id dress_val_00000\): the field 'target' is missing",
        ),
        (lambda r: r[0].update(captions="x"), "'captions' must be a list that is not empty"),
        (lambda r: r[0].update(captions=[]), "'captions' must be a list that is not empty"),
        (lambda r: r[0].update(captions=[None]), "an item of 'captions' must be a string"),
        (lambda r: r[2].update(candidate="B0"), "its reference 'B0' is not in the gallery"),
        (lambda r: r[2].update(target="B0"), "its target 'B0' is not in the gallery"),
        (
            lambda r: r[1].update(captions=["one only"]),
            r"\(query_id dress_val_00001\): the field 'captions' must hold 2 strings, not \['one only'\]",
        ),
    ],
    ("fashioniq/dress_val", "image_splits/split.dress.val.json"): [
        (lambda r: r.append(r[0]), "record 7: image .* occurs a second time .*record 1"),
        (lambda r: r.append(3), "record 7: an image id must be a string, not 3"),
    ],
    ("circo/val", "annotations/val.json"): [
        (lambda r: r[0].pop("gt_img_ids"), r"\(id 0\): the field 'gt_img_ids'"),
        (lambda r: r[0].update(id=1), r"record 2 \(query_id 1\): its id occurs a sec"),
        (lambda r: r[0]["gt_img_ids"].append(5), "positive '000000000005' is not in"),
        (
            lambda r: r[0].update(target_img_id=345678),
            r"record 1 \(query_id 0\): its target '000000345678' is not among its positives \['000000234567'",
        ),
        (
            lambda r: r[1].update(semantic_aspects=["cardinality", "colour"]),
            (
                r"record 2 \(query_id 1\): it has the aspect 'colour', which is not "
                r"one of cardinality, addition, "
            ),
        ),
        (
            lambda r: r[1].update(semantic_aspects=["addition", "addition"]),
            r"\(query_id 1\): it has an aspect twice: \['addition', 'addition'\]",
        ),
        (
            lambda r: r[0]["gt_img_ids"].append(r[0]["reference_img_id"]),
            r"record 1 \(query_id 0\): its reference '000000123456' is a positive\.",
        ),
    ],
    ("circo/val", "COCO2017_unlabeled/annotations/image_info_unlabeled2017.json"): [
        (lambda r: r.pop("images"), "the field 'images' must be a list"),
        (lambda r: r["images"].append(4), "image 6 must be an object, not 4"),
        (
            lambda r: r["images"][0].update(file_name="000000000077.jpg"),
            r"record 1: the file of image 000000000009 must be 000000000009\.jpg, not '000000000077\.jpg'",
        ),
    ],
    ("multiturn_fashioniq/dress_val", "data/dress.val.json"): [
        (lambda r: r[1].pop("target"), r"record 2 \(session_id dress_val_0001\): the field 'tar"),
        (lambda r: r[0].update(target="B0"), r"'target' must be \[address, image id\], not 'B0'"),
        (lambda r: r[0].update(target=["u", 3]), r"must be \[address, image id\], not \['u', 3\]"),
        (lambda r: r[0].update(reference=[]), "'reference' must be a list that is not empty"),
        (lambda r: r[0]["reference"][1].pop(), r"turn 2 must be \[address, captions, image id\]"),
        (
            lambda r: r[0]["reference"][0].__setitem__(1, "x"),
            "turn 1: its captions must be one or more strings",
        ),
        (
            lambda r: r[0]["reference"][0].__setitem__(1, []),
            "turn 1: its captions must be one or more strings",
        ),
        (
            lambda r: r[1]["reference"][1].__setitem__(2, "B9"),
            r"dress.val.json: record 2 \(session_id dress_val_0001\): its reference of turn 2 'B9' is not in",
        ),
        (lambda r: r[0]["target"].__setitem__(1, "B9"), "its ground truth 'B9' is not in the gal"),
        (
            lambda r: r[1].update(target=["http://example.org/x.jpg", r[1]["reference"][0][2]]),
            (
                r"record 2 \(session_id dress_val_0001\): the reference of turn 1, "
                r"'BDV0000001', is a ground truth"
            ),
        ),
    ],
    ("multiturn_fashioniq/dress_val", "image_splits/split.dress.val.json"): [
        (lambda r: r.append(r[1]), "split.dress.val.json: record 7: image .* occurs a second time"),
    ],
    ("fisd/negation", "negation/queries.json"): [
        (lambda r: r[0].pop("query_id"), "record 1: the field 'query_id' is mis"),
        (
            lambda r: r[0].update(query_id="change_000"),
            r"record 1 \(query_id change_000\): its query_id must be negation_ and three digits",
        ),
        (
            lambda r: r[2].update(query_id="negation_000"),
            r"record 3 \(query_id negation_000\): its id occurs a second time \(first in record 1\)",
        ),
        (
            lambda r: r[0].update(negative_image_ids=[]),
            "'negative_image_ids' must be a list that is not empty",
        ),
        (
            lambda r: r[0].update(negative_image_ids=[r[0]["target_image_id"]]),
            "image 'negation/000_target.png' is both a positive and a hard negative",
        ),
        (
            lambda r: r[1].update(target_image_id=r[1]["reference_image_id"]),
            r"record 2 \(query_id negation_001\): its reference 'negation/001_reference.png' is its target\.",
        ),
        (
            lambda r: r[1].update(negative_image_ids=[r[1]["reference_image_id"]]),
            r"record 2 \(query_id negation_001\): its reference .*001_reference.png' is one of its hard",
        ),
    ],
    ("fisd/negation", "negation/images.json"): [
        (
            lambda r: r.remove("negation/002_negative.png"),
            (
                r"queries.json: record 3 \(query_id negation_002\): its hard negative "
                r".* is not in the gallery \(8"
            ),
        ),
        (lambda r: r.append(None), "record 10: an image id must be a string, not N"),
    ],
    ("zerosight/all", "test.json"): [
        (lambda r: r[1].update(category="colour"), r"test.json: record 2 \(id 4\): its ca"),
        (
            lambda r: r[1].update(id="1"),
            r"test.json: record 2 \(query_id 1\): its id occurs a second time \(first in .*train.json: rec",
        ),
        (
            lambda r: r[2]["groundtruths"].append("video-9/1.jpg"),
            r"test.json: record 3 \(query_id 5\): its positive 'video-9/1.jpg' is not in the gallery \(64",
        ),
        (lambda r: r[0].update(groundtruths=[]), "'groundtruths' must be a list that is n"),
        (lambda r: r[0].update(negativeInstances=3), "'negativeInstances' must be a lis"),
        (
            lambda r: r[0]["groundtruths"].append(r[0]["groundtruths"][0]),
            "the field 'groundtruths' holds 'video-00004/000050.jpg' twice",
        ),
        (lambda r: r[0].update(caption="\ud800"), r"record 1: .*surrogates"),
    ],
    ("zerosight/all", "images.json"): [
        (lambda r: r.append("\ud800"), r"images.json: record 65: a value does not fit"),
    ],
    ("fashioniq/dress_test", "captions/cap.dress.test.json"): [
        (
            lambda r: r[1].update(captions=["a", "b", "c"]),
            r"\(query_id dress_test_00001\): the field 'captions' must hold 2 strings, not \['a', 'b', 'c'\]",
        ),
    ],
    ("fashioniq/shirt_val_union", "captions/cap.shirt.val.json"): [
        (
            lambda r: r[2].update(target=r[2]["candidate"]),
            r"record 3 \(query_id shirt_val_00002\): its reference 'BSV0000003' is its target\.",
        ),
    ],
    ("zerosight/test", "test.json"): [
        (
            lambda r: r[1]["groundtruths"].append(r[1]["reference"]),
            r"record 2 \(query_id 4\): its reference 'video-\d+/\d+\.jpg' is a positive\.",
        ),
    ],
    ("circled/circo_val", "data/circo_val.json"): [
        (
            lambda r: r[1]["turns"][1].update(reference_image_id=r[1]["ground_truth_ids"][0]),
            (
                r"record 2 \(session_id circo_val_0001\): the reference of turn 2, "
                r"'000000234567', is a ground truth"
            ),
        ),
    ],
}
OF_ANOTHER_FILE = {
    "the file of auxiliary captions has no record of that pair id",
    "its subset member 'val-5-0-img1' is not in the gallery",
    r"queries.json: record 3 \(query_id negation_002\): its hard negative .* is not in the gallery \(8",
}
"""What one file lacks is said of the record in another that needs it."""
RECORDS = [(*place, *record) for place, records in BROKEN.items() for record in records]


@pytest.mark.parametrize(
    ("benchmark_id", "file", "change", "words"),
    RECORDS,
    ids=[f"{name}-{words}" for name, _, _, words in RECORDS],
)
def test_a_broken_record_is_an_error_that_names_file_record_and_fix(
    benchmark_id: str, file: str, change: Change, words: str, tmp_path: Path
) -> None:
    root = made.write_for(tmp_path, benchmark_id)
    made.edit(root / file, change)
    with pytest.raises(RecordError, match=words) as error:
        load_unchecked(benchmark_id, tmp_path)
    assert str(root if words in OF_ANOTHER_FILE else root / file) in str(error.value)
    assert "Fix: " in str(error.value)
    assert not [*(tmp_path / "cache").rglob("meta.json"), *(tmp_path / "cache").rglob("*.parquet")]
