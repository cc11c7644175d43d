"""The docs say what the code does."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import run_program

from cir_datasets import registry
from cir_datasets.audit.describe import listed

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
WORDS = 47_430
"""Of all pages in docs/, with that of the commands."""


def test_generated_pages_agree_with_the_code() -> None:
    run_program([sys.executable, "docs/generate.py", "--check"], cwd=ROOT)


def test_a_readme_that_differs_from_the_registry_is_found(
    generate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    changed = tmp_path / "README.md"
    changed.write_text(text.replace("4,181", "4,184"), encoding="utf-8")
    monkeypatch.setattr(generate, "README", changed)
    assert generate.readme() == text != changed.read_text(encoding="utf-8")
    changed.write_text(text.replace("<!-- benchmarks:end -->", ""), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"lacks <!-- benchmarks:begin --> or <!-- benchmarks:end -->"):
        generate.readme()


def test_parameters_that_collect_others_have_their_stars(generate: Any) -> None:
    def function(first: Any, *rest: Any, last: int = 1, **options: Any) -> None: ...

    assert generate._signature(function) == "(first, *rest, **options, ...)"
    assert "`load_language(name, **options)`" in generate.api_page()


def test_every_benchmark_begins_with_the_lines_that_load_it(generate: Any) -> None:
    head, *cards = generate.benchmark_table().split("\n## ")
    assert "import cir_datasets  # makes the names known; not needed after  cir setup NAME\n" in head
    shown = [re.findall(r'load_dataset\("(\w+)", "(\w+)", split="(\w+)"\)', card[:400]) for card in cards]
    assert [name for ((name, _, _),) in shown] == list(registry.names())
    for ((name, config, split),) in shown:
        assert registry.spec(f"{name}/{config}").config.split == split


def all_have(page: str, benchmark: str) -> str:
    """What the section of a benchmark says of all its configurations."""
    (section,) = [each for each in page.split("\n## ") if f"| `{benchmark}` |" in each]
    return next((line for line in section.splitlines() if line.startswith("All have: ")), "")


def test_the_tables_hold_every_benchmark_with_the_registrys_figures(generate: Any) -> None:
    short, long = generate.readme_table(), generate.benchmark_table()
    query_lists = registry.GALLERY_NOTES["per_query"]
    for name in registry.names():
        assert f"| `{name}/" in short
    for row in listed():
        if row["status"] in ("overlay", "suite"):
            continue
        (line,) = [line for line in long.splitlines() if line.startswith(f"| `{row['id']}` |")]
        for key in ("queries", "gallery", "turns", "reference", "main_metric"):
            shown = "?" if row[key] is None else f"{row[key]:,}" if isinstance(row[key], int) else row[key]
            said = line.replace("`", " ").replace(query_lists, "")
            shared = f"{key.replace('_', ' ')} {shown}" in all_have(long, row["id"]).replace("`", "")
            assert f" {shown} " in said or shared, (row["id"], key)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_plain_words_are_used(page: Path) -> None:
    """Code keeps its names; generated pages are held by what they are made of."""
    text = page.read_text(encoding="utf-8")
    if page.name == "CHANGELOG.md" or "Written by `make docs`" in text:
        return
    prose = re.sub(r"^ *```.*?^ *```$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    words = r"\b(?:keepers?|at hand|floors?|(?:told|tells?) (?:\w+ ){0,3}apart|is no (?:\w+ )?file)\b"
    assert re.findall(words, prose, re.IGNORECASE) == []


CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINKED = [*PAGES, *sorted(ROOT.glob("cir_metrics/*/README.md"))]


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub and the site spell them in an address."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def dead(page: Path, links: list[tuple[str, str]]) -> list[str]:
    """Links, a path and an anchor each, that lead to no file or to no heading."""
    wrong = []
    for path, anchor in links:
        there = page.parent / path if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            wrong.append(f"{path}#{anchor}" if anchor else path)
    return wrong


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_local_links_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    assert dead(page, re.findall(r"\]\((?!https?://|mailto:)([^)#\s]*)#?([^)\s]*)\)", text)) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n## What `cir score` prints\n\n```sh\n# no heading\n```\n", encoding="utf-8")
    assert anchors(page) == {"a-page", "what-cir-score-prints"}
    found = dead(page, [("", "a-page"), ("page.md", ""), ("page.md", "no-heading"), ("gone.md", "")])
    assert found == ["page.md#no-heading", "gone.md"]


def test_pages_that_code_and_messages_name_are_there() -> None:
    """Their paths below docs/ in Python, data, configuration, notebooks and other files of the repository."""
    kinds = {".py", ".yaml", ".yml", ".ipynb", ".html", ".txt", ".cfg", ".toml", ".md", ""}
    listed = run_program(["git", "ls-files"], cwd=ROOT).stdout
    missing = []
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix not in kinds or not path.is_file():
            continue
        for found in re.findall(
            r"\bdocs/(\w+\.md)(?:#([\w-]+))?", path.read_text(encoding="utf-8", errors="replace")
        ):
            missing += [f"{name}: docs/{each}" for each in dead(ROOT / "docs" / "x.md", [found])]
    assert missing == []


def test_the_pages_stay_few_and_short() -> None:
    """A page is merged or shortened before another one is added."""
    pages = list((ROOT / "docs").glob("*.md"))
    assert len(pages) <= 30
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= WORDS


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_each_page_begins_with_what_one_can_do_after_it(name: str) -> None:
    beginning = (ROOT / "docs" / name).read_text(encoding="utf-8").split("\n\n")[1]
    assert "After this page you can" in beginning


def test_every_direct_dependency_is_explained_and_pinned() -> None:
    import configparser

    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    groups = {"Always installed": setup["options"]["install_requires"]}
    groups |= {f"`cir-benchmarks[{extra}]`": names for extra, names in extras.items()}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
    for heading, lines in groups.items():
        names = {re.split(r"[\s<>=\[]", line.strip())[0] for line in lines.splitlines() if line.strip()}
        names -= {"cir-benchmarks"}
        first = " ".join(re.findall(r"^- (.*?): ", sections[heading], re.MULTILINE))
        assert {name for name in names if name not in re.split(r"[ ,]+", first)} == set(), heading
        assert {name for name in names if f"{name.lower()}==" not in pinned} == set()
