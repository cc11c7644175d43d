"""A benchmark of one's own from rows in Python: checked, written as a folder, known here, loaded."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cir_datasets.common.paths import FOLDERS_VARIABLE
from cir_datasets.common.row_files import EXTRA_OF_QUERY, EXTRA_OF_TURN
from cir_datasets.common.terminal import counted
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.construction.folder_check import SHOWN, check_folder
from cir_datasets.construction.names import check_name
from cir_datasets.errors import RecordError, SourceError
from cir_datasets.prepared import load
from cir_datasets.registry.folders import folders
from cir_datasets.rows.benchmark import GALLERY, union_of
from cir_datasets.rows.written import id_fault, named_images, typed
from cir_metrics.catalogue import METRICS, parse_metric
from cir_metrics.errors import CallError, CirError
from cir_metrics.ids import as_list, order_fault, plain_id, spellings
from cir_metrics.pairing import frame_rows

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row

_ENDINGS = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
_IDS: tuple[Callable[[Path], str], ...] = (lambda path: path.stem, lambda path: path.name, Path.as_posix)
"""What a picture's id may be, of its path in the folder; the first of those that fit the rows best."""


def custom_benchmark(
    name: str,
    rows: Sequence[Row],
    gallery: Sequence[str] | None = None,
    *,
    images: str | Path | None = None,
    folder: str | Path | None = None,
    title: str | None = None,
    version: int = 1,
    reference: Literal["kept", "removed"] = "removed",
    metrics: Sequence[str] = (),
    main_metric: str | None = None,
) -> Benchmark:
    """Make a private benchmark from rows, in a notebook or a script.

    Everything is checked as by `cir datasets check`. The folder that is written is what every `cir` command
    reads. It is named in `CIR_BENCHMARKS` of this process, and so of the commands that are started from it;
    in another shell, `export CIR_BENCHMARKS=FOLDER`. The same call with other rows writes it again.

    Args:
        name: small letters, digits and `_`; no other benchmark has it.
        rows: queries with `query_id`, `reference_image_id`, `relative_caption` and `target_image_id` or
            `positive_image_ids`; or sessions. docs/your_benchmark.md lists all fields.
        gallery: image ids; None takes every picture below `images`.
        images: folder of the pictures; an id is a file's name, with or without its ending. None for none:
            scoring needs no pictures.
        folder: where it is written; None is a folder of that name below the current one.
        title: how people call it; None takes the name.
        version: +1 whenever a published number can move.
        reference: whether the reference image stays in the ranking.
        metrics: what is scored; empty takes what is usual for such rows.
        main_metric: the one that ranks.

    Returns:
        The configuration `test` of the benchmark, loaded.

    Raises:
        CallError: the name cannot be used, metrics are not a list, or neither a gallery nor a folder of
            pictures is given.
        SourceError: the folder of the pictures cannot be used.
        RecordError: rows, gallery or pictures are wrong; the message names each place and its fix.
        CardError: a metric or the title is refused.
        DatasetError: the folder cannot be written.

    Example:
        >>> row = {"query_id": "1", "reference_image_id": "a", "relative_caption": "in red"}
        >>> custom_benchmark("mine", [row], ["a", "b", "c"])
        Traceback (most recent call last):
        cir_datasets.errors.RecordError: 1 error; nothing was written.
          row 1 (query_id 1): it says no right answer. Fix: add target_image_id, positive_image_ids or both.
    """
    if not isinstance(name, str):
        raise CallError(f"a benchmark's name is text, not {name!r}. Fix: write it in quotation marks.")
    check_name(name)
    if isinstance(metrics, str):
        raise CallError(f"metrics is a list, not {metrics!r}. Fix: write metrics=[{metrics!r}].")
    root = Path(name if folder is None else folder).expanduser().absolute()
    known = folders().get(name)
    if known is not None and known.folder != root:
        raise CallError(
            f"the benchmark {name!r} lies in {known.folder}. Fix: choose another name, or write it there "
            f"again with folder={str(known.folder)!r}."
        )
    listed = _checked(rows)
    _check_metrics(metrics, listed)
    paths: dict[str, str] = {}
    if images is not None:
        paths = _pictures(Path(images).expanduser().absolute(), listed, gallery)
    lists = [row[GALLERY] for row in listed if isinstance(row.get(GALLERY), list)]
    if lists and gallery is None:
        gallery = union_of(lists)
    if gallery is None and images is None:
        raise CallError(
            "neither gallery nor images is given. Fix: name the folder of the pictures with images=, or the "
            "ids that are searched with gallery=."
        )
    images_of = _ids(sorted(paths) if gallery is None else gallery)
    changed = spellings({image for row in listed for _, image in named_images(row)}, set(images_of))
    try:
        write_benchmark(
            root,
            name=name,
            title=name if title is None else title,
            configs={"test": [_respelled(row, changed) for row in listed] if changed else listed},
            galleries=images_of,
            version=version,
            reference=reference,
            metrics=metrics,
            main_metric=main_metric,
            image_paths=paths,
            picture_folder=None if images is None else _folder_of(Path(images), root),
        )
    except RecordError as error:
        raise RecordError(_in_python(str(error), root)) from error
    found = check_folder(root, registered=False)
    if not found.ok:  # rows and gallery were looked at before anything was written
        shown = "\n  ".join(found.errors[:SHOWN])
        more = f"\n  and {len(found.errors) - SHOWN:,} more" if len(found.errors) > SHOWN else ""
        raise RecordError(f"{root}: written, but its pictures cannot be used.\n  {shown}{more}")
    if known is None:
        named = os.environ.get(FOLDERS_VARIABLE)
        os.environ[FOLDERS_VARIABLE] = f"{named}{os.pathsep}{root}" if named else str(root)
    loaded = load(f"{name}/test")
    size = len(loaded.gallery or ())
    for metric in _without_effect(metrics, size):
        said = f"the gallery has {counted(size, 'image')}, so that this cutoff leaves none out"
        warnings.warn(f"{name}: metric {metric}: {said}. Fix: name a smaller one.", stacklevel=2)
    return loaded


own_benchmark = custom_benchmark
"""Its name in 0.1, which goes on working."""


def _without_effect(metrics: Sequence[str], images: int) -> list[str]:
    """The metrics whose cutoff is a gallery's size or more."""
    cutoffs = [(metric, *parse_metric(metric)) for metric in metrics]
    return [
        metric
        for metric, name, cutoff in cutoffs
        if cutoff is not None and cutoff >= images and not METRICS[name].reads_subset
    ]


def _checked(rows: Any) -> list[Row]:
    """The rows as they were given, where nothing is wrong with the fields of any."""
    rows = frame_rows(rows)
    if order_fault(rows):
        raise RecordError(
            f"rows are a list of dictionaries, not {order_fault(rows)}. Fix: write [{{...}}, ...]."
        )
    rows = list(rows)
    if not rows:
        raise RecordError("there are no rows. Fix: give at least one query.")
    wrong = [(place, row) for place, row in enumerate(rows, start=1) if not isinstance(row, Mapping)]
    if wrong:
        place, row = wrong[0]
        raise RecordError(f"row {place}: a row is a dictionary, not {row!r}. Fix: write {{...}}.")
    rows = [_plain_row(row) for row in rows]
    multi_turn = "session_id" in rows[0]
    said = [
        f"row {place}{_id_of(row)}: {fault}"
        for place, row in enumerate(rows, start=1)
        for fault in typed(row, multi_turn, tuple(EXTRA_OF_TURN if multi_turn else EXTRA_OF_QUERY))[1]
    ]
    if said:
        more = f"\n  and {len(said) - SHOWN:,} more" if len(said) > SHOWN else ""
        shown = "\n  ".join(said[:SHOWN])
        raise RecordError(f"{counted(len(said), 'error')}; nothing was written.\n  {shown}{more}")
    return [dict(row) for row in rows]


def _plain(key: str, value: Any) -> Any:
    """A field's value as JSON has it: numbers are ids, too, and arrays and tensors are lists."""
    if key.endswith("_id"):
        return plain_id(value) or value
    if not isinstance(value, list) and order_fault(value) is None:
        value = as_list(value)
    if key == "turns" and isinstance(value, list):
        return [_plain_row(turn) if isinstance(turn, Mapping) else turn for turn in value]
    if key.endswith("_ids") and isinstance(value, list):
        return [plain_id(each) or each for each in value]
    return value


def _plain_row(row: Mapping[str, Any]) -> Row:
    return {key: _plain(key, value) for key, value in row.items()}


def _respelled(row: Row, changed: Mapping[str, str]) -> Row:
    """A row whose images are spelled as the gallery spells them."""
    found = {}
    for key, value in row.items():
        if key.endswith("image_id"):
            value = changed.get(value, value)
        elif key.endswith("_ids"):
            ids = [changed.get(each, each) for each in value]
            # Two spellings of one image are one; an id that is written twice stays a fault.
            value = ids if len(set(value)) < len(value) else list(dict.fromkeys(ids))
        elif key == "turns":
            value = [_respelled(turn, changed) for turn in value]
        found[key] = value
    return found


def _check_metrics(metrics: Sequence[str], rows: Sequence[Row]) -> None:
    """Refuse a metric of what a row does not have, which would be noticed only when something is scored."""
    needed = {"target": "target_image_id", "subset": "subset_image_ids"}
    for metric in metrics:
        try:
            entry = METRICS[parse_metric(metric)[0]]
        except CirError:
            continue  # The card says it.
        for field in entry.fields:
            name = needed.get(field)
            gone = [place for place, row in enumerate(rows, start=1) if name and not row.get(name)]
            if gone:
                raise RecordError(
                    f"{metric} needs {name}, and {len(gone):,} of {len(rows):,} rows have none, row "
                    f"{gone[0]} first. Fix: add it, or name other metrics, such as metrics=['map@10']."
                )


def _id_of(row: Row) -> str:
    """Its id, as far as it can be read."""
    return next((f" ({key} {row[key]!s:.60})" for key in ("session_id", "query_id") if key in row), "")


def _ids(gallery: Sequence[str]) -> list[str]:
    if fault := order_fault(gallery):
        raise RecordError(f"gallery is a list of image ids, not {fault}. Fix: write [...], or list(...).")
    ids = []
    for place, given in enumerate(as_list(gallery), start=1):
        image = plain_id(given)
        if image is None:
            raise RecordError(f"gallery: image {place} is {given!r}: an id is text. Fix: write it so.")
        if fault := id_fault(image):
            raise RecordError(f"gallery: image {place} {fault}")
        ids.append(image)
    return ids


def _pictures(folder: Path, rows: Sequence[Row], gallery: Sequence[str] | None) -> dict[str, str]:
    """Path of each picture below a folder, by its id."""
    if not folder.is_dir():
        raise SourceError(f"images: {folder}: no such folder. Fix: name the folder that holds the pictures.")
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS)
    if not paths:
        raise SourceError(
            f"images: {folder}: it holds no picture ({', '.join(sorted(_ENDINGS))}). Fix: name the folder "
            "that does, or leave images out: scoring needs no pictures."
        )
    wanted = {image for row in rows for _, image in named_images(row)} | set(gallery or ())
    id_of = max(_IDS, key=lambda each: len(wanted.intersection(map(each, paths))))
    twice = [image for image, number in Counter(map(id_of, paths)).items() if number > 1]
    if twice:
        first = " and ".join(str(path) for path in paths if id_of(path) == twice[0])
        raise SourceError(
            f"images: {folder}: {first} have one id, {twice[0]!r}. Fix: rename one, or write in the "
            "rows their paths below the folder, as reference_image_id and the others."
        )
    return {id_of(path): path.as_posix() for path in paths}


def _folder_of(images: Path, root: Path) -> str:
    """The folder of the pictures as a card says it: below the benchmark's where it lies there."""
    whole = images.expanduser().absolute()
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(whole)


def _in_python(said: str, root: Path) -> str:
    """Faults of files that are not written, in words of the call."""
    said = re.sub(rf"{re.escape(str(root))}/queries\.jsonl: line ", "row ", said)
    said = re.sub(rf"{re.escape(str(root))}/images\.txt: line ", "gallery: image ", said)
    return said.replace(f"{root}/images.txt", "gallery")
