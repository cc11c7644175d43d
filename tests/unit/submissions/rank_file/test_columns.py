"""Rankings as columns read like the dictionaries of lists that they were made from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cir_datasets.rows import numbers
from submissions.rank_file.columns import Columns, _parts

QUERIES = {"q1": ["a", "b", "é中"], "q2": [], "q3": ["b"]}
SESSIONS = {"s1": [["a", "b"], ["b"]], "s2": [], "s3": [["c", "a"]]}


def test_they_read_like_the_lists() -> None:
    assert dict(Columns.of_lists(QUERIES, by_turn=False)) == QUERIES
    assert dict(Columns.of_lists(SESSIONS, by_turn=True)) == SESSIONS
    assert Columns.of_lists(QUERIES, by_turn=False) == QUERIES
    assert dict(Columns.of_lists({}, by_turn=False)) == {}


def test_a_name_that_is_not_there() -> None:
    columns = Columns.of_lists(QUERIES, by_turn=False)
    assert "q4" not in columns
    assert columns.get("q4") is None
    with pytest.raises(KeyError):
        columns["q4"]


def test_repr_spells_out_few_and_counts_many() -> None:
    assert repr(Columns.of_lists({"q": ["a"]}, by_turn=False)) == "{'q': ['a']}"
    many = Columns.of_lists({f"q{n}": ["a", f"b{n}"] for n in range(1200)}, by_turn=False)
    assert repr(many) == "<rankings of 1,200 names, 1,201 distinct images>"


@pytest.mark.parametrize(
    ("answers", "by_turn", "message"),
    [
        ({1: ["a"]}, False, "a int"),
        ({"q": "ab"}, False, "a str"),
        ({"q": [["a"]]}, False, "sequence item 0: expected str instance, list found"),
        ({"q": ["a", None]}, False, "sequence item 1: expected str instance, NoneType found"),
        ({"q": ["a", 3]}, False, "sequence item 1: expected str instance, int found"),
        ({"s": ["a"]}, True, "a str"),
    ],
)
def test_other_types_are_refused(answers: dict[object, object], by_turn: bool, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Columns.of_lists(answers, by_turn=by_turn)


@pytest.mark.parametrize(("image", "message"), [("", "an empty id"), ("\ud800", "surrogates not allowed")])
def test_empty_ids_and_lone_surrogates_are_refused(image: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Columns.of_lists({"q": ["a", image]}, by_turn=False)


def test_places_are_a_rectangle() -> None:
    columns = Columns.of_lists(QUERIES, by_turn=False)
    a, b, other = (columns.image_ids.index(image) for image in ("a", "b", "é中"))
    found = columns.places(np.array([2, -1, 0, 1]), depth=2)
    assert found.tolist() == [[b, -1], [-1, -1], [a, b], [-1, -1]]
    assert columns.places(np.array([0]), depth=3).tolist() == [[a, b, other]]
    even = Columns.of_lists({"q1": ["a", "b"], "q2": ["b", "c"]}, by_turn=False)
    assert even.places(np.array([1, 0]), depth=1).tolist() == [[1], [0]]
    nothing = Columns.of_lists({"q1": []}, by_turn=False)
    assert nothing.places(np.array([0, -1]), depth=2).tolist() == [[-1, -1], [-1, -1]]


def test_two_spellings_become_one_image() -> None:
    columns = Columns.of_lists({"q1": ["a.png", "b"], "q2": ["a"]}, by_turn=False)
    short = columns.respelled([image.removesuffix(".png") for image in columns.image_ids])
    assert dict(short) == {"q1": ["a", "b"], "q2": ["a"]}
    assert sorted(short.image_ids) == ["a", "b"]


def encoded(rows: list[object], depth: int) -> pa.Array:
    kind = pa.dictionary(pa.int32(), pa.string())
    for _ in range(depth):
        kind = pa.list_(kind)
    return pa.array(rows, kind)


def test_arrow_columns_in_several_chunks_are_read_as_one() -> None:
    column = pa.chunked_array([encoded([["a", "b"], []], 1), encoded([["c", "a"]], 1)])
    columns = Columns.of_arrow(["q1", "q2", "q3"], column, by_turn=False)
    assert dict(columns) == {"q1": ["a", "b"], "q2": [], "q3": ["c", "a"]}
    sessions = pa.chunked_array([encoded(list(SESSIONS.values())[:2], 2), encoded([[["c", "a"]]], 2)])
    found = Columns.of_arrow(list(SESSIONS), sessions, by_turn=True)
    assert dict(found) == SESSIONS


def test_an_arrow_dictionary_that_names_an_image_twice() -> None:
    """Else a ranking could hold an image twice, and nobody would see it."""
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b", "a"]))
    column = pa.chunked_array([pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), twice)])
    columns = Columns.of_arrow(["q"], column, by_turn=False)
    assert columns["q"] == ["a", "b", "a"]
    assert columns.codes[0] == columns.codes[2]


@pytest.mark.parametrize("rows", [[["a", None]], [["a"], None], [["a", ""]]])
def test_arrow_columns_with_holes_are_left_to_the_slow_way(rows: list[object]) -> None:
    names = [f"q{number}" for number in range(len(rows))]
    assert Columns.of_arrow(names, pa.chunked_array([encoded(rows, 1)]), by_turn=False) is None


def test_numbers_of_a_slice_have_the_given_value_for_null() -> None:
    array = pa.array([1, None, 3, None], pa.int32())
    assert numbers(array.slice(1, 3), null=-1).tolist() == [-1, 3, -1]
    assert numbers(pa.array([4, 5], pa.int64()).slice(1)).tolist() == [5]


def test_long_ids_are_copied_a_few_at_a_time() -> None:
    ids = ["x" * 2**23, "a", "y" * 2**25, *["x" * 2**23] * 5, "b"]
    parts = list(_parts(iter(ids)))
    assert [image for part in parts for image in part] == ids
    assert all(len(part) == 1 or sum(map(len, part)) <= 2**24 for part in parts)
    assert Columns.of_lists({"q": ids}, by_turn=False)["q"] == ids


def test_the_lists_of_some_names_as_arrow() -> None:
    table = Columns.of_lists({"a": ["x", "y"], "b": [], "c": ["z", "x"]}, by_turn=False)
    made = table.to_arrow(["c", "none", "b", "a"])
    assert made.to_pylist() == [["z", "x"], None, [], ["x", "y"]]
    assert made.values.dictionary.to_pylist() == ["z", "x", "y"]
    sessions = Columns.of_lists({"a": [["x"], []], "b": [], "c": [["z", "x"]]}, by_turn=True)
    assert sessions.to_arrow(["c", "none", "b", "a"]).to_pylist() == [[["z", "x"]], None, [], [["x"], []]]
    assert dict(sessions.without(["a"])) == {"b": [], "c": [["z", "x"]]}
    assert dict(table.without(["b"])) == {"a": ["x", "y"], "c": ["z", "x"]}
