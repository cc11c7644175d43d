"""The page of `cir play`: what it tells, and whom it answers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmark_world import dialogues as world
from fastapi.testclient import TestClient
from PIL import Image
from says import says

from cir_datasets.shapes import picture
from leaderboard.play.page import create_page
from submissions.embeddings.store import EmbeddingStore
from submissions.multiround.person import PersonDialogue
from submissions.running.options import RunOptions
from submissions.transcripts.reading import read_transcript

SETTINGS = replace(world.SETTINGS, seed=4)
"""Of a seed that draws the sessions as the benchmark lists them."""


@contextmanager
def serving(folder: Path, options: RunOptions) -> Iterator[TestClient]:
    dialogue = PersonDialogue(
        world.small_benchmark(),
        world.Degrees(),
        SETTINGS,
        options,
        out=folder / "human.jsonl",
        limit=None,
        form="page",
    )
    with TestClient(create_page(dialogue), base_url="http://127.0.0.1:7861") as opened:
        yield opened


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    options = RunOptions(encoder=world.DegreesEncoder(), store=EmbeddingStore(tmp_path / "store"), workers=0)
    with serving(tmp_path, options) as opened:
        yield opened


def words(typed: str | None, session: str = "finds", round: int = 2) -> dict[str, Any]:
    return {"session": session, "round": round, "words": typed}


def test_the_state_is_what_a_person_sees(client: TestClient) -> None:
    state = client.get("/state").json()
    assert (state["number"], state["sessions"], state["round"], state["rounds"]) == (1, 3, 2, 3)
    assert (state["target"], state["found"]) == (world.image(40), world.image(10))
    assert state["said"] == [{"words": "12", "reference": world.image(0), "rank": "4th"}]
    assert state["rank"] == "4th of 12"
    assert state["top"] == [world.image(degrees) for degrees in (10, 20, 30, 40, 50, 60)]
    assert state["end"] == ""


def test_words_move_the_rank_and_end_the_session(client: TestClient) -> None:
    state = client.post("/say", json=words("66")).json()
    assert (state["rank"], state["better"], state["worse"]) == ("1st of 12, before: 4th", True, False)
    assert (state["end"], state["solved"], state["found"]) == ("Found in 2 rounds.", True, world.image(40))
    assert client.get("/state").json()["session"] == "never"


def test_a_rank_that_falls_and_the_last_round(client: TestClient) -> None:
    client.post("/say", json=words("66"))
    client.post("/say", json=words("7", "never", 2))
    state = client.post("/say", json=words("142", "never", 3)).json()
    assert (state["rank"], state["better"], state["worse"]) == ("9th of 12, before: 7th", False, True)
    assert state["end"] == "Not found: after 3 rounds it is not among the first 1."


def test_all_sessions_end_in_a_summary(client: TestClient, tmp_path: Path) -> None:
    for session, number in (("finds", 2), ("never", 2), ("silent", 2)):
        assert client.post("/say", json=words(None, session, number)).json()["end"].startswith("Skipped")
    done = client.get("/state").json()
    assert done["left"] == 0
    assert done["done"] == (
        "3 sessions are finished, 0 of them found. "
        "Mean rank of what you wanted: 6.3 in the first round, 6.3 in the last."
    )
    assert done["file"] == str(tmp_path / "human.jsonl")
    assert client.post("/say", json=words("more")).status_code == 409


def test_words_for_a_round_that_was_played_are_not_taken_twice(client: TestClient) -> None:
    client.post("/say", json=words("66"))
    client.post("/say", json=words("7", "never", 2))
    again = client.post("/say", json=words("7", "never", 2))
    assert (again.status_code, again.json()["error"]["code"]) == (409, "answered")
    assert client.get("/state").json()["round"] == 3


@pytest.mark.parametrize("typed", ["", "red\x1b[31m", "a" * 1001])
def test_words_that_cannot_be_taken_are_answered_with_the_reason(client: TestClient, typed: str) -> None:
    answer = client.post("/say", json=words(typed))
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "words")
    assert answer.json()["error"]["fix"]
    assert client.get("/state").json()["round"] == 2


def test_what_fails_is_answered_as_the_command_would_say_it(client: TestClient, tmp_path: Path) -> None:
    client.get("/state")
    (tmp_path / "human.jsonl.journal/00001/01-round-1.jsonl").write_bytes(b"[")
    answer = client.get("/state")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "failed")
    says(str(answer.json()["error"]), "01-round-1.jsonl: it was changed", "remove")


def test_pictures_of_the_gallery_alone_are_given(client: TestClient) -> None:
    answer = client.get("/picture", params={"image": world.image(40)})
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert Image.open(io.BytesIO(answer.content)).size == (96, 96)
    for image in ("val-000099", "../../etc/passwd", ""):
        assert client.get("/picture", params={"image": image}).status_code == 404


def test_local_pictures_are_shown_as_large_as_a_page_needs(tmp_path: Path) -> None:
    files = {image: tmp_path / f"pictures/{image.replace('-', '/')}.png" for image in world.GALLERY}
    (tmp_path / "pictures/val").mkdir(parents=True)
    for image, file in files.items():
        picture(image).save(file)
    options = RunOptions(
        encoder=world.DegreesEncoder(),
        store=EmbeddingStore(tmp_path / "store"),
        workers=0,
        images=tmp_path / "pictures",
    )
    with serving(tmp_path, options) as client:
        assert client.get("/state").json()["rank"] == "4th of 12"
        picture(world.image(40)).resize((2000, 1000)).save(files[world.image(40)])
        answer = client.get("/picture", params={"image": world.image(40)})
        assert answer.headers["content-type"] == "image/jpeg"
        assert Image.open(io.BytesIO(answer.content)).size == (800, 400)
        files[world.image(40)].unlink()
        assert client.get("/picture", params={"image": world.image(40)}).status_code == 404


def test_another_host_name_is_refused(client: TestClient) -> None:
    answer = client.get("/state", headers={"Host": "elsewhere.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown-host")
    assert "cir play" in answer.json()["error"]["fix"]


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://elsewhere.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_a_page_of_another_site_cannot_play(
    client: TestClient, headers: dict[str, str], tmp_path: Path
) -> None:
    answer = client.post("/say", json=words("66"), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross-origin")
    assert not (tmp_path / "human.jsonl").exists()


def test_a_large_body_is_refused(client: TestClient) -> None:
    answer = client.post("/say", json=words("a" * 70_000))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too-large")


@pytest.mark.parametrize("body", [{}, {"session": "finds", "round": 2}, {**words("66"), "name": "A person"}])
def test_a_body_of_another_form_is_refused(client: TestClient, body: dict[str, Any]) -> None:
    assert client.post("/say", json=body).status_code == 422


def test_the_page_may_load_nothing_from_elsewhere(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    for path in ("/", "/page.css", "/page.js"):
        assert "://" not in client.get(path).text


def test_a_skipped_round_stands_without_words(client: TestClient, tmp_path: Path) -> None:
    skipped = client.post("/say", json=words(None)).json()
    assert skipped["said"][-1] == {"words": "", "reference": world.image(10), "rank": "4th"}
    assert read_transcript(tmp_path / "human.jsonl").rounds[-1].caption == ""
