"""Published rows beside a board's table: of its benchmark, or of a split that they name; never twice."""

from __future__ import annotations

import pytest

from leaderboard import boards
from leaderboard.pages.published_rows import PublishedLine, best_for, rows_for

FASHIONIQ_MEAN = "mean(recall@10, recall@50)"
CIRR_MEAN = "mean(recall@5, recall_subset@1)"


def lines(board_id: str, method: str) -> list[PublishedLine]:
    return [line for line in rows_for(boards.board(board_id)) if line.row.method == method]


def test_what_ranks_puts_them_in_order() -> None:
    found = [line.numbers.get(FASHIONIQ_MEAN) for line in rows_for(boards.board("fashioniq/val"))]
    values = [number.value for number in found if number is not None]
    assert len(values) > 40
    assert values == sorted(values, reverse=True)
    assert found[len(values) :] == [None] * (len(found) - len(values))


def test_both_numbers_of_a_method_stand_on_the_board() -> None:
    listed, retrained = lines("fashioniq/val", "SPRC"), lines("fashioniq/val", "SPRC (retrained)")
    listed = [line for line in listed if FASHIONIQ_MEAN in line.numbers]
    assert [line.numbers[FASHIONIQ_MEAN].text for line in listed + retrained] == ["64.85", "62.135"]
    assert "A raised m marks a mean that its source does not print." in retrained[0].remarks


@pytest.mark.parametrize(
    ("board_id", "split", "method", "metric", "text"),
    [
        ("cirr/val", "cirr/test1", "BLIP4CIR+Bi", CIRR_MEAN, "72.59"),
        ("cirr/val", "cirr/test1", "Bi-BLIP4CIR", CIRR_MEAN, "63.95"),
        ("circo/val", "circo/test", "QuRe", "map@5", "23.22"),
    ],
    ids=["CIRR by a list", "CIRR by QuRe", "CIRCO"],
)
def test_numbers_of_the_test_split_name_it(
    board_id: str, split: str, method: str, metric: str, text: str
) -> None:
    found = [line for line in lines(board_id, method) if line.other_split]
    assert [line.numbers[metric].text for line in found] == [text]
    assert found[0].other_split == f"test split ({split}), as reported; does not compare"
    splits = [bool(line.other_split) for line in rows_for(boards.board(board_id))]
    assert splits == sorted(splits)


def test_a_first_round_is_the_published_query_and_stands_once() -> None:
    (found,) = lines("cirr/val", "SPN4CIR")
    assert {metric: number.text for metric, number in found.numbers.items()} == {
        "recall@1": "56.47",
        "recall@5": "85.29",
    }
    assert found.remarks == (
        "The numbers are of its dialogues' first round, which is the published query.",
        "Table 8 prints the same.",
    )


def test_rounds_stand_on_the_board_of_dialogues_alone() -> None:
    found = lines("cirr/dialogue_val", "SPN4CIR")[0]
    assert found.numbers["hits@1@turn5"].text == "91.32"
    assert all("turn" not in metric for line in rows_for(boards.board("cirr/val")) for metric in line.numbers)


def test_a_suites_columns_are_its_members() -> None:
    (found,) = lines("fashioniq/val", "MAAF")
    assert found.numbers["recall@10@fashioniq/dress_val"].text == "23.8"
    assert found.numbers[FASHIONIQ_MEAN].text == "36.6"


@pytest.mark.parametrize(
    ("board_id", "method"),
    [
        ("fashioniq/val", "DQU-CIR"),
        ("cirr/val", "TMCIR"),
        ("circo/val", "SPN4CIR"),
        ("shapes/val", None),
    ],
)
def test_the_best_is_of_what_ranks(board_id: str, method: str | None) -> None:
    found = best_for(boards.board(board_id))
    assert (found and found.row.method) == method
