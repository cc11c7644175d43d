"""`cir make fisd` ended at each stage, and its review filled in in a browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from fisd_runs import OPTIONS, content, run, shapes_captions
from language_server import Asked, Fault, LanguageServer
from reloading import filled_and_reloaded

from cir_datasets.construction.fisd.review import write_review

COMMAND = (
    *("make", "fisd", "--captions", "captions.txt", "--language", "oracle"),
    *("--per-aspect", "8", "--spare", "2", "--chunk", "2", "--out", "mine"),
)
MAIN = "from leaderboard.cli import main; main()"


def started(folder: Path, script: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", script, *COMMAND]
    return forked.Process(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


FAULTS = (
    Fault("status", 429, {"Retry-After": "0"}),
    Fault("status", 500, {"Retry-After": "0"}),
    Fault("nonsense"),
    Fault("empty"),
    Fault("cut"),
    Fault("not_json"),
)


def edits(asked: Asked) -> str:
    """Another background, and a hard negative of another size."""
    caption = next(line for line in asked.prompt.splitlines() if " background" in line)
    if "wrong answer" in asked.prompt:
        return json.dumps({"negative_caption": caption.replace("small", "large", 1)})
    word = "starry" if "starry" not in caption else "brick"
    other = re.sub(r"an? \w+ background", f"a {word} background", caption)
    return json.dumps({"relative_caption": f"a {word} background", "target_caption": other})


@pytest.mark.slow
def test_a_server_that_goes_wrong_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-tests")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("CIR_PROMPTS", "")
    found = {}
    with LanguageServer(look=edits) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for name in ("whole", "faults"):
            if name == "faults":
                # Each prompt was asked once before; it goes wrong once, in a way of its own.
                server.fault = lambda prompt, times: FAULTS[len(prompt) % len(FAULTS)] if times == 2 else None
            monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / f"cache of {name}"))
            (tmp_path / name).mkdir()
            shapes_captions(tmp_path / name)
            before = len(server.requests)
            call = [*COMMAND, "--aspect", "background", "--aspect", "change", "--language", "openai:tiny"]
            process = forked.run(
                [sys.executable, "-c", MAIN, *call],
                cwd=tmp_path / name,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert process.returncode == 0, process.stderr
            found[name] = (content(tmp_path / name / "mine"), len(server.requests) - before)
    assert found["faults"][0] == found["whole"][0]
    assert found["faults"][1] > found["whole"][1]


@pytest.mark.slow
def test_the_command_on_ray_leaves_the_bytes_of_one_here(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra `distributed`")
    for name, engine in (("here", "local"), ("there", "ray")):
        (tmp_path / name).mkdir()
        shapes_captions(tmp_path / name)
        done = forked.run(
            [sys.executable, "-c", MAIN, *COMMAND, "--aspect", "cardinality", "--engine", engine],
            cwd=tmp_path / name,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert content(tmp_path / "there" / "mine") == content(tmp_path / "here" / "mine")


def article(page: Any, id: str) -> Any:
    """A triplet, on whichever page of the review it is."""
    for button in ("#back", "#next"):
        for _ in range(20):
            if page.locator(f"[data-item={id}]").count():
                return page.locator(f"[data-item={id}]")
            page.click(button)
    raise AssertionError(f"{id} is on no page")


@pytest.mark.browser
def test_a_review_is_filled_in_saved_and_taken_in(page: Any, tmp_path: Path) -> None:
    captions = shapes_captions(tmp_path)
    made = run(tmp_path / "mine", captions)
    write_review(made.workspace.folder, made.triplets, 4, "Mine: review")
    html = made.workspace.folder / "review.html"
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(html.as_uri())
    assert page.locator("article").count() == 10 < len(made.triplets)
    changed = article(page, "change_000")
    shown = changed.locator("img").evaluate_all(
        "(all) => Promise.all(all.map((each) => each.decode().then(() => each.naturalWidth)))"
    )
    assert shown == [96, 96, 96]
    assert changed.get_by_label("Target shows").count() == 0
    counted = next(each for each in made.triplets if each.aspect == "cardinality")
    other = next(number for number in range(1, 5) if number not in counted.numbers)

    def fill() -> None:
        changed = article(page, "change_000")
        changed.get_by_label("keep").check()
        changed.get_by_label("Words instead of those above").fill('a "better", shorter wording')
        dropped = article(page, "change_001")
        dropped.get_by_label("drop").check()
        dropped.get_by_label("Note").fill("=not real; odd")
        article(page, "addition_000").get_by_label("draw anew").check()
        article(page, counted.id).get_by_label("Target shows").fill(str(other))
        article(page, counted.id).get_by_label("keep").check()

    filled_and_reloaded(page, fill, "#done", f"4 of {len(made.triplets)} triplets answered")
    page.locator("#show").select_option("open")
    assert page.locator("[data-item=change_000]").count() == 0
    with page.expect_download() as caught:
        page.locator("#save-csv").click()
    caught.value.save_as(tmp_path / "review.csv")
    assert all(url.startswith(("file://", "blob:")) for url in requests)
    now = {
        each.id: each for each in run(tmp_path / "mine", captions, review=tmp_path / "review.csv").triplets
    }
    assert now["change_000"].relative_caption == 'a "better", shorter wording'
    assert now["change_001"].failed == "review: =not real; odd"
    assert now["addition_000"].decision.attempt == 1
    assert now[counted.id].numbers[1] == other
    assert len([each for each in now.values() if each.failed is None]) >= OPTIONS.per_aspect * 6 - 1


@pytest.mark.browser
def test_the_page_fits_a_phone(page: Any, tmp_path: Path) -> None:
    made = run(tmp_path / "mine", shapes_captions(tmp_path))
    write_review(made.workspace.folder, made.triplets, 4, "Mine: review")
    html = made.workspace.folder / "review.html"
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(html.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
