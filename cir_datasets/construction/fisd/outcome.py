"""What a run gives: the benchmark in its folder, and the page about how it came to be."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cir_datasets.common.stages import FAILED
from cir_datasets.common.terminal import Table, counted
from cir_datasets.construction.fisd.making import MadeFisd
from cir_datasets.construction.fisd.options import ASPECTS
from cir_datasets.construction.fisd.triplets import ReviewedTriplet, gallery
from cir_datasets.construction.fisd.wording import REFUSED
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.construction.report import Example, Section, Step, table_of, write_report
from cir_datasets.construction.workspace import BENCHMARK, Workspace
from cir_datasets.errors import ConstructionError
from cir_datasets.registry.folder_card import PICTURES

if TYPE_CHECKING:
    from PIL.Image import Image

_NAMES = {
    "cardinality": "Cardinality",
    "addition": "Addition",
    "negation": "Negation",
    "change": "Change",
    "background": "Background",
    "complex": "Complex",
}
_METRICS = ("recall@1", "recall@5", "recall@10")
_EXAMPLES = 4
Galleries = Literal["together", "aspect"]


def write_outcome(
    made: MadeFisd,
    *,
    name: str,
    title: str,
    galleries: Galleries = "together",
    aspects: Sequence[str] = ASPECTS,
    settings: Mapping[str, Any],
    license: str = "unknown",
    image_license: str = "unknown",
) -> Path:
    """Write the benchmark into a folder in that of its run, as `write_benchmark` does.

    Args:
        made: the run.
        name: of the benchmark.
        title: how people call it.
        galleries: `together`, one configuration `test` with all aspects in one gallery; `aspect`, one for
            each aspect, with a gallery of its own.
        aspects: those that were to be made; the card names them, so that one without a query is missed.
        settings: how it was made, for the card.
        license: of the queries.
        image_license: of the pictures.

    Raises:
        ConstructionError: no query is left.
        CirError: as for `write_benchmark`.
    """
    if not made.queries:
        raise ConstructionError(
            f"{made.workspace.folder}: no triplet is left, see its report.html. Fix: give more or other "
            "captions."
        )
    configs, report = {"test": list(made.queries)}, {}
    if galleries == "together":
        report = {"by_aspect": list(_METRICS[:1]), "aspect_names": {each: _NAMES[each] for each in aspects}}
    else:
        by_aspect = {each: [row for row in made.queries if row["aspects"] == [each]] for each in ASPECTS}
        configs = {aspect: rows for aspect, rows in by_aspect.items() if rows}
    there = [aspect for aspect in ASPECTS if any(row["aspects"] == [aspect] for row in made.queries)]
    return write_benchmark(
        made.workspace.folder / BENCHMARK,
        name=name,
        title=title,
        summary=(
            f"{counted(len(made.queries), 'query', 'queries')} of {counted(len(there), 'aspect')} "
            f"({', '.join(there)}), made as FISD was: "
            "the pictures of reference, target and hard negative are drawn from captions with one seed, so "
            "that they differ in what the words say and in little else."
        ),
        configs=configs,
        galleries={config: gallery(rows) for config, rows in configs.items()},
        reference="kept",
        metrics=_METRICS,
        main_metric=_METRICS[0],
        report=report,
        picture_folder=PICTURES,
        license=license,
        image_license=image_license,
        traps=(
            "The reference image stays in the ranking, and so do the hard negatives, as in FISD.",
            "The pictures are drawn, and not photos.",
        ),
        made={"pipeline": "fisd", **settings},
    )


def write_page(made: MadeFisd, path: Path, title: str) -> Path:
    """Write the page about a run.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    return write_report(
        path,
        title=title,
        summary=(
            f"{counted(len(made.queries), 'query', 'queries')} of "
            f"{counted(len(made.triplets), 'triplet')}, made as FISD was."
        ),
        stages=made.workspace.states(),
        sections=_sections(made),
        open_picture=lambda image: _opened(made.workspace.folder / BENCHMARK / PICTURES / image),
    )


def _opened(path: Path) -> Image:
    from cir_datasets.common.paths import open_picture

    return open_picture(io.BytesIO(path.read_bytes()), ["PNG"]).convert("RGB")


def _sections(made: MadeFisd) -> list[Section]:
    sections = [
        Section("Captions", (_sources(made),), notes=tuple(_unsuitable(made))),
        Section("Triplets", (_ends(made.triplets),), notes=("Each triplet is counted once.",)),
        _numbers(made.triplets),
    ]
    refused = refusals(made.workspace)
    if refused is not None:
        sections.append(Section("Edits that were refused", (refused,)))
    for aspect in ASPECTS:
        kept = [each for each in made.triplets if each.aspect == aspect and each.failed is None]
        if kept:
            sections.append(Section(_NAMES[aspect], examples=tuple(map(_example, kept[:_EXAMPLES]))))
    dropped = [each for each in made.triplets if each.failed is not None]
    if dropped:
        sections.append(Section("Not in the benchmark", (_reasons(dropped),)))
    return sections


def refusals(work: Workspace) -> Table | None:
    """Of each aspect and rule the edits that broke it, and the triplets that ended so.

    Args:
        work: a run; None comes back where its edits are not all there, or none was refused.
    """
    edited = any(stage.name == "edits" and stage.finished for stage in work.states())
    answers, ends = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in work.rows("edits", tuple) if edited else ():
        codes = [(row["id"].rpartition("_")[0], edit["code"]) for edit in row.get(REFUSED, ())]
        answers.update(codes)
        # A backend that then answers nothing is no refusal.
        ends.update([code for code in codes[-1:] if str(row.get(FAILED)).startswith(f"{code[1]}: ")])
    if not answers:
        return None
    rows = [(*code, answers[code], ends[code]) for code in sorted(answers)]
    return table_of("Refused edits", ("aspect", "rule", "answers", "triplets lost"), rows)


def _sources(made: MadeFisd) -> Table:
    names = ("aspect", "files", "read", "repeats", "unsuitable", "taken", "left", "wanted")
    note = "Those read are repeats, unsuitable, taken, or left because enough were there."
    return table_of("Source captions", names, ([row[name] for name in names] for row in made.counts), (note,))


def _unsuitable(made: MadeFisd) -> list[str]:
    return [
        f"{row['aspect']}: " + "; ".join(f"{why} ({number:,})" for why, number in row["why"].items())
        for row in made.counts
        if row["why"]
    ]


def _ends(triplets: Sequence[ReviewedTriplet]) -> Table:
    """Where triplets ended, by aspect; columns are the stages that refuse some."""
    ends: dict[str, Counter[str]] = {}
    for each in triplets:
        end = "query" if each.failed is None else each.failed.partition(":")[0]
        ends.setdefault(each.aspect, Counter())[end] += 1
    order = ("query", "edits", "negatives", "pictures", "review", "ambiguous", "spare")
    there = [end for end in order if end == "query" or any(end in found for found in ends.values())]
    every = {aspect: ends[aspect] for aspect in ASPECTS if aspect in ends}
    every["all"] = sum(ends.values(), Counter[str]())
    rows = ((name, found.total(), *(found[end] for end in there)) for name, found in every.items())
    return table_of("Where triplets ended", ("aspect", "triplets", *there), rows)


def _numbers(triplets: Sequence[ReviewedTriplet]) -> Section:
    """Words of relative captions by aspect, and what people decided."""
    kept = [each for each in triplets if each.failed is None]
    rows = []
    for aspect in ASPECTS:
        words = sorted(len(each.relative_caption.split()) for each in kept if each.aspect == aspect)
        if words:
            mean = f"{sum(words) / len(words):.1f}"
            rows.append((aspect, mean, words[len(words) // 2], words[0], words[-1]))
    said = Counter(each.decision.verdict or "undecided" for each in triplets if each.images)
    redrawn = sum(each.decision.attempt > 0 for each in triplets)
    corrected = sum(each.original is not None for each in triplets)
    counts = [*sorted(said.items()), ("drawn anew", redrawn), ("corrected", corrected)]
    return Section(
        "Words and review",
        (
            table_of("Words of relative captions", ("aspect", "mean", "middle", "fewest", "most"), rows),
            table_of("Review", ("decision", "triplets"), counts),
        ),
    )


def _example(each: ReviewedTriplet) -> Example:
    titles = ("reference", "target", "hard negative")
    kinds: tuple[Literal["plain", "good", "bad"], ...] = ("plain", "good", "bad")
    steps = tuple(
        Step(image, title, caption, kind)
        for image, title, caption, kind in zip(each.images, titles, each.captions, kinds, strict=True)
    )
    return Example(f"{each.id}: {each.relative_caption}", steps, "corrected by hand" if each.original else "")


def _reasons(dropped: Sequence[ReviewedTriplet]) -> Table:
    rows = ((each.id, each.failed, each.relative_caption) for each in dropped)
    return table_of("Reasons", ("triplet", "why", "asked"), rows)
