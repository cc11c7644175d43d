"""A first folder for somebody's own benchmark: an example that loads at once, and a card that explains it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import orjson

from cir_datasets.common.atomic import staging_folder, write_errors
from cir_datasets.construction.folder import written_row
from cir_datasets.construction.names import check_name
from cir_datasets.errors import DatasetError
from cir_datasets.registry.folder_card import IMAGES_FILE, PICTURES, usual_metrics
from cir_datasets.registry.folders import CARD_FILE, folders
from cir_datasets.rows.records import Row, references_of
from cir_metrics.errors import CallError

_ROWS, _OTHERS = 4, 8
_LEFT, _CUT = ("changes", "subset", "subset_image_ids"), ("negative_image_ids",)
"""Fields of shapes that the example leaves out, and cuts short."""
_FIELDS = {
    False: "a query a line: query_id, reference_image_id, relative_caption, target_image_id; where there\n"
    "#   are such also positive_image_ids (all right answers), negative_image_ids (hard negatives),\n"
    "#   subset_image_ids, aspects, and captions in the place of relative_caption where there are several.",
    True: "a session a line: session_id, ground_truth_ids, and turns, each with turn (1, 2, 3, ...),\n"
    "#   reference_image_id and relative_caption.",
}


def new_folder(name: str, folder: str | Path | None = None, *, sessions: bool = False) -> Path:
    """Write a folder that is a benchmark: a small example to replace, with pictures.

    Args:
        name: the benchmark's name.
        folder: where; None is a folder of that name below the current one.
        sessions: whether its rows are sessions of several turns.

    Returns:
        The folder.

    Raises:
        CallError: the name cannot be used, or something is there already.
        DatasetError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     sorted(path.name for path in new_folder("mine", f"{parent}/mine").iterdir())
        ['card.yaml', 'images', 'images.txt', 'queries.jsonl']
    """
    check_name(name)
    if name in folders():
        raise CallError(f"{name!r} is the name of a folder that is registered. Fix: choose another.")
    root = Path(name if folder is None else folder).expanduser().absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise CallError(f"{root}: is there already. Fix: name another folder with --out.")
    fix = "name a folder of yours with --out."
    staged = staging_folder(root.parent, ".making-", error=DatasetError, fix=fix)
    with staged as staging, write_errors(root, DatasetError, fix):
        _fill(staging, name, sessions)
        staging.replace(root)
    return root


def _fill(folder: Path, name: str, sessions: bool) -> None:
    from cir_datasets import shapes

    found = shapes.split_of("multiturn_val" if sessions else "val")
    whole = (found.sessions if sessions else found.queries)[:_ROWS]
    rows = [
        {name: row[name][:2] if name in _CUT else row[name] for name in row if name not in _LEFT}
        for row in whole
    ]
    shown = dict.fromkeys(image for row in rows for image in _images_of(row))
    gallery = sorted({*shown, *found.image_ids[:_OTHERS]})
    (folder / PICTURES).mkdir()
    for image in gallery:
        shapes.picture(image).save(folder / PICTURES / f"{image}.png", format="PNG")
    (folder / IMAGES_FILE).write_text("".join(f"{image}\n" for image in gallery), encoding="utf-8")
    file = "sessions.jsonl" if sessions else "queries.jsonl"
    (folder / file).write_bytes(b"".join(orjson.dumps(written_row(row)) + b"\n" for row in rows))
    metrics, main = usual_metrics(sessions, None, False)
    text = (resources.files("cir_datasets") / "construction" / "new_card.yaml").read_text(encoding="utf-8")
    for word, value in {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "rows": "sessions" if sessions else "queries",
        "file": file,
        "metrics": ", ".join(metrics),
        "main": main,
        "fields": _FIELDS[sessions],
    }.items():
        text = text.replace(f"__{word}__", value)
    (folder / CARD_FILE).write_text(text, encoding="utf-8")


def _images_of(row: Row) -> list[str]:
    if "turns" in row:
        return [*references_of(row), *row["ground_truth_ids"]]
    return [row["reference_image_id"], *row["positive_image_ids"], *row["negative_image_ids"]]
