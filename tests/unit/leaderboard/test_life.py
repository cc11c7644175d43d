"""What happens to a submission's words when they are corrected, and who may read them."""

from __future__ import annotations

from leaderboard.life import act
from leaderboard.store import Store
from leaderboard.submission import Submission
from leaderboard.views import submission_view

BOARD = "shapes/val"


def entry(store: Store, name: str = "Ours", owner: str = "token:ada", **more: object) -> Submission:
    """An entry on the board, as the worker leaves it."""
    one, _ = store.receive(board=BOARD, sha256=f"{name:0>64}", size=1, file_name="a.json", owner=owner)
    report = {"method": name, "file": "a.json", "metrics": {}}
    happened = [("validated", {}), ("scored", {"report": report}), ("published", {})]
    return store.append(one, happened, method={"name": name, **more})  # type: ignore[arg-type]


def test_a_renamed_entry_has_one_name_everywhere(store: Store) -> None:
    one = entry(store)
    renamed = act(store, one, "correct", "owner", method={"name": "Theirs"})
    assert (renamed.scores or {})["method"] == "Theirs"
    assert "Ours" not in str(submission_view(renamed)["scores"])
