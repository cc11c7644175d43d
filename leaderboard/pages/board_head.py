"""What a board's page says before its table: the task in a sentence, eight facts, and how to enter."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cir_datasets.common.counts import counted, counted_rows
from cir_datasets.prepared.folder import last_prepared
from cir_datasets.registry.challenges import CONFIG
from cir_metrics.catalogue import METRICS, parse_metric
from leaderboard.boards import Board, Phase
from leaderboard.pages.board_rows import Line
from leaderboard.pages.chance_level import chance_level
from leaderboard.pages.figures import number
from submissions.scoring.score_report import member_metric

_NUMBERS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_BESIDE = (
    ("baseline", "baseline", "baselines"),
    ("oracle", "oracle", "oracles"),
    ("published", "published", "published"),
)
_IN_SHORT = 5
"""Facts that every page of a board has: what ranks, queries, gallery, reference and chance."""
_RANDOM = "Random"
"""The name of what `cir run --method random` makes."""
_DEFAULT_ENCODER = "openai/clip-vit-large-patch14"


@dataclass(frozen=True)
class Fact:
    """A term and what is so; `path` leads to more, `means` says it in plain words."""

    term: str
    said: str
    path: str = ""
    title: str = ""
    means: str = ""


@dataclass(frozen=True)
class EntryStep:
    """One step of entering: what to do, the commands, and whether the page to submit belongs to it.

    `tried` is a command of its own for who has no ranking yet: it writes another file than the commands.
    """

    title: str
    words: str
    commands: tuple[str, ...] = ()
    submits: bool = False
    tried: str = ""


def file_word(board: Board) -> str:
    """What a board takes: a rank file, a bundle or a transcript."""
    if board.dialogue is not None:
        return "transcript"
    return "rank file" if board.suite is None else "bundle"


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
    given = "a picture and a sentence that says what to change"
    if board.dialogue is not None:
        return (
            f"A user gives {given}, and in each round a new sentence about the best picture found: rank "
            f"{pictures} so that {_goal(board)}."
        )
    if board.spec.kind == "multi_turn":
        given = "a picture and, turn by turn, sentences that say what to change"
    if len(images) > 1:
        count = _word(len(images))
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
        found = [("no data here: files are not judged", "flag", unavailable.replace("`", ""))]
    elif board.sealed:
        found = [
            (
                "sealed: the organisers keep the answers",
                "flag",
                "only the process that judges a file reads the ground truth; scores are rounded",
            )
        ]
    else:
        means = "the ground truth is public, and so are the rank files"
        found = [("open: anyone can recompute", "ok", means)]
    if board.spec.card.status == "embedded":
        found.append(("synthetic", "", "pictures and sentences are made by the package"))
    if board.suite is not None:
        found.append((f"suite of {len(board.benchmarks)}", "", ", ".join(board.benchmarks)))
    if board.dialogue is not None:
        found.append(("dialogue", "", "a user answers after each round"))
    elif board.spec.kind == "multi_turn":
        found.append(("sessions", "", "several turns each"))
    return found


def asker(board: Board, *, with_settings: bool = False) -> str:
    """Who asks in a board's dialogues, in a sentence; empty of other boards.

    Args:
        board: the board.
        with_settings: whether the settings of its transcripts are said, too.

    Example:
        >>> from leaderboard import boards
        >>> asker(boards.board("shapes/dialogue_val"))
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
    rounds = _word(board.dialogue.choices.max_rounds)
    looks = "compares captions of the best picture and of"
    if user.get("way") == "pictures":
        looks = "looks at the best picture and at"
    said = f"{who} {looks} the wanted one and says what is to change, for up to {rounds} rounds."
    return f"{said} Transcripts have the settings {board.dialogue.text}." if with_settings else said


def facts(board: Board, view: Mapping[str, Any], lines: Sequence[Line]) -> list[Fact]:
    """The eight facts of a board's protocol.

    Args:
        board: the board.
        view: its table.
        lines: its rows.
    """
    metrics = dict.fromkeys(parse_metric(member_metric(term))[0] for term in board.primary_terms)
    better = "higher is better" if board.primary_direction == "higher" else "lower is better"
    several, count = _has_sessions(board), board.queries
    queries = "not counted yet" if count is None else counted_rows(count, several)
    return [
        Fact(
            "Ranked by",
            f"{ranked_by(board)}, {better}",
            f"m/{next(iter(metrics))}",
            board.primary,
            board.primary_means,
        ),
        Fact("Sessions" if several else "Queries", queries if count is None else f"{count:,}", "", queries),
        _gallery(board, view, lines),
        Fact("Reference", _reference(board)),
        _chance(board),
        Fact("Versions", _versions(board, metrics)),
        Fact("Entries", _entries(view, lines)),
        _limits(board, view),
    ]


def in_short(board: Board, view: Mapping[str, Any], lines: Sequence[Line]) -> dict[str, Any]:
    """What a page beside the board's table says of its protocol in one line, and whether files are taken.

    Args:
        board: the board.
        view: its table.
        lines: its rows.
    """
    takes = view["paused"] is None and view["closed"] is None and view["unavailable"] is None
    return {"protocol": facts(board, view, lines)[:_IN_SHORT], "open": takes}


def steps(board: Board, names: Collection[str] = (), *, with_tokens: bool = False) -> list[EntryStep]:
    """How a file gets onto a board, in three steps with their commands; URL stands for the server's address.

    Args:
        board: the board.
        names: of the baselines on it.
        with_tokens: whether who submits needs a token.
    """
    word = file_word(board)
    out = "dialogue.jsonl" if board.dialogue is not None else "run.json"
    board_name = shlex.quote(board.id)
    check = f"cir validate {out}" if board.sealed else f"cir score {out}"
    submit = f"cir submit {out} --to URL --board {board_name}"
    token = ("export CIR_LEADERBOARD_TOKEN=TOKEN",) if with_tokens else ()
    checked = (
        "The findings are those of the server. The answers stay with the organisers: only they score it."
    )
    if not board.sealed:
        checked = "It is validated, then scored beside chance and baselines: the same code as here."
    last = "Only you and the organisers see the score until you publish it."
    if _RANDOM in names:
        last += " A random ranking is scored, and stays private: its name is that of a baseline."
    if with_tokens:
        last += " The organisers give you the token."
    return [
        _first_step(board, out),
        EntryStep(f"Check the {word}", checked, (check,)),
        EntryStep("Submit", last, (*token, submit), submits=True),
    ]


def _first_step(board: Board, out: str) -> EntryStep:
    benchmark = shlex.quote(board.benchmark)
    if board.dialogue is not None:
        words = (
            f"cir multiround plays every query of {board.benchmark} with its user and writes a transcript."
        )
        return EntryStep("Play the dialogues", words, (_prepare(board), _multiround(board, out)))
    name, _, config = board.benchmark.partition("/")
    get: tuple[str, ...] = (_prepare(board),)
    if board.sealed and config == CONFIG:
        get = ("export CIR_CHALLENGES=$PWD/challenges", f"cir challenge join {shlex.quote(name)}")
    title = "Rank" if board.suite is None else f"Rank all {_word(len(board.benchmarks))}"
    what = "a file" if board.suite is None else "one bundle of all members"
    words = f"cir rank makes {what} of your rankings, scores or embeddings."
    if board.sealed and config == CONFIG:
        words = f"Unpack the organisers' folder and make it known. {words[0].upper()}{words[1:]}"
    lists = "rankings.json" if board.suite is None else "rankings/"
    own = f'cir rank --benchmark {benchmark} --lists {lists} --method "My method" --out {out}'
    if board.spec.config.subset and any(term.startswith("recall_subset") for term in board.primary_terms):
        own = own.replace(" --method", " --subset-lists subsets.json --method")
    tried = f"cir run --benchmark {benchmark} --method random --out random.json"
    return EntryStep(title, words, (*get, own), tried=tried)


def _prepare(board: Board) -> str:
    return f"cir datasets prepare {' '.join(map(shlex.quote, board.benchmarks))}"


def _multiround(board: Board, out: str) -> str:
    """The call that plays the board's dialogues: what is not as it is by itself is named."""
    talk = board.dialogue
    if talk is None:
        return ""
    parts = ["cir", "multiround", "--benchmark", board.benchmark, "--method", "image_text_sum"]
    if board.spec.card.status != "embedded":
        parts += ["--encoder", _DEFAULT_ENCODER, "--images", "FOLDER"]
    language = talk.user.get("language") or {}
    simulator = str(language.get("backend") or "oracle")
    if language.get("model") and simulator != "oracle":
        simulator += f":{language['model']}"
    parts += ["--simulator", simulator]
    if talk.user.get("way") not in (None, "captions"):
        parts += ["--way", str(talk.user["way"])]
    for name, value in talk.settings.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            parts.append(option if value else f"--no-{name}")
        elif value is not None:
            parts += [option, str(value)]
    if talk.sessions is not None:
        parts += ["--limit", str(talk.sessions)]
    return shlex.join([*parts, "--out", out])


def _has_sessions(board: Board) -> bool:
    return board.spec.kind == "multi_turn"


def _word(count: int) -> str:
    return _NUMBERS[count] if 0 < count < len(_NUMBERS) else f"{count:,}"


def _goal(board: Board) -> str:
    """What a good ranking does, from the metrics that rank."""
    parsed = [parse_metric(member_metric(term)) for term in board.primary_terms]
    name, k = parsed[0]
    first = "comes early" if k is None else "is the first" if k == 1 else f"is among the first {_word(k)}"
    if board.dialogue is not None:
        rounds = _word(board.dialogue.choices.max_rounds)
        if name == "map_at_k":
            return f"after {rounds} rounds the wanted ones are among the first {_word(k or 0)}"
        return f"within {rounds} rounds the wanted one {first}"
    if name == "hits_auc":
        return f"the wanted one {first}, in as few turns as possible"
    if name in ("final_recall", "final_mrr"):
        return f"after the last turn the wanted one {first}"
    if name == "hits_at_k":
        return f"the wanted one {first} at some turn"
    if name in ("map_at_k", "pnr_map"):
        return f"all the wanted ones are among the first {_word(k or 0)}, and as early as possible"
    others = [_also(*each) for each in parsed[1:]]
    return f"the wanted one {first}" + "".join(f", {each}" for each in others)


def _also(name: str, k: int | None) -> str:
    if name == "recall_subset":
        place = "first" if k == 1 else f"among the first {_word(k or 0)}"
        return f"and {place} within its own small set of pictures that look alike"
    return f"or at least among the first {_word(k or 0)}"


def meanwhile(board: Board, view: Mapping[str, Any]) -> str:
    """What can be done with a board that takes nothing; empty where only its time has passed.

    Args:
        board: the board.
        view: its table.
    """
    if view["unavailable"] is None or board.sealed or board.spec.config.ground_truth == "withheld":
        return ""
    return (
        "This server lacks the publisher's files. If you have them, make and score your "
        f"{file_word(board)} on your own machine: it is the same code."
    )


def ranked_by(board: Board) -> str:
    """What ranks, as columns call it: `R@10`, or `mean of R@5 and Rs@1`.

    Args:
        board: the board.
    """
    terms = board.primary_terms
    if len(terms) < 2:
        return board.primary_label
    labels = {column.metric: column.label for column in board.columns}
    named = " and ".join(labels.get(term, term) for term in terms)
    return f"mean of {named}"


def _gallery(board: Board, view: Mapping[str, Any], lines: Sequence[Line]) -> Fact:
    images = view["protocol"]["gallery_images"]
    if images is None:
        size = "" if board.gallery is None else f" ({board.gallery:,} by the card)"
        return Fact("Gallery", f"not checked{size}", "", "the publisher's list of its images is not here")
    if board.suite is not None:
        return Fact("Galleries", f"{len(board.benchmarks)}, of {images:,} images in all")
    digits = _gallery_hash(board, lines)
    known = f"their list has the hash {digits}" if digits else ""
    return Fact(
        "Gallery",
        f"{images:,} images",
        "",
        "the sha256 over the sorted ids begins so" if digits else "",
        known,
    )


def _gallery_hash(board: Board, lines: Sequence[Line]) -> str:
    """As the entries' signatures have it, else as it was prepared here."""
    for line in lines:
        if line.kind in ("method", "baseline"):
            parts = str(line.row["signature"]).split(" | ")
            found = next((part for part in parts if part.startswith("gallery:")), "")
            return found.split(":")[2] if found.count(":") == 2 else ""
    last = last_prepared(board.spec)
    return "" if last is None or not last.meta["gallery_hash"] else str(last.meta["gallery_hash"])[:7]


def _reference(board: Board) -> str:
    if board.spec.config.reference == "removed":
        return "removed from the ranking"
    return "stays in the ranking"


def _chance(board: Board) -> Fact:
    value = chance_level(board)
    if value is not None:
        shown = number(value, board.primary_unit)
        unit = " %" if board.primary_unit == "percent" else ""
        means = "what a random order is expected to score, exactly"
        if board.dialogue is not None:
            means = "what a new random order in every round is expected to score, while the user goes on"
        return Fact("Chance", f"{shown}{unit}", "", means)
    return Fact("Chance", "not known here", "", "it depends on queries that this server has not read")


def _versions(board: Board, metrics: Mapping[str, Any]) -> str:
    what = "benchmark" if board.suite is None else "suite"
    versions = {METRICS[name].version for name in metrics}
    listed = " and ".join(map(str, sorted(versions)))
    return f"{what} {board.version}, metric {listed}"


def _entries(view: Mapping[str, Any], lines: Sequence[Line]) -> str:
    counts = Counter[str]("method" if line.kind == "apart" else line.kind for line in lines)
    held = view["entries_held_back"]
    methods = counts["method"] + held
    said = [counted(methods, "method") if methods else "no method yet"]
    said += [counted(counts[kind], one, many) for kind, one, many in _BESIDE if counts[kind]]
    return ", ".join(said)


def _limits(board: Board, view: Mapping[str, Any]) -> Fact:
    size = f"up to {view['max_upload_bytes'] / 2**20:.0f} MB"
    if not board.phases:
        return Fact("File", f"{file_word(board)}, {size}")
    return Fact("Phases", "; ".join(map(phase_words, board.phases)), "", f"a {file_word(board)} of {size}")


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
