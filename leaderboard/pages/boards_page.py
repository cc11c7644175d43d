"""The boards page: pick a board, read its table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

import gradio as gr

from cir_datasets.common.counts import counted
from cir_metrics.errors import UnknownNameError
from leaderboard import boards
from leaderboard.boards import Board, Phase
from leaderboard.callers import caller_of, readable
from leaderboard.errors import UploadRefusedError
from leaderboard.identity import NOBODY, Caller
from leaderboard.pages.layout import column_heading, day, heading, html_block, number, page_foot, page_head
from leaderboard.pages.markup import element, joined, link_out, text
from leaderboard.pages.outcome import file_word, outcome_html
from leaderboard.server import Server
from leaderboard.views import entry_page, groups_of, held_back_words

View = dict[str, Any]
"""A board's table as the API describes it."""
Row = dict[str, Any]
"""One of its rows."""

_DETAILS = (
    ("oracle", "Oracle"),
    ("backbone", "Backbone"),
    ("trained_on", "Trained on"),
    ("caption_rule", "Caption rule"),
    ("text_fields", "Text fields"),
    ("aggregation", "Aggregation"),
    ("search", "Search"),
    ("reranking", "Re-ranking"),
    ("own_gallery", "Own gallery"),
    ("skipped_images", "Skipped images"),
    ("notes", "Notes"),
)


_GROUPS = "Group: methods that paired tests cannot tell from the first of their group."


def build(demo: Any, server: Server) -> None:
    """Fill the first page of the pages' Blocks."""
    with demo:
        page_head("Boards")
        shown = html_block(element("p", "Loading the board…", "loading"), elem_id="board")
        page_foot()

        def load(request: gr.Request) -> str:
            return page_html(server, dict(request.query_params), caller_of(request, server))

        demo.load(load, outputs=shown, show_progress="hidden", api_visibility="private")


def page_html(server: Server, query: Mapping[str, str], caller: Caller = NOBODY) -> str:
    """The page's content.

    Args:
        server: the leaderboard.
        query: of the address: `board`, and `entry` for the entry to mark.
        caller: who looks; what is not public is shown to its owner alone.
    """
    try:
        board = boards.board(query["board"]) if query.get("board") else boards.boards()[0]
    except UnknownNameError:
        missing = element("h3", "No such board") + element(
            "p", f"There is no board {text(query['board'][:80])}."
        )
        return _picker(None, server) + element("div", missing, "outcome bad", role="alert")
    view = server.tables.of(board).view
    marked = query.get("entry", "")
    return (
        _picker(board, server)
        + _intro(board, view)
        + _notice(board, server, caller, marked, view)
        + _table(board, view, marked)
    )


def _picker(current: Board | None, server: Server) -> str:
    counts = server.store.count_published()
    groups = []
    ordered = sorted(boards.boards(), key=lambda board: (board.group != "Single-turn", board.order))
    for name, members in groupby(ordered, key=lambda board: board.group):
        chips = joined(_chip(board, current, counts.get(board.id, 0)) for board in members)
        groups.append(
            element("div", element("span", text(name), "group") + element("div", chips, "chips"), "row")
        )
    return element("nav", joined(groups), "picker", aria_label="Boards")


def _chip(board: Board, current: Board | None, count: int) -> str:
    number_of = element("span", str(count), "n", title=counted(count, "entry", "entries")) if count else ""
    here = current is not None and board.id == current.id
    extra = {"aria_current": "page"} if here else {}
    css = "chip here" if here else "chip"
    return element("a", text(board.short_title) + number_of, css, href=f".{entry_page(board.id)}", **extra)


def _intro(board: Board, view: View) -> str:
    what = "benchmark" if board.suite is None else "suite"
    facts = [f"{what} {board.benchmark}, version {board.version}"]
    if board.suite is not None:
        facts.append(f"the mean of {', '.join(board.suite.benchmarks)}")
    if board.queries is not None:
        facts.append(f"{board.queries:,} {'sessions' if board.spec.kind == 'multi_turn' else 'queries'}")
    gallery = view["protocol"]["gallery_images"]
    facts.append(_gallery(board, gallery))
    facts.append(f"reference {board.spec.config.reference}")
    facts.append(f"ranked by {board.primary}")
    facts.append(f"{board.track} track")
    facts.append(f"files up to {view['max_upload_bytes'] / 2**20:.0f} MB")
    facts += [_phase(phase) for phase in board.phases]
    if board.dialogue is not None:
        facts.append(f"transcripts of cir multiround, {board.dialogue.choices.text}")
    listed = joined(element("li", text(fact)) for fact in facts)
    submit = ""
    if view["unavailable"] is None:
        words = f"Submit a {file_word(board)}"
        submit = element("a", words, "button", href=f"./submit?board={text(board.id)}")
    title = element("div", element("h1", text(board.title)) + submit, "title")
    return title + element("p", text(board.description), "lead") + element("ul", listed, "facts")


def _gallery(board: Board, images: int | None) -> str:
    if images is None:
        return "gallery not checked"
    if board.suite is None:
        return f"gallery of {images:,} images"
    return f"{len(board.suite.benchmarks)} galleries of {images:,} images together"


def _phase(phase: Phase) -> str:
    """A phase in words."""
    limits = [
        f"{limit:,} {words}"
        for limit, words in ((phase.a_day, "a day"), (phase.in_all, "in all"))
        if limit is not None
    ]
    results = "; results at its end" if phase.results == "at_end" else ""
    quota = f"; {', '.join(limits)}" if limits else ""
    times = f"{phase.opens:%Y-%m-%d %H:%M} to {phase.closes:%Y-%m-%d %H:%M} UTC"
    return f"phase {phase.name}: {times}{quota}{results}"


def _notice(board: Board, server: Server, caller: Caller, marked: str, view: View) -> str:
    problem = view["paused"] or view["closed"] or view["unavailable"]
    notice = ""
    if problem is not None:
        notice = element("p", text(f"This board takes no submissions now: {problem}"), "notice")
    if marked and all(row["submission"] != marked for row in view["rows"]):
        try:
            submission = readable(server, caller, marked)
        except UploadRefusedError:
            return notice
        if submission.board == board.id:
            notice += outcome_html(submission, board)
    return notice


def _table(board: Board, view: View, marked: str) -> str:
    rows = view["rows"]
    if not rows:
        words = element("p", held_back_words(view) or "Nothing stands on this board yet.")
        if view["unavailable"] is None:
            words += element("p", f"cir submit FILE --to URL --board {text(board.id)}", "command")
        return element("div", words, "empty")
    primary = heading(board.primary_label, board.primary_unit, board.primary_direction)
    grouped = len(groups_of(view)) > 1
    heads = [element("th", "#", "rank", scope="col")]
    if grouped:
        heads.append(element("th", "Group", "group", scope="col", title=_GROUPS))
    heads.append(element("th", "Method", "method", scope="col"))
    heads.append(element("th", primary, "num main", scope="col"))
    heads += [element("th", column_heading(column), "num", scope="col") for column in board.columns]
    heads += [element("th", "Received", "when", scope="col"), element("th", "Signature", "sig", scope="col")]
    shown = _parts_shown(rows)
    leaders = {row["group"]: row["submission"] for row in reversed(rows) if row["group"]}
    body = joined(_row(board, row, marked, shown, leaders if grouped else None) for row in rows)
    table = element(
        "table", element("thead", element("tr", joined(heads))) + element("tbody", body), "standings"
    )
    note = "Fractions in per cent. Equal values share a rank; inside a tie the earlier entry stands first."
    if grouped:
        note += f" {_GROUPS}"
    if any(row["is_oracle"] for row in rows):
        note += " Oracles know what no user's query holds, and have no rank."
    if any(row["rank"] is None and not row["is_oracle"] for row in rows):
        note += (
            " Entries without a rank ranked another gallery, skipped images, or were scored on other data or"
            " by another version than this board has now; they do not compare with the others."
        )
    return element("div", table, "table-scroll", tabindex="0") + element("p", note, "note")


def _row(board: Board, row: Row, marked: str, shown: set[str], leaders: Mapping[int, str] | None) -> str:
    cells = [element("td", _or_dash(row["rank"]), "rank")]
    leads = False
    if leaders is not None:
        cells.append(element("td", element("span", _or_dash(row["group"])), "group"))
        leads = leaders.get(row["group"]) == row["submission"]
    cells += [
        element("td", _method(row, sealed=board.sealed), "method"),
        element("td", number(row["main"], board.primary_unit), "num main"),
    ]
    cells += [element("td", number(row["metrics"].get(c.metric), c.unit), "num") for c in board.columns]
    received = datetime.fromisoformat(row["received_at"])
    phase = board.phase(received) if len(board.phases) > 1 and not row["baseline"] else None
    cells.append(element("td", day(received) + (text(f", {phase.name}") if phase else ""), "when"))
    cells.append(element("td", element("code", text(_short(row, shown)), title=row["signature"]), "sig"))
    wanted = {"baseline": row["baseline"], "marked": row["submission"] == marked, "leads": leads}
    css = " ".join(name for name, is_so in wanted.items() if is_so)
    return element("tr", joined(cells), css, id=f"entry-{row['submission']}")


def _or_dash(place: int | None) -> str:
    return "–" if place is None else str(place)


def _parts_shown(rows: list[Row]) -> set[str]:
    """Names of the signature's parts that a table shows: data, version, and what differs between entries."""
    found = [_parts(row) for row in rows]
    names = {name for parts in found for name in parts}
    return {name for name in names if len({parts.get(name) for parts in found}) > 1} | {"data", "v"}


def _parts(row: Row) -> dict[str, str]:
    """The parts of an entry's signature by name; the first, benchmark and version, has none of its own."""
    first, *others = row["signature"].split(" | ")
    return {"benchmark": first, **{part.partition(":")[0]: part for part in others}}


def _short(row: Row, shown: set[str]) -> str:
    return " ".join(part for name, part in _parts(row).items() if name in shown)


def _method(row: Row, *, sealed: bool) -> str:
    method = row["method"]
    badges = [element("span", "baseline", "badge")] if row["baseline"] else []
    if row["is_oracle"]:
        badges.append(
            element("span", "oracle", "badge", title="knows what no user's query holds; has no rank")
        )
    if row["verified"]:
        badges.append(element("span", "verified", "badge zs", title="by the organisers"))
    if row["flag"]:
        badges.append(element("span", "flagged", "badge flag", title=row["flag"]))
    if method.get("zero_shot") is True:
        badges.append(element("span", "zero-shot", "badge zs"))
    links = [link_out(method.get("paper"), "paper"), link_out(method.get("code"), "code")]
    name = element("span", text(method.get("name", "unnamed")), "name", dir="auto")
    return element("div", name + joined(badges) + joined(links), "who") + _details(row, sealed=sealed)


def _details(row: Row, *, sealed: bool) -> str:
    method = row["method"]
    lines = [
        (title, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for key, title in _DETAILS
        if (value := method.get(key))
    ]
    if row["flag"]:
        lines.append(("The organisers warn", row["flag"]))
    if row["submitter"]:
        lines.append(("Submitted by", row["submitter"]))
    lines.append(("Signature", row["signature"]))
    pairs = joined(element("dt", text(title)) + element("dd", text(value)) for title, value in lines)
    address = f"./api/submissions/{text(row['submission'])}/file"
    link = "" if sealed else element("a", "Rank file", href=address, download="") + " · "
    file = f"{link}sha256 {text(row['sha256'][:12])}"
    pairs += element("dt", "File") + element("dd", file)
    return element("details", element("summary", "details") + element("dl", pairs))
