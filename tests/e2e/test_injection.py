"""What strangers write into any field is text wherever it comes out: pages, formats, feeds, logs, terminals.

The fields are those of the model of a method, and what the API takes beside it: a new one is tried without a
change here. Whether a text is refused or shown is the server's choice; what it shows must be inert.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import leaderboard_world as world
import plain_http
import pyarrow.parquet as pq
import pytest
import yaml

from cir_datasets.common.terminal import visible
from submissions.rank_file.model import Method
from submissions.rank_file.texts import OTHER

pytestmark = pytest.mark.slow

MARKUP = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onmouseover=alert(3) x='",
    "javascript:alert(4)",
    "[x](javascript:alert(5)) {{7*7}} ${alert(6)}",
    "</title></summary></dd><svg onload=alert(7)>",
    'https://a.example/"onclick=alert(8)',
    "https://a.example/?q=<b>",
    "]]><x/>&lt;",
]
FORMULAS = ['=HYPERLINK("http://evil.example")', "+1+1", "-1+1", "@SUM(A1)", "＝1+1", "=1+1", "\t=1"]
LATEX = [r"\input{/etc/passwd}", r"$\write18{id}$ & 100% #1 ~^_{}", "#1 & 100% ~^_"]
LINES = [
    "a\r\nSet-Cookie: a=b",
    "a\n2026-01-01 00:00:00,000 ERROR root: forged",
    "\x1b[31mred\x1b]0;owned\x07",
    "\u202egnp.exe",
    "a\x00b",
    "\u2028b",
]
TEXTS = [*MARKUP, *FORMULAS, *LATEX, *LINES]
PROPERTIES = Method.model_json_schema()["properties"]
LISTS = [name for name, schema in PROPERTIES.items() if schema.get("type") == "array"]
FIELDS = [
    name
    for name, schema in PROPERTIES.items()
    if "string" in {each.get("type") for each in schema.get("anyOf", [schema])}
]
FORMULA = re.compile(r"[\s]*[=+@＝＋＠－-]")
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def post(server: Any, path: str, **options: Any) -> httpx.Response:
    answer = plain_http.post(server.url + path, timeout=60, **options)
    assert answer.status_code < 500, answer.text
    return answer


@pytest.fixture(scope="module")
def rows(server: Any) -> list[dict[str, Any]]:
    """The board's rows: one entry a text, which stands in all fields that take it; each field takes some."""
    tried = {(name, text) for name in [*FIELDS, *LISTS, "submitter", "reason", "file_name"] for text in TEXTS}
    taken = set()
    for number, text in enumerate(TEXTS):
        query = {"board": world.BOARD, "publish": "yes", "file_name": text}
        content = world.as_bytes(world.rank_file(number, f"Number {number}"))
        sent = post(server, "/api/submissions", params=query, content=content).json()
        done = server.finished(sent["id"])
        assert done["state"] == "published"
        taken.add(("file_name", text))
        here = f"/api/submissions/{sent['id']}"
        for name in FIELDS:
            # Behind `other:` stands a free text where else a word of a list does.
            for written in (text, f"{OTHER}: {text}"):
                answer = post(server, f"{here}/correct", json={"method": {name: written}})
                if answer.status_code == 200:
                    taken.add((name, text))
                    break
        if number % 2:
            # Oracles have no rank, and what has no rank is not exported to the Hub.
            assert post(server, f"{here}/correct", json={"method": {"oracle": ""}}).status_code == 200
        for name in LISTS:
            answer = post(server, f"{here}/correct", json={"method": {name: [text]}})
            taken |= {(name, text)} if answer.status_code == 200 else set()
        for action, name in (("correct", "submitter"), ("flag", "reason")):
            answer = post(server, f"{here}/{action}", json={name: text})
            taken |= {(name, text)} if answer.status_code == 200 else set()
    fields = {name for name, _ in taken}
    print(f"{len(tried)} texts in fields, {len(taken)} taken")
    assert fields >= {"name", "backbone", "trained_on", "notes", "submitter", "reason", "file_name"}
    assert {text for name, text in taken if name == "notes"} >= {*MARKUP, *FORMULAS[:6], *LATEX}
    assert not {text for name, text in taken if name in ("paper", "code")} - {""}
    found: list[dict[str, Any]] = server.rows()
    assert len(found) == len(TEXTS)
    return found


def shown_texts(row: dict[str, Any]) -> Iterator[str]:
    for value in (*row["method"].values(), row["submitter"], row["flag"]):
        if isinstance(value, list):
            yield from value
        elif isinstance(value, str):
            yield value


def test_what_is_kept_holds_nothing_unseen(rows: list[dict[str, Any]]) -> None:
    assert [text for row in rows for text in shown_texts(row) if UNSEEN.search(text)] == []


@pytest.mark.browser
def test_pages_show_all_of_it_as_text(server: Any, rows: list[dict[str, Any]], page: Any) -> None:
    def inert() -> None:
        found = page.evaluate(
            """() => [...document.querySelectorAll('main *')].flatMap(node => [
                ...(/^(script|iframe|object|b|x)$/i.test(node.tagName) ? [node.tagName] : []),
                ...[...node.attributes].map(one => one.name).filter(name => name.startsWith('on')),
                ...(node.tagName === 'IMG' ? [node.getAttribute('src')] : []).filter(
                    address => !/^(\\.\\.\\/)+site\\/pictures\\//.test(address)),
                ...(node.tagName === 'A' ? [node.getAttribute('href')] : []).filter(
                    address => !/^(data:application\\/json;|#|\\.{1,2}\\/|https:\\/\\/)/.test(address)),
            ])"""
        )
        assert found == [], page.url

    def shown() -> str:
        return " ".join(page.text_content("main").split())

    page.goto(f"{server.url}/b/shapes/val?page=all")
    page.wait_for_selector(".standings")
    inert()
    names = shown()
    assert [
        row["method"]["name"] for row in rows if " ".join(row["method"]["name"].split()) not in names
    ] == []
    for row in rows:
        page.goto(f"{server.url}/e/{row['submission']}")
        inert()
        words = shown()
        assert [text for text in shown_texts(row) if " ".join(text.split()) not in words] == []
        post(server, f"/api/submissions/{row['submission']}/unpublish", json={})
        page.goto(f"{server.url}/s/{row['submission']}")
        page.wait_for_selector("#outcome")
        inert()
        post(server, f"/api/submissions/{row['submission']}/publish", json={})


def test_tables_for_spreadsheets_hold_no_formula_and_every_text(
    server: Any, rows: list[dict[str, Any]]
) -> None:
    board = "/api/v1/boards/shapes/val"
    lines = list(csv.DictReader(io.StringIO(server.get(f"{board}?format=csv").content.decode(), newline="")))
    assert [cell for line in lines for cell in line.values() if FORMULA.match(cell)] == []
    frame = pq.read_table(io.BytesIO(server.get(f"{board}?format=parquet").content)).to_pylist()
    for row, line, other in zip(rows, lines, frame, strict=True):
        for name in (*FIELDS, *LISTS):
            value = row["method"].get(name)
            text = ", ".join(value) if isinstance(value, list) else value
            assert (other[name] or "") == (text or "")
            assert line[name].removeprefix("'" if FORMULA.match(text or "") else "") == (text or "")


def test_feed_and_headers_hold_nothing_but_their_own(server: Any, rows: list[dict[str, Any]]) -> None:
    feed = ElementTree.fromstring(server.get("/api/v1/feed.atom").content)
    tags = {element.tag.rpartition("}")[2] for element in feed.iter()}
    entry = {"entry", "summary", "published"}
    assert tags == {"feed", "id", "title", "updated", "author", "name", "link", *entry}
    places = {link.get("href", "").removeprefix(server.url) for link in feed.iter() if link.get("href")}
    assert {place[:3] for place in places} == {"/b/", "/ap"}
    for path in ("boards/shapes/val", "feed.atom", *(f"submissions/{row['submission']}" for row in rows)):
        for more in ("", "/file") if path.startswith("submissions") else ("",):
            headers = server.get(f"/api/v1/{path}{more}").headers
            assert "set-cookie" not in headers
            assert headers["x-content-type-options"] == "nosniff"
            assert re.fullmatch(r'|attachment; filename="[\w.-]+"', headers.get("content-disposition", ""))


def test_commands_write_lines_that_no_terminal_obeys(
    server: Any,
    rows: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CIR_LEADERBOARD_DATABASE", server.database)
    shown = world.cir("leaderboard", "show", "shapes/val", "--home", str(server.home)).stdout
    # A head, names of columns, a rule; and a note, for those that call themselves an oracle have no rank.
    assert len(shown.splitlines()) == 3 + len(rows) + 1
    pulled = world.cir("leaderboard", "pull", server.url, "shapes/val", "--to", str(tmp_path / "pulled"))
    assert (pulled.returncode, pulled.stderr) == (0, "")
    options = ["--dataset", "me/shapes", "--out", str(tmp_path / "hub"), "--home", str(server.home)]
    ranked = [row for row in rows if row["rank"] is not None]
    assert len(ranked) >= len(rows) // 2
    options += [f"--model={row['submission']}=me/model-{row['number']}" for row in ranked]
    exported = world.cir("leaderboard", "export-hub", "shapes/val", *options, code=0)
    for done in (shown, pulled.stdout, exported.stdout, exported.stderr):
        assert visible(done) == done
    results = list((tmp_path / "hub").rglob("*.yaml"))
    assert len(results) == 1 + len(ranked)
    for path in results:
        assert yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (tmp_path / "hub").rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))


def test_names_in_comparisons_are_text_in_every_format(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """LaTeX is written for rank files, whose names the same model checks."""
    names = [row["method"]["name"] for row in rows if not row["method"]["name"].startswith("Number ")]
    assert {*FORMULAS[1:6]} & set(names)
    files = [tmp_path / f"{number}.json" for number in range(len(names))]
    for number, (file, name) in enumerate(zip(files, names, strict=True)):
        file.write_bytes(world.as_bytes(world.rank_file(number, name)))
    for form in ("latex", "csv", "markdown", "table"):
        done = world.cir("compare", *map(str, files), "--format", form, "--draws", "50", code=0)
        assert visible(done.stdout) == done.stdout
        if form == "csv":
            cells = [cell for line in csv.reader(io.StringIO(done.stdout)) for cell in line]
            assert [cell for cell in cells if FORMULA.match(cell) and not is_number(cell)] == []
        if form == "latex":
            bare = re.sub(r"\\[#%&$_{}]|\\text\w+\{\}|\\\\", "", done.stdout)
            assert "#" not in bare
            assert "%" not in bare


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_the_log_has_no_line_of_a_stranger(server: Any, rows: list[dict[str, Any]]) -> None:
    before = len(server.log.read_text().splitlines())
    for text in TEXTS:
        server.get(f"/api/submissions/{quote(text, safe='')}")
        server.get("/api/boards/x", headers={"user-agent": quote(text), "referer": quote(text)})
        post(server, "/api/submissions", params={"board": text}, content=b"x")
    words = server.log.read_text()
    assert visible(words) == words
    assert "forged" not in words
    assert len(words.splitlines()) - before <= 1, words
