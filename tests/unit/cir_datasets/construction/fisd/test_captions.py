"""Files of source captions: what is read, and how broken ones explain themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cir_datasets.construction.fisd.captions import read_captions
from cir_datasets.errors import ConstructionError


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


COCO = json.dumps(
    {
        "images": [{"id": 7}],
        "annotations": [
            {"image_id": 7, "id": 1, "caption": "A dog runs. "},
            {"image_id": 7, "id": 2, "caption": "A dog is running."},
            {"image_id": 8, "id": 3, "caption": "Two cats\n sleep."},
        ],
    }
)


# Made-up records of exactly the publishers' forms.
COCO_VAL = json.dumps(
    {
        "info": {"description": "COCO 2017 Dataset", "version": "1.0", "year": 2017},
        "licenses": [{"url": "http://example.org/by", "id": 4, "name": "Attribution License"}],
        "images": [
            {
                "license": 4, "file_name": "000000000007.jpg", "coco_url": "http://example.org/7.jpg",
                "height": 480, "width": 640, "date_captured": "2013-11-14 11:18:45",
                "flickr_url": "http://example.org/7_z.jpg", "id": 7,
            }
        ],
        "annotations": [
            {"image_id": 7, "id": 38, "caption": "A small dog on a red mat. "},
            {"image_id": 9, "id": 49, "caption": "Two cats asleep\non a bench."},
            {"image_id": 7, "id": 182, "caption": "A dog that lies on a mat"},
        ],
    }
)  # fmt: skip
NOCAPS_VAL = json.dumps(
    {
        "licenses": [],
        "info": {"url": "http://nocaps.org", "date_created": "2018/11/06", "version": "0.1", "year": 2018},
        "images": [
            {
                "id": 0, "open_images_id": "0013ea2087020901", "height": 1024, "width": 732,
                "coco_url": "https://example.org/val/0013ea2087020901.jpg", "date_captured": "2018-11-06",
                "file_name": "0013ea2087020901.jpg", "license": 0, "domain": "in-domain",
            }
        ],
        "annotations": [
            {"image_id": 0, "id": 0, "caption": "A tortoise in a box of sand."},
            {"image_id": 0, "id": 1, "caption": "A tortoise."},
            {"image_id": 1, "id": 10, "caption": "A boat tied to a pole."},
        ],
    }
)  # fmt: skip
CC3M_VAL = (
    "author : a life in photography -- in pictures\thttps://example.org/a.jpg\n"
    'an angler fishes river on a snowy day .\thttp://example.org/b.jpg?x="1"\n'
    'the sign says " open " , and it is not\thttp://example.org/c.jpg\n'
)
FLICKR_TOKEN = (
    "1000092795.jpg#0\tTwo young men stand near a green bush .\n"
    "1000092795.jpg#1\tTwo friends .\n"
    '10002456.jpg#0\tFour men on top of a "tall" structure .\n'
)
FLICKR_KARPATHY = json.dumps(
    {
        "images": [
            {
                "sentids": [place], "imgid": place, "filename": f"{place}.jpg", "split": split,
                "sentences": [{"tokens": [split], "raw": f"A {split} man.", "imgid": place, "sentid": place}],
            }
            for place, split in enumerate(("train", "val", "test"))
        ],
        "dataset": "flickr30k",
    }
)  # fmt: skip
HQ_EDIT = json.dumps(
    {
        "input": "A quiet street.",
        "input_image": None,
        "edit": "Fill the street with people.",
        "inverse_edit": "Empty it.",
        "output": "A street full of people.",
        "output_image": None,
    }
)


@pytest.mark.parametrize(
    ("name", "text", "captions", "at"),
    [
        (
            "captions_val2017.json",
            COCO_VAL,
            ["A small dog on a red mat.", "Two cats asleep on a bench."],
            "record 2",
        ),
        (
            "nocaps_val_4500_captions.json",
            NOCAPS_VAL,
            ["A tortoise in a box of sand.", "A boat tied to a pole."],
            "record 3",
        ),
        (
            "Validation_GCC-1.1.0-Validation.tsv",
            CC3M_VAL,
            [
                "author : a life in photography -- in pictures",
                "an angler fishes river on a snowy day .",
                'the sign says " open " , and it is not',
            ],
            "line 3",
        ),
        (
            "results_20130124.token",
            FLICKR_TOKEN,
            ["Two young men stand near a green bush .", 'Four men on top of a "tall" structure .'],
            "line 3",
        ),
        ("dataset_flickr30k.json", FLICKR_KARPATHY, ["A val man.", "A test man."], "image 3"),
        ("hq_edit.jsonl", HQ_EDIT, ["A quiet street."], "line 1"),
    ],
)
def test_the_papers_sources_are_read_as_their_publishers_have_them(
    tmp_path: Path, name: str, text: str, captions: list[str], at: str
) -> None:
    found = read_captions(written(tmp_path, name, text))
    assert [source.caption for source in found.sources] == captions
    assert found.sources[-1].at == f"{name}, {at}"


def test_an_edit_of_hq_edit_is_taken_as_it_is(tmp_path: Path) -> None:
    (source,) = read_captions(written(tmp_path, "hq_edit.jsonl", HQ_EDIT)).sources
    assert source.relative_caption == "Fill the street with people."
    assert source.target_caption == "A street full of people."
    table = "input,edit,output\nA quiet street.,Fill it.,A full street.\n"
    (row,) = read_captions(written(tmp_path, "hq_edit.csv", table)).sources
    assert (row.caption, row.relative_caption, row.target_caption) == (
        "A quiet street.",
        "Fill it.",
        "A full street.",
    )


@pytest.mark.parametrize(
    ("name", "text", "captions", "at"),
    [
        ("a.txt", "A dog runs.\n\n Two cats  sleep. \n", ["A dog runs.", "Two cats sleep."], "a.txt, line 3"),
        (
            "a.csv",
            'id,caption\n1,"A dog, running"\n2,Two cats\n',
            ["A dog, running", "Two cats"],
            "a.csv, line 3",
        ),
        ("a.tsv", "A dog\thttp://a\nIt's \"two\n", ["A dog", "It's \"two"], "a.tsv, line 2"),
        ("a.tsv", "number\tcaption\n1\tA dog\n2\tA cat\n", ["A dog", "A cat"], "a.tsv, line 3"),
        ("a.jsonl", '{"caption": "A dog"}\n"A cat"\n', ["A dog", "A cat"], "a.jsonl, line 2"),
        ("a.json", '["A dog", {"caption": "A cat"}]', ["A dog", "A cat"], "a.json, record 2"),
        ("a.json", COCO, ["A dog runs.", "Two cats sleep."], "a.json, record 3"),
        ("a.csv", "id;caption\n1;A dog, running\n", ["A dog, running"], "a.csv, line 2"),
        ("a.csv", 'caption\n"A\ndog"\nA cat\n', ["A dog", "A cat"], "a.csv, line 4"),
        ("a.txt", "A dog\x00 runs\x1b\n", ["A dog runs"], "a.txt, line 1"),
        ("a.txt", b"\xef\xbb\xbfA dog\r\nA cat\r\n", ["A dog", "A cat"], "a.txt, line 2"),
    ],
)
def test_each_kind_of_file_is_read(
    tmp_path: Path, name: str, text: str, captions: list[str], at: str
) -> None:
    found = read_captions(written(tmp_path, name, text))
    assert [source.caption for source in found.sources] == captions
    assert found.sources[-1].at == at
    assert found.name == name


def test_a_file_may_bring_edits_of_its_own(tmp_path: Path) -> None:
    text = '{"caption": "A dog", "relative_caption": "make it a cat", "target_caption": "A cat"}\n'
    (source,) = read_captions(written(tmp_path, "hq.jsonl", text)).sources
    assert (source.relative_caption, source.target_caption) == ("make it a cat", "A cat")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.txt", "\n \n", "it holds no caption. Fix: write one a line"),
        ("a.txt", b"A dog\n\xff\n", "byte 6 is not UTF-8. Fix: save it as UTF-8"),
        ("a.doc", "A dog", "captions are read from .txt, .csv, .tsv, .token, .jsonl or .json"),
        ("a.csv", "id,text\n1,A dog\n", "line 1 does not name the columns caption. Fix: name the column"),
        ("a.csv", "id,caption\n1,A dog\n2,\n", "line 3: it has no caption. Fix: write one, or leave it out"),
        ("a.jsonl", '{"caption": "A dog"}\n{"caption": \n', "line 2 is not JSON"),
        ("a.jsonl", '{"caption": 7}\n', "line 1: caption is not text"),
        ("a.jsonl", "7\n", "line 1 is neither text nor an object with a 'caption'"),
        ("a.json", '{"captions": []}', "it holds neither a list nor an object with 'annotations'"),
        ("a.json", "[", "it is not JSON"),
        ("a.json", '{"images": [{"id": 1}]}', "image 1 has no sentences"),
        ("a.json", '{"annotations": [7]}', "record 1 is neither text nor an object"),
        (
            "a.json",
            '{"annotations": [{"image_id": [1], "caption": "A dog"}]}',
            "record 1: image_id is neither a number nor text",
        ),
        ("a.csv", "caption,caption\nA,B\n", "line 1 names caption twice"),
        ("a.csv", "id,caption\n1,A dog, running\n", "line 2: 3 fields, and line 1 names 2 columns"),
        ("a.csv", 'caption\nA cat\n"A dog\n', "line 3: it is not CSV"),
        ("a.csv", "", "line 1 does not name the columns caption"),
        ("a.tsv", "A dog\thttp://a\nA cat\thttp://b\tred\n", "line 2: 3 fields"),
        ("a.token", "1.jpg#0\n", "line 1: it has no caption"),
        ("a.txt", "\xe9".encode("latin-1"), "byte 0 is not UTF-8"),
        (
            "a.jsonl",
            '{"caption": "A dog", "target_caption": "A cat"}\n',
            "line 1: it has one of relative_caption and target_caption. Fix: write both or neither",
        ),
    ],
)
def test_a_broken_file_says_where_and_how_to_mend_it(tmp_path: Path, name: str, text: str, why: str) -> None:
    file = written(tmp_path, name, text)
    with pytest.raises(ConstructionError) as caught:
        read_captions(file)
    assert str(file) in str(caught.value)
    assert why in str(caught.value)
    assert "Fix: " in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConstructionError, match=r"none\.txt: cannot be read: No such file"):
        read_captions(tmp_path / "none.txt")


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), min_size=1))
def test_every_caption_of_json_lines_comes_back(
    tmp_path_factory: pytest.TempPathFactory, captions: list[str]
) -> None:
    text = "".join(json.dumps({"caption": caption}) + "\n" for caption in captions)
    file = written(tmp_path_factory.mktemp("captions"), "a.jsonl", text)
    assert [source.caption for source in read_captions(file).sources] == captions
