"""Nine pairs a subset, and the dialogue paths that they make."""

from __future__ import annotations

from typing import Any

from cir_datasets.construction.cirr.pairs import pairs_of, paths_of


def subset(number: int, images: str) -> dict[str, Any]:
    return {"subset": number, "split": "test", "members": list(images)}


def test_a_subset_has_a_closed_loop_and_more_targets_for_its_first_image() -> None:
    pairs = pairs_of(subset(3, "abcdef"))
    assert [pair["reference"] + pair["target"] for pair in pairs] == [
        "ab",
        "bc",
        "cd",
        "de",
        "ef",
        "fa",
        "ac",
        "ad",
        "ae",
    ]
    assert [pair["pair"] for pair in pairs] == [f"3-{number}" for number in range(9)]
    assert pairs[7]["others"] == ["b", "c", "e", "f"]


def test_the_loop_is_one_path() -> None:
    (path,) = paths_of(pairs_of(subset(0, "abcdef")))
    assert path["images"] == list("abcdefa")
    assert path["closed"]
    assert path["pairs"] == [f"0-{number}" for number in range(6)]


def test_a_broken_loop_is_its_longest_parts() -> None:
    pairs = [pair for pair in pairs_of(subset(0, "abcdef")) if pair["pair"] not in ("0-1", "0-3")]
    # a-b | c-d | e-f-a-b: a part of one pair is not a path.
    (path,) = paths_of(pairs)
    assert path["images"] == list("efab")
    assert not path["closed"]


def test_a_path_leads_over_an_image_that_two_subsets_hold() -> None:
    pairs = [*pairs_of(subset(0, "abcdef")), *pairs_of(subset(1, "fghijk"))]
    (across,) = [path for path in paths_of(pairs) if len(path["subsets"]) == 2]
    # Figure 8 of the paper: the last image of one is the first of the other.
    assert across["images"] == list("abcdefghijk")
    assert across["subsets"] == [0, 1]
    assert across["pairs"] == ["0-0", "0-1", "0-2", "0-3", "0-4", "1-0", "1-1", "1-2", "1-3", "1-4"]


def test_a_path_enters_and_leaves_loops_anywhere_and_sees_no_image_twice() -> None:
    pairs = [*pairs_of(subset(0, "abcdef")), *pairs_of(subset(1, "ghcibj"))]
    across = [path for path in paths_of(pairs) if len(path["subsets"]) == 2]
    assert sorted("".join(path["images"]) for path in across) == ["defabci", "defabjghci"]


def paths_across(*subsets: str) -> list[str]:
    pairs = [pair for number, images in enumerate(subsets) for pair in pairs_of(subset(number, images))]
    return sorted("".join(path["images"]) for path in paths_of(pairs) if len(path["subsets"]) == 2)


def test_a_second_image_that_both_hold_makes_a_path_shorter_and_does_not_end_it() -> None:
    # To f the whole loop of the first leads over b, which follows f in the second: from c on it does not.
    # To b it leads over f, which comes last in the second.
    assert paths_across("abcdef", "fbghij") == ["cdefab" + "ghij", "cdef" + "bghij"]


def test_where_one_way_comes_twice_by_an_image_the_other_way_is_taken() -> None:
    # e comes before f in the first and after it in the second, so that no path leads from the first over f.
    assert paths_across("abcdef", "feghij") == ["eghijf" + "abcd", "fabcde" + "ghij"]
