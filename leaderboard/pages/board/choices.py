"""What an address chooses of a board's table: a search, filters, an order, a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from leaderboard.boards import Board

ALL = "all"
"""As a page: every row."""
KINDS = {"baseline": "baselines", "oracle": "oracles", "published": "published rows"}
"""Kinds of rows that stand outside the groups and can be hidden, and how a page calls them."""
NOT_STATED = "not stated"
"""Of a method's training, where its file is silent."""
_TRAINING = ("zero-shot", "trained", NOT_STATED)
_VERIFIED = ("yes", "no")
_LONGEST = 100
"""Characters of a search, and of a word that a page repeats."""


@dataclass(frozen=True)
class Choices:
    """What an address chooses of a board's table.

    Args:
        q: words that a row's method, backbone or submitter holds.
        sort: a column: `main`, `name` or a metric.
        order: `asc` or `desc`; empty is the column's own, best first.
        training: one of `zero-shot`, `trained`, `not stated`; empty for all, as in those below.
        encoder: a backbone in short.
        trained_on: something that a method was trained on.
        verified: `yes` or `no`, by the organisers.
        hide: kinds of rows that are left out, separated by commas.
        page: from 1; 0 for all rows, None for the page of `entry` or the first.
        entry: the entry that is marked.
    """

    q: str = ""
    sort: str = "main"
    order: str = ""
    training: str = ""
    encoder: str = ""
    trained_on: str = ""
    verified: str = ""
    hide: str = ""
    page: int | None = None
    entry: str = ""

    @property
    def hidden(self) -> tuple[str, ...]:
        """The kinds that are left out."""
        return tuple(filter(None, self.hide.split(",")))

    @property
    def narrows(self) -> bool:
        """Whether it leaves rows out."""
        return replace(self, sort="main", order="", page=None, entry="") != Choices()

    def query(self, **changes: object) -> dict[str, object]:
        """The query of an address that chooses the same, but for some changes.

        Example:
            >>> Choices(q="clip", page=3).query(sort="name", page=None)
            {'q': 'clip', 'sort': 'name'}
        """
        plain = Choices()
        names = [each.name for each in fields(self)]
        said = {name: changes.get(name, getattr(self, name)) for name in names}
        if said["page"] == 0:
            said["page"] = ALL
        return {name: value for name, value in said.items() if value not in (getattr(plain, name), None, "")}

    def toggled(self, kind: str) -> dict[str, object]:
        """The query that hides a kind of rows, or shows it again."""
        others = [each for each in self.hidden if each != kind]
        return self.query(hide=",".join(others if kind in self.hidden else [*others, kind]), page=None)


def read_choices(board: Board, query: Mapping[str, str]) -> tuple[Choices, tuple[str, ...]]:
    """What an address chooses, and sentences on what of it is not understood; these parts are ignored.

    Args:
        board: the board.
        query: of the address; names that are not known are left alone.

    Example:
        >>> from leaderboard import boards
        >>> read_choices(boards.board("shapes/val"), {"sort": "recall@1", "page": "two"})[1]
        ('page=two is not a page.',)
    """
    said = {each.name: _plain(query.get(each.name, "")) for each in fields(Choices)}
    allowed = {
        "sort": ("main", "name", *(c.metric for c in board.columns)),
        "order": ("asc", "desc"),
        "training": _TRAINING,
        "verified": _VERIFIED,
    }
    remarks = []
    for name, words in allowed.items():
        if said[name] and said[name] not in words:
            remarks.append(f"{name}={said[name]} is not known: it is one of {', '.join(words)}.")
            said[name] = ""
    kinds = [each for each in said["hide"].split(",") if each]
    for kind in kinds:
        if kind not in KINDS:
            remarks.append(f"hide={kind} is not known: it is one of {', '.join(KINDS)}.")
    said["hide"] = ",".join(kind for kind in KINDS if kind in kinds)
    page, asked = None, said.pop("page")
    if asked == ALL:
        page = 0
    elif asked.isascii() and asked.isdecimal() and 0 < int(asked) < 10**6:
        page = int(asked)
    elif asked:
        remarks.append(f"page={asked} is not a page.")
    said["sort"] = said["sort"] or "main"
    return Choices(**said, page=page), tuple(remarks)


def choice_words(board: Board, choices: Choices) -> list[str]:
    """What an address chooses, for the title of its page.

    Args:
        board: the board.
        choices: from `shown`, with the page that it is.

    Example:
        >>> from leaderboard import boards
        >>> choice_words(boards.board("shapes/val"), Choices(q="CLIP", sort="recall@1", page=2))
        ['search “CLIP”', 'sorted by R@1', 'page 2']
    """
    labels = {"name": "method", "main": board.primary_label, **board.labels}
    words = [f"search “{choices.q}”"] if choices.q else []
    words += [word for word in (choices.training, choices.encoder) if word]
    words += [f"trained on {choices.trained_on}"] if choices.trained_on else []
    words += [{"yes": "verified", "no": "not verified"}[choices.verified]] if choices.verified else []
    words += [f"without {KINDS[kind]}" for kind in choices.hidden]
    if choices.sort != "main" or choices.order:
        order = {"asc": ", ascending", "desc": ", descending"}.get(choices.order, "")
        words.append(f"sorted by {labels.get(choices.sort, choices.sort)}{order}")
    words += [f"entry {choices.entry}"] if choices.entry else []
    words += ["all rows"] if choices.page == 0 else []
    return words + ([f"page {choices.page}"] if (choices.page or 1) > 1 else [])


def _plain(text: str) -> str:
    """A word of an address on one line, cut."""
    return "".join(each if each.isprintable() else " " for each in text).strip()[:_LONGEST]
