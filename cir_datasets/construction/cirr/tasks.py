"""Tasks for annotators: pages that work offline, and a CSV file for a crowd platform.

    tasks/page-1.html       one annotator's tasks; answers stay in the browser until they are saved as a file
    tasks/tasks.csv         the same tasks, a row each
    tasks/pictures/0.jpg    small pictures, by number

A page needs no server and no network. A task shows reference, target, and the other images of the subset, to
which the caption must not lead (CIRR, section 4.1).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.progress import step_progress
from cir_datasets.construction.workspace import Row
from cir_datasets.errors import ConstructionError
from cir_datasets.pages import page_environment
from cir_datasets.shapes import Draws

if TYPE_CHECKING:
    from PIL.Image import Image

MARKS = {
    "same": "They are the same picture, or one is a part of the other.",
    "no_difference": "I see no difference that I could describe.",
    "unrelated": "They have nothing to do with each other.",
}
"""What an annotator says of a pair that should not be used."""

EXAMPLES = (
    "Two dogs instead of one, on the same lawn.",
    "Take the lamp off the table and show it from further away.",
)
"""Captions that the instructions show; whoever hands one in has not looked."""

WITHOUT_BLANKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
"""Characters of scripts without blanks between words (Chinese, Japanese, Thai): each counts as a word."""

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
    run: str,
    title: str,
    least_words: int,
    open_picture: Callable[[str], Image],
    times: int = 0,
) -> list[Path]:
    """Write pages, CSV and pictures.

    Args:
        folder: made where it is missing.
        tasks: rows of `tasks_of`.
        run: names this run of the pipeline; answers to another one are refused.
        title: heading of the pages.
        least_words: different words that a caption has at least.
        open_picture: gives the picture of an image id.
        times: how often tasks were given out before; the browser keeps the answers of each time apart.

    Returns:
        The pages and the CSV file.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    images = dict.fromkeys(image for task in tasks for image in shown(task))
    files = {image: f"pictures/{number}.jpg" for number, image in enumerate(images)}
    parts = resources.files("cir_datasets.construction.cirr")
    template = page_environment().from_string((parts / "tasks.html").read_text("utf-8"))
    written = []
    try:
        with step_progress("tasks: pictures", len(files)) as advance:
            for image, file in files.items():
                if not (folder / file).is_file():
                    write_whole(folder / file, _small(open_picture(image)))
                advance(1)
        for page in sorted({task["page"] for task in tasks}):
            own = [_shown_task(task, files) for task in tasks if task["page"] == page]
            data = {
                "format": 1,
                "run": run,
                "page": page,
                "times": times,
                "least_words": least_words,
                "without_blanks": WITHOUT_BLANKS,
                "tasks": own,
            }
            html = template.render(
                title=title,
                style=(parts / "tasks.css").read_text("utf-8"),
                script=(parts / "tasks.js").read_text("utf-8"),
                # "<" would let a name end the script.
                data=orjson.dumps(data).decode().replace("<", "\\u003c"),
                marks=MARKS,
                examples=EXAMPLES,
                number=len(own),
                least_words=least_words,
            )
            written.append(folder / f"page-{page}.html")
            write_whole(written[-1], html.encode())
        written.append(folder / "tasks.csv")
        write_whole(written[-1], _csv(tasks, files, run).encode())
    except OSError as error:
        raise ConstructionError(
            f"{folder}: cannot be written: {error.strerror}. Fix: make room, or name another folder."
        ) from error
    return written


def shown(task: Row) -> list[str]:
    """The images of a task: reference, target, and the others of the subset."""
    return [task["reference"], task["target"], *task["others"]]


def _shown_task(task: Row, files: dict[str, str]) -> dict[str, Any]:
    reference, target, *others = (files[image] for image in shown(task))
    return {"task": task["task"], "reference": reference, "target": target, "others": others}


def _csv(tasks: Sequence[Row], files: dict[str, str], run: str) -> str:
    most = max((len(task["others"]) for task in tasks), default=0)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    others = [f"other_{number}" for number in range(1, most + 1)]
    writer.writerow(["task", "run", "page", "reference", "target", *others])
    for task in tasks:
        writer.writerow([task["task"], run, task["page"], *(files[image] for image in shown(task))])
    return written.getvalue()


def _small(picture: Image) -> bytes:
    small = picture.convert("RGB")
    small.thumbnail((_SIDE, _SIDE))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()
