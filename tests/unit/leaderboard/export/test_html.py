"""The static mirror of a store that is filled directly: its links, what it leaves out, what it replaces."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from leaderboard_world.entries import add_entry
from leaderboard_world.site import HOSTILE
from links import Parts, problems
from typer.testing import CliRunner

from cir_metrics.catalogue import FORMAT
from cir_metrics.errors import CallError
from leaderboard import settings
from leaderboard.cli import build
from leaderboard.export import html
from leaderboard.export.html import MARKER, check_folder, file_name, write_mirror
from leaderboard.server import Server

NOW = datetime(2027, 1, 1, tzinfo=UTC)
LONG = 51
SECRET = "Only its owner knows this name"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Hostile names on a board, no publisher's data, and what is not for others."""
    monkeypatch.delenv("CIR_DATA_HOME", raising=False)
    # Tests beside this one prepare benchmarks in the shared cache: their queries would come and go here.
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path.parent / f"{tmp_path.name}-cache"))
    opened = Server.open(settings.read(tmp_path / "home"))
    for seed, text in enumerate(HOSTILE):
        add_entry(opened.store, seed, 0.3, name=text, notes=text, trained_on=[text], paper=text, code=text)
    for seed in range(100, 100 + LONG):
        add_entry(opened.store, seed, 0.2, board="cirr/val")
    for seed, (name, parts) in enumerate({"Before": {"format": 2}, "Since": {}}.items(), start=200):
        plain = {"format": FORMAT, "key": name, "text": name, "gallery_size": 100}
        add_entry(opened.store, seed, board="circo/val", signature=plain | parts, alike=("map@5",), name=name)
    for seed, kind in enumerate(("private", "withdrawn", "hidden"), start=50):
        one = add_entry(opened.store, seed, 0.3, name=f"{SECRET} {kind}")
        opened.store.append(one, [(kind, {"reason": "because"} if kind == "hidden" else {})])
    yield opened
    opened.close()


def made(server: Server, folder: Path, queries: int = 2) -> set[str]:
    write_mirror(server, folder, queries, NOW, lambda pages: None)
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def text_of(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.slow
def test_every_link_of_a_mirror_leads_to_a_file_in_it_and_hostile_texts_stay_texts(
    server: Server, tmp_path: Path
) -> None:
    files = made(server, tmp_path / "mirror")
    assert list(problems(tmp_path / "mirror")) == []
    pages = [name for name in files if name.endswith(".html")]
    assert {"index.html", "b/shapes/val/index.html", "b/cirr/val/index.html"} <= {*pages}
    assert sum(name.startswith("e/") for name in pages) == len(HOSTILE) + LONG + 2
    # What an earlier version scored stands below the others, with the way to score it again.
    mixed = (tmp_path / "mirror/b/circo/val/index.html").read_text()
    command = "cir leaderboard rescore circo/val --switch"
    assert mixed.index(">Since<") < mixed.index(command) < mixed.index(">Before<")
    rows = tmp_path / "mirror/b/cirr/val"
    assert "b/cirr/val/page-2.html" in pages
    assert len(list(csv.DictReader((rows / "board.csv").open(newline="")))) == LONG
    assert len(json.loads((rows / "board.json").read_text())["rows"]) == LONG
    reported = (rows / "published.csv").read_text()
    assert "TMCIR" in reported
    assert pq.read_table(rows / "board.parquet").num_rows == LONG
    for name in pages:
        text = (tmp_path / "mirror" / name).read_text()
        assert "Content-Security-Policy" in text
        assert "2027-01-01 00:00 UTC" in text
        page = Parts(text)
        assert not {"form", "iframe", "b"} & {*page.tags}, name
        assert all("site/pictures/" in address for tag, _, address in page.addresses if tag == "img")
    board = (tmp_path / "mirror/b/shapes/val/index.html").read_text()
    assert "&lt;script&gt;alert(1)" in board


@pytest.mark.slow
def test_what_is_not_for_everybody_is_not_in_a_mirror(server: Server, tmp_path: Path) -> None:
    made(server, tmp_path / "mirror")
    assert HOSTILE[3].split(" ")[0] in text_of(tmp_path / "mirror")
    assert SECRET not in text_of(tmp_path / "mirror")
    assert not re.search(r"edit_\w{8}", text_of(tmp_path / "mirror"))


@pytest.mark.slow
def test_a_static_space_can_serve_a_mirror_and_a_second_one_takes_its_place(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    first = made(server, folder)
    head = (folder / "README.md").read_text().split("---\n")[1]
    assert yaml.safe_load(head)["sdk"] == "static"
    assert yaml.safe_load(head)["app_file"] in first
    (folder / "b/of-yesterday.html").write_text("old")
    assert made(server, folder) == first
    assert json.loads((folder / MARKER).read_text())["made_at"] == NOW.isoformat()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_a_mirror_that_is_stopped_leaves_what_was_there(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mirror"
    before = made(server, folder)
    written = html.page_at

    def stopped(site: Any, path: str, query: Any) -> Any:
        if path.startswith("e/"):
            raise KeyboardInterrupt
        return written(site, path, query)

    monkeypatch.setattr(html, "page_at", stopped)
    for place in (folder, tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt):
            made(server, place)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "mirror"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda place: place.write_text("x"), "is a file, not a folder"),
        (lambda place: (place.mkdir(), (place / "thesis.tex").write_text("x")), "is not a mirror"),
    ],
    ids=["file", "folder"],
)
def test_what_is_not_a_mirror_is_not_replaced(
    make: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    make(place)
    with pytest.raises(CallError, match=f"{said}.*Fix: name a new folder") as refused:
        check_folder(place)
    asked = ["leaderboard", "export-html", str(place), "--home", str(tmp_path / "home")]
    done = CliRunner().invoke(build(), asked)
    assert str(done.exception) == str(refused.value)
    assert place.is_file() or (place / "thesis.tex").read_text() == "x"


@pytest.mark.slow
def test_the_command_says_where_the_mirror_begins(server: Server, tmp_path: Path) -> None:
    place = tmp_path / "mirror"
    done = CliRunner().invoke(
        build(),
        ["leaderboard", "export-html", str(place), "--home", str(tmp_path / "home"), "--queries", "2"],
    )
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{place / 'index.html'}\n"
    assert re.search(r"[\d,]+ pages, [\d,]+ files, \d+\.\d MB\.\n$", done.stderr)


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("", {}, "index.html"),
        ("m/recall%40k", {}, "m/recall@k/index.html"),
        ("b/x/q/..", {}, "b/x/q/%2E%2E/index.html"),
        ("b/x/q/a%2F..%2F..%2Fb", {}, "b/x/q/a%2F..%2F..%2Fb/index.html"),
        ("b/x", {"tab": "../x", "page": "2"}, "b/x/page-2-tab-..%2Fx.html"),
        ("compare", {"e": "aa,bb"}, "compare/e-aa-bb.html"),
    ],
    ids=["home", "at", "dots", "slashes", "query", "compare"],
)
def test_a_file_has_a_name_that_every_system_takes(path: str, query: dict[str, str], expected: str) -> None:
    assert file_name(path, query) == expected


def test_a_long_id_has_a_short_name_of_its_own() -> None:
    one, other = (file_name(f"b/x/q/{'ü' * 300}{end}", {}) for end in "ab")
    assert one != other
    assert max(map(len, one.split("/"))) < 150
