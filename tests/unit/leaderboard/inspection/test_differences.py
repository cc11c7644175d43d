"""Entries side by side: the numbers of `submissions.compare` on the same files; refusals in words."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from leaderboard_world.entries import FILES, Entries

from leaderboard import boards
from leaderboard.errors import PassingError
from leaderboard.inspection import differences as module
from leaderboard.inspection.differences import Compared
from leaderboard.server import Server
from leaderboard.store.submission import Submission
from submissions import compare
from submissions.errors import ComparisonError


@pytest.fixture
def compared(demo: Server) -> Iterator[Compared]:
    made = Compared(demo.numbers)
    yield made
    made.close()


def test_differences_are_those_of_the_files(
    compared: Compared, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [entries["sum"], entries["random"]]
    expected = compare([FILES["sum"], FILES["random"]])
    found = compared.of(both, None)
    own = [
        replace(kept, name=method.name, file=method.file)
        for kept, method in zip(found.methods, expected.methods, strict=True)
    ]
    assert replace(found, methods=tuple(own)) == expected
    assert [method.file for method in found.methods] == [each.id for each in both]
    # What is held says the same, without being computed.
    monkeypatch.setattr("submissions.comparison.comparing.compare", None)
    assert compared.of(both) == found


def test_a_reader_waits_no_longer_than_told(
    compared: Compared, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, started = threading.Event(), []

    def slowly(reports: Any) -> Any:
        started.append(len(reports))
        go_on.wait(30)
        return compare(reports)

    monkeypatch.setattr("submissions.comparison.comparing.compare", slowly)
    both = [entries["sum"], entries["random"]]
    assert compared.of(both, 0.01) is None
    assert compared.of(both, 0.01) is None
    go_on.set()
    assert compared.of(both, 30) is not None
    assert started == [2]


def test_more_comparisons_than_are_made_soon_are_refused(
    compared: Compared, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 0)
    with pytest.raises(PassingError, match=r"0 comparisons wait .* Fix: load the page again in a minute."):
        compared.of([entries["sum"], entries["random"]])


def test_what_was_not_to_be_had_is_asked_for_again_and_few_comparisons_are_held(
    compared: Compared, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [entries["sum"], entries["random"]]
    with monkeypatch.context() as patch:
        patch.setattr("leaderboard.inspection.numbers.entry_report", lambda *_: None)
        with pytest.raises(PassingError, match=r"is not on this server now\. Fix: load the page again"):
            compared.of(both, None)
    found = compared.of(both, None)
    assert found is not None
    monkeypatch.setattr(module, "_HELD", 1)
    assert compared.of(both[::-1], None) is not None
    monkeypatch.setattr("submissions.comparison.comparing.compare", lambda _: None)
    assert compared.of(both, None) is None


def test_what_cannot_be_compared_is_refused_in_words(
    compared: Compared, entries: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = entries["sum"], entries["random"]
    with pytest.raises(ComparisonError, match=r"(?s)the keys of .* differ.*data: \w{7} against 1{7}\n"):
        compared.of([one, _of_other_data(other)])
    sealed = boards.board("shapes/val").model_copy(update={"track": "sealed", "ground_truth": "/truth"})
    monkeypatch.setattr(boards, "find", lambda name: sealed)
    with pytest.raises(PassingError):
        compared.of([one, other], None)


def _of_other_data(submission: Submission) -> Submission:
    def changed(event: Any) -> Any:
        if event.kind != "scored":
            return event
        report = event.payload["report"]
        other = {name: {**each, "data_hash": "1" * 64} for name, each in report["signatures"].items()}
        return replace(event, payload={**event.payload, "report": {**report, "signatures": other}})

    return replace(submission, events=tuple(map(changed, submission.events)))
