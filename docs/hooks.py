"""Adds pages that do not lie in docs/ to the site, and the first one, and turns links into links of the site.

The links of the repository stay as they are, so that the same pages can be read on GitHub.
"""

from __future__ import annotations

import base64
import io
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "two_commands.md",
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
FRONT = "---\ntemplate: front.html\ntitle: cir-benchmarks\nhide: [navigation, toc]\n---\n"
"""The first page, whose words stand in its template."""
COLAB = "https://colab.research.google.com/github/"
LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")
CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of `OUTSIDE`, and the first one."""
    files.append(File.generated(config, "index.md", content=FRONT))
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


def on_page_context(
    context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation
) -> dict[str, Any]:
    """Give the first page a query, numbers of what is here, and the pages for each task."""
    if page.file.src_uri == "index.md":
        pages = {each.file.src_uri: each for each in nav.pages}
        tasks = [{**task, "url": pages[task["page"]].url} for task in config.extra["tasks"]]
        books = [each for place, each in pages.items() if place.endswith(".ipynb")]
        context["front"] = {
            "query": _query(),
            "numbers": _numbers(),
            "tasks": tasks,
            "start": tasks[0]["url"],
            "notebooks": [_notebook(each, config.repo_url) for each in books],
        }
    return context


def _query() -> Mapping[str, str]:
    """A query of shapes with its two pictures, drawn by the package."""
    from PIL import Image

    import cir_datasets
    from cir_datasets.shapes import picture

    row = cir_datasets.load("shapes/val").rows()[6]
    shown = {"caption": row["relative_caption"]}
    for name in ("reference", "target"):
        file = io.BytesIO()
        drawn = picture(row[f"{name}_image_id"])
        drawn.resize((2 * drawn.width, 2 * drawn.height), Image.Resampling.NEAREST).save(file, "PNG")
        shown[name] = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    return shown


def _numbers() -> Mapping[str, int]:
    from cir_datasets import registry
    from cir_metrics import METRICS
    from submissions.entries import entries

    return {
        "benchmarks": len(registry.names()),
        "metrics, each defined once": len(METRICS),
        "rankings to compare with": len(entries()),
    }


def _notebook(page: Page, repository: str | None) -> Mapping[str, str | None]:
    """A notebook with its place in Colab, where `repo_url` says which repository on GitHub this is."""
    found = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)/?", repository or "")
    place = f"{COLAB}{found[1]}/blob/main/docs/{page.file.src_uri}" if found else None
    return {"title": str(page.title).removeprefix("Notebook: "), "url": page.url, "colab": place}
