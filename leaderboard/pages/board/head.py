"""What a board's page says beside its table: the task in a sentence, and the facts of its protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cir_datasets.registry.schema import member_metric
from cir_metrics.catalogue import METRICS, parse_metric
from leaderboard.boards import Board, Phase
from leaderboard.pages.board.chance_level import chance_level
from leaderboard.pages.figures import chance
from leaderboard.pages.labels import ranked_by
from leaderboard.standings.views import takes_files

_NUMBERS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_IN_SHORT = 5
"""Facts that every page of a board has: what ranks, queries, gallery, reference and chance."""


@dataclass(frozen=True)
class Fact:
    """A fact: its term and value; `path` links to details."""

    term: str
    said: str
    path: str = ""


def file_word(board: Board) -> str:
    """What a board takes: a rank file, a bundle or a transcript."""
    if board.dialogue is not None:
        return "transcript"
    return "bundle" if board.takes_bundles else "rank file"


def task(board: Board) -> str:
    """What a board asks, in one sentence.

    Example:
        >>> from leaderboard import boards
        >>> task(boards.board("shapes/val"))
        'Given a picture and a sentence that says what to change, rank 3,940 pictures so that the wanted one
        is among the first ten.'
    """
    images = [spec.config.gallery for spec in board.specs]
    pictures = "the pictures of a gallery" if images[0] is None else f"{images[0]:,} pictures"
    if board.spec.per_query:
        pictures = "the pictures of the query's own gallery"
    given = "a picture and a sentence that says what to change"
    if board.dialogue is not None:
        return (
            f"A user gives {given}, and in each round a new sentence about the best picture found: rank "
            f"{pictures} so that {_goal(board)}."
        )
    if board.spec.kind == "multi_turn":
        given = "a picture and, turn by turn, sentences that say what to change"
    if len(images) > 1:
        count = number_word(len(images))
        return (
            f"In each of {count} galleries: given {given}, rank its pictures so that {_goal(board)}. "
            f"The score is the mean of the {count}."
        )
    return f"Given {given}, rank {pictures} so that {_goal(board)}."


def badges(board: Board, unavailable: str | None = None) -> list[tuple[str, str, str]]:
    """What kind of board it is: words, kind of badge, and what they mean.

    Args:
        board: the board.
        unavailable: why files cannot be judged here, or None where they can.
    """
    if unavailable is not None:
        found = [("no data here", "flag", unavailable.replace("`", ""))]
    elif board.sealed:
        found = [
            (
                "sealed",
                "flag",
                f"the judging process alone reads the ground truth; numbers are in steps of {board.step:g} %",
            )
        ]
    else:
        found = [("open", "ok", "the ground truth and the rank files are public: anyone can recompute")]
        if board.spec.card.status == "folder":
            means = "rank files can be read here; the queries and answers lie in the makers' folder"
            found = [("open", "ok", means)]
    if board.spec.card.status == "embedded":
        found.append(("synthetic", "", "pictures and sentences are made by the package"))
    if board.takes_bundles:
        found.append((f"suite of {len(board.benchmarks)}", "", ", ".join(board.benchmarks)))
    if board.dialogue is not None:
        found.append(("dialogue", "", "a user answers after each round"))
    elif board.spec.kind == "multi_turn":
        found.append(("sessions", "", "several turns each"))
    return found


def dialogue_user(board: Board, *, with_settings: bool = False) -> str:
    """The user of a board's dialogues, in a sentence; empty for other boards.

    Args:
        board: the board.
        with_settings: whether the settings of its transcripts are said, too.

    Example:
        >>> from leaderboard import boards
        >>> dialogue_user(boards.board("shapes/dialogue_val"))
        'A simulated user (oracle) compares captions of the best picture and of the wanted one and says what
        is to change, for up to five rounds.'
    """
    if board.dialogue is None:
        return ""
    user = board.dialogue.user
    language = user.get("language") or {}
    name = language.get("model") or language.get("backend")
    who = {"simulated": "A simulated user", "person": "A person"}.get(str(user.get("kind", "")), "A user")
    who += f" ({name})" if name else ""
    rounds = number_word(board.dialogue.choices.max_rounds)
    looks = "compares captions of the best picture and of"
    if user.get("way") == "pictures":
        looks = "looks at the best picture and at"
    said = f"{who} {looks} the wanted one and says what is to change, for up to {rounds} rounds."
    return f"{said} Transcripts have the settings {board.dialogue.text}." if with_settings else said


def facts(board: Board, view: Mapping[str, Any]) -> list[Fact]:
    """The facts of a board's protocol.

    Args:
        board: the board.
        view: its table.
    """
    metrics = dict.fromkeys(parse_metric(member_metric(term))[0] for term in board.primary_terms)
    better = "" if board.primary_direction == "higher" else ", lower is better"
    size = f"up to {view['max_upload_bytes'] / 2**20:.0f} MB"
    return [
        Fact("Ranked by", f"{ranked_by(board)}{better}", f"m/{next(iter(metrics))}"),
        Fact(
            "Sessions" if board.spec.kind == "multi_turn" else "Queries",
            "not counted yet" if board.queries is None else f"{board.queries:,}",
        ),
        _gallery(board, view),
        Fact("Reference", "removed" if board.spec.config.reference == "removed" else "kept"),
        Fact("Chance", _chance(board)),
        Fact("Versions", _versions(board, metrics)),
        Fact("File", f"{file_word(board)}, {size}"),
    ]


def in_short(board: Board, view: Mapping[str, Any]) -> dict[str, Any]:
    """What pages of a board say of its protocol, in one line and on the last tab; whether files are taken.

    Args:
        board: the board.
        view: its table.
    """
    found = facts(board, view)
    return {"protocol": found[:_IN_SHORT], "facts": found[_IN_SHORT:], "open": takes_files(view)}


def number_word(count: int) -> str:
    """A count in a sentence: a word up to ten, else digits.

    Args:
        count: how many.

    Example:
        >>> number_word(3), number_word(3940)
        ('three', '3,940')
    """
    return _NUMBERS[count] if 0 < count < len(_NUMBERS) else f"{count:,}"


def _goal(board: Board) -> str:
    """What a good ranking does, from the metrics that rank."""
    parsed = [parse_metric(member_metric(term)) for term in board.primary_terms]
    name, k = parsed[0]
    first = (
        "comes early" if k is None else "is the first" if k == 1 else f"is among the first {number_word(k)}"
    )
    if board.dialogue is not None:
        rounds = number_word(board.dialogue.choices.max_rounds)
        if name == "map_at_k":
            return f"after {rounds} rounds the wanted ones are among the first {number_word(k or 0)}"
        return f"within {rounds} rounds the wanted one {first}"
    if name == "hits_auc":
        return f"the wanted one {first}, in as few turns as possible"
    if name in ("final_recall", "final_mrr"):
        return f"after the last turn the wanted one {first}"
    if name == "turn_recall":
        return f"at each turn the one that its words ask for {first}"
    if name == "hits_at_k":
        return f"the wanted one {first} at some turn"
    if name in ("map_at_k", "pnr_map"):
        return f"all the wanted ones are among the first {number_word(k or 0)}, and as early as possible"
    others = [_also(*each) for each in parsed[1:]]
    return f"the wanted one {first}" + "".join(f", {each}" for each in others)


def _also(name: str, k: int | None) -> str:
    if name == "recall_subset":
        place = "first" if k == 1 else f"among the first {number_word(k or 0)}"
        return f"and {place} within its own small set of pictures that look alike"
    return f"or at least among the first {number_word(k or 0)}"


def _gallery(board: Board, view: Mapping[str, Any]) -> Fact:
    images = view["protocol"]["gallery_images"]
    if images is None:
        size = "" if board.gallery is None else f" ({board.gallery:,} by the card)"
        return Fact("Gallery", f"not checked{size}")
    if board.takes_bundles:
        return Fact("Galleries", f"{len(board.benchmarks)}, {images:,} images")
    if board.spec.per_query:
        return Fact("Galleries", "a list of each query's own")
    return Fact("Gallery", f"{images:,} images")


def _chance(board: Board) -> str:
    value = chance_level(board)
    if value is None:
        return "not known here"
    return f"{chance(value, board.primary_unit)}{' %' if board.primary_unit == 'percent' else ''}"


def _versions(board: Board, metrics: Mapping[str, Any]) -> str:
    what = "suite" if board.takes_bundles else "benchmark"
    versions = {METRICS[name].version for name in metrics}
    listed = " and ".join(map(str, sorted(versions)))
    return f"{what} {board.version}, metric {listed}"


def phase_words(phase: Phase) -> str:
    """A phase in words: when, how many files, and when results are shown.

    Args:
        phase: of a board.
    """
    limits = [
        f"{limit:,} {words}"
        for limit, words in ((phase.a_day, "a day"), (phase.in_all, "in all"))
        if limit is not None
    ]
    results = ", results at its end" if phase.results == "at_end" else ""
    quota = f", {', '.join(limits)}" if limits else ""
    times = f"{phase.opens:%Y-%m-%d %H:%M} to {phase.closes:%Y-%m-%d %H:%M} UTC"
    return f"{phase.name}: {times}{quota}{results}"
