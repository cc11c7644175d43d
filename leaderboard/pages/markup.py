"""HTML from untrusted text: everything is escaped, and only https links become links."""

from __future__ import annotations

import html
from collections.abc import Iterable

from submissions.rank_file.texts import is_link


def text(value: object) -> str:
    """A value as HTML text, also inside a quoted attribute.

    Example:
        >>> text('<script>"&')
        '&lt;script&gt;&quot;&amp;'
    """
    return html.escape(str(value), quote=True)


def element(tag: str, content: str, css: str = "", **attributes: str) -> str:
    """An element; `content` is HTML already, attribute values are escaped here.

    Example:
        >>> element("span", text("a < b"), "note", title='say "x"')
        '<span class="note" title="say &quot;x&quot;">a &lt; b</span>'
    """
    named = {"class": css, **attributes} if css else attributes
    written = "".join(f' {key.replace("_", "-")}="{text(value)}"' for key, value in named.items())
    return f"<{tag}{written}>{content}</{tag}>"


def joined(parts: Iterable[str]) -> str:
    """Pieces of HTML one after another."""
    return "".join(parts)


def link_out(url: object, label: str) -> str:
    """A link to somewhere else, or nothing where the address is not plain https.

    Example:
        >>> link_out("javascript:alert(1)", "paper")
        ''
    """
    if not isinstance(url, str) or not is_link(url):
        return ""
    return element("a", text(label), "out", href=url, target="_blank", rel="noopener noreferrer nofollow ugc")
