"""HTML from Jinja templates: one environment and the pieces that pages, notebooks and servers share.

Templates lie in `templates/`. What is put into them is escaped; what they ask for and is not there is an
error. They take plain values, so that pages of every package can use them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

    from cir_datasets.common.terminal import Table

_NUMBER = re.compile(r"[-+]?[\d,]*(\.\d+)?\s?%?|-")


@functools.cache
def page_environment() -> Environment:
    """Jinja as pages need it, with the templates of this folder.

    Example:
        >>> page_environment().from_string("<p>{{ words }}</p>").render(words="a < b")
        '<p>a &lt; b</p>'
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("cir_datasets.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """A template of this folder, filled.

    Args:
        template: its file's name.
        values: what it asks for.
    """
    return page_environment().get_template(template).render(**values)


def template_macros(template: str) -> Any:
    """The macros of a template of this folder, by name."""
    return page_environment().get_template(template).module


def part(name: str) -> str:
    """A style sheet or script of this folder as text."""
    return (resources.files("cir_datasets.pages") / "templates" / name).read_text("utf-8")


def object_html(title: str, facts: Iterable[str] = (), tables: Sequence[Table] = ()) -> str:
    """How an object looks in a notebook: a heading, facts beside it, and tables.

    Args:
        title: what it is.
        facts: shown in one line.
        tables: shown below.

    Example:
        >>> from cir_datasets.common.terminal import Cell, Table
        >>> scores = Table("Scores", ("metric", "value"), ((Cell("recall@5"), Cell("49.83", 0.4983)),))
        >>> "<td class=number>49.83</td>" in object_html("a <b>", ["300 queries"], [scores])
        True
    """
    return render("object.html", title=title, facts=list(facts), tables=[table_values(t) for t in tables])


def table_values(table: Table) -> dict[str, Any]:
    """A table as templates take it; columns that hold numbers alone stand to the right."""
    numbers = {
        place
        for place in range(1, len(table.columns))
        if all(_NUMBER.fullmatch(row[place].text) for row in table.rows)
    }
    return {**vars(table), "numbers": numbers}
