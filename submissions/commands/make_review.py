"""`cir make review` and `cir make review-import`: questions to people about a benchmark's queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import Images, LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import counted, echo
from submissions.running.method_options import SeedOptions

if TYPE_CHECKING:
    from cir_datasets.common.stages import Row
    from cir_datasets.construction.review.form import ReviewForm
    from cir_datasets.registry.overlays import Overlay
    from cir_datasets.rows.benchmark import Benchmark

_SHOWN = 20


class ReviewOptions(SeedOptions, LoadsBenchmarks):
    """What `cir make review` takes."""

    form: str = argument(..., "auxiliary, performance, noise, quality, or a form of yours (YAML).")
    sources: list[str] = argument(..., "Benchmarks of queries: ids, suites, or folders of `cir make`.")
    out: Path = option(..., "Where to write: the folder of the review.", "-o")
    sample: int | None = option(
        None, "Drawn of each source, of a suite evenly; default: the form's, 0 all.", min=0
    )
    images: Images = None


@command
def review_command(options: ReviewOptions) -> None:
    """Write a page on which people answer a form about a benchmark's queries; sources are mixed.

    \b
    Example:
        cir make review noise cirr/val circo/val fashioniq/val --out audit
        cir make review quality gpt/benchmark qwen/benchmark --out models
    """
    from cir_datasets.construction.review.form import load_form
    from cir_datasets.construction.review.queries import drawn_items, give_out
    from submissions.making.circled import benchmarks_of, source_pictures

    form = load_form(options.form)
    sources: dict[str, list[Benchmark]] = {}
    places: dict[str, str] = {}
    for name in options.sources:
        loaded = benchmarks_of(name)
        is_folder = Path(name).is_dir()
        sources[loaded[0].id if is_folder else name] = loaded
        places |= {one.id: str(Path(name).absolute()) if is_folder else one.id for one in loaded}
    items = drawn_items(form, sources, sample=options.sample, seed=options.seed)
    images: dict[str, dict[str, None]] = {}
    for item in items:
        named = (item["reference"], item["target"], *item["targets"], *item["candidates"])
        images.setdefault(item["benchmark"], {}).update(dict.fromkeys(filter(None, named)))
    benchmarks = {one.id: one for many in sources.values() for one in many}
    pictures = {
        name: source_pictures(benchmarks[name], options.images, list(ids)) for name, ids in images.items()
    }
    numbers = {name: {image: at for at, image in enumerate(ids)} for name, ids in images.items()}
    page = give_out(
        options.out, form, items, lambda name, image: pictures[name].open(numbers[name][image]), places
    )
    people = counted(form.people, "person", "people")
    echo(f"cir: {counted(len(items), *form.item)}, each for {people}", err=True)
    echo(str(page))


class ReviewImportOptions(LoadsBenchmarks):
    """What `cir make review-import` takes."""

    folder: Path = argument(..., "Folder of `cir make review`.")
    answers: list[Path] = argument(..., "Files that the page saved, of all people.")


@command
def review_import_command(options: ReviewImportOptions) -> None:
    """Check and merge people's answers: figures with intervals, agreement, and what the form makes of them.

    That is a benchmark with a further field, an overlay of clean queries, or a rank file of people's choices.

    Example: cir make review-import audit ann.json bob.json cy.json
    """
    from cir_datasets.common.stages import FAILED
    from cir_datasets.common.tables import render
    from cir_datasets.construction.review.agreement import import_answers
    from cir_datasets.construction.review.queries import (
        candidate_rankings,
        clean_queries,
        filled_fields,
        given_out,
        outcome_table,
        write_outcome,
    )
    from submissions.formats.servers import dump, server_format
    from submissions.making.circled import benchmarks_of
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.model import CIRR_SERVER, Method, RankFile, write_bytes

    form, items, run, places = given_out(options.folder)
    review = import_answers(form, items, options.answers, run=run)
    table = outcome_table(form, items, review)
    by_benchmark: dict[str, list[Row]] = {}
    for item in items:
        by_benchmark.setdefault(item["benchmark"], []).append(item)
    overlays: list[Overlay] = []
    written: list[Path] = []
    for name, some in by_benchmark.items():
        (source,) = benchmarks_of(places[name])
        if kept := clean_queries(form, some, review):
            overlays.append(_overlay(source, f"{form.name}_clean", kept))
        if fields := filled_fields(form, some, review):
            written.append(_with_fields(options.folder / name.replace("/", "_"), form, source, fields))
        rankings = candidate_rankings(form, some, review)
        # In CIRR's format alone rankings of subsets can stand without those of the gallery.
        if rankings and server_format(source.spec.card.name) == CIRR_SERVER:
            asked = source.id
            if len(rankings) < len(source):
                overlays.append(_overlay(source, f"{form.name}_sample", rankings))
                asked = overlays[-1].id
            people = RankFile(asked, source.version, Method(name="People"), {}, rankings)
            file = options.folder / f"{name.replace('/', '_')}-people.json"
            content = dump(people, CIRR_SERVER, Benchmarks(source))["recall_subset"]
            written.append(write_bytes(content, file))
    written += write_outcome(options.folder, review, render([table], "markdown"), overlays)
    refused = [row for row in review.answers if FAILED in row]
    for row in refused[:_SHOWN]:
        echo(f"cir: refused: {row['file']}, {row['place']}: {row[form.id]}: {row[FAILED]}", err=True)
    echo(render([table], "table"))
    for path in written:
        echo(str(path))


def _overlay(source: Benchmark, name: str, queries: Iterable[str]) -> Overlay:
    from cir_datasets.registry.overlays import Overlay

    base = source.id.partition("+")[0]
    return Overlay(name, base, source.version, "cir make review-import", dict.fromkeys(queries))


def _with_fields(folder: Path, form: ReviewForm, source: Benchmark, fields: Mapping[str, Row]) -> Path:
    """The benchmark again, its queries with what people wrote."""
    from cir_datasets.common.row_files import EXTRA_OF_QUERY, QUERY
    from cir_datasets.construction.folder import write_benchmark
    from submissions.making.circled import relative_paths

    spec, known = source.spec, QUERY | EXTRA_OF_QUERY
    rows = [
        {name: value for name, value in row.items() if name in known} | fields.get(row["query_id"], {})
        for row in source.rows()
    ]
    return write_benchmark(
        folder,
        name=f"{spec.card.name}_{form.name}",
        title=f"{spec.card.title}, with answers to the form {form.name}",
        configs={spec.config_name: rows},
        galleries=list(source.gallery or ()),
        reference=spec.config.reference,
        metrics=spec.metrics,
        main_metric=spec.main_metric,
        made={"pipeline": "review", "form": form.name, "benchmark": source.id, "data": source.data_hash},
        **relative_paths(source),
    )
