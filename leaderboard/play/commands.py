"""`cir play`: a person in the place of the simulated user."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, benchmark_values, command, option
from cir_datasets.common.terminal import echo
from cir_datasets.errors import missing_extra
from cir_metrics.errors import CallError
from submissions.commands import MethodName, find_modules_here
from submissions.running.method_options import MethodOptions
from submissions.transcripts.settings import RoundSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from submissions.multiround.person import PersonDialogue

_PAGE_MODULES = ("fastapi", "multipart", "sqlalchemy", "uvicorn")


class PlayOptions(RoundSettings, MethodOptions, LoadsBenchmarks):
    """What `cir play` takes."""

    benchmark: str | None = option(
        None, "Id of the benchmark, of single queries; default: shapes/val.", "-b", values=benchmark_values
    )
    method: MethodName = "image_text_sum"
    own: Path | None = option(
        None,
        "Folder of pictures of your own, in the place of --benchmark: sessions lie between any two. "
        "Needs --encoder.",
        "--pictures",
    )
    out: Path = option(
        Path("human.jsonl"), "Where to write: the transcript, .jsonl or .parquet; it goes on.", "-o"
    )
    limit: int = option(10, "At most so many: sessions, drawn.", "-n", min=1)
    port: int = option(7861, "TCP port; 0 takes any that is free.", min=0, max=65535)


@command
def play_command(options: PlayOptions) -> None:
    """Play the user yourself on a page: see what you want and what was found, and say what is to change.

    Finished sessions stand in --out, the one that goes on beside it: the same command goes on with both.
    What is stored is what you type and what was shown, no name and no time.

    \b
    Example:
        cir play --limit 5 --out human.jsonl
    """
    from submissions.commands.outputs import check_folder
    from submissions.multiround.journal import only_program
    from submissions.multiround.person import PersonDialogue
    from submissions.multiround.user_pictures import user_pictures
    from submissions.running.options import RunOptions

    out, own = options.out, options.own
    if out.is_dir() or out.suffix not in (".jsonl", ".parquet"):
        raise CallError(
            f"--out {out}: it is not the name of a transcript. Fix: name it NAME.jsonl or NAME.parquet."
        )
    check_folder(out.parent)
    if own is not None:
        if options.benchmark is not None or options.images is not None or options.encoder is None:
            raise CallError(
                "--pictures needs --encoder, and neither --benchmark nor --images. Fix: call it so."
            )
        options = replace(options, start="random", images=own)
    play = _on_page(options.port)
    find_modules_here(options.method)
    settings, run_options = options.call(RoundSettings), options.call(RunOptions, k=None)
    with only_program(out, "cir play"):
        dialogue = PersonDialogue(
            options.benchmark or "shapes/val" if own is None else user_pictures(own),
            options.method,
            settings,
            run_options,
            out=out,
            limit=options.limit,
            form="page",
        )
        try:
            play(dialogue)
        finally:
            _say_what_remains(dialogue)


def _on_page(port: int) -> Callable[[PersonDialogue], None]:
    """What plays on a page."""
    missing = [name for name in _PAGE_MODULES if find_spec(name) is None]
    if missing:
        raise missing_extra("cir play", ", ".join(missing), "leaderboard")
    from leaderboard.play.page import create_page
    from leaderboard.web.options import WebOptions
    from leaderboard.web.serving import serve

    def ready(address: str) -> None:
        echo(f"Play on {address} (Ctrl-C ends it; what is played is kept).", err=True)

    return lambda dialogue: serve(lambda: create_page(dialogue), "127.0.0.1", port, ready, WebOptions())


def _say_what_remains(dialogue: PersonDialogue) -> None:
    """Where the sessions are, and how to go on, on the way out."""
    from leaderboard.play.words import summary_words

    echo(summary_words(dialogue.transcript), err=True)
    if dialogue.left:
        echo(f"{dialogue.left:,} are left. Go on: {shlex.join(['cir', *sys.argv[1:]])}", err=True)
    if dialogue.transcript.rounds:
        echo(str(dialogue.out))
