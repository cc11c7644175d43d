"""The protocol check, beside a slow reading of the same files in plain Python."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from benchmark_world.dialogues import as_lines, shapes_dialogue
from leaderboard_world.entries import FILES, Entries, handed_in

import cir_datasets
from leaderboard import boards
from leaderboard.inspection.lists import KeptLists, MemberLists
from leaderboard.inspection.protocol import ProtocolFinding, protocol_findings
from leaderboard.queue.beginnings import _known_codes, _subset_codes, _subset_facts
from leaderboard.server import Server
from leaderboard.standings import Reference
from leaderboard.store.submission import Submission
from submissions.validation import read

REFERENCE = Reference("kept", 5, 20, "", False)
COUNTS = {
    "lists": 20,
    "gallery": None,
    "never_ranked": None,
    "shortest": 10,
    "longest": 50,
    "scored": 20,
    "subsets": 10,
    "subsets_compared": 8,
    "subsets_consistent": 6,
}


def made_lists() -> KeptLists:
    """Lists of one query of which `COUNTS` is said."""
    about = {"benchmark": "shapes/val", "names": ["1"], "images": [], **COUNTS}
    arrays = {
        "about": np.frombuffer(orjson.dumps(about), dtype=np.uint8),
        "rank": np.zeros(1, dtype=np.int32),
        "listed": np.zeros(1, dtype=np.int32),
        "starts": np.array([0, 1]),
        "top": np.full((1, 10), -1, dtype=np.int32),
    }
    return KeptLists((MemberLists(arrays),))


def said_of(
    reference: Reference, board: str = "shapes/multiturn_val", equals: Sequence[str] = ()
) -> list[ProtocolFinding]:
    return protocol_findings(boards.board(board), made_lists(), reference, equals)


def counts_of(demo: Server, submission: Submission) -> dict[str, Any]:
    """What the entry's lists count."""
    lists = demo.lists.of(submission)
    return lists.member().about


def findings_of(demo: Server, submission: Submission) -> list[ProtocolFinding]:
    lists = demo.lists.of(submission)
    assert lists is not None
    return protocol_findings(
        boards.board(submission.board), lists, reference_of(submission), demo.equals(submission)
    )


def reference_of(submission: Submission) -> Reference:
    board = boards.board(submission.board)
    return Reference.of((submission.scores or {})["signatures"][board.primary_terms[0]])


def test_the_check_of_queries_counts_what_a_slow_reading_counts(demo: Server, entries: Entries) -> None:
    for name in ("sum", "random"):
        file, benchmark = read(FILES[name]), cir_datasets.load("shapes/val")
        ranked, held, compared, consistent = set(), 0, 0, 0
        for row in benchmark.rows():
            listed, subset = file.rankings[row["query_id"]], file.subset_rankings[row["query_id"]]
            ranked |= set(listed)
            held += row["reference_image_id"] in listed
            members = {*row["subset_image_ids"]} - {row["reference_image_id"]}
            said = {image: place for place, image in enumerate(subset)}
            there = {image: place for place, image in enumerate(listed) if image in members}
            compared += bool(there)
            consistent += bool(there) and not any(
                said.get(a, 9) < said.get(b, 9) and there.get(b, 99) < there.get(a, 99)
                for a, b in itertools.permutations(members, 2)
            )
        found, reference = counts_of(demo, entries[name]), reference_of(entries[name])
        never = len(set(benchmark.gallery or ()) - ranked)
        assert (found["lists"], reference.lists, reference.held) == (300, 300, held)
        assert (found["never_ranked"], found["gallery"]) == (never, 3940)
        assert (found["shortest"], found["longest"], found["subsets"]) == (50, 50, 300)
        assert (found["subsets_compared"], found["subsets_consistent"]) == (compared, consistent)
        said = [(each.value, each.fits, each.entries) for each in findings_of(demo, entries[name])]
        assert said == [
            (f"in {held} of 300 lists ({100 * held / 300:.2f} %)", not held, ()),
            (f"in {consistent} of {compared} queries ({100 * consistent / compared:.2f} %)", None, ()),
            (f"{never:,} of 3,940 images ({100 * never / 3940:.2f} %)", None, ()),
            ("none", None, ()),
        ]


def test_the_check_of_sessions_looks_at_each_turns_reference(demo: Server, entries: Entries) -> None:
    file, benchmark = read(FILES["tirg"]), cir_datasets.load("shapes/multiturn_val")
    held, lists = 0, 0
    for row in benchmark.rows():
        for turn, listed in zip(row["turns"], file.rankings[row["session_id"]], strict=True):
            lists += 1
            held += turn["reference_image_id"] in listed
    found = counts_of(demo, entries["tirg"])
    assert (found["lists"], reference_of(entries["tirg"]).held) == (lists, held)
    assert boards.board("shapes/multiturn_val").spec.config.reference == "kept"
    assert [finding.label for finding in findings_of(demo, entries["tirg"])] == [
        "Reference ranked",
        "Images never ranked",
        "Same rankings",
    ]


def test_a_round_that_a_silent_user_ends_ranks_nothing(demo: Server) -> None:
    played = shapes_dialogue(hits=0.0)
    rounds, silent = [], 0
    for first, *others in played.sessions().values():
        rounds.append(first)
        if others:
            # As `cir multiround` writes it: the list before it again, which may hold the new reference.
            again = {"top": first.top, "rank": first.rank, "end": "silent: it has no words", "caption": ""}
            rounds.append(others[0].model_copy(update=again))
            silent += others[0].reference in first.top
    assert silent > 100
    sent = as_lines(played.model_copy(update={"rounds": rounds}))
    entry = handed_in(demo, sent, "silent.jsonl", "shapes/dialogue_val")
    reference = reference_of(entry)
    assert (counts_of(demo, entry)["lists"], reference.lists, reference.held) == (len(rounds), 300, 0)


def test_an_image_that_is_not_listed_stands_behind_those_that_are(server: Server) -> None:
    """Files of 80 images a list, of which a subset ranking puts first what the list does not hold."""
    content = orjson.loads(gzip.decompress(FILES["sum"].read_bytes()))
    benchmark = cir_datasets.load("shapes/val")
    gallery, rankings, subsets, some, contradicted = sorted(benchmark.gallery or ()), {}, {}, 0, 0
    for row in benchmark.rows():
        members = {*row["subset_image_ids"]} - {row["reference_image_id"]}
        top = content["rankings"][row["query_id"]]
        others = [image for image in gallery if image not in {*top, *row["subset_image_ids"]}]
        rankings[row["query_id"]] = [*top, *others[:30]]
        held = [image for image in top if image in members]
        subsets[row["query_id"]] = [*sorted(members - {*held}), *held]
        some += bool(held)
        contradicted += 0 < len(held) < len(members)
    assert 0 < contradicted < some
    file = {**content, "rankings": rankings, "subset_rankings": subsets}
    found = counts_of(server, handed_in(server, orjson.dumps(file), "turned.json"))
    assert (found["subsets_compared"], found["subsets_consistent"]) == (some, some - contradicted)
    assert (found["longest"], found["scored"]) == (80, 50)


def test_findings_say_what_the_numbers_mean() -> None:
    found = said_of(REFERENCE, equals=["289f32ba7118"])
    assert [(each.value, each.fits) for each in found] == [
        ("in 5 of 20 lists (25.00 %)", None),
        ("in 6 of 8 queries (75.00 %)", None),
        ("not known", None),
        ("", None),
    ]
    assert found[-1].entries == ("289f32ba7118",)
    said = " ".join(each.sentence for each in found)
    assert "keeps the reference image: a list may hold it" in said
    assert "In the other queries the subset ranking contradicts the list of the gallery:" in said
    assert "2 queries are not checked, because the list holds no image of the subset." in said
    assert (
        "The list of the gallery is not here. There are 20 lists of 10 to 50 images. The board scores" in said
    )
    assert "scores the first 20 of each." in said
    wrong = said_of(REFERENCE, "shapes/val")[0]
    assert (wrong.fits, wrong.sentence) == (
        False,
        "The protocol removes the reference image, but lists hold it.",
    )
    right = said_of(Reference("removed", 0, 20, "", False), "shapes/val")[0]
    assert (right.fits, right.value) == (True, "in 0 of 20 lists (0.00 %)")


def test_equal_rankings_are_named() -> None:
    assert said_of(REFERENCE, equals=["b", "a"])[-1].entries == ("b", "a")
    assert said_of(REFERENCE)[-1].value == "none"


def test_subsets_of_any_size_are_read_whole() -> None:
    images, places = ["a", "b"], {"a": 0, "b": 1}
    subsets = _subset_codes([list("cabdefg"), list("b")], 7, images, places)
    assert [[images[code] for code in row if code >= 0] for row in subsets.tolist()] == [
        list("cabdefg"),
        ["b"],
    ]
    left_out = _known_codes([set(), set("acdefgz")], 7, places)
    assert sorted(images[code] for code in left_out[1].tolist() if code >= 0) == list("acdefg")
    facts = _subset_facts(np.array([[2, 0, 1], [1, 0, -1]], dtype=np.int32), subsets, left_out)
    assert (facts["subsets_compared"], facts["subsets_consistent"]) == (2, 2)
