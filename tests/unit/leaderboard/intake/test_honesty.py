"""What contradicts itself comes onto no board until its words are corrected, and oracles have no rank."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from leaderboard_world.entries import shipped
from read_pages import read, words

from leaderboard import boards
from leaderboard.commands.show import board_text
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import digest
from leaderboard.intake import Cover, checked_method
from leaderboard.intake.life import act
from leaderboard.server import Server
from leaderboard.standings.views import submission_view
from leaderboard.store.submission import Submission
from leaderboard.store.transfer import export_store
from leaderboard.web import formats

BOARD = boards.board("shapes/val")
MADE = json.loads(shipped("image_text_sum-pixels"))
DISHONEST = {"name": "Ours", "zero_shot": True, "trained_on": ["Shapes/train"]}


def judged(server: Server, method: dict[str, Any], form: dict[str, Any] | None = None) -> Submission:
    content = json.dumps({**MADE, "method": method}).encode()
    taken, _ = server.intake.take(BOARD.id, [content], Cover(method=form or {}, owner=method["name"]))
    return server.worker.process(taken)


def test_a_contradiction_is_scored_and_kept_private_until_its_words_are_corrected(server: Server) -> None:
    kept = judged(server, DISHONEST)
    assert (kept.state, kept.scores is not None) == ("private", True)
    assert [finding["code"] for finding in kept.findings] == ["contradiction"]
    with pytest.raises(UploadRefusedError) as refused:
        act(server.store, kept, "publish", "owner")
    assert (refused.value.code, refused.value.status) == ("contradiction", 409)
    assert "without another file" in refused.value.fix
    corrected = act(server.store, kept, "correct", "owner", method={**DISHONEST, "zero_shot": False})
    published = act(server.store, corrected, "publish", "owner")
    assert (published.state, published.sha256) == ("published", kept.sha256)
    with pytest.raises(UploadRefusedError, match="contradiction"):
        act(server.store, published, "correct", "owner", method=DISHONEST)


def test_an_erased_sender_stands_in_no_view_and_no_export(server: Server, tmp_path: Path) -> None:
    content = json.dumps({**MADE, "method": {"name": "Jane Doe net", "notes": "call Jane Doe"}}).encode()
    cover = Cover(file_name="jane-doe-phone-555.json", submitter="Jane Doe", owner="jane-doe")
    sent = server.worker.process(server.intake.take(BOARD.id, [content], cover)[0])
    act(server.store, sent, "correct", "owner", method={"name": "Jane Doe net 2"})
    found = server.store.submission(sent.id)
    assert found is not None
    erased = act(server.store, found, "erase", "organiser")
    export_store(server.store, server.files, tmp_path / "export")
    for said in (
        str(submission_view(erased, organiser=True)),
        str(erased),
        server.tables.of(BOARD).body.decode(),
        *(path.read_text() for path in (tmp_path / "export").glob("*.jsonl")),
    ):
        assert "jane" not in said.lower()
    assert erased.scores["metrics"] == (sent.scores or {})["metrics"]


@pytest.mark.parametrize(
    "said",
    [
        {"text_fields": ["oracle_caption"]},
        {"zero_shot": True, "trained_on": ["the training split of shapes"]},
        {"zero_shot": True, "trained_on": ["val images from shapes"]},
    ],
)
def test_words_that_contradict_each_other_in_other_spellings(server: Server, said: dict[str, Any]) -> None:
    kept = judged(server, {"name": "Ours", **said})
    assert (kept.state, [finding["code"] for finding in kept.findings]) == ("private", ["contradiction"])


def test_what_the_form_says_can_contradict_the_file_too(server: Server) -> None:
    kept = judged(server, {"name": "Ours", "zero_shot": True}, {"trained_on": ["shapes"]})
    assert (kept.state, [finding["code"] for finding in kept.findings]) == ("private", ["contradiction"])


def test_a_form_holds_words_as_a_file_does() -> None:
    said = checked_method({"backbone": "vit-b/32", "oracle": "mine"})
    assert said == {"backbone": "CLIP ViT-B/32", "oracle": "other: mine"}


def test_an_oracle_is_shown_marked_and_has_no_rank_anywhere(server: Server) -> None:
    oracle = judged(server, {"name": "Upper bound", "oracle": "target captions"})
    plain = judged(server, {"name": "Plain"})
    assert (oracle.state, plain.state) == ("published", "published")
    view = server.tables.of(BOARD).view
    assert [(row["rank"], row["is_oracle"], row["method"]["name"]) for row in view["rows"]] == [
        (1, False, "Plain"),
        (None, True, "Upper bound"),
    ]
    server.tables.refresh(BOARD)
    grouped = server.tables.of(BOARD).view["rows"]
    assert [(row["submission"], row["group"]) for row in grouped] == [(plain.id, 1), (oracle.id, None)]
    assert "-  oracle  Upper bound" in board_text(BOARD, server.tables.of(BOARD).view)
    page = read(server, f"b/{BOARD.id}")
    table = words(page.select_one(".standings"))
    assert table.index("Plain") < table.index("Oracles") < table.index("Upper bound")
    assert "does not compare" not in table
    (first, second) = pq.read_table(io.BytesIO(formats.as_parquet(view))).to_pylist()
    assert (first["rank"], first["is_oracle"], first["oracle"]) == (1, False, None)
    assert (second["rank"], second["is_oracle"], second["oracle"]) == (None, True, "target_captions")


@pytest.mark.parametrize("owner", ["token:ada", "link:1"])
def test_hidden_rankings_bind_whoever_has_no_account(server: Server, owner: str) -> None:
    """Sent before or after they were hidden, whoever sent them first; those of an account are its own."""

    def sent(owner: str, spelling: str = "", publish: bool = True) -> Submission:
        content = json.dumps({**MADE, "method": {"name": f"By {owner}"}}) + spelling
        key = digest(owner) if owner.startswith("link:") else None
        cover = Cover(owner=owner, publish=publish, edit_hash=key)
        return server.worker.process(server.intake.take(BOARD.id, [content.encode()], cover)[0])

    first, before = sent(owner), sent("link:2", publish=False)
    hidden = act(server.store, first, "hide", "organiser", reason="copied from a paper")
    with pytest.raises(UploadRefusedError, match="copied from a paper") as refused:
        act(server.store, before, "publish", "owner")
    assert refused.value.code == "hidden-rankings"
    again = sent("link:3", "\n")
    view = submission_view(again)
    assert (view["state"], view["same_as"]) == ("superseded", hidden.id)
    assert "'copied from a paper'" in view["message"]
    assert sent("token:bob").state == "published"
    act(server.store, hidden, "restore", "organiser")
    assert sent("link:3", "\n").state == "published"
    assert act(server.store, before, "publish", "owner").state == "published"
