"""Writing a folder that is a benchmark: card, rows, galleries and a drafted dataset card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from cir_datasets.common.atomic import staging_folder, write_errors
from cir_datasets.common.paths import sha256_of
from cir_datasets.common.yaml import checked
from cir_datasets.construction.folder_check import check_folder
from cir_datasets.construction.names import check_name
from cir_datasets.errors import CardError, DatasetError, RecordError
from cir_datasets.publishing.card_text import README, drafted, is_draft
from cir_datasets.registry.folder_card import IMAGES_FILE, PICTURES, FolderCard, files_of
from cir_datasets.registry.folders import CARD_FILE, read_folder_card
from cir_datasets.rows.benchmark import GALLERY
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.rows.records import Row


_PREFIX = ".making-"
_SHOWN = 5
"""Faults of rows that a message names."""


def write_benchmark(
    folder: str | Path,
    *,
    name: str,
    title: str,
    configs: Mapping[str, Sequence[Row]],
    galleries: Sequence[str] | Mapping[str, Sequence[str]],
    summary: str = "",
    version: int = 1,
    reference: Literal["kept", "removed"] = "removed",
    metrics: Sequence[str] = (),
    main_metric: str | None = None,
    report: Mapping[str, Any] | None = None,
    image_paths: Mapping[str, str] | None = None,
    picture_folder: str | None = None,
    private: bool = True,
    license: str = "unknown",
    image_license: str = "unknown",
    traps: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
    made: Mapping[str, Any] | None = None,
) -> Path:
    """Write a folder that is a benchmark, whole or not at all; the same arguments give the same bytes.

    Rows and galleries of an earlier call go, other files of the folder (pictures, what a pipeline adds) stay.
    `card.yaml` comes last: a folder whose writing was broken off is not a benchmark, and is written again by
    the same call.

    Args:
        folder: made where it is missing.
        name: the benchmark's name, small letters, digits and `_`.
        title: how people call it.
        configs: by configuration (`test`, `train`) its queries, or its sessions, as
            `cir_datasets.rows.records` has them; fields that are null or empty may be left out. With
            `gallery_image_ids` each query ranks those, and the card says `gallery: per_query`.
        galleries: image ids, for all configurations or by configuration.
        summary: what it asks, in a paragraph.
        version: +1 whenever a published number can move.
        reference: whether the reference image stays in the ranking.
        metrics: what is scored; empty takes what is usual for such rows.
        main_metric: the one that ranks, or `mean(a, b)`.
        report: further tables, as a card's `report:` (`by_aspect` with `aspect_names`).
        image_paths: by image id where its picture lies below `picture_folder`, where ids alone do not say it.
        picture_folder: where the pictures lie: below `folder` (`images` without it), absolute, or below
            `CIR_IMAGES`.
        private: whether pushing it needs its owner's word.
        license: of the rows.
        image_license: of the pictures.
        traps: what users get wrong, a sentence each.
        notes: by configuration a line about it.
        made: how it was made: settings, seeds, models, prompts; plain values, lists and mappings.

    Returns:
        The folder.

    Raises:
        CardError: a field of the card is refused.
        RecordError: rows, galleries and card do not fit each other; the message names each row.
        CallError: the name cannot be used, or another benchmark is in the folder.
        DatasetError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> from cir_datasets.rows.records import query_row
        >>> row = query_row("1", reference_image_id="a", relative_caption="in red", target_image_id="b")
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     made = write_benchmark(f"{parent}/mine", name="mine", title="Mine", configs={"test": [row]},
        ...                            galleries=["a", "b", "c"])
        ...     sorted(path.name for path in made.iterdir())
        ['README.md', 'card.yaml', 'images.txt', 'queries.jsonl']
    """
    check_name(name)
    root = Path(folder).expanduser().absolute()
    shared = not isinstance(galleries, Mapping)
    by_config = {config: galleries if shared else galleries.get(config, ()) for config in configs}  # type: ignore[union-attr]
    together = shared or len({tuple(gallery) for gallery in by_config.values()}) == 1
    per_query = any(row.get(GALLERY) for rows in configs.values() for row in rows)
    alone = list(configs) == ["test"]
    fields: dict[str, Any] = {
        "name": name,
        "title": title,
        "summary": summary,
        "version": version,
        "private": private,
        "reference": reference,
        "gallery": "per_query" if per_query else "common",
        "configs": {
            config: {
                "queries": "queries.jsonl" if alone else f"{config}.jsonl",
                "images": IMAGES_FILE if together else f"{config}_{IMAGES_FILE}",
                **({"note": notes[config]} if notes and config in notes else {}),
            }
            for config in configs
        },
        "metrics": list(metrics),
        "main_metric": main_metric,
        "report": dict(report or {}),
        "image_folder": picture_folder or PICTURES,
        "license": license,
        "image_license": image_license,
        "traps": list(traps),
        "made": portable(made or {}),
    }
    card = checked(FolderCard, fields, f"{root / CARD_FILE}", CardError)
    _check_place(root, name, card.made.get("pipeline"))
    fix = "choose a folder of yours."
    with staging_folder(root.parent, _PREFIX, error=DatasetError, fix=fix) as staging:
        for config, rows in configs.items():
            place = staging / card.configs[config].queries
            place.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in _even(rows)))
            listed = staging / card.configs[config].images
            listed.write_text("".join(_image_lines(by_config[config], image_paths or {})), encoding="utf-8")
        hashes = {path.name: sha256_of(path) for path in sorted(staging.iterdir())}
        (staging / CARD_FILE).write_text(_card_text({**fields, "hashes": hashes}), encoding="utf-8")
        found = check_folder(staging, pictures=False, registered=False)
        if not found.ok:
            shown = "\n  ".join(error.replace(f"{staging}/", f"{root}/") for error in found.errors[:_SHOWN])
            more = f"\n  and {len(found.errors) - _SHOWN:,} more" if len(found.errors) > _SHOWN else ""
            raise RecordError(f"{root}: it would not be a benchmark; nothing was written.\n  {shown}{more}")
        (staging / README).write_text(drafted(staging), encoding="utf-8")
        with write_errors(root, DatasetError, fix):
            _move(staging, root)
    return root


def portable(value: Any) -> Any:
    """Settings without the places of this machine, as the card may be published: of a path stays its name.

    Example:
        >>> portable({"encoder": "/data/models/mine", "k": 10})
        {'encoder': 'mine', 'k': 10}
    """
    if isinstance(value, Mapping):
        return {name: portable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [portable(part) for part in value]
    return Path(value).name if isinstance(value, str) and value.startswith(("/", "~/")) else value


def _check_place(root: Path, name: str, pipeline: object) -> None:
    """A benchmark of that name, or of that pipeline, may be written again; another one is not overwritten."""
    if not (root / CARD_FILE).exists():
        return
    other = read_folder_card(root)
    if other.name != name and (pipeline is None or other.made.get("pipeline") != pipeline):
        raise CallError(
            f"{root}: holds the benchmark {other.name!r}. Fix: choose another folder, or remove it."
        )


def _earlier_files(root: Path) -> set[str]:
    """Rows and galleries of the benchmark that a folder holds."""
    try:
        named = files_of(read_folder_card(root), root)
    except CardError:
        return set()
    return {name for name in named if Path(name).name == name}


def _even(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows as they are written; the first one has the further fields that any has, null where it must."""
    from cir_datasets.common.row_files import EXTRA_OF_QUERY

    listed = list(rows)
    held = [name for name in EXTRA_OF_QUERY if any(row.get(name) not in (None, []) for row in listed)]
    extra = dict.fromkeys(held)
    for row in listed:
        kept = {name: value for name, value in row.items() if name not in EXTRA_OF_QUERY or name in extra}
        yield (extra if row is listed[0] else {}) | written_row(extra | kept if extra else kept)


def benchmarks_in(run: str | Path) -> list[Path]:
    """The folders of a run that are benchmarks, by name.

    Args:
        run: folder of a run of `cir make`.
    """
    return sorted(path.parent for path in Path(run).expanduser().absolute().glob(f"*/{CARD_FILE}"))


def written_row(row: Mapping[str, Any]) -> Row:
    """A row as it is written: without what is empty, or follows from the rest.

    Example:
        >>> written_row({"query_id": "1", "relative_caption": "in red", "aspects": []})
        {'query_id': '1', 'relative_caption': 'in red'}
    """
    kept = {name: value for name, value in row.items() if value not in (None, [], "")}
    if row.get("relative_caption") is not None and kept.get("captions") == [row["relative_caption"]]:
        del kept["captions"]
    if row.get("target_image_id") is not None and kept.get("positive_image_ids") == [row["target_image_id"]]:
        del kept["positive_image_ids"]
    kept.pop("num_turns", None)
    if "turns" in kept and isinstance(kept["turns"], list):
        kept["turns"] = [written_row(turn) if isinstance(turn, Mapping) else turn for turn in kept["turns"]]
    return kept


def _image_lines(gallery: Iterable[str], paths: Mapping[str, str]) -> Iterator[str]:
    for image in gallery:
        yield f"{image}\t{paths[image]}\n" if image in paths else f"{image}\n"


def _card_text(fields: Mapping[str, Any]) -> str:
    """The card in YAML, without what is a default anyway."""
    import yaml

    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in FolderCard.model_fields.items()
    }
    always = ("name", "title", "private", "reference")
    said = {
        name: value for name, value in fields.items() if name in always or (value and value != defaults[name])
    }
    return yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=100)


def _holds(place: Path, path: Path) -> bool:
    return place.is_file() and place.read_bytes() == path.read_bytes()


def _move(staging: Path, root: Path) -> None:
    """Put the files in their places: the card goes first and comes last."""
    root.mkdir(parents=True, exist_ok=True)
    new = {path.name: path for path in sorted(staging.iterdir())}
    if (root / README).is_file() and not is_draft((root / README).read_text(encoding="utf-8")):
        new.pop(README)  # its makers have written their own
    if all(_holds(root / name, path) for name, path in new.items()):
        return
    # Before the card goes: a call that is broken off here leaves the names of those that are left.
    for name in _earlier_files(root) - new.keys():
        (root / name).unlink(missing_ok=True)
    (root / CARD_FILE).unlink(missing_ok=True)
    card = new.pop(CARD_FILE)
    for name, path in new.items():
        path.replace(root / name)
    card.replace(root / CARD_FILE)
