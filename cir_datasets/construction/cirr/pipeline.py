"""CIRR's construction from a folder of pictures to a benchmark, stage by stage."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.common.stages import CALLED, FAILED, Engine, Row, compared
from cir_datasets.common.yaml import package_yaml
from cir_datasets.construction.backends import Failed, Features, Question, Words
from cir_datasets.construction.cirr import answers as handed_in
from cir_datasets.construction.cirr.corpus import Corpus, bounds_of, divided, looked_at
from cir_datasets.construction.cirr.output import write_output
from cir_datasets.construction.cirr.pairs import pairs_of, paths_of
from cir_datasets.construction.cirr.plan import CirrPlan
from cir_datasets.construction.cirr.subsets import SubsetMaker, first_images, without_overlaps
from cir_datasets.construction.cirr.tasks import shown, tasks_of, write_tasks
from cir_datasets.construction.review.answers import (
    checked_answers,
    keep_file,
    kept_files,
    kept_number,
    read_answers,
    words_of,
)
from cir_datasets.construction.workspace import Workspace
from cir_datasets.errors import ConstructionError

PIPELINE = "cirr"
PROMPT = "pair"
"""The prompt of captions by a model."""

TASKS, OPEN, ANSWERS = "tasks", "open-tasks", "answers"
"""Folders of a run: the pages, those of pairs that still need a caption, and what was handed in."""

_KNOWN = package_yaml("cir_datasets", "construction/cirr/stages.yaml")
STAGES: Mapping[str, Mapping[str, str]] = {
    who: {**_KNOWN["common"], **_KNOWN[who]} for who in ("people", "model")
}
"""By who writes the captions: the stages and what they do."""

_LOOKED_AT_ONCE, _FIRSTS, _SUBSETS = 2048, 4096, 4


@dataclass(frozen=True)
class CirrMade:
    """What a run has come to.

    Args:
        benchmarks: folders of the queries and of the dialogues, as far as captions make any.
        report: the page about it.
        tasks: pages that annotators are to fill in.
        counts: numbers, by what they count.
        refused: answers that count for nothing, each with file, place, task and reason.
        empty: splits without a subset.
    """

    benchmarks: tuple[Path, ...]
    report: Path
    tasks: tuple[Path, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


def make_benchmark(
    out: Path,
    corpus: Corpus,
    features: Features,
    plan: CirrPlan,
    *,
    words: Words | None = None,
    engine: Engine | None = None,
) -> CirrMade:
    """Make subsets, pairs and paths; then tasks for annotators, or captions by a model and the benchmark.

    Args:
        out: folder of the run; the caller holds it (`Workspace.held`).
        corpus: the images.
        features: of the images; the paper takes ResNet152.
        plan: what is made.
        words: writes the captions; None leaves them to people.
        engine: where subsets are made; None is this process.

    Raises:
        ConstructionError: the folder holds another run, the images make no subset, or the system refuses to
            write.
    """
    settings = {
        "images": {"name": corpus.name, "digest": corpus.digest},
        "encoder": dict(features.identity),
        "captions": dict(words.identity) if words is not None else "people",
        "plan": plan.to_dict(),
        CALLED: {"name": plan.name, "title": plan.title},
    }
    stages = STAGES["people" if words is None else "model"]
    workspace = Workspace(out, PIPELINE, stages, settings)
    images = _images(workspace, corpus, plan)
    ids = [row["image"] for row in images]
    workspace.vectors("features", lambda: features.images(ids))
    maker = SubsetMaker(workspace.path("features", ".npy"), ids, bounds_of(images), plan)
    subsets = workspace.rows_in_chunks(
        "subsets", first_images(maker.bounds, plan.seed, plan.limit), maker, size=_FIRSTS, engine=engine
    )
    used = _good(
        workspace.rows(
            "overlaps",
            lambda: without_overlaps(_good(subsets), shared=plan.shared, number=plan.subsets, seed=plan.seed),
        )
    )
    if not used:
        raise ConstructionError(
            f"{len(ids)} images make no subset of {plan.size}: none of {len(subsets)} has "
            "enough neighbours. Fix: take more images, another --encoder, another rule (alike, apart), "
            "and name another folder."
        )
    pairs = workspace.rows("pairs", lambda: (pair for subset in used for pair in pairs_of(subset)))
    workspace.rows("paths", lambda: paths_of(pairs))
    if words is not None:
        by_subset = [[pair for pair in pairs if pair["subset"] == subset["subset"]] for subset in used]
        workspace.rows_in_chunks(
            "captions", by_subset, lambda chunk: _captions_by(words, chunk), size=_SUBSETS
        )
        return _finished(workspace, corpus, plan, settings)
    tasks = workspace.rows(
        "tasks", lambda: tasks_of(pairs, annotators=plan.annotators, shared=plan.common, seed=plan.seed)
    )
    pages = _written(workspace.folder / TASKS, tasks, corpus, plan, run_of(settings))
    if kept_files(workspace.folder / ANSWERS):
        return _with_answers(workspace, corpus, plan, settings)
    return _finished(workspace, corpus, plan, settings, tasks=pages)


def import_answers(out: Path, corpus: Corpus, files: Sequence[Path]) -> CirrMade:
    """Take in what annotators handed in, beside what they handed in before, and write the benchmark.

    Args:
        out: folder of a run whose captions people write; the caller holds it.
        corpus: the images of that run.
        files: as pages saved them, or CSV.

    Raises:
        ConstructionError: the folder holds no such run, its tasks are not there yet, or the images differ.
        RecordError: a file is in no form that is read.
    """
    root = Path(out).expanduser().absolute()
    settings = settings_of(root)
    if settings["images"]["digest"] != corpus.digest:
        raise ConstructionError(
            f"{root}: it was made of other images than those of {corpus.name}. Fix: name the same ones."
        )
    workspace = Workspace(root, PIPELINE, STAGES["people"], settings)
    if not workspace.path("tasks", ".jsonl").is_file():
        raise ConstructionError(f"{root}: it has no tasks yet. Fix: let `cir make cirr` end first.")
    plan = CirrPlan.of(settings)
    for file in files:
        read_answers(plan.form, file)
    there = {file.read_bytes() for file in kept_files(root / ANSWERS)}
    names: dict[bytes, str] = {}
    for file in files:
        names.setdefault(file.read_bytes(), file.name)
    new = {content: name for content, name in names.items() if content not in there}
    if new:
        # Before they are kept: a call that is stopped leaves no rows that lack what is kept.
        workspace.forget_from("answers")
        for content, name in new.items():
            keep_file(root / ANSWERS, content, f"-{name}")
    return _with_answers(workspace, corpus, plan, settings)


def settings_of(out: Path) -> dict[str, Any]:
    """The settings of a run whose captions people write.

    Raises:
        ConstructionError: the folder holds no such run.
    """
    run = Workspace.existing(out)
    if run.kind != PIPELINE or run.settings.get("captions") != "people":
        raise ConstructionError(
            f"{run.folder}: its captions are not written by people. Fix: name a folder of `cir make cirr` "
            "without --captions model."
        )
    return run.settings


def run_of(settings: Mapping[str, Any]) -> str:
    """Names a run, so that answers to another one are noticed: of its settings a short hash."""
    content = orjson.dumps(compared(settings), option=orjson.OPT_SORT_KEYS)
    # It begins with a letter: spreadsheets write 12e4567 as a number.
    return "r" + hashlib.sha256(content).hexdigest()[:12]


def _images(workspace: Workspace, corpus: Corpus, plan: CirrPlan) -> list[Row]:
    def make() -> list[Row]:
        parts = [corpus.ids[at : at + _LOOKED_AT_ONCE] for at in range(0, len(corpus.ids), _LOOKED_AT_ONCE)]
        rows = (row for part in parts for row in looked_at(corpus, part))
        return divided(rows, plan.shares, plan.seed)

    rows = workspace.rows("images", make)
    if rows and not _good(rows):
        raise ConstructionError(
            f"{corpus.name}: none of {len(rows):,} pictures can be used, such as {rows[0]['image']!r}: "
            f"{rows[0][FAILED]}. Fix: get the pictures again, and name another --out."
        )
    return _good(rows)


def _captions_by(words: Words, subsets: Sequence[Sequence[Row]]) -> list[Row]:
    """Captions of the pairs of some subsets; one that leads to two targets of its subset is none."""
    pairs = [pair for subset in subsets for pair in subset]
    found = words.ask(PROMPT, [Question(pictures=tuple(shown(pair))) for pair in pairs])
    rows: list[Row] = []
    said: Counter[tuple[int, str, str]] = Counter()
    for pair, one in zip(pairs, found, strict=True):
        made = {FAILED: one.why} if isinstance(one, Failed) else {"caption": one["instruction"]}
        rows.append({"pair": pair["pair"], **made})
        said[_key(pair, rows[-1])] += 1
    for pair, row in zip(pairs, rows, strict=True):
        if "caption" in row and said[_key(pair, row)] > 1:
            row[FAILED] = "the same words lead from this reference to several targets"
    return rows


def _key(pair: Row, row: Row) -> tuple[int, str, str]:
    return pair["subset"], pair["reference"], " ".join(words_of(row.get("caption", "")))


def _written(
    folder: Path, tasks: Sequence[Row], corpus: Corpus, plan: CirrPlan, run: str, times: int = 0
) -> list[Path]:
    """The pages of tasks."""
    return write_tasks(
        folder,
        tasks,
        form=plan.form,
        run=run,
        title=plan.heading,
        open_picture=corpus.open,
        times=times,
    )


def _with_answers(
    workspace: Workspace, corpus: Corpus, plan: CirrPlan, settings: Mapping[str, Any]
) -> CirrMade:
    files = kept_files(workspace.folder / ANSWERS)
    times = max(map(kept_number, files), default=0)
    pairs = workspace.rows("pairs", list)
    run = run_of(settings)

    def check() -> list[Row]:
        tasks = workspace.rows("tasks", list)
        handed = [row for file in files for row in read_answers(plan.form, file)]
        further = handed_in.further_tasks(handed, pairs, rounds=times)
        return checked_answers(plan.form, handed, [*tasks, *further], run=run)

    answers = workspace.rows("answers", check)
    captions = workspace.rows("captions", lambda: handed_in.captions_of(pairs, answers))
    _remove_pages(workspace.folder / OPEN)
    left = handed_in.open_pairs(pairs, captions)
    pages: list[Path] = []
    if left:
        again = tasks_of(left, annotators=1, shared=0, seed=plan.seed, prefix=f"r{times}-")
        pages = _written(workspace.folder / OPEN, again, corpus, plan, run, times)
    refused = tuple(
        f"{row['file']}, {row['place']}: {row['task']}: {row[FAILED]}" for row in answers if FAILED in row
    )
    return dataclasses.replace(_finished(workspace, corpus, plan, settings, tasks=pages), refused=refused)


def _remove_pages(folder: Path) -> None:
    """Remove pages of an earlier call, and nothing that somebody else put there."""
    for path in (*folder.glob("page-*.html"), *folder.glob("tasks.csv"), *folder.glob("pictures/*.jpg")):
        path.unlink()
    for empty in (folder / "pictures", folder):
        with contextlib.suppress(OSError):
            empty.rmdir()


def _finished(
    workspace: Workspace,
    corpus: Corpus,
    plan: CirrPlan,
    settings: Mapping[str, Any],
    *,
    tasks: Sequence[Path] = (),
) -> CirrMade:
    benchmarks, report, counts = write_output(
        workspace, corpus, name=str(plan.name), title=plan.heading, settings=settings
    )
    used = {row["split"] for row in workspace.rows("pairs", list)}
    empty = tuple(split for split in plan.shares if split not in used)
    return CirrMade(benchmarks, report, tuple(tasks), counts, empty=empty)


def _good(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if FAILED not in row]
