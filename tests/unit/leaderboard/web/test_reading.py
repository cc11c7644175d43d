"""The reading half of the API over a store filled directly: formats, pages, tags, texts of strangers."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pyarrow.parquet as pq
import pytest
from leaderboard_world import opened_app
from leaderboard_world.entries import BOARD, METRIC, add_entry, shipped
from read_pages import column, html_of, read

from leaderboard import boards
from leaderboard.commands.show import board_text
from leaderboard.intake import Cover
from leaderboard.pages.published_rows import rows_for
from leaderboard.server import Server
from leaderboard.store import Store
from leaderboard.web.formats import columns

ATOM = "{http://www.w3.org/2005/Atom}"
TREC = b"q1 Q0 image1 1 0.97 clip\n"
TABLE = f"/api/v1/boards/{BOARD}"

NASTY = [
    "=HYPERLINK(1)",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "  =1",
    "＝1",
    "<script>alert(1)</script>\"&'",
    "]]><x/>",
    'a,b\nc;"d"',
    "\x01\x1b[31m\x08 \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
]
"""Texts that intake refuses or lets in; here they come in beside it."""


URL = "https://board.example.org"
SEEDS = itertools.count(100)


@pytest.fixture
def opened(new_database: Callable[[], str], tmp_path: Path) -> Iterator[tuple[Any, Server]]:
    """An application of a test's own."""
    with opened_app(tmp_path, url=URL, database=new_database()) as found:
        yield found


@pytest.fixture(scope="module")
def filled(
    new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Server]]:
    """An application with entries, which tests read, and add to where it does not matter to the others."""
    database = new_database()
    with opened_app(tmp_path_factory.mktemp("filled"), url=URL, database=database) as found:
        fill(found[1].store)
        found[1].tables.refresh(boards.board(BOARD))
        yield found


@pytest.fixture(scope="module")
def client(filled: tuple[Any, Server]) -> Any:
    return filled[0]


def validates(answer: Any, path: str, document: dict[str, Any]) -> None:
    """The answer has the schema that the document gives it."""
    route = document["paths"][path]["get" if answer.request.method == "GET" else "post"]
    responses = route["responses"]
    status = str(answer.status_code)
    found = responses.get(status) or responses[f"{status[0]}XX"]
    schema = found["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), {**schema, "components": document["components"]})


def fill(store: Store, number: int = 5) -> None:
    for seed in range(number):
        add_entry(
            store, seed, 0.9 - seed / 10, trained_on=["a", "b"], zero_shot=seed % 2 == 0, submitter="Ada"
        )
    add_entry(store, 99, 0.5, baseline=True, skipped_images=3)


def test_every_answer_has_the_schema_of_the_document(client: Any) -> None:
    document = client.get("/api/openapi.json").json()
    one = client.get(TABLE).json()["rows"][0]["submission"]
    for path, route in (
        ("/health", "/health"),
        ("/api/v1/boards", "/api/v1/boards"),
        (TABLE, "/api/v1/boards/{board_id}"),
        ("/api/v1/boards/nothing", "/api/v1/boards/{board_id}"),
        (f"{TABLE}?format=xlsx", "/api/v1/boards/{board_id}"),
        (f"/api/v1/entries?board={BOARD}", "/api/v1/entries"),
        (f"/api/v1/entries?board={BOARD}&limit=0", "/api/v1/entries"),
        ("/api/v1/entries", "/api/v1/entries"),
        (f"/api/v1/submissions/{one}", "/api/v1/submissions/{submission_id}"),
        ("/api/v1/submissions/nothing", "/api/v1/submissions/{submission_id}"),
        ("/api/v1/submissions/nothing/file", "/api/v1/submissions/{submission_id}/file"),
    ):
        validates(client.get(path), route, document)
    for answer in (client.post("/api/submissions"), client.post("/api/submissions", files={"x": b"1"})):
        assert answer.status_code in (400, 422)
        validates(answer, "/api/v1/submissions", document)
    body = document["paths"]["/api/v1/submissions"]["post"]["requestBody"]["content"]
    assert {"multipart/form-data", "application/json"} <= body.keys()
    assert body["multipart/form-data"]["schema"]["required"] == ["file"]


def test_a_schema_says_more_than_object(client: Any) -> None:
    document = client.get("/api/openapi.json").json()
    answer = client.get(TABLE)
    answer.json()["rows"][0].pop("signature")
    for change in ({"rank": "first"}, {"surplus": 1}):
        row = {**answer.json()["rows"][0], **change}
        schema = {"$ref": "#/components/schemas/RowAnswer", "components": document["components"]}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(row, schema)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/boards",
        "/api/boards",
        TABLE,
        f"/api/boards/{BOARD}",
        f"{TABLE}?format=csv",
        f"{TABLE}?format=parquet",
        f"/api/v1/entries?board={BOARD}&limit=2",
        "/api/v1/feed.atom",
        f"/api/v1/feed.atom?board={BOARD}",
    ],
)
def test_what_has_not_changed_is_not_sent_again(filled: tuple[Any, Server], path: str) -> None:
    client, server = filled
    server.tables.refresh(boards.board(BOARD))
    first = client.get(path)
    etag = first.headers["etag"]
    for named in (etag, etag.removeprefix("W/"), f'"other", {etag}', "*"):
        again = client.get(path, headers={"If-None-Match": named})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    add_entry(server.store, next(SEEDS), 0.95)
    server.tables.refresh(boards.board(BOARD))
    changed = client.get(path, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


@pytest.mark.parametrize(
    ("accepted", "packed"), [("gzip", True), ("br;q=1, gzip;q=0.5", True), ("", False), ("br", False)]
)
@pytest.mark.parametrize("what", ["", "?format=csv"])
def test_gzip_goes_to_those_who_take_it(client: Any, accepted: str, packed: bool, what: str) -> None:
    with client.stream("GET", TABLE + what, headers={"Accept-Encoding": accepted}) as answer:
        sent = b"".join(answer.iter_raw())
    assert (answer.headers.get("content-encoding") == "gzip") is packed
    assert "accept-encoding" in answer.headers["vary"].lower()
    plain = client.get(TABLE + what, headers={"Accept-Encoding": "identity"}).content
    assert (gzip.decompress(sent) if packed else sent) == plain


def test_parquet_is_not_packed(client: Any) -> None:
    answer = client.get(f"{TABLE}?format=parquet", headers={"Accept-Encoding": "gzip"})
    assert (answer.status_code, "content-encoding" in answer.headers) == (200, False)


def test_pages_of_other_sites_may_read(client: Any) -> None:
    answer = client.get("/api/v1/boards", headers={"Origin": "https://elsewhere.example"})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    assert "etag" in answer.headers["access-control-expose-headers"].lower()


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_pages_cover_every_entry_once_while_others_come(opened: tuple[Any, Server], limit: int) -> None:
    client, store = opened[0], opened[1].store
    fill(store, 6)
    # It waits for its judge while others that came later are published, and comes on the board behind them.
    late = add_entry(store, 70, 0.3)
    store.append(late, [("withdrawn", {})])
    coming = iter(range(200, 204))
    path: str | None = f"/api/v1/entries?board={BOARD}&limit={limit}"
    seen: list[str] = []
    while path:
        answer = client.get(path)
        seen += [row["submission"] for row in answer.json()["entries"]]
        following = answer.json()["next"]
        link = re.fullmatch(r'<(.+)>; rel="next"', answer.headers.get("link", ""))
        assert (link is not None) is (following is not None)
        path = link and link[1]
        if (seed := next(coming, None)) is not None:
            add_entry(store, seed, 0.4)
    rows = client.get(TABLE).json()["rows"]
    assert len(seen) == len(set(seen))
    here = [row["submission"] for row in sorted(rows, key=lambda row: row["number"])]
    assert seen == here[: len(seen)]
    assert len(seen) >= 7
    assert late.id not in seen


def test_formats_agree(filled: tuple[Any, Server]) -> None:
    client, server = filled
    view = server.tables.refresh(boards.board(BOARD)).view
    assert client.get(TABLE).json() == view
    table = pq.read_table(io.BytesIO(client.get(f"{TABLE}?format=parquet").content))
    written = list(csv.DictReader(io.StringIO(client.get(f"{TABLE}?format=csv").text)))
    assert list(written[0]) == table.column_names == list(columns(list(view["rows"][0]["metrics"])))
    for row, line, cells in zip(view["rows"], table.to_pylist(), written, strict=True):
        ends = dict(zip(("interval_low", "interval_high"), row["interval"], strict=True))
        shown = {f"reference_{name}": value for name, value in row["reference_evidence"].items()}
        flat = {**row, **ends, **shown, **row["metrics"], **row["method"]}
        for name, value in line.items():
            expected = flat.get(name)
            assert value == (", ".join(expected) if isinstance(expected, list) else expected)
            assert cells[name] == (
                "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            )
    assert {row["group"] for row in view["rows"]} > {None, 1}
    assert client.get(f"/api/boards/{BOARD}").content == client.get(TABLE).content


def test_texts_of_strangers_are_inert(opened: tuple[Any, Server]) -> None:
    client, server = opened
    for seed, text in enumerate(NASTY):
        fields = dict.fromkeys(("name", "backbone", "caption_rule", "aggregation", "search", "notes"), text)
        add_entry(server.store, seed, 0.5, submitter=text, trained_on=[text], paper=text, code=text, **fields)
    add_entry(server.store, 90, 0.5, submitter="", notes="plain")
    for cells in csv.reader(io.StringIO(client.get(f"{TABLE}?format=csv").content.decode(), newline="")):
        assert not any(re.match(r"\s*[=+@＝＋＠－-]", cell) or cell[:1] in ("\t", "\r") for cell in cells)
    feed = ElementTree.fromstring(client.get("/api/v1/feed.atom").content)
    titles = [entry.findtext(f"{ATOM}title") for entry in feed.iter(f"{ATOM}entry")]
    assert len(titles) == len(NASTY) + 1
    assert any("<script>" in (title or "") for title in titles)
    assert not list(feed.iter("script"))
    assert not list(feed.iter("x"))
    hrefs = [link.get("href", "") for link in feed.iter(f"{ATOM}link")]
    assert all(href.startswith("https://board.example.org/") for href in hrefs)
    page = html_of(server, f"b/{BOARD}")
    assert page.count("<script") == 1
    assert "<x/>" not in page


def test_published_rows_are_a_file_of_their_own_with_numbers_as_printed(client: Any) -> None:
    board = boards.board("fashioniq/val")
    sent = client.get(f"/api/v1/published?board={board.id}")
    assert sent.headers["content-type"] == "text/csv; charset=utf-8"
    assert sent.headers["content-disposition"] == 'attachment; filename="fashioniq-val-published.csv"'
    rows = list(csv.DictReader(io.StringIO(sent.text, newline="")))
    lines = rows_for(board)
    assert [row["method"] for row in rows] == [line.row.method for line in lines]
    assert [row[board.primary] for row in rows] == [
        line.numbers[board.primary].text if board.primary in line.numbers else "" for line in lines
    ]
    retrained = next(row for row in rows if row["method"] == "SPRC (retrained)")
    assert retrained[board.primary] == "62.135"
    assert retrained["means_not_printed"] == board.primary
    assert retrained["source"].startswith("QuRe")
    assert client.get("/api/v1/published?board=cirr/val").text.count(",true,") >= 83
    refused = client.get("/api/v1/published?board=no/such")
    assert refused.status_code == 404
    assert refused.json()["error"]["fix"]


def test_the_feed_is_what_atom_asks(opened: tuple[Any, Server]) -> None:
    client, store = opened[0], opened[1].store
    empty = ElementTree.fromstring(client.get("/api/v1/feed.atom").content)
    assert empty.findtext(f"{ATOM}updated")
    fill(store, 60)
    one = client.get(f"/api/v1/feed.atom?board={BOARD}")
    assert one.headers["content-type"].startswith("application/atom+xml")
    feed = ElementTree.fromstring(one.content)
    entries = list(feed.iter(f"{ATOM}entry"))
    assert len(entries) == 50
    assert (entries[0].findtext(f"{ATOM}title") or "").startswith("Method 99 on ")
    for parent in (feed, *entries):
        assert all(parent.findtext(f"{ATOM}{name}") for name in ("id", "title", "updated"))
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    newest = store.submission(str(entries[0].findtext(f"{ATOM}summary")).partition("submission ")[2][:12])
    assert newest is not None
    renamed = store.append(newest, [("corrected", {"fields": ["name"]})], method={"name": "Anew"})
    again = ElementTree.fromstring(client.get("/api/v1/feed.atom").content)
    moment = renamed.events[-1].at.isoformat()
    first = next(again.iter(f"{ATOM}entry"))
    assert first.findtext(f"{ATOM}title") == entries[0].findtext(f"{ATOM}title").replace("Method 99", "Anew")
    assert (first.findtext(f"{ATOM}updated"), again.findtext(f"{ATOM}updated")) == (moment, moment)
    assert first.findtext(f"{ATOM}published") == entries[0].findtext(f"{ATOM}published")
    ids = [each.text for each in feed.iter(f"{ATOM}id")]
    assert len(set(ids)) == 51
    other = ElementTree.fromstring(client.get("/api/v1/feed.atom?board=cirr/val").content)
    assert not list(other.iter(f"{ATOM}entry"))
    assert client.get("/api/v1/feed.atom?board=nothing").status_code == 404


def test_the_page_of_routes_lists_them_and_loads_nothing(client: Any) -> None:
    answer = client.get("/api")
    assert answer.headers["content-type"].startswith("text/html")
    document = client.get("/api/openapi.json").json()
    for path in document["paths"]:
        assert path in answer.text
    assert "<h1>API</h1>" in answer.text
    linked = re.sub(r"""<link rel="canonical"[^>]*>""", "", answer.text)
    assert not re.search(r"""(?:src|href|action)="(?!\./|#)|url\(|@import""", linked)
    again = client.get("/api", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


def test_groups_are_shown_where_there_is_more_than_one_method(opened: tuple[Any, Server]) -> None:
    _, server = opened
    board = boards.board(BOARD)
    add_entry(server.store, 1, 0.9)
    add_entry(server.store, 9, 0.5, baseline=True)
    one = server.tables.refresh(board)
    assert one.view["rows"][0]["group"] == 1
    assert column(read(server, f"b/{BOARD}"), "place") == ["1 leading group", ""]
    assert "Group" not in board_text(board, one.view)
    second = add_entry(server.store, 2, 0.1)
    view = server.tables.refresh(board).view
    assert column(read(server, f"b/{BOARD}"), "place") == ["1 leading group", "2", ""]
    groups = {row["submission"]: row["group"] for row in view["rows"] if row["group"]}
    assert groups[second.id] == 2
    lines = board_text(board, view).splitlines()
    assert lines[1].split()[:4] == ["#", "Group", "Kind", "Method"]
    assert [line.split()[:2] for line in lines[3:6]] == [["1", "1"], ["2", "2"], ["-", "-"]]


def test_a_table_goes_out_packed_and_unpacked_under_one_etag(client: Any) -> None:
    answers = [client.get(TABLE, headers={"Accept-Encoding": coding}) for coding in ("gzip", "identity")]
    assert [answer.headers.get("content-encoding") for answer in answers] == ["gzip", None]
    assert answers[0].content == answers[1].content
    assert answers[0].headers["etag"] == answers[1].headers["etag"]
    assert "Accept-Encoding" in answers[0].headers["vary"]


def test_the_metric_that_ranks_is_a_column(client: Any) -> None:
    head = client.get(f"{TABLE}?format=csv").text.splitlines()[0].split(",")
    assert METRIC in head


@pytest.mark.parametrize(
    "path", ["/health", "/api", "/api/v1/boards", TABLE, "/api/openapi.json", "/api/v1/no"]
)
def test_head_answers_as_get_without_the_body(client: Any, path: str) -> None:
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/health", "GET, HEAD"),
        ("/api", "GET, HEAD"),
        ("/api/v1/boards", "GET, HEAD"),
        (TABLE, "GET, HEAD"),
        ("/api/submissions", "GET, HEAD, POST"),
        ("/api/v1/submissions", "GET, HEAD, POST"),
        ("/api/v1/submissions/a/file", "GET, HEAD, POST"),
    ],
)
def test_a_method_that_a_route_lacks_is_answered_with_those_that_it_has(
    client: Any, path: str, allowed: str
) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = client.request(method, path)
        assert (answer.status_code, answer.headers.get("allow")) == (405, allowed), method
        assert answer.json()["error"]["code"] == "wrong-method"
    assert client.put("/api/v1/nothing").status_code == 404


def test_pages_elsewhere_may_ask_whether_a_table_has_changed(client: Any) -> None:
    origin = {"Origin": "https://elsewhere.example.org"}
    asking = {**origin, "Access-Control-Request-Method": "GET"}
    asking["Access-Control-Request-Headers"] = "if-none-match"
    for path in (TABLE, "/health"):
        answer = client.options(path, headers=asking)
        assert answer.status_code == 200
        assert "if-none-match" in answer.headers["access-control-allow-headers"].lower()
        assert client.get(path, headers=origin).headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("suffix", "kind", "content"),
    [
        (".json", "application/json", b'{"format": "cir-rank-file"}'),
        (".jsonl", "application/jsonl", b'{"query_id": "q1", "ranking": []}\n{}'),
        (".parquet", "application/vnd.apache.parquet", b"PAR1\x00PAR1"),
        (".trec", "text/plain; charset=utf-8", TREC),
        (".trec.gz", "application/gzip", gzip.compress(TREC, mtime=0)),
    ],
)
def test_a_rank_file_goes_out_as_what_it_is(
    opened: tuple[Any, Server], suffix: str, kind: str, content: bytes
) -> None:
    client, server = opened
    taken, _ = server.intake.take(BOARD, [content], Cover())
    server.store.append(
        taken, [("validated", {}), ("scored", {"report": {}}), ("published", {})], method={"name": "m"}
    )
    answer = client.get(f"/api/v1/submissions/{taken.id}/file")
    assert (answer.content, answer.headers["content-type"]) == (content, kind)
    assert answer.headers["content-disposition"].endswith(f'{taken.id}{suffix}"')


def test_the_upload_has_a_path_with_its_version(client: Any) -> None:
    content = shipped("random")
    answer = client.post(f"/api/v1/submissions?board={BOARD}", files={"file": ("run.json", content)})
    assert answer.status_code == 202
    action = client.post(f"/api/v1/submissions/{answer.json()['id']}/withdraw", json={})
    assert (action.status_code, action.json()["state"]) == (200, "withdrawn")
    assert "/api/v1/submissions" in client.get("/api/openapi.json").json()["paths"]
