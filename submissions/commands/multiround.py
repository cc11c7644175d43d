"""`cir multiround`: a method in dialogue with a simulated user, and its transcript."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cir_datasets.commands.options import DataDirAnywhere, Images, NoChecksAnywhere
from cir_datasets.common.counts import counted
from cir_datasets.common.terminal import echo
from submissions.commands.options import (
    LANGUAGE_HELP,
    AfterSuccess,
    Aim,
    Aspect,
    BatchSize,
    Candidate,
    CaptionRule,
    Checkpoint,
    Device,
    Dtype,
    Encoder,
    History,
    MaxRounds,
    MethodName,
    Normalise,
    Prompts,
    Revision,
    Seed,
    ShownImages,
    SingleQueries,
    SkipMissing,
    Start,
    Workers,
)
from submissions.commands.outputs import check_folder
from submissions.commands.words import as_text, find_modules_here, report_usage
from submissions.running.options import RunOptions
from submissions.transcripts.settings import RoundSettings

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.transcripts.transcript import Transcript

_ENDINGS = (".jsonl", ".parquet")


def multiround_command(
    benchmark: SingleQueries,
    method: MethodName,
    simulator: Annotated[
        str,
        typer.Option("--simulator", "-s", help=f"Who plays the user. {LANGUAGE_HELP}."),
    ],
    way: Annotated[
        str,
        typer.Option(
            "--way",
            help="What the user compares: captions (of both pictures, then their difference) or pictures "
            "(it looks at both).",
        ),
    ] = "captions",
    max_rounds: MaxRounds = RoundSettings.max_rounds,
    k: ShownImages = RoundSettings.k,
    after_success: AfterSuccess = RoundSettings.after_success,
    candidate: Candidate = RoundSettings.candidate,
    history: History = RoundSettings.history,
    normalise: Normalise = RoundSettings.normalise,
    feedback: Annotated[
        str,
        typer.Option("--feedback", help="fresh words each round, or unchanged: the published ones again."),
    ] = RoundSettings.feedback,
    aim: Aim = RoundSettings.aim,
    aspect: Aspect = RoundSettings.aspect,
    words: Annotated[
        int | None,
        typer.Option("--words", help="About how many words the user says; default: what is usual there."),
    ] = RoundSettings.words,
    start: Start = RoundSettings.start,
    seed: Seed = RoundSettings.seed,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", help="At most so many: sessions, drawn; default: all, or 500 random starts.", min=1
        ),
    ] = None,
    encoder: Encoder = None,
    images: Images = None,
    caption_rule: CaptionRule = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language", help="Language backend: the method's, where it needs one; as --simulator."
        ),
    ] = None,
    prompts: Prompts = None,
    checkpoint: Checkpoint = None,
    revision: Revision = None,
    device: Device = RunOptions.device,
    dtype: Dtype = RunOptions.dtype,
    batch_size: BatchSize = RunOptions.batch_size,
    workers: Workers = RunOptions.workers,
    skip_missing: SkipMissing = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to write: the transcript, .jsonl or .parquet; default: METHOD.BENCHMARK.jsonl.",
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--html", help="Also write a page with the pictures, which lie in a folder beside it."),
    ] = None,
    sessions: Annotated[
        Path | None,
        typer.Option("--sessions", help="Also write the dialogues as sessions in CIRCLED's form (JSON)."),
    ] = None,
    rank_file: Annotated[
        Path | None,
        typer.Option("--rank-file", help="Also write the rank file of these sessions, .json or .json.gz."),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal",
            help="Folder for finished rounds, from which a run that was stopped goes on; default: "
            "OUT.journal. It is removed when the transcript is written.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: files, sessions, and how they ended.")
    ] = False,
    data_dir: DataDirAnywhere = None,
    no_checks: NoChecksAnywhere = False,
) -> None:
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
    from submissions.encoders.truncation import one_truncation_warning
    from submissions.errors import LanguageError
    from submissions.language import load_language
    from submissions.multiround.journal import only_program, remove_rounds
    from submissions.multiround.making import make_transcript
    from submissions.multiround.sessions import sessions_spec
    from submissions.running.make import loaded_benchmark
    from submissions.transcripts.transcript import write_transcript

    settings = RoundSettings(
        max_rounds=max_rounds,
        k=k,
        after_success=after_success,
        candidate=candidate,
        history=history,
        normalise=normalise,
        feedback=feedback,
        aim=aim,
        aspect=aspect,
        words=words,
        start=start,
        seed=seed,
    )
    out = out or Path(f"{method.rpartition(':')[2]}.{benchmark.replace('/', '-')}.jsonl")
    _check_outputs(out, page, sessions, rank_file)
    options = RunOptions(
        encoder=encoder,
        images=images,
        caption_rule=caption_rule,
        language=language,
        prompts=prompts if language is not None else None,
        checkpoint=checkpoint,
        revision=revision,
        device=device,
        dtype=dtype,
        batch_size=batch_size,
        workers=workers,
        skip_missing=skip_missing,
    ).with_language()
    find_modules_here(method)
    loaded = loaded_benchmark(benchmark)
    if sessions is not None or rank_file is not None:
        sessions_spec(loaded)
    speaker = load_language(simulator, **({} if prompts is None else {"prompts": prompts}))
    kept = journal or Path(f"{out}.journal")
    with only_program(kept, "cir multiround"):
        try:
            with one_truncation_warning():
                made = make_transcript(
                    loaded,
                    method,
                    speaker,
                    settings,
                    options,
                    way=way,
                    limit=limit,
                    journal=kept,
                    after_round=lambda *done: _say_round(max_rounds, *done),
                )
        except LanguageError:
            if kept.is_dir():
                echo(f"Finished rounds are in {kept}: the same call goes on from there.", err=True)
            raise
        finally:
            # Also where it was stopped: what was asked has its price.
            for language_backend in (speaker, options.language):
                report_usage(language_backend)
        write_transcript(made, out)
        files = {"transcript": str(out)}
        files |= _write_others(made, loaded, images, page, sessions, rank_file)
        remove_rounds(kept)
    _report(made, loaded, files, as_json=as_json)


def _check_outputs(out: Path, page: Path | None, sessions: Path | None, rank_file: Path | None) -> None:
    """Look at the names of files before the work."""
    from cir_metrics.errors import CallError

    named: dict[Path, str] = {}
    for option, path, endings in (
        ("--out", out, _ENDINGS),
        ("--html", page, (".html",)),
        ("--sessions", sessions, (".json",)),
        ("--rank-file", rank_file, (".json", ".json.gz")),
    ):
        if path is None:
            continue
        other = named.setdefault(path.resolve(), option)
        if other != option:
            raise CallError(f"{other} and {option} both name {path}. Fix: name two files.")
        if path.is_dir() or not path.name.lower().endswith(endings):
            shown = " or ".join(endings)
            raise CallError(f"{option} {path}: it is written as {shown}. Fix: name a file that ends so.")
        check_folder(path.parent, option)


def _say_round(rounds: int, number: int, solved: int, going: int) -> None:
    echo(
        f"round {number} of {rounds}: {counted(solved, 'session')} solved so far, {going:,} still open",
        err=True,
    )


def _write_others(
    made: Transcript,
    benchmark: Benchmark,
    images: Path | None,
    page: Path | None,
    sessions: Path | None,
    rank_file: Path | None,
) -> dict[str, str]:
    from submissions.embeddings.pictures import pictures_of
    from submissions.multiround.page import write_page
    from submissions.multiround.sessions import rank_file_of, write_sessions
    from submissions.rank_file.model import write

    files = {}
    if page is not None:
        files["html"] = str(write_page(made, pictures_of(benchmark, images=images), page))
    if sessions is not None:
        files["sessions"] = str(write_sessions(made, benchmark, sessions))
    if rank_file is not None:
        files["rank_file"] = str(write(rank_file_of(made, benchmark), rank_file))
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
