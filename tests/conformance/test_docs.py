"""The docs say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cir_datasets import registry
from cir_datasets.audit.listing import listed

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def test_generated_pages_agree_with_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


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

    assert generate._signature(function) == "(first, *rest, last=..., **options)"
    assert "`load_language(name, **options)`" in generate.api_page()


def test_every_benchmark_begins_with_the_lines_that_load_it(generate: Any) -> None:
    cards = generate.benchmark_table().split("\n## ")[1:]
    shown = [re.findall(r'load_dataset\("(\w+)", "(\w+)", split="(\w+)"\)', card[:400]) for card in cards]
    assert [name for ((name, _, _),) in shown] == list(registry.names())
    for ((name, config, split),), card in zip(shown, cards, strict=True):
        assert registry.spec(f"{name}/{config}").config.split == split
        assert f"import cir_datasets  # makes the names known; not needed after  cir setup {name}\n" in card


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
            assert f" {shown} " in line.replace("`", " ").replace(query_lists, ""), (row["id"], key)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_plain_words_are_used(page: Path) -> None:
    """Code keeps its names; generated pages are held by what they are made of."""
    text = page.read_text(encoding="utf-8")
    if page.name == "CHANGELOG.md" or "Written by `make docs`" in text:
        return
    prose = re.sub(r"^ *```.*?^ *```$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)
    words = r"\b(?:keepers?|at hand|floors?|(?:told|tells?) (?:\w+ ){0,3}apart|is no (?:\w+ )?file)\b"
    assert re.findall(words, prose, re.IGNORECASE) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_local_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


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
        first = " ".join(re.findall(r"^\| (.*?) \|", sections[heading], re.MULTILINE))
        assert {name for name in names if name not in re.split(r"[ ,]+", first)} == set(), heading
        assert {name for name in names if f"{name.lower()}==" not in pinned} == set()
