"""What an owner may add to a submission's log in a day, and that the next day begins anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from leaderboard.errors import UploadRefusedError
from leaderboard.intake.life import ACTS_A_DAY, act
from leaderboard.store import Store


def test_a_new_day_begins_anew(store: Store) -> None:
    one, _ = store.receive(board="shapes/val", sha256="a" * 64, size=1, file_name="a", owner="token:ada")
    one = store.append(one, [("private", {})], method={"name": "A"})
    for number in range(ACTS_A_DAY):
        one = act(store, one, "correct", "owner", method={"name": "A", "notes": str(number)})
    more = {"name": "A", "notes": "more"}
    with pytest.raises(UploadRefusedError, match="may be 50 times"):
        act(store, one, "correct", "owner", method=more)
    unchanged = act(store, one, "correct", "owner", method={"name": "A", "notes": str(ACTS_A_DAY - 1)})
    assert unchanged == one
    yesterday = tuple(replace(event, at=event.at - timedelta(days=1)) for event in one.events)
    changed = act(store, replace(one, events=yesterday), "correct", "owner", method=more)
    assert changed.method == more
    assert act(store, changed, "hide", "organiser", reason="why").state == "hidden"
