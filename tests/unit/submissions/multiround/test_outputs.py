"""What is made of a transcript: a page with the pictures, and sessions that the session metrics score."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import pytest
from benchmark_world import dialogues as world
from benchmark_world.dialogues import Always

import cir_datasets
import submissions
from cir_datasets.rows.benchmark import Benchmark
from submissions.embeddings.pictures import FilePictures, ShapesPictures
from submissions.errors import MethodError
from submissions.multiround.making import make_transcript
from submissions.multiround.page import write_page
from submissions.multiround.sessions import rank_file_of, sessions_benchmark, write_sessions
from submissions.running.options import RunOptions
from submissions.transcripts.settings import RoundSettings


class Elements(HTMLParser):
    """The elements of a page and its text; fails on an end without a beginning."""

    VOID = ("meta", "img", "link", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_page_shows_each_round_with_its_pictures(tmp_path: Path) -> None:
    pictures = ShapesPictures("shapes/val", tuple(world.GALLERY))
    path = write_page(world.transcript(), pictures, tmp_path / "page.html")
    page = Elements(path.read_text())
    shown = [attrs for tag, attrs in page.found if tag == "img"]
    assert all((tmp_path / str(attrs["src"])).read_bytes()[:2] == b"\xff\xd8" for attrs in shown)
    # A target a session, and in each of seven rounds a reference and six images of the list.
    assert len(shown) == 3 + 7 * (1 + 6)
    assert len(list((tmp_path / "page.pictures").iterdir())) == len({attrs["alt"] for attrs in shown})
    text = " ".join(page.words)
    for words in ("found in round 2", "not found in 3 rounds", "ended in round 2: it says nothing"):
        assert words in text
    assert sum(tag == "li" for tag, _ in page.found) == 7
    assert "<script" not in path.read_text()


def test_what_others_wrote_is_text_on_a_page(tmp_path: Path) -> None:
    """Words, ids and reasons of strangers, and pictures that are not there."""
    bad = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    made = world.transcript()
    rounds = [
        each.model_copy(update={"caption": bad, "reference": bad, "session": bad, "end": f"silent: {bad}"})
        for each in made.rounds
    ]
    method = made.method.model_copy(update={"name": bad})
    changed = made.model_copy(update={"rounds": rounds, "method": method, "benchmark": bad})
    absent = FilePictures("x", tuple(world.GALLERY), (None,) * 12, str(tmp_path))
    page = Elements(write_page(changed, absent, tmp_path / "page.html").read_text())
    assert not {tag for tag, _ in page.found} & {"script", "img"}
    assert "".join(page.words).count("<script>alert(1)</script>") > 7


def test_a_dialogue_is_scored_as_sessions(tmp_path: Path) -> None:
    """By hand: of three sessions one has its target among the first 5 in turn 1, and keeps it."""
    made, benchmark = world.transcript(), world.small_benchmark()
    sessions = sessions_benchmark(made, benchmark)
    assert sessions.id == "shapes/multiturn_val"
    score = submissions.score(rank_file_of(made, benchmark), sessions, metrics=["hits@5", "hits@1"])
    values = {name: list(each) for name, each in score.evidence.values.items()}
    assert values["hits@1@turn1"] == [0, 0, 0]
    assert values["hits@1@turn2"] == [1, 0, 0]
    assert values["hits@5@turn1"] == [1, 0, 0]
    assert score.metrics["final_recall@10"] == 1
    assert "counts" in score.signature_text("final_recall@10")


@pytest.fixture
def on_cirr() -> tuple[Any, Benchmark]:
    """Dialogues of the random method on an invented CIRR."""
    benchmark = worlds.cirr()
    settings = RoundSettings(max_rounds=3, k=1)
    return make_transcript(benchmark, "random", Always("one", "two"), settings, RunOptions()), benchmark


def test_the_loader_of_circled_reads_the_sessions_of_a_dialogue(
    on_cirr: tuple[Any, Benchmark], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, benchmark = on_cirr
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_DATA_HOME", "")
    write_sessions(made, benchmark, tmp_path / "CIRCLED" / "data" / "cirr_val.json")
    loaded = cir_datasets.load("circled/cirr_val", data_dir=tmp_path, verification_mode="no_checks")
    assert loaded.query_ids == benchmark.query_ids
    assert loaded.positives == benchmark.positives
    found = rank_file_of(made, benchmark)
    assert found.benchmark == "circled/cirr_val"
    # Rounds of CIRR leave the reference out, CIRCLED's sessions of it keep it: the file says which it was.
    assert (made.method.reference, loaded.reference_use) == ("removed", "kept")
    score = submissions.score(found, loaded)
    assert "| ref:removed |" in score.signature_text("hits_auc@10")
    same = submissions.score(found, sessions_benchmark(made, benchmark))
    assert score.metrics == same.metrics
    assert score.n == 6


def test_where_no_sessions_have_the_gallery_it_is_said() -> None:
    with pytest.raises(MethodError, match="no benchmark of sessions has the gallery of cirr/test1"):
        sessions_benchmark(world.transcript(), worlds.cirr("test1"))


def test_a_session_without_any_words_stays_in_the_file_and_has_no_lists(tmp_path: Path) -> None:
    made = world.transcript()
    silent = made.rounds[-1].model_copy(update={"round": 1, "rank": 11, "top": []})
    changed = made.model_copy(update={"rounds": [*made.rounds[:5], silent]})
    benchmark = world.small_benchmark()
    rows = json.loads(write_sessions(changed, benchmark, tmp_path / "sessions.json").read_text())
    assert [(row["session_id"], row["num_turns"]) for row in rows] == [
        ("finds", 2),
        ("never", 3),
        ("silent", 1),
    ]
    assert list(rank_file_of(changed, benchmark).rankings) == ["finds", "never"]
