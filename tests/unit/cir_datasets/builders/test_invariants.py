"""What must hold of every benchmark's rows: one broken record a rule, named with file, record, id and fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cir_datasets import registry
from cir_datasets.errors import RecordError
from cir_datasets.rows.checks import checked_rows

Change = Callable[[Any], Any]
pytestmark = [
    pytest.mark.usefixtures("no_publishers"),
    pytest.mark.filterwarnings("ignore::cir_datasets.errors.UnpinnedDataWarning"),
]


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
