"""Adds pages that do not lie in docs/ to the site, and turns links between the two into links of the site.

The links of the repository stay as they are, so that the same pages can be read on GitHub.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CITATION.cff": "project/CITATION.cff",
    **{
        path.relative_to(ROOT).as_posix(): f"metrics/{path.parent.name}.md"
        for path in sorted(ROOT.glob("cir_metrics/*/README.md"))
    },
}
"""File of the repository -> its place in the site."""
LISTS = ("cli.md", "python_api.md", "project/changelog.md")
"""They hold every word, so that a search would name them first."""
LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of `OUTSIDE`."""
    for path, place in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links at places in the site; code is left alone."""
    place = page.file.src_uri
    if place in LISTS:
        page.meta["search"] = {"boost": 0.2}
    source = next((path for path, to in OUTSIDE.items() if to == place), f"docs/{place}")

    def pointed(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        there = OUTSIDE.get(target, target.removeprefix("docs/"))
        return found[1] + posixpath.relpath(there, posixpath.dirname(place) or ".")

    parts = CODE.split(markdown)
    return "".join(part if number % 2 else LINK.sub(pointed, part) for number, part in enumerate(parts))
