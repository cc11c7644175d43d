"""The docs as a site: it is built without a warning, its links lead somewhere, and it needs no network."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urldefrag

import pytest
import yaml
from markdown_it import MarkdownIt
from programs import run_program

from cir_datasets import registry
from cir_metrics import METRICS
from submissions.entries import entries

ROOT = Path(__file__).resolve().parents[2]
FETCHED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
"""What a browser asks for by itself; a link is followed by people."""
BLOCKS = ("h2", "h3", "ol", "ul", "li", "pre", "table", "tr")


class Html(HTMLParser):
    """The ids, the addresses and the number of blocks of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.blocks: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.blocks[tag] += tag in BLOCKS
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append((tag, name, value))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run_program(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    return {path.resolve(): Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def faults(pages: dict[Path, Html]) -> list[str]:
    """Addresses that lead nowhere in the site, and those that a browser would fetch from elsewhere."""
    wrong = []
    for page, html in pages.items():
        for tag, name, address in html.links:
            if re.match(r"(https?:)?//", address):
                if (tag, name) in FETCHED:
                    wrong.append(f"{page.name}: <{tag}> fetches {address}")
                continue
            if address.startswith(("mailto:", "data:")) or page.name == "404.html":
                continue
            path, anchor = urldefrag(address)
            there = (page.parent / unquote(path)).resolve() if path else page
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                wrong.append(f"{page.name}: {address} is not there")
            elif anchor and there in pages and unquote(anchor) not in pages[there].ids:
                wrong.append(f"{page.name}: {address}: no such heading")
    return wrong


@pytest.mark.slow
def test_every_link_of_the_site_leads_somewhere_in_it_and_nothing_is_fetched(pages: dict[Path, Html]) -> None:
    assert sum(len(html.links) for html in pages.values()) > 1000
    assert faults(pages) == []


def test_a_broken_link_a_missing_heading_and_a_fetched_font_are_found(tmp_path: Path) -> None:
    text = (
        '<h2 id="a"></h2><a href="#b"></a><a href="gone.html"></a><link href="https://fonts.example/x.css">'
    )
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    assert faults({page: Html(text)}) == [
        "page.html: #b: no such heading",
        "page.html: gone.html is not there",
        "page.html: <link> fetches https://fonts.example/x.css",
    ]


def test_every_page_has_one_place_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:.+: )?(\S+\.(?:md|ipynb))$", text.partition("\nnav:\n")[2], re.MULTILINE)
    assert [page for page, times in Counter(listed).items() if times > 1] == []
    docs = ROOT / "docs"
    written = {
        path.relative_to(docs).as_posix() for end in ("md", "ipynb") for path in docs.rglob(f"*.{end}")
    }
    assert written <= set(listed)


@pytest.mark.slow
def test_the_site_shows_the_blocks_that_github_shows(site: Path, pages: dict[Path, Html]) -> None:
    """Markdown has dialects: a list without a blank line before it is a list on GitHub alone."""
    github = MarkdownIt("commonmark").enable("table")
    differ = []
    for path in sorted((ROOT / "docs").glob("*.md")):
        wanted = Html(github.render(path.read_text(encoding="utf-8"))).blocks
        text = (site / path.with_suffix(".html").name).read_text(encoding="utf-8")
        found = Html(text.partition('<article class="md-content__inner')[2].partition("</article>")[0]).blocks
        differ += [
            f"{path.name}: {wanted[tag]} {tag}, {found[tag]} on the site"
            for tag in BLOCKS
            if wanted[tag] != found[tag]
        ]
    assert differ == []


@pytest.mark.slow
def test_search_works_without_a_server(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert "rank file" in index
    assert (site / "vendor" / "iframe-worker.js").exists()
    text = (site / "index.html").read_text(encoding="utf-8")
    assert '<script src="vendor/iframe-worker.js"></script>' in text


@pytest.mark.slow
def test_the_first_page_counts_what_is_here_and_leads_to_every_task(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"<dd>(\d+)</dd>", text)]
    assert numbers == [len(registry.names()), len(METRICS), len(entries())]
    assert len(re.findall(r'<img src="data:image/png;base64,[^"]+" [^>]*alt="[^"]+"', text)) == 2
    tasks = text.partition('<div class="front-tasks">')[2].partition("</div>")[0]
    assert len(set(re.findall(r'<a href="(\w+\.html)">', tasks))) >= 8
    assert "colab" not in text


@pytest.mark.parametrize(
    ("repository", "place"),
    [
        (None, None),
        ("https://example.org/someone/suite", None),
        (
            "https://github.com/someone/suite/",
            "https://colab.research.google.com/github/someone/suite/blob/main/docs/notebooks/scores.ipynb",
        ),
    ],
)
def test_a_notebook_opens_in_colab_where_the_repository_is_known(
    repository: str | None, place: str | None
) -> None:
    specification = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    hooks = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(hooks)
    page = SimpleNamespace(
        title="Notebook: scores", url="scores.html", file=SimpleNamespace(src_uri="notebooks/scores.ipynb")
    )
    assert hooks._notebook(page, repository)["colab"] == place


def test_a_warning_ends_the_build() -> None:
    class Loader(yaml.SafeLoader):
        """Reads the one tag of mkdocs.yml as nothing."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    assert settings["strict"] is True
    assert (
        set(settings["validation"]["links"].values())
        == set(settings["validation"]["nav"].values())
        == {"warn"}
    )
