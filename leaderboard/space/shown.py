"""What the Space shows, as HTML: the values are those of the server's tables, pages and findings."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader

from cir_datasets.pages import page_environment
from cir_metrics.catalogue import package_version
from cir_metrics.errors import CirError
from leaderboard import boards
from leaderboard.boards import Board
from leaderboard.callers import Sender
from leaderboard.errors import UploadRefusedError
from leaderboard.pages.addresses import page_at
from leaderboard.pages.board.rows import has_groups, short_encoder
from leaderboard.pages.figures import number
from leaderboard.pages.findings import grouped, refusal, sentence, with_commands
from leaderboard.pages.labels import ranked_by
from leaderboard.pages.pictures import picture_path
from leaderboard.pages.queries import queries_of, why_hidden
from leaderboard.pages.site import Site, query_path
from leaderboard.pages.submission_page import outcome
from leaderboard.server import Server
from leaderboard.submission import Submission
from leaderboard.views import compared_rows, method_name, state_words, submission_page

FULL = "full"
"""Path below which the full pages are."""
_COLOURS = 7


@functools.cache
def _templates() -> Environment:
    made = page_environment().overlay(loader=PackageLoader("leaderboard.space"))
    made.filters |= {"value": number, "sentence": sentence, "with_commands": with_commands}
    made.globals["full"] = FULL
    return made


def _filled(template: str, **values: Any) -> str:
    return _templates().get_template(f"{template}.html").render(**values)


def css() -> str:
    """The style of all of it."""
    return (resources.files("leaderboard.space") / "templates" / "space.css").read_text(encoding="utf-8")


def head(server: Server, who: str, *, lasting: bool) -> str:
    """Name, who is signed in, and what everybody must know: what is prepared, what does not last."""
    preparing = server.preparing
    return _filled(
        "head",
        name=server.settings.name,
        oauth=server.settings.accounts == "oauth",
        who=who,
        lasting=lasting,
        steps=[] if preparing is None else [one for one in preparing.steps if one.state != "ready"],
    )


def home(server: Server) -> str:
    """All boards as one table, those that take files first."""
    rows = []
    for board in boards.boards():
        view = server.tables.of(board).view
        leader = next(iter(compared_rows(view["rows"])), None)
        rows.append(
            {
                "board": board,
                "leader": leader and method_name(leader),
                "value": leader and number(leader["main"], board.primary_unit),
                "entries": view["entries"],
                "last": max((row["published_at"] or "" for row in view["rows"]), default="")[:10],
                "state": _state(server, board, view),
            }
        )
    here = [row for row in rows if row["state"] == "open" or row["entries"]]
    return _filled("home", parts=[("", here), ("Not open here", [row for row in rows if row not in here])])


def board(server: Server, one: Board) -> str:
    """A board: a line on its protocol, and its table."""
    view = server.tables.of(one).view
    grouped_rows = has_groups(one, view)
    methods = [row for row in view["rows"] if not row["baseline"] and not row["is_oracle"]]
    ends = [end for row in methods for end in row["interval"] or ()]
    low, span = min(ends, default=0.0), (max(ends, default=1.0) - min(ends, default=0.0)) or 1.0
    ranked = compared_rows(methods)
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in view["rows"]:
        title = "Oracles" if row["is_oracle"] else "Baselines" if row["baseline"] else ""
        place = row["group"] if grouped_rows else row["rank"]
        if not title and row not in ranked:
            title, place = view["blocks"][row["block"]] or "Apart", None
        at = (
            None
            if row["interval"] is None or title
            else [100 * (end - low) / span for end in row["interval"]]
        )
        half = row["interval"] and (row["interval"][1] - row["interval"][0]) / 2
        shown = {
            "row": row,
            "name": method_name(row),
            "place": place,
            "colour": (place - 1) % _COLOURS + 1 if place and grouped_rows and not title else 0,
            "about": " · ".join(_about(row)),
            "half": half and number(half, one.primary_unit)[: -1 if one.primary_unit == "percent" else None],
            "at": at,
            "dot": at and 100 * (row["main"] - low) / span,
        }
        listed = parts.setdefault(title, [])
        shown["first"] = not listed or listed[-1]["place"] != place
        listed.append(shown)
    columns = [
        column
        for column in one.columns
        if any(row["metrics"].get(column.metric) is not None for row in view["rows"])
    ]
    state = _state(server, one, view)
    return _filled(
        "board",
        board=one,
        view=view,
        parts=parts,
        columns=columns,
        state=state,
        ranked_by=ranked_by(one),
        path=f"b/{quote(one.id)}",
    )


def _about(row: Mapping[str, Any]) -> list[str]:
    """Encoder, training and day of an entry."""
    method = row["method"]
    trained = ", ".join(map(str, method.get("trained_on") or ()))
    zero_shot = method.get("zero_shot")
    training = f"trained: {trained}" if trained else "" if zero_shot is None else "trained"
    words = [short_encoder(str(method.get("backbone") or "")), "zero-shot" if zero_shot else training]
    return [word for word in (*words, row["received_at"][:10]) if word]


def _state(server: Server, one: Board, view: Mapping[str, Any]) -> str:
    """`open`, or in a line why a board takes no file now."""
    said = state_words(view)
    if said.startswith("no data") and server.preparing is not None:
        for step in server.preparing.steps:
            if step.name == one.benchmark and step.state != "ready":
                return "no data: it is being prepared" if step.state != "failed" else said
    return said


def choices(server: Server, one: Board) -> list[tuple[str, str]]:
    """The entries of a board to choose from."""
    rows = server.tables.of(one).view["rows"]
    return [(f"{method_name(row)} ({row['submission'][:6]})", row["submission"]) for row in rows]


def first_query(server: Server, one: Board) -> str:
    """Id of a board's first query; empty where its queries are not shown."""
    if why_hidden(Site(server), one):
        return ""
    return str(next(iter(queries_of(one.benchmarks[0]).rows)))


def query(server: Server, one: Board, query_id: str, entries: Sequence[str]) -> tuple[str, str, str]:
    """A query with what entries rank first; and the ids of the queries before and behind it."""
    asked = {"e": ",".join(entries)} if entries else {}
    page = page_at(Site(server), query_path(one.id, query_id), asked)
    if page.data is None:
        return _filled("said", words=why_hidden(Site(server), one) or page.description), "", ""
    found = page.data
    specs = {spec.id: spec for spec in one.specs}
    spec = specs.get(found["benchmark"], one.spec)

    def picture(image: str) -> str:
        path = picture_path(spec, image)
        return f"{FULL}/{path}" if path else ""

    html = _filled("query", board=one, found=found, picture=picture, path=query_path(one.id, query_id))
    return html, str(found["previous"] or ""), str(found["next"] or "")


def comparison(server: Server, one: Board, entries: Sequence[str]) -> str:
    """Two entries of a board side by side."""
    if one.sealed or len(set(entries)) != 2:
        words = "A sealed board publishes no values per query." if one.sealed else "Choose two entries."
        return _filled("said", words=words)
    submissions = [found for each in entries if (found := server.store.submission(each)) is not None]
    try:
        made = server.compared.of(submissions, None)
    except CirError as error:
        return _filled("said", words=str(error))
    if made is None:
        return _filled("said", words="The values per query of one of them are not kept here.")
    page = page_at(Site(server), "compare", {"e": ",".join(entries)})
    columns = [one.primary, *(column.metric for column in one.columns)]
    return _filled(
        "comparison",
        board=one,
        pair=made.pairs[0],
        columns=list(dict.fromkeys(columns)),
        words=page.description,
        path=f"compare?e={','.join(entries)}",
    )


def findings(listed: Sequence[Mapping[str, Any]], words: str, *, good: bool) -> str:
    """What validation found, grouped, below a sentence."""
    return _filled("findings", groups=grouped(listed), words=words, kind="good" if good else "bad")


def refused(error: UploadRefusedError) -> str:
    """Why a file is not taken."""
    return _filled("findings", groups=refusal(error), words="The file is not taken.", kind="bad")


def said(words: str, kind: str = "") -> str:
    """A sentence."""
    return _filled("said", words=words, kind=kind)


def became(server: Server, submission: Submission, sender: Sender) -> str:
    """What has become of a submission, with its findings and the way to its own page."""
    one = boards.board(submission.board)
    found = outcome(submission, one)
    scores = submission.scores if found.scored else None
    return _filled(
        "became",
        found=found,
        value=scores and number(one.primary_value(boards.all_metrics(one.told(scores))), one.primary_unit),
        board=one,
        groups=grouped(submission.findings),
        address=f"{FULL}{submission_page(submission.id, sender.edit_key)}",
        secret=bool(sender.edit_key),
    )


def about() -> str:
    """What all of it is."""
    return _filled("about", version=package_version())


def mine(found: Sequence[Submission]) -> str:
    """A table of somebody's own submissions, the latest first."""
    rows = [
        {
            "one": one,
            "name": str((one.method or {}).get("name", one.file_name)),
            "outcome": outcome(one, boards.board(one.board) if one.board in boards.ids() else None),
        }
        for one in reversed(found)
    ]
    return _filled("mine", rows=rows)
