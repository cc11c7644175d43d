"""Entries side by side: the numbers of `submissions.compare` on the same files; refusals in words."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from inspected_entries import FILES, handed_in

from cir_metrics.errors import CallError
from leaderboard import boards
from leaderboard.errors import PassingError
from leaderboard.inspection import differences as module
from leaderboard.inspection.differences import Compared
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store.schema import views
from leaderboard.submission import Submission
from submissions import compare
from submissions.errors import ComparisonError


@pytest.fixture
def compared(server: Server) -> Iterator[Compared]:
    made = Compared(server.store, server.numbers)
    yield made
    made.close()


def test_differences_are_those_of_the_files(
    compared: Compared, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [entries["sum"], entries["random"]]
    expected = compare([FILES["sum"], FILES["random"]])
    found = compared.make(both)
    assert found is not None
    own = [
        replace(kept, name=method.name, file=method.file)
        for kept, method in zip(found.methods, expected.methods, strict=True)
    ]
    assert replace(found, methods=tuple(own)) == expected
    assert [method.file for method in found.methods] == [each.id for each in both]
    # What was kept says the same, without being computed.
    monkeypatch.setattr("submissions.comparison.comparing.compare", None)
    assert compared.of(both) == found


def test_a_comparison_that_is_damaged_is_made_anew(
    server: Server, compared: Compared, entries: dict[str, Submission]
) -> None:
    both = [entries["random"], entries["sum"]]
    found = compared.make(both)
    name = module._name(both)
    with server.store.database.write() as connection:
        assert connection.execute(sa.select(views.c.etag).where(views.c.name == name)).scalar()
        connection.execute(views.update().where(views.c.name == name).values(body=b"damaged"))
    assert compared.make(both) == found


def test_a_reader_waits_no_longer_than_told(
    compared: Compared, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, started = threading.Event(), []
    monkeypatch.setattr(module, "_name", lambda submissions: "compare:not kept")

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


def test_the_store_keeps_one_comparison_of_the_same_entries_and_not_all_for_ever(
    server: Server, compared: Compared, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (
        compared.make([entries["sum"], entries["random"]]),
        compared.make([entries["random"], entries["sum"]]),
    )
    assert one is not None
    assert other is not None
    assert [method.name for method in one.methods] == [method.name for method in other.methods][::-1]
    main = one.leading
    turned = other.pairs[0].differences[main]
    assert one.pairs[0].differences[main].difference == -turned.difference
    both = [entries["sum"], entries["random"]]
    assert [each for each in _comparisons(server) if both[0].id in each] == [module._name(both)]
    monkeypatch.setattr(module, "_KEPT", 0)
    compared.make([entries["sum"], entries["random"]])
    assert _comparisons(server) == []


def test_more_comparisons_than_are_made_soon_are_refused(
    compared: Compared, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 0)
    monkeypatch.setattr(module, "_name", lambda submissions: "compare:no such")
    with pytest.raises(PassingError, match=r"0 comparisons wait .* Fix: load the page again in a minute."):
        compared.of([entries["sum"], entries["random"]])


def test_erasing_an_entry_erases_the_comparisons_that_name_it(tmp_path: Path) -> None:
    server = Server.open(Settings(tmp_path / "home"))
    both = [handed_in(server, FILES[name].read_bytes(), name) for name in ("sum", "random")]
    assert server.compared.make(both) is not None
    server.lists.make(both[0])
    server.store.append(both[0], [("erased", {})], by="organiser")
    with server.store.database.read() as connection:
        names = connection.scalars(sa.select(views.c.name)).all()
    assert [name for name in names if both[0].id in name] == []
    server.close()


def _comparisons(server: Server) -> list[str]:
    with server.store.database.read() as connection:
        query = sa.select(views.c.name).where(views.c.name.startswith("compare:"))
        return list(connection.scalars(query))


def test_what_cannot_be_compared_is_refused_in_words(
    compared: Compared, entries: dict[str, Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = entries["sum"], entries["random"]
    with pytest.raises(CallError, match=r"1 entries to compare. Fix: name two to 4, each once."):
        compared.of([one])
    with pytest.raises(CallError, match="2 entries"):
        compared.of([one, one])
    with pytest.raises(ComparisonError, match=r"the boards shapes/multiturn_val, shapes/val"):
        compared.of([one, entries["tirg"]])
    with pytest.raises(ComparisonError, match=r"(?s)the keys of .* differ.*data: \w{7} against 1{7}\n"):
        compared.of([one, _of_other_data(other)])
    sealed = boards.board("shapes/val").model_copy(update={"track": "sealed", "ground_truth": "/truth"})
    monkeypatch.setattr(boards, "board", lambda name: sealed)
    with pytest.raises(ComparisonError, match=r"shapes/val is a sealed board"):
        compared.of([one, other])


def _of_other_data(submission: Submission) -> Submission:
    def changed(event: Any) -> Any:
        if event.kind != "scored":
            return event
        report = event.payload["report"]
        other = {name: {**each, "data_hash": "1" * 64} for name, each in report["signatures"].items()}
        return replace(event, payload={**event.payload, "report": {**report, "signatures": other}})

    return replace(submission, events=tuple(map(changed, submission.events)))
