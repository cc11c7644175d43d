"""A challenge is made: its public part, its ground truth and its board, each in a place of its own.

The public part is a folder that the organiser hands out; it becomes the benchmark `NAME/test` wherever it
is known (`cir_datasets.registry.challenges`). Rows lose their truth and everything that may hint at it:
fields of the source's own are left out, subsets, rows and gallery are sorted by id.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import cir_datasets
from cir_datasets.common.atomic import write_whole
from cir_datasets.common.paths import cache_home, challenge_home
from cir_datasets.common.yaml import package_yaml
from cir_datasets.errors import RecordError
from cir_datasets.registry.challenges import CARD_FILE, CONFIG, PINS_FILE, challenge_names
from cir_datasets.registry.schema import main_metric_terms
from cir_metrics.errors import CallError
from leaderboard.boards import Phase, check_place, organisers_folder, parse, phases_fault
from leaderboard.boards.pricing import BoardPrice, Unit, offered, oversold, rule
from leaderboard.challenge.material import Material, private_data_home
from leaderboard.errors import BoardError, FileStoreError
from leaderboard.queue.ground_truth import LEAST_QUERIES, as_bytes

if TYPE_CHECKING:
    from cir_datasets.rows.records import Row

QUERIES_FILE, GALLERY_FILE, SAMPLE_FILE = "queries.json", "images.json", "sample.json"
PUBLIC_FILES = frozenset((CARD_FILE, PINS_FILE, QUERIES_FILE, GALLERY_FILE, SAMPLE_FILE))
"""What the public part consists of."""
PUBLIC_FIELDS = (
    "query_id",
    "reference_image_id",
    "captions",
    "relative_caption",
    "subset_image_ids",
    "gallery_image_ids",
    "session_id",
    "turns",
)
"""What the public part holds of a query or session."""
OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Rights that nobody but the owner of a ground truth should have."""
_DEFAULT_DAYS = 90


@dataclass(frozen=True)
class Rules:
    """What a challenge is called and when it takes submissions.

    Args:
        name: its name; the benchmark and the board are `NAME/test`.
        title: how pages call it.
        ground_truth: where the ground truth goes: an absolute path, `s3://...` or `hf://datasets/...`.
        phases: when it takes submissions.
    """

    name: str
    title: str
    ground_truth: str
    phases: tuple[Phase, ...] = field(default_factory=tuple)

    @property
    def id(self) -> str:
        """The id of benchmark and board."""
        return f"{self.name}/{CONFIG}"


@dataclass(frozen=True)
class Made:
    """Where the parts of a new challenge lie."""

    public: Path
    board: Path
    sample: Path
    queries: int
    warnings: tuple[str, ...] = ()


def default_phase() -> Phase:
    """A phase that opens today and lasts a quarter of a year."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Phase(name="test", opens=today, closes=today + timedelta(days=_DEFAULT_DAYS))


def make(material: Material, rules: Rules) -> Made:
    """Make a challenge; nothing is left behind where a step fails.

    Raises:
        CallError: a challenge, a board or a ground truth of that name is there already.
        RecordError: a row breaks a rule of benchmarks.
        BoardError: the board would not be one.
        FileStoreError: a place cannot be written.
    """
    public = challenge_home() / rules.name
    board_file = organisers_folder() / f"{rules.name}.yaml"
    for place in (public, board_file):
        if place.exists():
            raise CallError(
                f"{place}: is there already. Fix: choose another name, or  cir challenge remove {rules.name}"
            )
    fault = phases_fault(rules.phases)
    if fault is not None:
        raise CallError(f"--phase: {fault}. Fix: name phases in order, each after the one before.")
    if rules.name in cir_datasets.names():
        raise CallError(f"{rules.name!r} is the name of a benchmark. Fix: choose another name.")
    board = _board(material, rules)
    with private_data_home():
        _check_rows(material, rules)
    content = as_bytes(rules.id, material.rows)
    done: list[Path] = []
    try:
        done.append(public)
        _write_public(material, rules, public)
        # A board is checked against its benchmark, which must be there by then.
        check_place(parse(board, str(board_file)))
        sample = _write_sample(rules, public)
        write_ground_truth(rules.ground_truth, content)
        done.append(board_file)
        board_file.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(board, sort_keys=False, allow_unicode=True, width=100)
        write_whole(board_file, text.encode(), durable=True)
    except BaseException:
        for place in done:
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        raise
    return Made(public, board_file, sample, len(material.rows), tuple(_warnings(material, rules)))


def remove(name: str) -> tuple[str, ...]:
    """Remove a challenge's board and public part; its ground truth and what was submitted stay.

    Args:
        name: its name; the board may be there without the folder, and the other way round.

    Returns:
        What was removed, and what of the folder is not ours and stays.

    Raises:
        CallError: there is no such challenge.
    """
    public, board_file = challenge_home() / name, organisers_folder() / f"{name}.yaml"
    there = [path for path in (board_file, *(public / each for each in PUBLIC_FILES)) if path.is_file()]
    if not there:
        known = ", ".join(challenge_names()) or "none"
        raise CallError(f"no challenge {name!r}. Fix: name one that is there: {known}.")
    for path in sorted(there):
        path.unlink()
    shutil.rmtree(cache_home() / "prepared" / name, ignore_errors=True)
    left = sorted(public.rglob("*"))
    if not left and public.is_dir():
        public.rmdir()
    return (*(f"{path}: removed" for path in sorted(there)), *(f"{path}: stays" for path in left))


def write_ground_truth(address: str, content: bytes) -> None:
    """Write a ground truth where there is none: a local one for its owner's eyes only.

    Raises:
        CallError: there is one already.
        FileStoreError: the place cannot be written.
    """
    try:
        if address.startswith("/"):
            path = Path(address)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return
        import fsspec

        system, path_there = fsspec.core.url_to_fs(address)
        if system.exists(path_there):
            raise FileExistsError(address)
        system.pipe_file(path_there, content)
    except FileExistsError as error:
        raise CallError(f"{address}: is there already. Fix: name another place.") from error
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        raise FileStoreError(
            f"{address}: the ground truth cannot be written there ({type(error).__name__}). "
            "Fix: check the place, the keys in the environment, and what they may do."
        ) from None


def _check_rows(material: Material, rules: Rules) -> None:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.registry.schema import Card
    from cir_datasets.rows.checks import checked_images, checked_rows
    from cir_datasets.rows.records import image_row

    if len(material.rows) < LEAST_QUERIES:
        raise CallError(
            f"{len(material.rows)} queries are too few: each number of a sealed board is of {LEAST_QUERIES} "
            "at least. Fix: seal more queries."
        )
    card = _card(material, rules)
    card["configs"][CONFIG]["ground_truth"] = "public"
    spec = BenchmarkSpec(Card.model_validate(card), CONFIG)
    images = [image_row(image, relative_path=path) for image, path in material.images]
    gallery = [image["image_id"] for image in checked_images(images, "the gallery")]
    for row in checked_rows(spec, material.rows, gallery, lambda number: f"record {number}"):
        truth = row.get("positive_image_ids", row.get("ground_truth_ids"))
        name = row[material.id_field]
        answer = next((image for image in truth or () if image in name), None)
        if answer is not None:
            raise RecordError(
                f"{material.id_field} {name!r} holds the id of its own positive {answer!r}. "
                "Whoever reads the queries would know the answer. "
                "Fix: give the queries other ids."
            )


def _warnings(material: Material, rules: Rules) -> Iterator[str]:
    telling = [str(row[material.id_field]) for row in material.rows if _tells(row)]
    if telling:
        yield (
            f"the id of a positive stands in its own query's captions, and may tell it: {len(telling):,} "
            f"times, first in {telling[0]!r}."
        )
    folder = Path(rules.ground_truth).parent
    if rules.ground_truth.startswith("/") and folder.stat().st_mode & OF_OTHERS:
        yield f"{folder}: others may read the folder of the ground truth. Fix: chmod 700 {folder}"


def _tells(row: Row) -> bool:
    """Whether a caption holds the id of a positive, as a word."""
    captions = [
        caption
        for each in row.get("turns", (row,))
        for caption in each.get("captions") or [each["relative_caption"]]
    ]
    positives = row["ground_truth_ids" if "turns" in row else "positive_image_ids"]
    words = "|".join(map(re.escape, positives))
    return any(re.search(rf"(?<!\w)({words})(?!\w)", caption) for caption in captions)


def _board(material: Material, rules: Rules) -> dict[str, Any]:
    fixed = package_yaml("leaderboard", "challenge/new.yaml")

    def column(metric: str) -> dict[str, str] | None:
        name, _, cutoff = metric.partition("@")
        label = fixed["labels"].get(name)
        return None if label is None else {"metric": metric, "label": f"{label}@{cutoff}"}

    terms = main_metric_terms(material.main)
    main = column(terms[0])
    if main is None or any(term not in material.metrics for term in terms):
        raise BoardError(
            f"{material.main!r} cannot rank a challenge. Fix: name one of "
            f"{', '.join(metric for metric in material.metrics if column(metric))} with --main."
        )
    columns = [found for metric in material.metrics if metric != material.main and (found := column(metric))]
    sizes = [len(row["gallery_image_ids"]) for row in material.rows] if material.per_query else []
    choices = min(sizes, default=len(material.images))
    units: dict[str, Unit] = dict.fromkeys((*terms, *(each["metric"] for each in columns)), "percent")
    price = offered(len(material.rows), choices, terms, units, max(1, len(rules.phases)))
    phases = [phase.model_dump(mode="json", exclude_none=True) for phase in _priced(rules.phases, price)]
    return {
        "id": rules.id,
        "title": rules.title,
        "short_title": rules.title[:30],
        "group": "Multi-turn" if material.multi_turn else "Single-turn",
        **fixed["board"],
        "benchmark": rules.id,
        "ground_truth": rules.ground_truth,
        "primary": material.main,
        "primary_label": main["label"] if len(terms) == 1 else "Mean",
        "columns": [each for each in columns if each["metric"] in price.units],
        "step": price.step,
        **({"choices": choices} if material.per_query else {}),
        "phases": phases,
    }


def _priced(phases: Sequence[Phase], price: BoardPrice) -> list[Phase]:
    """The phases with the quotas that the price affords where they have none of their own."""
    open_ended = sum(phase.in_all is None for phase in phases)
    left = price.answers - sum(phase.in_all or 0 for phase in phases)
    found = []
    for phase in phases:
        limit = phase.in_all or max(1, left // open_ended)
        results = "at_end" if price.small else phase.results
        limits = {"in_all": limit, "a_day": phase.a_day or min(rule().a_day, limit), "results": results}
        found.append(phase.model_copy(update=limits))
    for fault in oversold(price, [phase.in_all for phase in found], at_end=price.small):
        raise CallError(fault)
    return found


def _card(material: Material, rules: Rules) -> dict[str, Any]:
    # The first by id: in the files' own order, the first image may be the first query's target.
    first = min(str(row[material.id_field]) for row in material.rows)
    shown = sorted(image for image, _ in material.images)[:3]
    config: dict[str, Any] = {
        "split": "test",
        "queries": len(material.rows),
        "gallery": len(material.images),
        "reference": material.reference,
        "ground_truth": "withheld",
        "files": [QUERIES_FILE],
        "gallery_files": [GALLERY_FILE],
    }
    if material.subset is not None:
        config["subset"] = material.subset
    fixed = package_yaml("leaderboard", "challenge/new.yaml")["card"]
    card: dict[str, Any] = {
        "name": rules.name,
        "title": rules.title,
        "kind": "multi_turn" if material.multi_turn else "single_turn",
        **fixed,
        "paper": {"title": rules.title, **fixed["paper"]},
        "source": {"repository": rules.name, "folder": rules.name, **fixed["source"]},
        "configs": {CONFIG: config},
        "metrics": list(material.metrics),
        "main_metric": material.main,
        "images": material.images_words,
        "ids": f"An id of a query looks like `{first}`, that of an image like `{shown[0]}`.",
        "examples": {CONFIG: {"query": first, "images": shown}},
    }
    if material.per_query:
        card["gallery"] = "per_query"
    if any("captions" in turn for row in material.rows for turn in row.get("turns", ())):
        card["extra_fields"] = ["captions"]
    if material.image_folder is not None:
        card["image_folder"] = material.image_folder
    if material.image_paths is not None:
        card["image_paths"] = list(material.image_paths)
    return card


def _write_public(material: Material, rules: Rules, public: Path) -> None:
    from cir_datasets.common.atomic import staging_folder
    from cir_datasets.errors import DatasetError

    with staging_folder(
        public.parent, ".making-", error=DatasetError, fix="set CIR_CHALLENGES to a folder of yours."
    ) as made:
        rows = sorted(map(public_row, material.rows), key=lambda row: str(row[material.id_field]))
        images = [
            {"image_id": image} | ({} if path is None else {"relative_path": path})
            for image, path in sorted(material.images)
        ]
        contents = {
            QUERIES_FILE: json.dumps(rows, ensure_ascii=False, indent=1).encode(),
            GALLERY_FILE: json.dumps(images, ensure_ascii=False).encode(),
        }
        pins = {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in contents.items()
        }
        contents[PINS_FILE] = json.dumps(pins, indent=1).encode()
        card = yaml.safe_dump(_card(material, rules), sort_keys=False, allow_unicode=True, width=100)
        contents[CARD_FILE] = card.encode()
        for name, content in contents.items():
            (made / name).write_bytes(content)
        made.rename(public)


def public_row(row: Row) -> dict[str, Any]:
    """What the public part holds of a query or session."""
    found = {name: row[name] for name in PUBLIC_FIELDS if name in row}
    for name in ("subset_image_ids", "gallery_image_ids"):
        if name in found:
            # In the source's order the target may have a place of its own.
            found[name] = sorted(found[name])
    if "turns" in found:
        names = ("turn", "reference_image_id", "relative_caption", "captions")
        found["turns"] = [{name: turn[name] for name in names if name in turn} for turn in found["turns"]]
    return found


def _write_sample(rules: Rules, public: Path) -> Path:
    """Write a valid rank file in random order, which shows participants the form."""
    from submissions.rank_file.model import Method
    from submissions.running.make import make_rank_file

    rank_file = replace(make_rank_file(rules.id, "random"), method=Method(name="Sample in random order"))
    path = public / SAMPLE_FILE
    path.write_bytes(rank_file.to_json())
    return path
