"""`cir multiround`: a method in dialogue with a simulated user, and its transcript."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, command, option
from cir_datasets.common.terminal import counted, echo
from submissions.commands import (
    MethodName,
    SingleQueries,
    as_text,
    find_modules_here,
    report_usage,
    speaker_of,
)
from submissions.commands.outputs import check_folder
from submissions.running.method_options import LANGUAGE_HELP, MethodOptions, PromptOptions
from submissions.running.options import RunOptions
from submissions.transcripts.settings import RoundSettings

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.transcripts.transcript import Transcript

_ENDINGS = (".jsonl", ".parquet")


class MultiroundOptions(RoundSettings, MethodOptions, PromptOptions, LoadsBenchmarks, on_line=("repeats",)):
    """What `cir multiround` takes."""

    benchmark: SingleQueries
    method: MethodName
    simulator: str = option(..., f"Who plays the user. {LANGUAGE_HELP}.", "-s")
    way: str = option(
        "captions",
        "What the user compares: captions (of both pictures, then their difference) or pictures "
        "(it looks at both).",
        in_file=True,
    )
    limit: int | None = option(
        None, "At most so many: sessions, drawn; default: all, or 500 random starts.", min=1
    )
    language: str | None = option(
        None, "Language backend: the method's, where it needs one; as --simulator.", in_file=True
    )
    out: Path | None = option(
        None, "Where to write: the transcript, .jsonl or .parquet; default: METHOD.BENCHMARK.jsonl.", "-o"
    )
    page: Path | None = option(
        None, "Also write a page with the pictures, which lie in a folder beside it.", "--html"
    )
    sessions: Path | None = option(
        None, "Also write the dialogues as sessions in CIRCLED's form (JSON).", in_file=True
    )
    rank_file: Path | None = option(
        None, "Also write the rank file of these sessions, .json or .json.gz.", in_file=True
    )
    journal: Path | None = option(
        None,
        "Folder for finished rounds, from which a run that was stopped goes on; default: "
        "OUT.journal. It is removed when the transcript is written.",
        in_file=True,
    )
    as_json: bool = option(False, "Print JSON: files, sessions, and how they ended.", "--json")
    dry_run: bool = option(
        False, "Print an estimate of the user's calls, tokens and hours, at most, and play nothing."
    )


@command
def multiround_command(options: MultiroundOptions) -> None:
    """Play every query of a benchmark as a dialogue with a simulated user, and write the transcript.

    Round 1 is the published query. As long as no target is among the first K, the user looks at the best
    image that was found and says what is to change; that image with these words is the next query. The names
    of the files written are printed, one a line; cir score TRANSCRIPT gives all numbers by round. The same
    call goes on where a run was stopped.

    \b
    Example:
        cir multiround --benchmark shapes/val --method image_text_sum --simulator oracle --out dialogue.jsonl
        cir multiround --benchmark cirr/val --method image_text_sum --encoder openai/clip-vit-large-patch14 \\
            --images ~/images --simulator openai:gpt-4o-mini,concurrency=8 --out cirr.jsonl --html cirr.html
    """
    from submissions.errors import LanguageError
    from submissions.multiround.journal import only_program, remove_rounds
    from submissions.multiround.making import make_transcript
    from submissions.multiround.sessions import sessions_spec
    from submissions.running.make import loaded_benchmark
    from submissions.transcripts.transcript import write_transcript
    from submissions.truncation import one_truncation_warning

    settings = options.call(RoundSettings)
    method, benchmark, prompts = options.method, options.benchmark, options.prompts
    out = options.out or Path(f"{method.rpartition(':')[2]}.{benchmark.replace('/', '-')}.jsonl")
    if options.dry_run:
        _say_estimate(loaded_benchmark(benchmark), settings, options)
        return
    _check_outputs(out, options.page, options.sessions, options.rank_file)
    used = prompts if options.language is not None else None
    run_options = options.call(RunOptions, prompts=used, k=None).with_language()
    find_modules_here(method)
    loaded = loaded_benchmark(benchmark)
    if options.sessions is not None or options.rank_file is not None:
        sessions_spec(loaded)
    speaker = speaker_of(options.simulator, prompts)
    kept = options.journal or Path(f"{out}.journal")
    with only_program(kept, "cir multiround"):
        try:
            with one_truncation_warning():
                made = make_transcript(
                    loaded,
                    method,
                    speaker,
                    settings,
                    run_options,
                    way=options.way,
                    limit=options.limit,
                    journal=kept,
                    after_round=lambda *done: _say_round(options.max_rounds, *done),
                )
        except LanguageError:
            if kept.is_dir():
                echo(f"Finished rounds are in {kept}: the same call goes on from there.", err=True)
            raise
        finally:
            # Also where it was stopped: what was asked has its price.
            for language_backend in (speaker, run_options.language):
                report_usage(language_backend)
        write_transcript(made, out)
        files = {"transcript": str(out)} | _write_others(made, loaded, options)
        remove_rounds(kept)
    _report(made, loaded, files, as_json=options.as_json)


def _say_estimate(benchmark: Benchmark, settings: RoundSettings, options: MultiroundOptions) -> None:
    from cir_datasets.common.tables import render
    from cir_metrics.errors import CallError
    from submissions.language.loading import calls_at_once
    from submissions.multiround.estimate import estimate

    files = options.by_option("out", "page", "sessions", "rank_file")
    if files:
        named = ", ".join(files).replace("--page", "--html")
        raise CallError(f"{named}: --dry-run writes no file. Fix: leave them or --dry-run out.")
    found = options.call(
        estimate, benchmark=benchmark, settings=settings, at_once=calls_at_once(options.simulator)
    )
    if options.as_json:
        echo(as_text(found.values()))
        return
    echo(render([found.table()], "table"))


def _check_outputs(out: Path, page: Path | None, sessions: Path | None, rank_file: Path | None) -> None:
    """Look at the names of files before the work."""
    from cir_metrics.errors import CallError

    named: dict[Path, str] = {}
    for name, path, endings in (
        ("--out", out, _ENDINGS),
        ("--html", page, (".html",)),
        ("--sessions", sessions, (".json",)),
        ("--rank-file", rank_file, (".json", ".json.gz")),
    ):
        if path is None:
            continue
        other = named.setdefault(path.resolve(), name)
        if other != name:
            raise CallError(f"{other} and {name} both name {path}. Fix: name two files.")
        if path.is_dir() or not path.name.lower().endswith(endings):
            shown = " or ".join(endings)
            raise CallError(f"{name} {path}: it is written as {shown}. Fix: name a file that ends so.")
        check_folder(path.parent, name)


def _say_round(rounds: int, number: int, solved: int, going: int) -> None:
    echo(
        f"round {number} of {rounds}: {counted(solved, 'session')} solved so far, {going:,} still open",
        err=True,
    )


def _write_others(made: Transcript, benchmark: Benchmark, options: MultiroundOptions) -> dict[str, str]:
    from submissions.embeddings.pictures import pictures_of
    from submissions.multiround.page import write_page
    from submissions.multiround.sessions import rank_file_of, write_sessions
    from submissions.rank_file.model import write

    files = {}
    if options.page is not None:
        pictures = pictures_of(benchmark, images=options.images)
        files["html"] = str(write_page(made, pictures, options.page))
    if options.sessions is not None:
        files["sessions"] = str(write_sessions(made, benchmark, options.sessions))
    if options.rank_file is not None:
        files["rank_file"] = str(write(rank_file_of(made, benchmark), options.rank_file))
    return files


def _report(made: Transcript, benchmark: Benchmark, files: dict[str, str], *, as_json: bool) -> None:
    """The files, how the sessions ended, and the numbers by round."""
    from cir_datasets.common.tables import render
    from submissions.report import full_report
    from submissions.transcripts.checking import check_transcript
    from submissions.transcripts.sessions import ends

    ended = ends(made)
    if as_json:
        echo(as_text({"files": files, "sessions": sum(ended.values()), "ended": dict(ended)}))
        return
    for path in files.values():
        echo(path)
    *_, by_round = full_report(check_transcript(files["transcript"], benchmark).score()).tables()
    echo(render([by_round], "table"), err=True)
    listed = "; ".join(f"{end} {count:,}" for end, count in ended.items())
    echo(f"{counted(sum(ended.values()), 'session')} ended: {listed}.", err=True)
    echo(f"All numbers: cir score {files['transcript']}", err=True)
