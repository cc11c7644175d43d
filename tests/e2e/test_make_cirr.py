"""`cir make cirr` with a person at the page, killed at each stage, on Ray, and beside a faulty server."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from language_server import Asked, Fault, LanguageServer
from reloading import filled_and_reloaded, shows_again
from typer.testing import CliRunner

from cir_datasets.construction.cirr import pipeline
from cir_datasets.construction.cirr.answers import annotation_form
from cir_datasets.construction.cirr.pairs import pairs_of
from cir_datasets.construction.cirr.tasks import tasks_of, write_tasks
from cir_datasets.construction.review.answers import checked_answers, read_answers
from cir_datasets.shapes import picture
from leaderboard.cli import build

FORM = annotation_form()
CAPTION = "textarea[data-question=caption]"
HINT = "[data-of=caption] .hint"
COMMAND = ["make", "cirr", "--benchmark", "shapes/val", "--limit", "40"]
OPTIONS = ["--splits", "test=100", "--captions", "model", "--language", "oracle", "--name", "mine"]


@pytest.mark.browser
def test_what_a_person_writes_on_a_page_is_what_is_imported(page: Any, tmp_path: Path) -> None:
    members = [f"val-{number:06d}" for number in range(6)]
    pairs = pairs_of({"subset": 0, "split": "test", "members": members})
    tasks = tasks_of(pairs, annotators=1, shared=0, seed=0)
    given = {"run": "r", "title": "<b>Mine</b>", "form": FORM, "open_picture": picture}
    written = write_tasks(tmp_path, tasks, **given)
    page.goto(written[0].as_uri())
    assert page.inner_text("h1") == "<b>Mine</b>"

    def fill() -> None:
        page.fill("#annotator", "Ann")
        page.fill(CAPTION, 'a "red" star, too')
        page.keyboard.press("Enter")
        assert page.inner_text("h2") == "Pair 2 of 9"
        page.keyboard.press("Alt+3")
        page.keyboard.press("Alt+ArrowRight")
        page.fill(CAPTION, "=two blue circles")

    filled_and_reloaded(page, fill, "#done", "3 of 9 pairs answered")
    shown = page.evaluate("[...document.images].map((image) => image.naturalWidth > 0)")
    assert shown == [True] * 6
    for ending in ("json", "csv"):
        with page.expect_download() as saved:
            page.click(f"#save-{ending}")
        file = tmp_path / f"answers.{ending}"
        saved.value.save_as(file)
        rows = checked_answers(FORM, read_answers(FORM, file), tasks, run="r")
        assert [(row["task"], row["caption"], row["mark"]) for row in rows] == [
            ("t1-0-0", 'a "red" star, too', ""),
            ("t1-0-1", "", "unrelated"),
            ("t1-0-2", "=two blue circles", ""),
        ]
        assert not any("failed" in row for row in rows)
        assert {row["annotator"] for row in rows} == {"Ann"}


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        # What a killed call was filling begins with a dot.
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


@pytest.mark.browser
def test_the_page_says_what_will_not_count_and_each_round_begins_anew(page: Any, tmp_path: Path) -> None:
    members = [f"val-{number:06d}" for number in range(6)]
    pairs = pairs_of({"subset": 0, "split": "test", "members": members})
    given = {"run": "r", "title": "Mine", "form": FORM, "open_picture": picture}
    tasks = tasks_of(pairs, annotators=1, shared=0, seed=0)
    first = write_tasks(tmp_path / "tasks", tasks, **given)
    page.goto(first[0].as_uri())
    page.fill(CAPTION, "asdf asdf asdf")
    assert page.inner_text(HINT) == "Too short: write 3 different words or more."
    page.keyboard.press("Enter")
    assert page.inner_text("h2") == "Pair 1 of 9"
    assert page.inner_text("#done") == "0 of 9 pairs answered"
    page.fill(CAPTION, "\u628a\u7ea2\u8272\u7684\u72d7\u6362\u6210\u732b")
    assert page.inner_text(HINT) == ""
    page.keyboard.press("Enter")
    # A reason beside a sentence: the reason counts until somebody writes on, or takes it back.
    page.fill(CAPTION, "two blue circles")
    page.keyboard.press("Alt+1")
    assert page.inner_text(HINT).startswith("Another answer counts, and this one does not.")
    page.click(".clear")
    assert page.inner_text(HINT) == ""
    page.keyboard.press("Alt+1")
    page.locator(CAPTION).press_sequentially(" here")
    assert page.evaluate("document.querySelector('input[data-question=mark]:checked')") is None
    page.keyboard.press("Enter")
    page.fill(CAPTION, "two red stars")
    page.keyboard.press("Alt+2")
    for number in range(3, 9):
        page.keyboard.press("Alt+ArrowRight")
        page.fill(CAPTION, f"put thing {number} there")
    file = tmp_path / "answers.json"
    with page.expect_download() as saved:
        page.click("#save-json")
    saved.value.save_as(file)
    rows = checked_answers(FORM, read_answers(FORM, file), tasks, run="r")
    assert not any("failed" in row for row in rows)
    assert [(row["caption"], row["mark"]) for row in rows[1:3]] == [
        ("two blue circles here", ""),
        ("", "no_difference"),
    ]
    again = tasks_of(pairs[:5], annotators=1, shared=0, seed=0, prefix="r1-")
    page.goto(write_tasks(tmp_path / "open-tasks", again, **given, times=1)[0].as_uri())
    assert page.inner_text("#done") == "0 of 5 pairs answered"
    assert page.inner_text("h2") == "Pair 1 of 5"
    assert page.evaluate("document.getElementById('instructions').open")
    page.goto(first[0].as_uri())
    shows_again(page, "#done", "9 of 9 pairs answered")


@pytest.mark.slow
def test_subsets_on_ray_have_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed (extra `distributed`)")
    monkeypatch.setattr(pipeline, "_FIRSTS", 16)
    for engine in ("local", "ray"):
        call = [*COMMAND, *OPTIONS, "--engine", engine, "--out", str(tmp_path / engine)]
        made = CliRunner().invoke(build(), call)
        assert made.exit_code == 0, f"{made.output}{made.exception}"
    assert bytes_of(tmp_path / "ray") == bytes_of(tmp_path / "local")


FAULTS = (
    Fault("status", 429, {"Retry-After": "0"}),
    Fault("status", 500, {"Retry-After": "0"}),
    Fault("nonsense"),
    Fault("empty"),
    Fault("cut"),
    Fault("not_json"),
)


@pytest.mark.slow
def test_faults_of_a_server_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")

    def look(asked: Asked) -> str:
        drawn = hashlib.sha256("".join(asked.images).encode()).hexdigest()
        return json.dumps({"instruction": f"move thing {drawn} up"})

    with LanguageServer(look=look) as server:
        for name, every in (("whole", 0), ("faults", 3), ("again", 0)):
            monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / ("cache" if name == "whole" else "cache-2")))
            server.one_fault_a_question = True
            server.fault = lambda prompt, times, every=every: (  # type: ignore[misc]
                FAULTS[times // every % len(FAULTS)] if every and times % every == 0 else None
            )
            before = len(server.requests)
            language = ["--captions", "model", "--language", f"openai:tiny,url={server.url}"]
            call = [*COMMAND, "--splits", "test=100", "--subsets", "4", *language, "--name", "mine"]
            made = CliRunner().invoke(build(), [*call, "--out", str(tmp_path / name)])
            assert made.exit_code == 0, f"{made.output}{made.exception}"
            asked = len(server.requests) - before
            assert asked == 36 if name == "whole" else asked > 36 if name == "faults" else asked == 0
    assert bytes_of(tmp_path / "faults") == bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "again")
