"""The page about how a benchmark came to be: counts, figures and examples with pictures, in one file.

The page needs no network and no other file: plots are SVG and pictures small JPEG images inside it.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.stages import StageState
from cir_datasets.common.terminal import Cell, Table
from cir_datasets.errors import ConstructionError
from cir_datasets.images.picture import small_jpeg
from cir_datasets.pages import page_environment, part, table_values
from cir_metrics.errors import CirError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

_SIDE = 192


@dataclass(frozen=True)
class Step:
    """One picture of an example, with what is said about it.

    Args:
        image: its id.
        title: above it, such as `reference`.
        words: below it, such as a relative caption.
        kind: `good` for a target or positive, `bad` for a negative, else `plain`.
    """

    image: str
    title: str = ""
    words: str = ""
    kind: Literal["plain", "good", "bad"] = "plain"


@dataclass(frozen=True)
class Example:
    """One query, session or subset.

    Args:
        title: its id.
        steps: its pictures, in order.
        note: a line below them.
    """

    title: str
    steps: tuple[Step, ...]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Args:
        title: its heading.
        tables: shown first.
        plots: figures by what they show.
        examples: shown with their pictures.
        notes: sentences below.
    """

    title: str
    tables: tuple[Table, ...] = ()
    plots: tuple[tuple[str, Figure], ...] = ()
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()


def write_report(
    path: str | Path,
    *,
    title: str,
    summary: str,
    stages: Sequence[StageState],
    sections: Sequence[Section],
    open_picture: Callable[[str], Image],
) -> Path:
    """Write the page.

    Args:
        path: the file, ending in .html.
        title: its heading.
        summary: a sentence below it.
        stages: of the pipeline; they become the first table.
        sections: in order.
        open_picture: gives the picture of an id; one that cannot be opened is shown by its id.

    Raises:
        ConstructionError: the system refuses to write there.
    """
    environment = page_environment()
    folder = resources.files(__package__ or "cir_datasets.construction")
    thumbnails: dict[str, str] = {}
    shown = [Section("Stages", (stage_table(stages),)), *sections]
    for section in shown:
        for example in section.examples:
            for step in example.steps:
                if step.image not in thumbnails:
                    thumbnails[step.image] = _thumbnail(step.image, open_picture)
    page = environment.from_string((folder / "page.html").read_text("utf-8")).render(
        title=title,
        summary=summary,
        style=part("page.css") + (folder / "page.css").read_text("utf-8"),
        sections=shown,
        thumbnails=thumbnails,
        table_values=table_values,
        svg=_svg,
    )
    target = Path(path)
    with write_errors(target, ConstructionError, "name another folder."):
        write_whole(target, page.encode())
    return target


def table_of(
    title: str, columns: Sequence[str], rows: Iterable[Iterable[Any]], notes: Sequence[str] = ()
) -> Table:
    """A table of plain values: of whole numbers thousands are parted, None is an empty cell.

    Args:
        title: its heading.
        columns: their names.
        rows: texts, whole numbers, None, or cells.
        notes: sentences below.

    Example:
        >>> table_of("Counts", ("what", "number"), [("pairs", 1200)]).rows[0][1].text
        '1,200'
    """
    return Table(title, tuple(columns), tuple(tuple(map(_cell, row)) for row in rows), tuple(notes))


def _cell(value: Any) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, int):
        return Cell(f"{value:,}", float(value))
    return Cell("" if value is None else str(value))


def stage_table(stages: Sequence[StageState]) -> Table:
    """A row a stage: what it does, its rows, those that failed."""
    rows = []
    for stage in stages:
        state = f"{stage.parts:,} parts" if stage.parts else stage.state
        counts = (f"{stage.rows:,}", f"{stage.failed:,}") if stage.finished else ("", "")
        rows.append((stage.name, stage.what, state, *counts, stage.file.name))
    return table_of("Stages", ("stage", "what it does", "state", "rows", "failed", "file"), rows)


def _thumbnail(image: str, open_picture: Callable[[str], Image]) -> str:
    """A small JPEG as an address, or "" where the picture cannot be opened."""
    try:
        return _address("image/jpeg", small_jpeg(open_picture(image), _SIDE))
    except (OSError, CirError):
        return ""


def _svg(figure: Figure) -> str:
    from matplotlib import rc_context

    buffer = io.BytesIO()
    # Ids and dates would make two pages of one run differ.
    with rc_context({"svg.hashsalt": "cir-benchmarks", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return _address("image/svg+xml", buffer.getvalue())


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
