"""`cir make fisd`: from captions to triplets of six aspects, with generated pictures, in FISD's way."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.commands import command, option
from cir_datasets.common.terminal import counted, echo
from cir_datasets.construction.fisd.options import ASPECTS, CARDINALITY, FisdOptions
from submissions.commands import echo_use, report_usage, speaker_of
from submissions.running.method_options import LANGUAGE_HELP, MakingOptions

if TYPE_CHECKING:
    from cir_datasets.construction.fisd.captions import CaptionFile
    from cir_datasets.construction.fisd.generators import Generator
    from cir_datasets.construction.fisd.making import MadeFisd
    from cir_datasets.construction.fisd.manners import Manner
    from submissions.language.protocol import Language

_DIFFUSERS = "diffusers:"
_ANSWER_TOKENS = 60
"""About what an answer of these forms takes."""
_PICTURE_SECONDS = 5.0
"""About those of a picture of SDXL on one GPU; shapes are drawn in no time."""


class MakeFisdOptions(FisdOptions, MakingOptions):
    """What `cir make fisd` takes."""

    captions: list[str] | None = option(
        None,
        "File of source captions (.txt, .csv, .tsv, .token, .jsonl, .json; also as COCO, NoCaps, "
        "CC3M, Flickr30k and HQ-Edit have them), or ASPECT=FILE; may be repeated.",
    )
    generator: str = option(
        "shapes",
        "What draws: shapes (captions in its language), or diffusers:FOLDER_OR_NAME, such as "
        "diffusers:stabilityai/stable-diffusion-xl-base-1.0.",
    )
    language: str | None = option(None, f"{LANGUAGE_HELP}; it edits captions.")
    aspect: list[str] | None = option(
        None, f"This aspect alone: {', '.join(ASPECTS)}; may be repeated; default: all."
    )
    nouns: Path | None = option(
        None,
        "File of what is counted in English, one a line, an irregular plural as in mouse: mice; "
        "default: COCO's categories.",
        in_file=True,
    )
    templates: str = option(
        "ours",
        "Templates: whose words for numbers in English: ours, or paper (FISD's Figure 5).",
        choices=("ours", "paper"),
        in_file=True,
    )
    steps: int | None = option(
        None, "Steps: of the diffusion pipeline; default: its own number.", min=1, in_file=True
    )
    guidance: float | None = option(
        None, "How much captions count, from 0; default: the pipeline's.", min=0, in_file=True
    )
    size: int | None = option(
        None, "Width and height in pixels, a multiple of 8; default: the pipeline's.", min=8, in_file=True
    )
    revision: str | None = option(
        None, "Revision on the Hub: the pipeline's commit, branch or tag.", in_file=True
    )
    dtype: str = option(
        "auto",
        "The model's numbers: float32, float16, bfloat16, or auto (float16 on cuda).",
        in_file=True,
    )
    gallery: str = option(
        "together",
        "together (one configuration, test), or aspect (one each, with its own gallery).",
        choices=("together", "aspect"),
        in_file=True,
    )
    review: Path | None = option(None, "A filled-in review.csv; it is taken in.")
    allow_missing: bool = option(False, "Go on where something is missing: one of the aspects.")
    title: str | None = option(None, "Title for people; default: the name.", in_file=True)
    picture_seconds: float | None = option(
        None,
        "Of --dry-run: seconds that a picture takes; default: 5, and none of shapes.",
        min=0,
        in_file=True,
    )


@command
def fisd_command(options: MakeFisdOptions) -> None:
    """Make a benchmark of six aspects from captions, with pictures that a generator draws, as FISD was made.

    Each caption is edited in one aspect; an edit of another is refused, and asked for again. Caption, edited
    caption and a hard negative are drawn from one seed. Numbers come from templates. The same call goes on
    where a run was stopped. Fill in review.html or review.csv, and call again with --review.

    The paper took captions of COCO val (addition), Flickr30k val and test (negation), NoCaps val (change),
    CC3M val (background), and edits of HQ-Edit with more than 25 words (complex), Mixtral-8x7B to edit them
    and Stable Diffusion XL base 1.0 to draw.

    \b
    Example:
        cir make fisd --captions captions.txt --generator shapes --language oracle --per-aspect 20 --out mine
        cir make fisd --captions addition=captions_val2017.json --captions background=Validation.tsv \\
            --language openai:gpt-4o-mini,concurrency=8 \\
            --generator diffusers:stabilityai/stable-diffusion-xl-base-1.0 --out mine --allow-missing
        cir make fisd ... --out mine --review review.csv
    """
    from cir_datasets.construction.fisd.making import make_fisd
    from cir_datasets.construction.names import made_name
    from cir_datasets.construction.workspace import Workspace
    from submissions.cluster import engine_of
    from submissions.language.loading import calls_at_once

    settings = options.call(FisdOptions)
    _check_generator(options.generator)
    manner = _manner(options.generator, options.nouns, options.templates)
    files = _files(options.captions or [], options.aspect or [], manner)
    wanted = [each for each in ASPECTS if not options.aspect or each in options.aspect]
    if not options.allow_missing:
        _check_aspects(wanted, files, "caption")
    if options.dry_run:
        at_once = 1 if options.language is None else calls_at_once(options.language)
        default = 0.0 if options.generator == "shapes" else _PICTURE_SECONDS
        seconds = default if options.picture_seconds is None else options.picture_seconds
        _say_plan(files, manner, settings, options.prompts, at_once, seconds)
        return
    drawn_by = _generator(options)
    speaker = None if options.language is None else speaker_of(options.language, options.prompts)
    labels = _prompts(speaker)
    called, where = made_name(options.name, options.out, "fisd"), engine_of(options.engine, options.address)
    with Workspace.held(options.out):
        try:
            made = make_fisd(
                options.out,
                files,
                manner=manner,
                words=_words(speaker),
                generator=drawn_by,
                options=settings,
                prompts=labels,
                review=options.review,
                engine=where,
            )
        finally:
            report_usage(speaker)
        _write(made, options, called, wanted, manner)
        if not options.allow_missing:
            there = {each for row in made.queries for each in row["aspects"]}
            _check_aspects(wanted, there, "query")


def _files(
    given: Sequence[str], wanted: Sequence[str], manner: Manner
) -> Mapping[str, Sequence[CaptionFile]]:
    """The files of each aspect that is made."""
    from cir_datasets.construction.fisd.captions import read_captions
    from cir_datasets.construction.fisd.manners import English
    from cir_metrics.errors import CallError

    for each in wanted:
        _check_aspect(each)
    named: dict[str, list[CaptionFile]] = {}
    for text in given:
        which, equals, path = text.partition("=")
        if not equals or (which not in ASPECTS and Path(text).is_file()):
            which, path = "", text
        if which:
            _check_aspect(which)
        named.setdefault(which, []).append(read_captions(path))
    by_template = isinstance(manner, English)
    found: dict[str, Sequence[CaptionFile]] = {}
    for each in ASPECTS:
        files = named.get(each) or named.get("", [])
        if each == CARDINALITY and by_template:
            files = []
        elif not files and each not in wanted:
            continue
        elif not files:
            raise CallError(f"no captions for {each}. Fix: add --captions {each}=FILE.")
        if not wanted or each in wanted:
            found[each] = files
    if (not given and found.keys() - {CARDINALITY}) or not found:
        raise CallError("no captions are given. Fix: add --captions FILE.")
    return found


def _check_aspect(aspect: str) -> None:
    from cir_metrics.errors import UnknownNameError

    if aspect not in ASPECTS:
        raise UnknownNameError.of("aspect", aspect, ASPECTS)


def _check_aspects(wanted: Sequence[str], there: Container[str], what: str) -> None:
    """Refuse a benchmark whose mean over aspects would be one over fewer, and nobody said so."""
    from cir_datasets.errors import ConstructionError

    gone = [each for each in wanted if each not in there]
    if gone:
        raise ConstructionError(
            f"there is no {what} of {', '.join(gone)}: a mean over aspects would be over "
            f"{len(wanted) - len(gone)} of {len(wanted)}. Fix: add --captions {gone[0]}=FILE, or name those "
            "that you want with --aspect, or accept it with --allow-missing."
        )


def _manner(generator: str, nouns: Path | None, templates: str) -> Manner:
    from cir_datasets.construction.fisd.manners import English, ShapesLanguage, default_nouns, read_nouns
    from cir_metrics.errors import CallError

    if generator != "shapes":
        return English(default_nouns() if nouns is None else read_nouns(nouns), templates=templates)
    if nouns is not None:
        raise CallError("--nouns is of English, and shapes has things of its own. Fix: leave it out.")
    if templates != "ours":
        raise CallError("--templates is of English, and shapes has words of its own. Fix: leave it out.")
    return ShapesLanguage()


def _check_generator(name: str) -> None:
    """A dry run loads none, and refuses an unknown one."""
    from cir_metrics.errors import CallError

    if name != "shapes" and (not name.startswith(_DIFFUSERS) or name == _DIFFUSERS):
        raise CallError(f"--generator {name!r} is not known. Fix: use shapes, or {_DIFFUSERS}FOLDER_OR_NAME.")


def _generator(options: MakeFisdOptions) -> Generator:
    from cir_metrics.errors import CallError

    if options.generator == "shapes":
        unused = options.by_option("revision", "steps", "guidance", "size")
        if unused:
            raise CallError(f"{', '.join(unused)}: of a diffusion pipeline. Fix: leave it out, or name one.")
        from cir_datasets.construction.fisd.generators import ShapesGenerator

        return ShapesGenerator()
    from submissions.making.diffusion import load_diffusion

    return options.call(load_diffusion, model=options.generator.removeprefix(_DIFFUSERS))


def _words(language: Language | None) -> Any:
    if language is None:
        return None
    from submissions.embeddings.pictures import FilePictures
    from submissions.making.backends import LanguageWords

    return LanguageWords(language, FilePictures("captions", (), (), "."))


def _prompts(language: Language | None) -> dict[str, str]:
    """Name, version and hash of each prompt in use; of a backend without prompts none."""
    writes: Any = getattr(language, "writes", language)
    if not hasattr(writes, "prompts"):
        return {}
    names = (*(f"edit_{aspect}" for aspect in ASPECTS if aspect != CARDINALITY), "hard_negative")
    return {name: writes.prompts[name].label for name in names}


def _say_plan(
    files: Mapping[str, Sequence[CaptionFile]],
    manner: Manner,
    options: FisdOptions,
    prompts: str | Path | None,
    at_once: int,
    picture_seconds: float,
) -> None:
    """Pictures, calls, tokens and hours of a run, before it is begun."""
    from cir_datasets.common.estimates import CHARACTERS, Estimate, Work
    from cir_datasets.common.tables import render
    from cir_datasets.construction.fisd.dealing import deal
    from cir_datasets.construction.fisd.wording import ATTEMPTS
    from submissions.language.prompts import load_prompts

    dealt = deal(files, manner, options.per_aspect + options.spare, options.seed, options.limit)
    templates = load_prompts(prompts)
    found: list[Work] = []
    for aspect in files:
        of_it = [row for row in dealt.rows if row["aspect"] == aspect]
        found.append(Work(f"pictures of {aspect}", pictures=3 * len(of_it)))
        if aspect == CARDINALITY:
            continue
        edits = [row for row in of_it if "target_caption" not in row]
        for what, prompt, rows in (
            (f"edits of {aspect}", f"edit_{aspect}", edits),
            (f"hard negatives of {aspect}", "hard_negative", of_it),
        ):
            characters = sum(len(templates[prompt].text) + 3 * len(row["caption"]) for row in rows)
            found.append(Work(what, len(rows), characters // CHARACTERS, len(rows) * _ANSWER_TOKENS))
    assumed = f"{counted(len(dealt.rows), 'triplet')}, our prompts and these captions"
    estimate = Estimate(assumed, found, at_once=at_once, picture_seconds=picture_seconds)
    echo(render([estimate.table()], "table"))
    again = f"An edit that is refused is asked for again, {ATTEMPTS} times in all."
    echo(f"Answers in the cache are not asked again; numbers come from templates. {again}", err=True)


def _write(
    made: MadeFisd, options: MakeFisdOptions, name: str, aspects: Sequence[str], manner: Manner
) -> None:
    """The files that a run leaves, and their names."""
    from cir_datasets.construction.fisd.outcome import write_outcome, write_page
    from cir_datasets.construction.fisd.review import write_review
    from cir_datasets.construction.review.page import PAGE, TABLE, left_alone
    from cir_datasets.construction.workspace import Workspace

    out, heading = options.out, options.title or name
    gallery: Any = options.gallery
    page = write_page(made, out / "report.html", heading)
    left = write_review(out, made.triplets, manner.most, f"{heading}: review", taken_in=options.review)
    echo(str(page))
    echo(str(out / PAGE))
    if left:
        echo(left_alone(out / TABLE), err=True)
    settings = Workspace.existing(out).settings
    folder = write_outcome(
        made, name=name, title=heading, galleries=gallery, aspects=aspects, settings=settings
    )
    echo(str(folder))
    failed = sum(each.failed is not None for each in made.triplets)
    left_out = f"{counted(failed, 'triplet')} left out, see {page.name}."
    echo(f"{counted(len(made.queries), 'query', 'queries')}; {left_out}", err=True)
    echo_use(folder)
