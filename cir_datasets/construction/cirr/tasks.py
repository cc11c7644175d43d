"""Tasks for annotators: pages that work offline, and a CSV file for a crowd platform.

    tasks/page-1.html       one annotator's tasks; answers stay in the browser until they are saved as a file
    tasks/tasks.csv         the same tasks, a row each
    tasks/pictures/0.jpg    small pictures, by number

A page needs no server and no network. A task shows reference, target, and the other images of the subset, to
which the caption must not lead (CIRR, section 4.1): the form `cirr`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.progress import step_progress
from cir_datasets.common.stages import Row
from cir_datasets.construction.filled_tables import filled_table
from cir_datasets.construction.review.form import ReviewForm
from cir_datasets.construction.review.page import page_html
from cir_datasets.errors import ConstructionError
from cir_datasets.images.picture import small_jpeg
from cir_datasets.shapes import Draws

if TYPE_CHECKING:
    from PIL.Image import Image

_SIDE, _QUALITY = 512, 85


def tasks_of(
    pairs: Sequence[Row], *, annotators: int, shared: int, seed: int, prefix: str = "t"
) -> list[Row]:
    """The tasks of each annotator: pairs are dealt out by subset, and some go to everybody.

    Args:
        pairs: what is to be annotated.
        annotators: how many pages there are.
        shared: pairs that each annotator gets, so that their answers can be compared.
        seed: of the draw of those.
        prefix: what ids of tasks begin with.
    """
    common = {pair["pair"] for pair in Draws("cirr", "shared", seed).sample(pairs, shared)}
    places = {subset: place for place, subset in enumerate(dict.fromkeys(pair["subset"] for pair in pairs))}
    return [
        {"task": f"{prefix}{annotator}-{pair['pair']}", "page": annotator, **pair}
        for annotator in range(1, annotators + 1)
        for pair in pairs
        if pair["pair"] in common or places[pair["subset"]] % annotators == annotator - 1
    ]


def write_tasks(
    folder: Path,
    tasks: Sequence[Row],
    *,
    form: ReviewForm,
    run: str,
    title: str,
    open_picture: Callable[[str], Image],
    times: int = 0,
) -> list[Path]:
    """Write pages, CSV and pictures.

    Args:
        folder: made where it is missing.
        tasks: rows of `tasks_of`.
        form: what is asked.
        run: names this run of the pipeline; answers to another one are refused.
        title: heading of the pages.
        open_picture: gives the picture of an image id.
        times: how often tasks were given out before; the browser keeps the answers of each time apart.

    Returns:
        The pages and the CSV file.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    images = dict.fromkeys(image for task in tasks for image in shown(task))
    files = {image: f"pictures/{number}.jpg" for number, image in enumerate(images)}
    written = []
    with write_errors(folder, ConstructionError):
        with step_progress("tasks: pictures", len(files)) as advance:
            for image, file in files.items():
                if not (folder / file).is_file():
                    write_whole(folder / file, small_jpeg(open_picture(image), _SIDE, _QUALITY))
                advance(1)
        for page in sorted({task["page"] for task in tasks}):
            items = [
                {
                    "task": task["task"],
                    "reference": files[task["reference"]],
                    "target": files[task["target"]],
                    "others": [files[image] for image in task["others"]],
                }
                for task in tasks
                if task["page"] == page
            ]
            memory = "-".join(["cir-tasks", run, str(page), *([f"r{times}"] if times else [])])
            html = page_html(form, items, title=title, run=run, page=page, memory=memory)
            written.append(folder / f"page-{page}.html")
            write_whole(written[-1], html.encode())
        written.append(folder / "tasks.csv")
        write_whole(written[-1], _csv(tasks, files, run))
    return written


def shown(task: Row) -> list[str]:
    """The images of a task: reference, target, and the others of the subset."""
    return [task["reference"], task["target"], *task["others"]]


def _csv(tasks: Sequence[Row], files: dict[str, str], run: str) -> bytes:
    most = max((len(task["others"]) for task in tasks), default=0)
    roles = ["reference", "target", *(f"other_{number}" for number in range(1, most + 1))]
    rows = [
        dict.fromkeys(roles, "")
        | {"task": task["task"], "run": run, "page": str(task["page"])}
        | dict(zip(roles, (files[image] for image in shown(task)), strict=False))
        for task in tasks
    ]
    return filled_table(["task", "run", "page", *roles], rows)
