"""`cir make cirr`: subsets of similar images, pairs, tasks for annotators, a benchmark of their answers."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, argument, benchmark_values, command, option
from cir_datasets.common.terminal import counted, echo
from cir_datasets.construction.cirr.plan import CirrPlan
from submissions.commands import echo_use, report_usage, speaker_of
from submissions.running.method_options import LANGUAGE_HELP, LoadingOptions, MakingOptions

if TYPE_CHECKING:
    from cir_datasets.construction.cirr.corpus import Corpus
    from cir_datasets.construction.cirr.pipeline import CirrMade
    from submissions.embeddings.pictures import Pictures

WRITERS = ("people", "model")
_PROMPT_TOKENS = 280
"""Of the prompt `pair` with the form of its answer, four characters a token."""
_SHOWN = 20
"""Refused answers that are named."""


class TakesPictures(LoadsBenchmarks):
    """What the run and the import of answers take: where the pictures are."""

    images: Path | None = option(
        None, "Folder of the images, or of those of --benchmark; then the default is below CIR_IMAGES."
    )
    benchmark: str | None = option(
        None,
        "Id of the benchmark, whose gallery is taken, such as shapes/val.",
        "-b",
        values=benchmark_values,
    )


class MakeCirrOptions(LoadingOptions, MakingOptions, CirrPlan, TakesPictures):
    """What `cir make cirr` takes."""

    encoder: str | None = option(
        None,
        "Encoder: whose vectors say what is similar; a name on the Hub (CIRR's: "
        "microsoft/resnet-152), a folder, or shapes (the default on shapes).",
        "-e",
    )
    batch_size: int = option(64, "Batch: images or texts that are encoded at once.", min=1, in_file=True)
    captions: str = option(
        "people", "Who writes them: people (pages of tasks) or model (--language).", choices=WRITERS
    )
    language: str | None = option(None, f"{LANGUAGE_HELP}; with --captions model.")
    dry_run: bool = option(
        False, "Print an estimate of calls, tokens and hours, or of tasks for people, and make nothing."
    )


@command
def cirr_command(options: MakeCirrOptions) -> None:
    """Make a benchmark as CIRR was made: subsets of images that are alike, and captions.

    People write the captions on pages that work offline; `cir make cirr-import` takes in what they saved. Or
    a model writes them.

    \b
    Example:
        cir make cirr --images photos -e microsoft/resnet-152 --subsets 200 --annotators 4 --out my-run
        cir make cirr --benchmark shapes/val --captions model --language oracle --out my-shapes
    """
    from cir_datasets.common.plots import check_plots
    from cir_datasets.construction.cirr.pipeline import make_benchmark
    from cir_datasets.construction.names import made_name
    from cir_datasets.construction.workspace import Workspace
    from cir_metrics.errors import CallError
    from submissions.cluster import engine_of
    from submissions.encoders.loading import load_encoder
    from submissions.encoders.protocol import SHAPES_ENCODER
    from submissions.making.backends import EncoderFeatures, LanguageWords

    if (options.language is None) != (options.captions == "people"):
        raise CallError("--language goes with --captions model. Fix: give both, or neither.")
    check_plots("construction")
    where = engine_of(options.engine, options.address)
    plan = options.call(CirrPlan, name=made_name(options.name, options.out, "cirr"))
    corpus, pictures = _corpus(options.images, options.benchmark, options.out)
    if options.dry_run:
        echo(_estimate(len(corpus.ids), plan, options.language))
        return
    if options.encoder is None and corpus.folder is not None:
        raise CallError("no --encoder. Fix: name one, such as microsoft/resnet-152, which the paper takes.")
    loaded = options.call(load_encoder, name=options.encoder or SHAPES_ENCODER)
    features = EncoderFeatures(loaded, lambda ids: _some(pictures, ids), batch_size=options.batch_size)
    backend = speaker_of(options.language, options.prompts) if options.language else None
    try:
        with Workspace.held(options.out):
            made = make_benchmark(
                options.out,
                corpus,
                features,
                plan,
                words=None if backend is None else LanguageWords(backend, pictures),
                engine=where,
            )
    finally:
        report_usage(backend)
    _say(made, getattr(pictures, "root", None))


class CirrImportOptions(TakesPictures):
    """What `cir make cirr-import` takes."""

    folder: Path = argument(..., "Folder of a run of `cir make cirr`.")
    answers: list[Path] = argument(..., "Files that pages saved, or CSV of a crowd platform.")


@command
def cirr_import_command(options: CirrImportOptions) -> None:
    """Check what annotators wrote, write the benchmark, and ask again for what was refused.

    Files add to those of earlier calls; refused answers stay in the run with the reason.

    Example: cir make cirr-import my-run answers-1.json answers-2.json --images photos
    """
    from cir_datasets.construction.cirr.pipeline import import_answers
    from cir_datasets.construction.workspace import Workspace

    if options.images is None and options.benchmark is None:
        Workspace.existing(options.folder)
    corpus, pictures = _corpus(options.images, options.benchmark, options.folder)
    with Workspace.held(options.folder):
        made = import_answers(options.folder, corpus, options.answers)
    _say(made, getattr(pictures, "root", None))


def _corpus(images: Path | None, benchmark: str | None, out: Path) -> tuple[Corpus, Pictures]:
    """The images of a folder, or of a benchmark's gallery, for a run in `out`."""
    import cir_datasets
    from cir_datasets.construction.cirr.corpus import Corpus
    from cir_metrics.errors import CallError
    from submissions.embeddings.pictures import FilePictures, pictures_in, pictures_of

    if benchmark is not None:
        pictures = pictures_of(cir_datasets.load(benchmark), images=images)
    elif images is not None:
        if out.expanduser().resolve().is_relative_to(images.expanduser().resolve()):
            raise CallError(
                f"{out}: it lies in the folder of the pictures, and those of its pages would be taken for "
                f"more of them. Fix: name a folder outside of {images}."
            )
        pictures = pictures_in(images)
    else:
        raise CallError("no images. Fix: name a folder (--images), or a benchmark (--benchmark shapes/val).")
    places = {image: place for place, image in enumerate(pictures.ids)}
    folder, paths = None, {}
    if isinstance(pictures, FilePictures):
        folder = Path(os.path.normpath(pictures.root)).name
        if not folder.isprintable():
            raise CallError(f"--images: no benchmark can name the folder {folder!r}. Fix: rename it.")
        paths = {
            image: Path(os.path.relpath(path, pictures.root)).as_posix()
            for image, path in zip(pictures.ids, pictures.paths, strict=True)
            if path is not None
        }
    corpus = Corpus(
        pictures.name,
        pictures.ids,
        lambda image: pictures.open(places[image]),
        pictures.digest,
        folder,
        paths,
    )
    return corpus, pictures


def _some(pictures: Pictures, ids: object) -> Pictures:
    """Some of the pictures, in another order."""
    import dataclasses
    from typing import Any, cast

    from submissions.embeddings.pictures import FilePictures

    wanted = tuple(cast("tuple[str, ...]", ids))
    changed: dict[str, Any] = {"ids": wanted}
    if isinstance(pictures, FilePictures):
        path_of = dict(zip(pictures.ids, pictures.paths, strict=True))
        changed["paths"] = tuple(path_of[image] for image in wanted)
    return cast("Pictures", dataclasses.replace(cast("Any", pictures), **changed))


def _estimate(images: int, plan: CirrPlan, language: str | None) -> str:
    """What would be asked of people or of a model, at most."""
    from cir_datasets.common.estimates import PICTURE_TOKENS, Estimate, Work, questions
    from cir_datasets.common.tables import render
    from cir_datasets.construction.cirr.pairs import places_of_pairs
    from submissions.language.loading import calls_at_once

    most = min(each for each in (images, plan.subsets, plan.limit) if each is not None)
    pairs, size = most * len(places_of_pairs(plan.size)), plan.size
    if language is None:
        tasks = pairs + min(plan.common, pairs) * (plan.annotators - 1)
        assumed = "a page each, as many subsets as there can be"
        found = Estimate(assumed, [Work("captions", tasks=tasks)], people=plan.annotators)
    else:
        assumed = f"{size} pictures of {PICTURE_TOKENS} tokens a call, as many subsets as there can be"
        asked = questions("captions", pairs, tokens=_PROMPT_TOKENS, pictures=size)
        found = Estimate(assumed, [asked], at_once=calls_at_once(language))
    return (
        f"{counted(images, 'image')} to encode; at most {counted(most, 'subset')} and "
        f"{counted(pairs, 'pair')}.\n{render([found.table()], 'table')}"
    )


def _say(made: CirrMade, images: str | None) -> None:
    for refused in made.refused[:_SHOWN]:
        echo(f"cir: refused: {refused}", err=True)
    if made.refused:
        echo(
            f"cir: refused answers: {len(made.refused):,}; the stage `answers` has them all. Fix: correct "
            "them and import the corrected file, or have the pages in open-tasks filled in.",
            err=True,
        )
    for what, number in made.counts.items():
        echo(f"cir: {what}: {number:,}", err=True)
    for split in made.empty:
        echo(
            f"cir: {split}: no subset was found among its images, and it is not in the benchmark. Fix: "
            "take more images, or other shares (--splits), and name another folder.",
            err=True,
        )
    for page in made.tasks:
        echo(f"cir: tasks: {page}", err=True)
    echo(f"cir: report: {made.report}", err=True)
    if made.benchmarks and images is not None:
        parent = Path(os.path.normpath(images)).parent
        echo(f"cir: pictures stay where they are: export CIR_IMAGES={shlex.quote(str(parent))}", err=True)
    for benchmark in made.benchmarks:
        echo(str(benchmark))
        echo_use(Path(benchmark))
