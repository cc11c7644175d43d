"""What is taken out of Gradio's page, and what is not let through."""

from __future__ import annotations

import pytest

from leaderboard.errors import ServeError
from leaderboard.web.gradio_layout import parts_of

PAGE = """<html><head><base href="./"><meta property="og:image" content="https://elsewhere.example/x.png">
<script>window.gradio_config = {"a": "</p>"};</script><link rel="manifest" href="/manifest.json" />
<script type="module" src="./assets/index-x.js"></script></head>
<body><gradio-app control_page_title="true" embed="false"></gradio-app></body></html>"""


def test_scripts_and_element_are_taken_and_what_names_other_sites_is_left() -> None:
    head, application = parts_of(PAGE)
    assert "window.gradio_config" in head
    assert "./assets/index-x.js" in head
    for left in ("<base", "og:image", "manifest"):
        assert left not in head
    assert application == '<gradio-app control_page_title="false" embed="false"></gradio-app>'


@pytest.mark.parametrize("part", ["window.gradio_config", "control_page_title", "</gradio-app>"])
def test_a_page_of_another_gradio_is_refused(part: str) -> None:
    with pytest.raises(ServeError, match="constraints"):
        parts_of(PAGE.replace(part, "other"))
