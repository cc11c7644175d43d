"""Markdown of our own files as HTML: cards of metrics, the page about the boards."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup


def html_of(text: str) -> Markup:
    """The HTML of a CommonMark text with tables; HTML in the text stays text.

    Tables stand in regions that scroll and can be reached by keyboard.

    Args:
        text: the Markdown.

    Example:
        >>> html_of("**a** <b>")
        Markup('<p><strong>a</strong> &lt;b&gt;</p>\\n')
    """
    reader = _reader()
    return Markup(reader.renderer.render(_tidied(reader.parse(text)), reader.options, {}))


def inline_html_of(text: str) -> Markup:
    """The HTML of a line of Markdown, without a paragraph around it.

    Args:
        text: the Markdown.

    Example:
        >>> inline_html_of("`a` < b")
        Markup('<code>a</code> &lt; b')
    """
    return Markup(_reader().renderInline(text))


def _tidied(tokens: list[Token]) -> list[Token]:
    """Without heads of tables that are empty, and without blank lines at the end of code."""
    found: list[Token] = []
    for token in tokens:
        if token.type in ("fence", "code_block"):
            token.content = token.content.rstrip() + "\n"
        found.append(token)
        if token.type == "thead_close":
            start = max(place for place, one in enumerate(found) if one.type == "thead_open")
            if not any(one.content.strip() for one in found[start:]):
                del found[start:]
    return found


@functools.cache
def _reader() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    made.add_render_rule("table_open", _table_open)
    made.add_render_rule("table_close", _table_close)
    made.add_render_rule("th_open", _head)
    return made


def _table_open(_self: Any, _tokens: Sequence[Any], _place: int, _options: Any, _env: Any) -> str:
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="numbers">\n'


def _table_close(_self: Any, _tokens: Sequence[Any], _place: int, _options: Any, _env: Any) -> str:
    return "</table></div>\n"


def _head(_self: Any, _tokens: Sequence[Any], _place: int, _options: Any, _env: Any) -> str:
    return '<th scope="col">'
