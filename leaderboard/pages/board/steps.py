"""How a file gets onto a board: three steps with their commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cir_datasets.registry.challenges import CONFIG
from leaderboard.boards import Board
from leaderboard.inspection.hits import ranks_by_subset
from leaderboard.pages.board.head import file_word, number_word
from submissions.transcripts.settings import RoundSettings

_RANDOM = "Random"
"""The name of what `cir run --method random` makes."""
_RARE = "dialogue.yaml"
"""The file of options that a first step writes."""
_DEFAULT_ENCODER = "openai/clip-vit-large-patch14"


@dataclass(frozen=True)
class EntryStep:
    """One step of entering: what to do, the commands, and whether the step links to `/submit`.

    `tried` is a command to try without a ranking of one's own; it writes another file than the commands.
    """

    title: str
    words: str
    commands: tuple[str, ...] = ()
    submits: bool = False
    tried: str = ""


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
    submit = f"cir submit {out} --to URL --board {board_name} --publish"
    token = ("export CIR_LEADERBOARD_TOKEN=TOKEN",) if with_tokens else ()
    checked = (
        "The findings are those of the server. Only the organisers can score it: the answers stay with them."
    )
    if not board.sealed:
        checked = "It is validated, then scored beside chance and baselines: the same code as here."
    last = "Without --publish only you and the organisers see the score until you publish it."
    if _RANDOM in names:
        last += " A random ranking is scored but stays private, because its name is taken by a baseline."
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
        return EntryStep("Play the dialogues", words, (_prepare(board), *_multiround(board, out)))
    name, _, config = board.benchmark.partition("/")
    get: tuple[str, ...] = (_prepare(board),)
    if board.sealed and config == CONFIG:
        get = ("export CIR_CHALLENGES=$PWD/challenges", f"cir challenge join {shlex.quote(name)}")
    title = f"Rank all {number_word(len(board.benchmarks))}" if board.takes_bundles else "Rank"
    what = "one bundle of all members" if board.takes_bundles else "a file"
    words = f"cir rank makes {what} of your rankings, scores or embeddings."
    if board.sealed and config == CONFIG:
        words = f"Unpack the organisers' folder and make it known. {words[0].upper()}{words[1:]}"
    lists = "rankings/" if board.takes_bundles else "rankings.json"
    own = f'cir rank --benchmark {benchmark} --lists {lists} --method "My method" --out {out}'
    if board.spec.config.subset and ranks_by_subset(board):
        own = own.replace(" --method", " --subset-lists subsets.json --method")
    tried = f"cir run --benchmark {benchmark} --method random --out random.json"
    return EntryStep(title, words, (*get, own), tried=tried)


def _prepare(board: Board) -> str:
    return f"cir datasets prepare {' '.join(map(shlex.quote, board.benchmarks))}"


def _multiround(board: Board, out: str) -> tuple[str, ...]:
    """The call that plays the dialogues of a board, and before it the file of its rare options, if any."""
    talk = board.dialogue
    if talk is None:
        return ()
    parts = ["cir", "multiround", "--benchmark", board.benchmark, "--method", "image_text_sum"]
    if board.spec.card.status != "embedded":
        parts += ["--encoder", _DEFAULT_ENCODER, "--images", "FOLDER"]
    language = talk.user.get("language") or {}
    simulator = str(language.get("backend") or "oracle")
    if language.get("model") and simulator != "oracle":
        simulator += f":{language['model']}"
    parts += ["--simulator", simulator]
    rare: dict[str, Any] = {}
    if talk.user.get("way") not in (None, "captions"):
        rare["way"] = talk.user["way"]
    for name, value in talk.settings.items():
        if name not in RoundSettings.in_file:
            parts += [f"--{name.replace('_', '-')}", str(value)]
        elif value != getattr(RoundSettings, name):
            rare[name] = value
    if talk.sessions is not None:
        parts += ["--limit", str(talk.sessions)]
    if not rare:
        return (shlex.join([*parts, "--out", out]),)
    lines = [f"{name}: {json.dumps(value)}" for name, value in rare.items()]
    written = f"printf '%s\\n' {shlex.join(lines)} > {_RARE}"
    return written, shlex.join([*parts, "--config", _RARE, "--out", out])


def meanwhile(board: Board, view: Mapping[str, Any]) -> str:
    """What can be done where a board takes nothing for want of data; empty if it is only closed.

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
