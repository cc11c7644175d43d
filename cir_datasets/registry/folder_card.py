"""The short card of a folder that is a benchmark, and the whole card that it becomes with its files.

A maker writes a name and a title. What else a benchmark's card says is a default that fits most, or is read
in the files: counts, what a row is, the subsets' size, ids of an example.
"""

from __future__ import annotations

import functools
import json
import posixpath
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from cir_datasets.common.paths import NAME, PICTURE_FORMATS
from cir_datasets.common.row_files import ENDINGS, NOT_UTF8, Tallied, tally, text_lines
from cir_datasets.common.terminal import counted
from cir_datasets.common.yaml import checked
from cir_datasets.errors import CardError, RecordError
from cir_datasets.registry.schema import (
    Card,
    ConfigName,
    Count,
    ImagePath,
    MetricName,
    Paper,
    ReportExtras,
    StrictModel,
)
from cir_metrics.ids import DIRECTION

IMAGES_FILE, PICTURES = "images.txt", "images"
_LEAST_IMAGES = 3
_SPLITS: dict[str, Literal["train", "validation", "test"]] = {
    "train": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
}


def _inside(name: str) -> str:
    """A path that stays in its folder."""
    if name.startswith("/") or "\\" in name or ".." in Path(name).parts or not name:
        raise ValueError(
            f"{name!r} is not the name of a file in the folder. Fix: write it relative to card.yaml"
        )
    return name


FileName = Annotated[str, AfterValidator(_inside)]


class FolderConfig(StrictModel):
    """One configuration of a folder: its rows and its gallery."""

    queries: FileName
    """Its queries or sessions: JSON Lines, Parquet or CSV."""
    images: FileName = IMAGES_FILE
    """Its gallery: an image id a line, and where it is wanted a tab and the path of its picture."""
    split: Literal["train", "validation", "test"] | None = None
    """None takes it from the configuration's name."""
    note: str = ""


class FolderCard(StrictModel):
    """What the maker of a benchmark writes: a name and a title; the rest has defaults."""

    name: Annotated[str, Field(pattern=rf"^{NAME}$")]
    title: Annotated[str, Field(min_length=1)]
    summary: str = ""
    version: Count = 1
    """+1 whenever a published number can move."""
    private: bool = True
    """Whether it stays here: nothing is pushed unless its owner says so in the command."""
    configs: dict[ConfigName, FolderConfig] = Field(default_factory=dict)
    """By name; without it one, `test`, of `queries.jsonl` (or .parquet, .csv)."""
    reference: Literal["kept", "removed"] = "removed"
    """Whether the reference image stays in the ranking."""
    gallery: Literal["common", "per_query"] = "common"
    """`per_query` where each query ranks the images of its own `gallery_image_ids`."""
    metrics: tuple[MetricName, ...] = ()
    """Empty takes those that are usual for such rows."""
    main_metric: str | None = None
    report: ReportExtras = ReportExtras()
    image_folder: str = PICTURES
    """Folder of the pictures: beside the card, absolute, or below `CIR_IMAGES`."""
    image_paths: tuple[ImagePath, ...] = (
        "{relative_path}",
        "{image_id}",
        "{image_id}.png",
        "{image_id}.jpg",
        "{image_id}.jpeg",
        "{image_id}.webp",
    )
    """Where a picture may lie below that folder."""
    license: str = "unknown"
    """Of queries, captions and answers."""
    image_license: str = "unknown"
    paper: Paper | None = None
    traps: tuple[str, ...] = ()
    """What users get wrong, a sentence each."""
    made: dict[str, Any] = Field(default_factory=dict)
    """How it was made: settings, models, prompts, seeds."""
    hashes: dict[FileName, str] = Field(default_factory=dict)
    """sha256 (hex) of rows and galleries as the package wrote them; `cir datasets verify` compares."""

    @model_validator(mode="before")
    @classmethod
    def _check_direction(cls, fields: Any) -> Any:
        wrong = DIRECTION.search(json.dumps(fields, ensure_ascii=False, default=str))
        if wrong is not None:
            raise ValueError(f"U+{ord(wrong[0]):04X} changes the direction of text; leave it out")
        return fields

    @field_validator("image_folder")
    @classmethod
    def _check_image_folder(cls, folder: str) -> str:
        if set(posixpath.normpath(folder)) == {"/"}:
            raise ValueError(f"{folder!r} holds every file of the machine; name the folder of the pictures")
        return folder


def files_of(short: FolderCard, folder: Path) -> tuple[str, ...]:
    """The files that a folder is made of, relative to it.

    Raises:
        CardError: the card names no rows, and there are none under the usual name, or several.
    """
    named = (
        name for config in configs_of(short, folder).values() for name in (config.queries, config.images)
    )
    return tuple(dict.fromkeys(named))


def configs_of(short: FolderCard, folder: Path) -> dict[str, FolderConfig]:
    """The configurations that a card names, else the one of `queries.*`.

    Raises:
        CardError: as for `files_of`.
    """
    if short.configs:
        return dict(short.configs)
    there = [f"queries{ending}" for ending in ENDINGS if (folder / f"queries{ending}").is_file()]
    if not there:
        raise CardError(
            f"{folder / 'queries.jsonl'}: no such file. Fix: write it, or name the files of rows under "
            "`configs:` in card.yaml."
        )
    if len(there) > 1:
        raise CardError(
            f"{folder}: {' and '.join(there)} are both there. Fix: keep one, or name those meant under "
            "`configs:` in card.yaml."
        )
    return {"test": FolderConfig(queries=there[0])}


def usual_metrics(multi_turn: bool, subset: int | None, several: bool) -> tuple[tuple[str, ...], str]:
    """The metrics of rows whose maker names none, and the one that ranks.

    Args:
        multi_turn: whether rows are sessions.
        subset: size of the queries' subsets, or None.
        several: whether queries may have several positives.

    Example:
        >>> usual_metrics(True, None, False)
        (('hits@10', 'final_recall@10', 'hits_auc@10'), 'hits_auc@10')
    """
    if multi_turn:
        return ("hits@10", "final_recall@10", "hits_auc@10"), "hits_auc@10"
    metrics, main = ["recall@1", "recall@5", "recall@10", "recall@50"], "recall@10"
    if several:
        metrics, main = [*metrics, "map@5", "map@10"], "map@5"
    if subset is not None:
        metrics += ["recall_subset@1", "recall_subset@2", "recall_subset@3"]
    return tuple(metrics), main


@functools.lru_cache(maxsize=64)
def _tallied(path: Path, state: tuple[int, int, int]) -> Tallied:
    return tally(path)


def expanded(folder: Path, short: FolderCard, states: tuple[tuple[int, int, int], ...]) -> Card:
    """The whole card of a folder.

    Args:
        folder: where it lies.
        short: what its maker wrote.
        states: of its files, in the order of `files_of`: what is read again when it changes.

    Raises:
        CardError: a file is not there, or its first row is malformed; the fields contradict each other.
        RecordError: a file of rows cannot be read.
    """
    configs = configs_of(short, folder)
    state = dict(zip(files_of(short, folder), states, strict=True))
    found = {
        name: _tallied(folder / config.queries, state[config.queries]) for name, config in configs.items()
    }
    galleries = {
        name: _listed(folder / config.images, state[config.images]) for name, config in configs.items()
    }
    first = next(iter(found.values()))
    kinds = {name: each.multi_turn for name, each in found.items()}
    if len(set(kinds.values())) > 1:
        raise CardError(
            f"{folder}: some configurations hold queries and some sessions. Fix: give each kind a folder."
        )
    subsets = {name: _subset(each) for name, each in found.items()}
    metrics, main = short.metrics, short.main_metric
    if not metrics:
        several = any(len(each.first.get("positive_image_ids") or ()) > 1 for each in found.values())
        metrics, usual = usual_metrics(first.multi_turn, next(filter(None, subsets.values()), None), several)
        main = main or usual
    paper = short.paper or Paper(
        title=short.title, authors="its makers", venue="not published", year=None, url=""
    )
    fields = {
        "name": short.name,
        "title": short.title,
        "version": short.version,
        "kind": "multi_turn" if first.multi_turn else "single_turn",
        "status": "folder",
        "summary": short.summary or short.title,
        "gallery": short.gallery,
        "paper": paper,
        "license": {
            "annotations": short.license,
            "images": short.image_license,
            "copies_allowed": not short.private,
        },
        "source": {
            "publisher": "folder",
            "repository": short.name,
            "folder": short.name,
            "revision": None,
            "instructions": "Ask its makers for the folder, and name it in CIR_BENCHMARKS.",
        },
        "configs": {
            name: {
                "split": config.split or _SPLITS.get(name, "test"),
                "queries": found[name].rows,
                "gallery": galleries[name][0],
                "reference": short.reference,
                "subset": subsets[name],
                "turns": dict(sorted(found[name].turns.items())) or None,
                "files": (config.queries,),
                "gallery_files": (config.images,),
                "note": config.note,
            }
            for name, config in configs.items()
        },
        "metrics": metrics,
        "main_metric": main or metrics[0],
        "report": short.report,
        "images": (
            f"They lie in {short.image_folder}. "
            if Path(short.image_folder).is_absolute()
            else f"Set CIR_IMAGES to the parent of {short.image_folder}/, or put it beside the card. "
        )
        + "Loading and scoring need no images.",
        "image_folder": short.image_folder,
        "image_paths": short.image_paths,
        "image_formats": PICTURE_FORMATS,
        "ids": "Ids are those of the maker's files.",
        "examples": {
            name: {
                "query": str(each.first.get("session_id", each.first.get("query_id"))),
                "images": galleries[name][1],
            }
            for name, each in found.items()
        },
        "traps": short.traps,
        "private": short.private,
        "extra_fields": first.extra,
    }
    return checked(Card, fields, str(folder / "card.yaml"), CardError)


def _subset(found: Tallied) -> int | None:
    members = found.first.get("subset_image_ids")
    return len(members) if isinstance(members, list) and members else None


@functools.lru_cache(maxsize=64)
def _listed(path: Path, state: tuple[int, int, int]) -> tuple[int, tuple[str, ...]]:
    """How many images a list names, and the first of them."""
    lines = text_lines(path)
    first = []
    for number, text in islice(lines, _LEAST_IMAGES):
        if text is None:
            raise RecordError(f"{path}: line {number}: {NOT_UTF8}")
        first.append(text.partition("\t")[0])
    if len(first) < _LEAST_IMAGES:
        raise CardError(
            f"{path}: it names {counted(len(first), 'image')}, and a gallery has at least {_LEAST_IMAGES}. "
            "Fix: write an image id a line."
        )
    return len(first) + sum(1 for _ in lines), tuple(first)
