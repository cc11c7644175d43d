"""A submission's page: what it says in each state, to whom, and that words of strangers stay text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from leaderboard_world.entries import START, a_submission, add_entry
from read_pages import submission_html

from leaderboard.errors import UploadRefusedError
from leaderboard.identity import digest, new_edit_key
from leaderboard.identity.receipts import Receipt
from leaderboard.pages.findings import grouped, refusal
from leaderboard.pages.owner_form import fields
from leaderboard.server import Server
from leaderboard.server.callers import EDIT_KEY
from leaderboard.settings import Settings
from leaderboard.store.submission import Event, EventKind, Submission
from leaderboard.web import api, site_routes
from leaderboard.web.failures import ErrorAnswers

EVIL = "\"'><script>alert(1)</script><a href=javascript:alert(2)>x</a>"
FINDING = {"code": "unknown-query", "severity": "error", "message": EVIL, "fix": EVIL}
SEEDS = itertools.count(1)
STATES: tuple[EventKind, ...] = (
    "received",
    "validated",
    "scored",
    "rejected",
    "failed",
    "published",
    "private",
    "withdrawn",
    "superseded",
    "hidden",
)


class Tags(HTMLParser):
    """What a browser makes elements and attributes of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    @property
    def harmful(self) -> list[tuple[str, dict[str, str | None]]]:
        """Elements that would run something, or that lead to a script."""
        return [
            (tag, held)
            for tag, held in self.found
            if (tag == "script" and not str(held.get("src")).startswith("../site/"))
            or tag in ("img", "iframe", "svg")
            or any(name.startswith("on") for name in held)
            or str(held.get("href")).startswith("javascript:")
        ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = Server.open(Settings(tmp_path_factory.mktemp("pages") / "home", accounts="tokens"))
    yield opened
    opened.close()


def submission(*events: Event) -> Submission:
    found = events or (Event(1, "received", START, {}),)
    return a_submission("s1", file_name=EVIL, submitter=EVIL, method={"name": EVIL}, events=found)


def judged(server: Server, kind: EventKind, payload: dict[str, Any] | None = None) -> Submission:
    """An entry in the store, with one more event."""
    one = add_entry(server.store, next(SEEDS), name=EVIL, submitter=EVIL, notes=EVIL)
    return one if kind == "published" else server.store.append(one, [(kind, payload or {})])


def sent(server: Server, kind: EventKind, file_name: str = "a.json") -> tuple[str, Submission]:
    """The key and the submission of somebody with a private link."""
    key, number = new_edit_key(), next(SEEDS)
    hashes: dict[str, Any] = {"sha256": f"{number:064x}", "edit_hash": digest(key)}
    taken, _ = server.store.receive(
        board="shapes/val", size=1, file_name=file_name, owner=f"link:{number}", publish=False, **hashes
    )
    return key, server.store.append(taken, [("validated", {}), (kind, {})])


@pytest.mark.parametrize("by", [None, "owner"])
@pytest.mark.parametrize("kind", STATES)
def test_every_state_has_a_page_on_which_words_of_strangers_are_text(
    server: Server, kind: EventKind, by: Any
) -> None:
    payload: dict[str, Any] = {
        "findings": [{**FINDING, "examples": [{"query_id": EVIL, "turn": 2, "value": EVIL}]}]
    }
    payload |= {
        "message": EVIL,
        "report": {"method": EVIL},
        "reason": EVIL if kind == "hidden" else {},
        "by": "s2",
    }
    done = kind in ("published", "private", "withdrawn", "superseded", "hidden")
    one = judged(server, kind, payload) if done else submission(Event(1, kind, START, payload))
    shown = submission_html(server, one, by, with_key=True)
    assert Tags(shown).harmful == []
    assert "&lt;script&gt;" in shown
    assert shown.count("<h1>") == 1
    assert ('http-equiv="refresh"' in shown) is (kind in ("received", "validated", "scored"))
    assert ("Signed receipt" in shown) is (by is not None)
    assert ('id="owner-form"' in shown) is (
        by is not None and kind in ("received", "validated", "published", "private", "hidden")
    )


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("private", {}, "it has not been published"),
        (
            "private",
            {"reason": {"message": "the name is taken.", "fix": "take another"}},
            "Fix: take another",
        ),
        ("superseded", {"by": "s2", "same_rankings": True}, "Submission s2 has the same rankings"),
        ("superseded", {"by": "s2"}, "Submission s2 has taken its place"),
        ("withdrawn", {}, "has withdrawn it"),
        ("hidden", {"reason": "a doubt"}, "have hidden it: a doubt"),
    ],
)
def test_the_page_says_why_an_entry_is_not_on_the_board(
    server: Server, kind: EventKind, payload: dict[str, Any], words: str
) -> None:
    one = submission(Event(1, kind, START, payload))
    shown = submission_html(server, one)
    assert "Not on the board" in shown
    assert words in shown


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("received", "can correct, publish and withdraw the submission once it is scored"),
        ("rejected", "cannot be corrected or published here. Send a corrected file"),
        ("private", "can publish, correct and withdraw the submission."),
        ("hidden", "can withdraw the submission."),
        ("withdrawn", "Nothing of it can be changed"),
    ],
)
def test_a_private_link_promises_what_the_page_offers(server: Server, kind: EventKind, words: str) -> None:
    finding = {"code": "malformed", "severity": "error", "message": "m", "fix": "f"}
    one = submission(Event(1, kind, START, {"findings": [finding]}))
    shown = submission_html(server, one, "owner", with_key=True)
    assert words in shown
    assert words not in submission_html(server, one, "owner")
    acts = re.findall(r'data-act="([\w-]+)"', shown)
    can = re.search(r"Whoever has it can (.*) the submission\.", shown)
    assert sorted(acts) == sorted(re.findall(r"publish|correct|withdraw", can[1] if can else "")) or (
        kind == "received" and acts == ["withdraw"]
    )


def test_findings_are_grouped_by_code_with_five_places_and_errors_first() -> None:
    examples = [{"query_id": f"q{number}", "turn": 2, "value": "x"} for number in range(4)]
    findings = [
        {"code": "short-ranking", "severity": "warning", "message": "w", "fix": "f", "count": 7},
        {**FINDING, "count": 4, "examples": examples},
        {**FINDING, "count": 1230, "benchmark": "a/b", "examples": examples, "message": "other"},
    ]
    first, second = grouped(findings)
    assert (first.code, first.count, first.messages) == ("unknown-query", 1234, (EVIL, "other"))
    assert first.places == (*(f"q{number}, turn 2: x" for number in range(4)), "a/b: q0, turn 2: x")
    assert (second.severity, second.places, second.fixes) == ("warning", (), ("f",))
    (refused,) = refusal(UploadRefusedError("too-large", "much.", fix="write less"))
    assert (refused.code, refused.messages, refused.fixes) == ("too-large", ("much.",), ("write less",))


def test_a_refused_file_shows_counts_places_and_fixes(server: Server) -> None:
    finding: dict[str, Any] = {
        **FINDING,
        "message": "no such query.",
        "fix": "run `cir datasets show` now",
        "count": 1234,
    }
    finding["examples"] = [{"query_id": "q1", "turn": 3, "position": 4, "value": "<b>"}]
    said = {"findings": [finding], "explanation": "lists 2 <of> 3"}
    one = submission(Event(1, "rejected", START, said))
    assert "lists 2 &lt;of&gt; 3" in submission_html(server, one, "owner")
    shown = submission_html(server, one)
    assert "lists 2" not in shown, "what it says is for its owner"
    assert "Refused: 1 error" in shown
    assert "1,234 places" in shown
    assert "<code>q1, turn 3, position 4: &lt;b&gt;</code>" in shown
    assert "run <code>cir datasets show</code> now" in shown


def test_the_form_has_every_field_and_its_words(server: Server) -> None:
    one = add_entry(
        server.store, next(SEEDS), trained_on=["a", "b"], zero_shot=True, backbone="CLIP ViT-B/32"
    )
    shown = submission_html(server, one, "owner")
    for part in fields():
        for field in part:
            assert f'<label for="word-{field.name}">' in shown
            assert f'name="{field.name}"' in shown
    assert 'value="a, b"' in shown
    assert '<option value="yes" selected>' in shown
    assert '<option value="CLIP ViT-L/14">' in shown
    assert 'id="owner-form"' not in submission_html(server, one)


@pytest.fixture(scope="module")
def http(server: Server) -> TestClient:
    app = FastAPI()
    app.add_middleware(ErrorAnswers)
    for router in (*api.routers(server), site_routes.router(server)):
        app.include_router(router)
    return TestClient(app)


def test_a_private_submission_has_a_page_for_its_key_alone(http: TestClient, server: Server) -> None:
    key, one = sent(server, "private", file_name="quiet.json")
    with_key = http.get(f"/s/{one.id}", headers={EDIT_KEY: key})
    assert with_key.status_code == 200
    assert "quiet.json" in with_key.text
    assert with_key.headers["cache-control"] == "private, no-store"
    assert key not in with_key.text
    for path, headers in (
        (f"/s/{one.id}", {}),
        (f"/s/{one.id}", {EDIT_KEY: new_edit_key()}),
        (f"/s/{one.id}?key={key}", {}),
    ):
        closed = http.get(path, headers=headers)
        assert closed.status_code == 404
        assert "none that you may read" in closed.text
        assert "quiet.json" not in closed.text
    nothing = http.get("/s/nothing").text
    assert nothing.replace("nothing", one.id) == http.get(f"/s/{one.id}").text


def test_the_receipt_is_for_its_owner(http: TestClient, server: Server) -> None:
    key, one = sent(server, "published")
    path = f"/api/v1/submissions/{one.id}/receipt"
    own = http.get(path, headers={EDIT_KEY: key})
    assert Receipt.model_validate(own.json()) == server.receipt(one)
    assert http.get(path).json()["error"]["code"] == "not-yours"
    page = http.get(f"/s/{one.id}", headers={EDIT_KEY: key}).text
    given = re.search(r'href="data:application/json;charset=utf-8,([^"]*)"', page)
    assert unquote(given[1]).encode() == server.receipt(one).to_bytes()


def test_a_file_that_names_no_other_board_is_not_sent_on(http: TestClient, server: Server) -> None:
    key, one = sent(server, "private")
    path = f"/api/v1/submissions/{one.id}/send-on"
    assert http.post(path, json={}).status_code == 404
    refused = http.post(path, json={}, headers={EDIT_KEY: key})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "wrong-state")
