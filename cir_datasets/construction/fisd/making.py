"""From files of captions to a folder of triplets that people have looked over, stage by stage."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from cir_datasets.common.stages import FAILED, Engine, Row
from cir_datasets.construction.backends import Words
from cir_datasets.construction.fisd.captions import CaptionFile
from cir_datasets.construction.fisd.dealing import Dealt, deal
from cir_datasets.construction.fisd.drawing import check_pictures, drawn_by_seed, picture_seed
from cir_datasets.construction.fisd.generators import Generator
from cir_datasets.construction.fisd.manners import Manner
from cir_datasets.construction.fisd.options import FisdOptions
from cir_datasets.construction.fisd.review import decided, take_in
from cir_datasets.construction.fisd.triplets import Decided, ReviewedTriplet, benchmark_row, ended, reviewed
from cir_datasets.construction.fisd.wording import edits_of, negatives_of
from cir_datasets.construction.workspace import Workspace

STAGES = {
    "sources": "what the files of captions hold, and what became of it",
    "captions": "a source caption for each triplet",
    "edits": "relative caption and caption of the target",
    "negatives": "caption of the hard negative",
    "pictures": "three pictures of one seed",
    "decisions": "what people said of them",
    "redrawn": "pictures drawn anew with another seed",
    "benchmark": "queries, and the triplets that are none",
}
_QUESTIONS = 32
"""Questions of a chunk."""


@dataclass(frozen=True)
class MadeFisd:
    """What a run has made.

    Args:
        workspace: its folder.
        counts: a row an aspect on its sources.
        triplets: all of them, in order.
        queries: rows of the benchmark.
    """

    workspace: Workspace
    counts: tuple[Row, ...]
    triplets: tuple[ReviewedTriplet, ...]
    queries: tuple[Row, ...]


def settings_of_run(
    files: Mapping[str, Sequence[CaptionFile]],
    options: FisdOptions,
    manner: Manner,
    words: Words | None,
    generator: Generator,
) -> Row:
    """Everything that the stages depend on."""
    return {
        "captions": {aspect: [[file.name, file.sha256] for file in files[aspect]] for aspect in files},
        **asdict(options),
        "manner": manner.identity,
        "language": None if words is None else dict(words.identity),
        "generator": dict(generator.identity),
    }


def make_fisd(
    folder: str | Path,
    files: Mapping[str, Sequence[CaptionFile]],
    *,
    manner: Manner,
    words: Words | None,
    generator: Generator,
    options: FisdOptions | None = None,
    prompts: Mapping[str, str] | None = None,
    review: str | Path | None = None,
    engine: Engine | None = None,
) -> MadeFisd:
    """Make, or go on with, all stages.

    Args:
        folder: where everything is written.
        files: by aspect its files of captions; aspects that are not named are not made.
        manner: how captions speak.
        words: edits captions; None where cardinality and edits of the files' own are all that is made.
        generator: draws the pictures.
        options: what is made.
        prompts: names and versions of the prompts, for the settings.
        review: a filled-in file of `review.csv` to take in.
        engine: where pictures are drawn; None is this process.

    Raises:
        ConstructionError: the folder holds a run with other settings, or the review cannot be taken in.
        CirError: the language backend answers nothing more; finished chunks are kept.
    """
    chosen = options or FisdOptions()
    settings = settings_of_run(files, chosen, manner, words, generator) | {"prompts": dict(prompts or {})}
    work = Workspace(folder, "fisd", STAGES, settings)

    @functools.cache
    def dealt() -> Dealt:
        return deal(files, manner, chosen.per_aspect + chosen.spare, chosen.seed, chosen.limit)

    counts = work.rows("sources", lambda: dealt().counts)
    sources = work.rows("captions", lambda: dealt().rows)
    edit = functools.partial(edits_of, manner=manner, words=words, seed=chosen.seed)
    edits = work.rows_in_chunks("edits", sources, edit, size=_QUESTIONS)
    whole = _joined(sources, edits)
    deny = functools.partial(negatives_of, manner=manner, words=words, seed=chosen.seed)
    negatives = work.rows_in_chunks("negatives", whole, deny, size=_QUESTIONS)
    whole = _joined(whole, negatives)
    draw = functools.partial(
        drawn_by_seed, generator=generator, seed=chosen.seed, chunk=chosen.chunk, engine=engine
    )
    drawn = draw(work, "pictures", whole, dict.fromkeys((row["id"] for row in whole), 0))

    seeds = functools.partial(picture_seed, chosen.seed)
    if review is not None:
        known = {row["id"]: row for row in whole}
        take_in(review, work.folder, known, seeds, manner.most, lambda: work.forget_from("decisions"))
    decisions = [
        Decided(**row)
        for row in work.rows(
            "decisions",
            lambda: (asdict(each) for each in decided(work.folder, [r["id"] for r in sources], seeds)),
        )
    ]
    attempts = {decision.id: decision.attempt for decision in decisions}
    again = [row for row in whole if attempts[row["id"]]]
    redrawn = draw(work, "redrawn", again, attempts)
    pictures = {row["id"]: row for row in (*drawn, *redrawn)}
    parts = _parts(sources, edits, negatives)
    triplets = [
        reviewed(
            parts[each.id], pictures.get(each.id), each, manner, seed=chosen.seed, only=chosen.reviewed_only
        )
        for each in decisions
    ]
    final = tuple(ended(triplets, manner, chosen.per_aspect))
    rows = work.rows("benchmark", lambda: map(benchmark_row, final))
    queries = tuple(cast("Row", row["query"]) for row in rows if row["query"] is not None)
    check_pictures(work.folder, pictures.values(), queries)
    return MadeFisd(work, tuple(counts), final, queries)


def _joined(rows: Sequence[Row], more: Sequence[Row]) -> list[Row]:
    """The rows that have not failed, with what the next stage has made."""
    found = {row["id"]: row for row in more}
    return [{**row, **found[row["id"]]} for row in rows if not found[row["id"]].get(FAILED)]


def _parts(*stages: Sequence[Row]) -> dict[str, Row]:
    """All that the stages of words say of each triplet, failures with the name of the stage."""
    parts: dict[str, Row] = {}
    for name, rows in zip(("captions", "edits", "negatives"), stages, strict=True):
        for row in rows:
            why = row.get(FAILED)
            parts[row["id"]] = {
                **parts.get(row["id"], {}),
                **row,
                **({FAILED: f"{name}: {why}"} if why else {}),
            }
    return parts
