"""What all pages share: heading, style, and how numbers are written."""

from __future__ import annotations

from datetime import datetime
from importlib import resources
from typing import Any, Literal

import gradio as gr

from cir_metrics.signature import package_version
from leaderboard.boards import Column
from leaderboard.pages.markup import element, joined, text

_PAGES = (("Boards", "./"), ("Submit", "./submit"), ("About", "./about"))
_SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")

Unit = Literal["percent", "rank"]

HIDDEN: Any = "hidden"
"""Of a component that only carries a value from one step to the next."""

GO_TO = "(address) => { if (address) window.location.assign(address) }"
"""Opens the address that a step has answered, if it has."""


def theme() -> Any:
    """A plain theme that loads no font from anywhere."""
    fonts = {
        "font": [gr.themes.Font(name) for name in _SANS],
        "font_mono": [gr.themes.Font(name) for name in _MONO],
    }
    base = gr.themes.Base(
        primary_hue="teal", neutral_hue="slate", radius_size="sm", spacing_size="md", text_size="md", **fonts
    )
    return base.set(
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_text_color="white",
        body_text_color_subdued="*neutral_500",
        body_text_color_subdued_dark="*neutral_400",
        block_label_text_weight="500",
        block_title_text_weight="500",
    )


def css() -> str:
    """The pages' style sheet."""
    return (resources.files("leaderboard.pages") / "style.css").read_text(encoding="utf-8")


def icon() -> bytes:
    """The pages' icon, SVG."""
    return (resources.files("leaderboard.pages") / "icon.svg").read_bytes()


def page_head(current: str) -> None:
    """The heading of a page, with the way to the others; Gradio's own navigation is left out."""
    gr.Navbar(visible=False)
    links = joined(
        element("a", text(name), "here" if name == current else "", href=address) for name, address in _PAGES
    )
    brand = element("a", text("CIR leaderboard"), "brand", href="./")
    tagline = element("span", text("composed image retrieval"), "tagline")
    html_block(element("header", element("div", brand + tagline) + element("nav", links), "cir-head"))


def page_foot() -> None:
    """One quiet line at the end of a page."""
    api = element("a", "API", href="./api/boards")
    status = element("a", "Status", href="./status")
    html_block(element("footer", f"cir-benchmarks {text(package_version())} · {api} · {status}", "cir-foot"))


def html_block(value: str, **options: Any) -> Any:
    """A piece of finished HTML on a page."""
    return gr.HTML(value, apply_default_css=False, js_on_load=None, **options)


def number(value: float | None, unit: Unit) -> str:
    """A metric's value in a table: per cent with two decimals, ranks with one.

    Example:
        >>> number(0.49833, "percent"), number(12.34, "rank"), number(None, "percent")
        ('49.83', '12.3', '–')
    """
    if value is None:
        return "–"
    return f"{100 * value:.2f}" if unit == "percent" else f"{value:,.1f}"


def heading(label: str, unit: Unit, direction: str) -> str:
    """A column's heading as HTML, saying what is better where it is not the higher value."""
    arrow = element("span", "↓", "arrow", title="lower is better") if direction == "lower" else ""
    return text(label) + arrow


def column_heading(column: Column) -> str:
    """The heading of a board's column."""
    return heading(column.label, column.unit, column.direction)


def day(moment: datetime) -> str:
    """A moment's date, UTC, with the time for those who ask."""
    exact = moment.strftime("%Y-%m-%d %H:%M:%S UTC")
    return element("time", moment.strftime("%Y-%m-%d"), datetime=moment.isoformat(), title=exact)
