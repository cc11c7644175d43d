"""What all pages share."""

from __future__ import annotations

import pytest

from leaderboard.pages.site import environment

EVIL = "\"'><script>alert(1)</script><a href=javascript:alert(2)>x</a>"
PAPER = '{% from "parts.html" import paper %}{{ paper(url, words) }}'


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://example.org",
        "//example.org",
        "data:text/html,x",
        "https://example.org/\"onclick='x'",
        "https://exa mple.org",
        "HTTPS://example.org\nx",
        None,
        7,
    ],
)
def test_only_https_becomes_a_link(url: object) -> None:
    assert environment().from_string(PAPER).render(url=url, words="paper") == ""


def test_an_https_address_becomes_a_link_that_gives_nothing_away() -> None:
    shown = environment().from_string(PAPER).render(url="https://example.org/a?b=1&c=2", words=EVIL)
    assert 'href="https://example.org/a?b=1&amp;c=2"' in shown
    assert "noopener noreferrer" in shown
    assert "<script" not in shown
    assert shown.count(">") == 2
