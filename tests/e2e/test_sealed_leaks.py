"""Nothing of a sealed board's truth comes out: every route, page, log, stored file and export is searched.

The truth of the challenge is searched for by its salt and its lines, which look like nothing that a
participant sends. A second run with another truth shows that no answer depends on it, the numbers apart.
"""

from __future__ import annotations

import difflib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import leaderboard_world as world
import plain_http
import pytest
import sqlalchemy as sa
import yaml
from leaderboard_world import challenges
from leaderboard_world.challenges import ID, NAME, Places
from read_pages import html_of, submission_html

from leaderboard import boards
from leaderboard.identity import Tokens
from leaderboard.server import Server
from leaderboard.settings import Settings
from leaderboard.store import Store

PAGES = (
    "/",
    f"/?board={ID}",
    f"/b/{ID}",
    f"/b/{ID}?embed=1",
    *(f"/b/{ID}?tab={tab}" for tab in ("about", "queries", "aspects", "turns", "trend")),
    f"/published?benchmark={ID}",
    "/status",
    "/submit",
    "/s/nothing",
    "/about",
    "/api",
    "/api/openapi.json",
    "/config",
    "/info",
)
TIMES = ("/health", "/status", "/config", "/api/v1/key")
"""Of the server: how long it runs and what waits, from second to second, and keys of its own."""
SECRET_KEY = "made-up-key-of-the-truth"

pytestmark = pytest.mark.slow


@dataclass
class Ran:
    """What a run of the challenge left: every answer by caller and address, and where its files lie."""

    places: Places
    settings: Settings
    folder: Path
    truth: bytes
    answers: dict[tuple[str, str], tuple[int, bytes]]
    ids: dict[str, str]

    @property
    def markers(self) -> list[bytes]:
        head, *lines = self.truth.splitlines()
        return [json.loads(head)["salt"].encode(), *lines, SECRET_KEY.encode()]


def ran(folder: Path, truth: int, database: str) -> Ran:
    """Host the challenge, send files as two users, read everything as everybody, export everything."""
    folder.mkdir()
    places = challenges.places(folder)
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {
        **places.environment,
        "TMPDIR": str(temporary),
        "CIR_LEADERBOARD_ACCOUNTS": "tokens",
        "CIR_LEADERBOARD_DATABASE": database,
        "CIR_LEADERBOARD_LOGS": str(folder / "logs"),
        "CIR_LEADERBOARD_TRUTH_AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    queries, gallery = challenges.write_rows(folder, seed=truth)
    command = ["challenge", "new", NAME, "--from", str(queries), "--gallery", str(gallery)]
    done = world.cir(*command, "--ground-truth", str(places.ground_truth), **environment, code=0)
    # What the truth was made of is the organiser's own, and not kept on the server.
    queries.unlink()
    content = places.ground_truth.read_bytes()
    settings = Settings(places.home, database=database)
    store = Store(settings.database_url)
    tokens = {
        name: Tokens(store).create(name, role)
        for name, role in (("ada", "user"), ("bob", "user"), ("org", "organiser"))
    }
    store.close()
    headers = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()} | {"nobody": {}}
    with world.serving(places.home, **environment) as server:

        def sent(document: dict[str, Any], owner: str, publish: str) -> str:
            answer = plain_http.post(
                f"{server.url}/api/submissions",
                params={"board": ID, "publish": publish},
                content=json.dumps(document).encode(),
                headers=headers[owner],
                timeout=300,
            )
            assert answer.status_code == 202, answer.text
            return str(answer.json()["id"])

        def ended(submission: str, owner: str) -> None:
            while not server.get(f"/api/submissions/{submission}", headers=headers[owner]).json()["finished"]:
                pass

        best = challenges.rank_file(hits=20, name="Published")
        broken = challenges.rank_file(2)
        next(iter(broken["rankings"].values()))[0] = "no-such-picture"
        ids = {
            "published": sent(best, "ada", "yes"),
            "private": sent(challenges.rank_file(1, name="Private"), "bob", "no"),
            "rejected": sent(broken, "ada", "yes"),
        }
        for name, owner in (("published", "ada"), ("private", "bob"), ("rejected", "ada")):
            ended(ids[name], owner)
        # A truth that is not one while a file is judged: the log speaks of it.
        places.ground_truth.write_bytes(content[:-20])
        ids["waiting"] = sent(challenges.rank_file(3, name="Waiting"), "bob", "yes")
        until_logged(folder)
        # So small a test shows its results when its phase has closed.
        board = places.home / "boards" / f"{NAME}.yaml"
        written = yaml.safe_load(board.read_text(encoding="utf-8"))
        written["phases"][0]["closes"] = datetime.now(UTC).isoformat()
        board.write_text(yaml.safe_dump(written), encoding="utf-8")
        answers = {
            (who, path): (answer.status_code, answer.content)
            for path in addresses(server, ids)
            for who in headers
            if (answer := server.get(path, headers=headers[who])) is not None
        }
        for who in headers:
            for action in ("verify", "flag", "nonsense"):
                answer = plain_http.post(
                    f"{server.url}/api/submissions/{ids['published']}/{action}",
                    json={"reason": "x", "extra": 1},
                    headers=headers[who],
                    timeout=300,
                )
                answers[who, action] = answer.status_code, answer.content
        places.ground_truth.write_bytes(content)
        done = world.cir(
            "leaderboard",
            "pull",
            server.url,
            ID,
            "--files",
            "--to",
            str(folder / "pulled"),
            **environment,
            code=0,
        )
    for command in (
        ["export", str(folder / "exported")],
        ["backup", "--to", str(folder / "backups")],
        ["export-html", str(folder / "mirror")],
        [
            "export-hub",
            ID,
            "--dataset",
            "me/autumn",
            "--out",
            str(folder / "hub"),
            "--model",
            "Published=me/m",
        ],
        ["show", ID, "--json"],
    ):
        done = world.cir("leaderboard", *command, **environment, code=0)
        (folder / f"{command[0]}.said").write_text(done.stdout + done.stderr, encoding="utf-8")
    return Ran(places, settings, folder, content, answers, ids)


def until_logged(folder: Path) -> None:
    """Wait until a worker has met the truth that is not one; folders of judged files come and go beside."""
    while not any(
        b"ground truth" in path.read_bytes()
        for path in (*folder.glob("*.log*"), *(folder / "logs").glob("*"))
        if path.is_file()
    ):
        pass


def addresses(server: Any, ids: dict[str, str]) -> list[str]:
    """Every address of the API that can be read, with everything that it may be asked for, and every page."""
    found = [*PAGES, *(f"/{kind}/{one}" for kind in "se" for one in ids.values())]
    found += [f"/compare?e={ids['published']},{ids['private']}"]
    found += [f"/?board={ID}&entry={one}" for one in ids.values()]
    for path, methods in server.get("/api/openapi.json").json()["paths"].items():
        if "get" not in methods:
            continue
        names = {parameter["name"] for parameter in methods["get"].get("parameters", ())}
        filled = [path.replace("{board_id}", ID)]
        if "{submission_id}" in path:
            filled = [path.replace("{submission_id}", one) for one in ids.values()]
        queries = [f"?board={ID}"] if "board" in names else [""]
        if "format" in names:
            queries = [f"?format={name}" for name in ("json", "csv", "parquet")]
        found += [place + query for place in filled for query in queries]
    assert not [path for path in found if "{" in path]
    assert len(found) > 20
    return found


@pytest.fixture(scope="module")
def first(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran(tmp_path_factory.mktemp("sealed") / "first", truth=0, database=new_database())


def opened(content: bytes) -> Iterator[bytes]:
    """Some bytes, and what they hold where they are packed."""
    yield content
    for unpack in (gzip.decompress, zlib.decompress):
        try:
            yield unpack(content)
        except (OSError, EOFError, zlib.error):
            continue
    if content[:4] == b"PAR1":
        import pyarrow as pa
        import pyarrow.parquet as pq

        yield json.dumps(pq.read_table(pa.BufferReader(content)).to_pylist(), default=str).encode()


def values_of(url: str) -> Iterator[tuple[str, Any]]:
    """Every value of every table."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        for table in sa.inspect(connection).get_table_names():
            for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"'):
                for value in row:
                    yield table, json.dumps(value) if isinstance(value, dict | list) else value
    engine.dispose()


def test_no_answer_holds_a_line_of_the_truth_or_a_key(first: Ran) -> None:
    assert {status for status, _ in first.answers.values()} >= {200, 403, 404}
    found = [
        key
        for key, (_, content) in first.answers.items()
        for each in opened(content)
        if any(marker in each for marker in first.markers)
    ]
    assert found == []


def test_no_answer_on_the_board_names_a_picture(first: Ran) -> None:
    # Whose file it is may fetch it and reads its own mistakes; for all others there is no picture at all.
    own = {("ada", "published"), ("bob", "private"), ("bob", "waiting"), ("ada", "rejected")}
    mine = {(who, first.ids[name]) for who, name in own}
    for (who, path), (_, content) in first.answers.items():
        if who == "org" or any(who == owner and one in path for owner, one in mine):
            continue
        if first.ids["rejected"] in path:
            assert b"picture-" not in content.replace(b"no-such-picture", b"")
        else:
            assert not any(b"picture-" in each for each in opened(content)), (who, path)


def test_pages_hold_nothing_of_it_for_anybody(first: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    first.places.use(monkeypatch)
    server = Server.open(first.settings)
    try:
        pages = [
            html_of(server, f"b/{ID}", entry=one, tab=tab)
            for one in first.ids.values()
            for tab in ("", "about", "queries", "aspects", "turns", "trend")
        ]
        for one in first.ids.values():
            found = server.store.submission(one)
            assert found is not None
            pages += [submission_html(server, found, by) for by in (None, "organiser")]
        published = server.store.submission(first.ids["published"])
        stored = (published and published.scores) or {}
        told = boards.board(ID).told(stored)["main"]
    finally:
        server.close()
        boards.use(None)
    assert any(f">{100 * told:.0f}<" in page for page in pages), "in steps of 5 %"
    finer = {f"{100 * value:.2f}" for value in stored["metrics"].values()} - {f"{100 * told:.2f}"}
    assert "33.33" in finer
    assert not [page for page in pages if any(f">{number}<" in page for number in finer)]
    assert not [page for page in pages if any(marker.decode() in page for marker in first.markers)]
    assert not [page for page in pages if "picture-" in page.replace("no-such-picture", "")]


def test_no_file_of_the_server_holds_a_line_of_it(first: Ran) -> None:
    files = [
        path for path in first.folder.rglob("*") if path.is_file() and first.places.secret not in path.parents
    ]
    assert len(files) > 30
    logs = [path for path in files if ".log" in path.name]
    assert any(b"ground truth" in path.read_bytes() for path in logs)
    found = [
        path
        for path in files
        for each in opened(path.read_bytes())
        if any(marker in each for marker in first.markers)
    ]
    assert found == []
    assert not any(b"picture-" in path.read_bytes() for path in logs)
    assert not any(str(first.places.secret).encode() in path.read_bytes() for path in logs)


def test_the_database_holds_coarse_numbers_and_no_values_a_query(first: Ran) -> None:
    for table, value in values_of(first.settings.database_url):
        content = value if isinstance(value, bytes) else str(value).encode()
        for each in opened(content):
            assert not any(marker in each for marker in first.markers), table
        assert table != "result_values"
        if table == "events" and str(value).startswith('{"report"'):
            metrics = json.loads(value)["report"]["metrics"]
            assert all(round(number, 4) == number for number in metrics.values())


def test_nothing_but_numbers_depends_on_the_truth(
    first: Ran, new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    second = ran(tmp_path_factory.mktemp("sealed") / "second", truth=1, database=new_database())
    ours, others = scrubbed(first), scrubbed(second)
    assert ours.keys() == others.keys()
    differ = [
        f"{key}: {line}"
        for key in ours
        for line in difflib.unified_diff(
            *(each[key][1].splitlines() for each in (ours, others)), n=0, lineterm=""
        )
    ]
    assert "\n".join(differ) == ""
    assert [(key, ours[key][0], others[key][0]) for key in ours if ours[key] != others[key]] == []


def scrubbed(run: Ran) -> dict[tuple[str, str], tuple[int, str]]:
    """The answers without what is of the run (ids, times, keys) and without numbers of scores."""

    def plain(text: str) -> str:
        for name, one in run.ids.items():
            text = text.replace(one, name)
        # A page's button saves the receipt, which is in its address.
        text = re.sub(r'(?<=href=")data:[^"]*', lambda found: unquote(found[0]), text)
        text = re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
        text = re.sub(r'"signature": ?"[^"]*"', "SIGNED", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.+Z-]*", "TIME", text)
        text = re.sub(r"\d\d:\d\d UTC", "TIME", text)
        text = re.sub(r"-----BEGIN PUBLIC KEY-----[^-]*", "KEY", text)
        text = re.sub(r"urn:uuid:[0-9a-f-]+", "UUID", text)
        text = re.sub(r"[0-9a-f]{7,}", "HASH", text)
        text = re.sub(r"(<summary>\S+) [0-9.]+", r"\1 N", text)
        if text.startswith("<!doctype html>"):
            # A plot's numbers stand in the table beside it; its axes move with them.
            text = re.sub(r"<svg.*?</svg>", "PLOT", text, flags=re.DOTALL)
            text = re.sub(r"\d+\.\d+", "N", text)
            # Whole numbers of a coarse step are scores in these places alone: a count elsewhere is none.
            for place in (
                r'<td class="?num.*?</td>',
                r"</a> <strong>[^<]*</strong></td>",
                r'<dl class="figures">.*?</dl>',
                r"\bmAP@5 \d+\b",
            ):
                text = re.sub(place, lambda cell: re.sub(r"\b\d+\b", "N", cell[0]), text, flags=re.DOTALL)
        return re.sub(r'("[^"]*@\d+"|"main"|"primary"): ?[0-9.]+(e-\d+)?', r"\1: N", text)

    found = {}
    for (who, path), (status, content) in run.answers.items():
        if path.endswith(("csv", "parquet")) or path in TIMES:
            # The same rows as in JSON, or nothing about boards.
            continue
        found[who, plain(path)] = status, plain(content.decode(errors="replace"))
    return found
