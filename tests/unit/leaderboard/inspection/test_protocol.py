"""The protocol check, beside a slow reading of the same files in plain Python."""

from __future__ import annotations

import itertools
from dataclasses import replace

from inspected_entries import FILES

import cir_datasets
from leaderboard import boards
from leaderboard.inspection.protocol import ProtocolCheck, protocol_check
from leaderboard.server import Server
from leaderboard.submission import Submission
from submissions.validation import read

KEPT = ProtocolCheck(
    reference="kept",
    lists=20,
    lists_with_reference=20,
    lists_that_rank_it=5,
    gallery=None,
    never_ranked=None,
    shortest=10,
    longest=50,
    subsets=10,
    subsets_compared=8,
    subsets_consistent=6,
    equals=("289f32ba7118",),
)


def check(server: Server, submission: Submission) -> ProtocolCheck:
    lists = server.lists.make(submission)
    assert lists is not None
    return protocol_check(boards.board(submission.board), lists, server.equals(submission))


def test_the_check_of_queries_counts_what_a_slow_reading_counts(
    server: Server, entries: dict[str, Submission]
) -> None:
    for name in ("sum", "random"):
        file, benchmark = read(FILES[name]), cir_datasets.load("shapes/val")
        ranked, held, compared, consistent = set(), 0, 0, 0
        for row in benchmark.rows():
            listed, subset = file.rankings[row["query_id"]], file.subset_rankings[row["query_id"]]
            ranked |= set(listed)
            held += row["reference_image_id"] in listed
            both = [image for image in subset if image in listed]
            compared += len(both) > 1
            pairs = itertools.combinations(both, 2)
            consistent += len(both) > 1 and all(listed.index(a) < listed.index(b) for a, b in pairs)
        found = check(server, entries[name])
        assert (found.lists, found.lists_with_reference, found.lists_that_rank_it) == (300, 300, held)
        assert found.never_ranked == len(set(benchmark.gallery or ()) - ranked)
        assert (found.gallery, found.shortest, found.longest) == (3940, 50, 50)
        assert (found.subsets, found.subsets_compared, found.subsets_consistent) == (
            300,
            compared,
            consistent,
        )
        assert found.equals == ()


def test_the_check_of_sessions_looks_at_each_turns_reference(
    server: Server, entries: dict[str, Submission]
) -> None:
    file, benchmark = read(FILES["tirg"]), cir_datasets.load("shapes/multiturn_val")
    held, lists = 0, 0
    for row in benchmark.rows():
        for turn, listed in zip(row["turns"], file.rankings[row["session_id"]], strict=True):
            lists += 1
            held += turn["reference_image_id"] in listed[:10]
    found = check(server, entries["tirg"])
    assert (found.reference, found.lists, found.lists_that_rank_it, found.subsets) == ("kept", lists, held, 0)
    assert [finding.label for finding in found.findings()] == [
        "Reference ranked",
        "Images never ranked",
        "Same rankings",
    ]


def test_findings_say_what_the_numbers_mean() -> None:
    assert [(each.value, each.fits) for each in KEPT.findings()] == [
        ("in 5 of 20 lists (25.00 %)", None),
        ("in 6 of 8 queries (75.00 %)", None),
        ("not known", None),
        ("289f32ba7118", None),
    ]
    said = " ".join(each.sentence for each in KEPT.findings())
    assert "keeps the reference image: a list may hold it" in said
    assert (
        "The others rank the subset by something else than the gallery. 2 queries are not looked at" in said
    )
    assert "The list of the gallery is not here. There are 20 lists of 10 to 50 images." in said
    wrong = replace(KEPT, reference="removed").findings()[0]
    assert (wrong.fits, wrong.sentence) == (
        False,
        "The protocol removes the reference image, but lists hold it.",
    )
    right = replace(KEPT, reference="removed", lists_that_rank_it=0).findings()[0]
    assert (right.fits, right.value) == (True, "in 0 of 20 lists (0.00 %)")


def test_equal_rankings_are_named(server: Server, entries: dict[str, Submission]) -> None:
    lists = server.lists.make(entries["sum"])
    assert lists is not None
    board = boards.board("shapes/val")
    assert protocol_check(board, lists, ["b", "a"]).findings()[-1].value == "b, a"
    assert protocol_check(board, lists).findings()[-1].value == "none"
