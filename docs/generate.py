"""Writes the generated pages of the docs, and the table of benchmarks in the README, from the code.

`python docs/generate.py` writes them; with `--check` it fails where they differ from the code.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["COLUMNS"] = "100"
os.environ["NO_COLOR"] = "1"
os.environ["TERM"] = "dumb"

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"


def command_line() -> str:
    """`docs/cli.md`: the help of every command."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from leaderboard.cli import build

    app = build()
    runner = CliRunner()
    parts = ["# The `cir` command\n", "Written by `make docs` from the commands' own help.\n"]

    def walk(command: object, path: list[str]) -> None:
        result = runner.invoke(app, [*path, "--help"], prog_name="cir")
        text = "\n".join(line.rstrip() for line in result.output.strip().splitlines())
        parts.append(f"## `{' '.join(['cir', *path])}`\n\n```text\n{text}\n```\n")
        for name, child in sorted(getattr(command, "commands", {}).items()):
            walk(child, [*path, name])

    walk(get_command(app), [])
    return "\n".join(parts)


def benchmark_table() -> str:
    """`docs/benchmarks.md`: a row for every benchmark."""
    from cir_datasets import registry

    lines = [
        "# Benchmarks\n",
        "Written by `make docs` from the cards. `cir datasets show NAME` prints one of them whole.\n",
    ]
    for name in registry.names():
        card = registry.card(name)
        paper = card.paper
        lines += [
            f"## {card.title}\n",
            f"{card.summary}\n",
            f"- Paper: {paper.authors}: [{paper.title}]({paper.url}), {paper.venue} {paper.year}",
            f"- Licence of the annotations: {card.license.annotations}",
            f"- Licence of the images: {card.license.images}",
            f"- Images: {card.images}",
            f"- Ids: {card.ids}",
            f"- Status: {card.status.replace('_', ' ')}\n",
            "| benchmark | split | queries | gallery | turns | reference | ground truth | main metric |",
            "|---|---|---:|---:|---|---|---|---|",
        ]
        for config_name, config in card.configs.items():
            spec = registry.spec(f"{name}/{config_name}")
            lines.append(
                f"| `{spec.id}` | {config.split} | {_count(config.queries)} | {_count(config.gallery)} "
                f"| {spec.turns} | {config.reference} | {config.ground_truth} | `{spec.main_metric}` |"
            )
        lines += _examples(card)
        lines += _differences(card)
        if card.traps:
            lines += ["", "What users get wrong:\n", *[f"- {trap}" for trap in card.traps]]
        lines.append("")
    return "\n".join(lines)


def _examples(card: Any) -> list[str]:
    """An id of a query or session and one of an image, of every configuration."""
    lines = ["", "Ids of a query or session, and of an image:\n"]
    for name, example in card.examples.items():
        note = " (invented in that form)" if example.invented else ""
        lines.append(f"- `{card.name}/{name}`: `{example.query}`, `{example.images[0]}`{note}")
    return lines


def _differences(card: Any) -> list[str]:
    """Where published figures and the publisher's files disagree."""
    known = [
        f"`{card.name}/{n}`, {found.text()}" for n, c in card.configs.items() for found in c.known_differences
    ]
    known += [found.text() for found in card.known_differences]
    return (
        ["", "Known differences (`cir datasets verify` counts again):\n", *[f"- {line}" for line in known]]
        if known
        else []
    )


def readme() -> str:
    """`README.md` with its table of benchmarks written anew between the markers."""
    text = README.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md lacks {BEGIN} or {END}. Fix: put both lines where the table goes.")
    return f"{before}{begin}\n{readme_table()}\n{end}{after}"


def readme_table() -> str:
    """A row for what is usually evaluated on: public validation splits, else test splits."""
    from cir_datasets import registry

    lines = [
        "| benchmark | queries | gallery | turns | reference | main metric | annotations | status |",
        "|---|---:|---:|---|---|---|---|---|",
    ]
    for name in registry.names():
        configs = registry.card(name).configs
        public = [n for n, config in configs.items() if config.ground_truth == "public"]
        shown = [n for n in public if configs[n].split == "validation"]
        shown = shown or [n for n in public if configs[n].split == "test"]
        groups: dict[Any, list[str]] = {}
        for config in shown:
            groups.setdefault((registry.spec(f"{name}/{config}").kind, _ending(config)), []).append(config)
        others = Counter(_ending(n) or n for n in configs if n not in shown)
        for number, group in enumerate(groups.values()):
            part = any(1 < count < len(group) for count in others.values())
            word = "some also" if part else "also"
            also = (
                f" ({word} {', '.join(f'`{other}`' for other in others)})" if others and number == 0 else ""
            )
            lines.append(_readme_row(name, group, also))
    return "\n".join(lines)


def _readme_row(name: str, configs: list[str], also: str) -> str:
    from cir_datasets import registry

    specs = [registry.spec(f"{name}/{config}") for config in configs]
    ending = _ending(configs[0])
    if len(configs) == 1:
        shown = configs[0]
    else:
        shown = "{" + ",".join(config.removesuffix(f"_{ending}") for config in configs) + "}"
        shown += f"_{ending}" if ending else ""
    turns = dict.fromkeys(spec.turns for spec in specs)
    cells = [
        f"`{name}/{shown}`{also}",
        _several([_count(spec.config.queries) for spec in specs]),
        _several([_count(spec.config.gallery) for spec in specs]),
        ", ".join(turns),
        ", ".join(dict.fromkeys(spec.config.reference for spec in specs)),
        f"`{specs[0].main_metric}`",
        specs[0].card.license.annotations,
        specs[0].card.status.replace("_", " "),
    ]
    return f"| {' | '.join(cells)} |"


def _ending(config: str) -> str:
    """What a configuration's name says of its split: `val`, `val_union`; empty where it says nothing."""
    found = re.search(r"(?:^|_)((?:train|val|test)\w*)$", config)
    return found.group(1) if found else ""


def _several(cells: list[str]) -> str:
    return f"{cells[0]} each" if len(cells) > 1 and len(set(cells)) == 1 else " / ".join(cells)


def finding_table() -> str:
    """`docs/findings.md`: every code that validation can give."""
    from submissions.findings import codes

    lines = [
        "# Findings\n",
        "Written by `make docs` from `submissions/findings.yaml`. An error refuses the file, a warning does",
        "not. A code never changes its meaning. Words in braces are filled in: the file, the benchmark, the",
        "depth that its board needs.\n",
        "| code | severity | meaning | fix |",
        "|---|---|---|---|",
    ]
    for name, code in codes().items():
        lines.append(f"| `{name}` | {code.severity} | {_cell(code.meaning)} | {_cell(code.fix)} |")
    return "\n".join([*lines, ""])


def api_page() -> str:
    """`docs/python_api.md`: the public functions and classes of every room."""
    import inspect
    from importlib import import_module

    lines = [
        "# Python API\n",
        "Written by `make docs` from the docstrings; `help(name)` prints them whole.\n",
    ]
    for room in (
        "cir_datasets",
        "submissions",
        "submissions.retrieval",
        "submissions.language",
        "cir_metrics",
        "cir_metrics.measures",
    ):
        module = import_module(room)
        about = (inspect.getdoc(module) or "").splitlines()[0]
        lines += [f"## `{room}`\n", f"{about}\n", "| name | what it is |", "|---|---|"]
        own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == room]
        listed = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
        for name in sorted(listed, key=str.lower):
            thing = getattr(module, name)
            if not callable(thing):
                lines.append(f"| `{name}` | a value: `{type(thing).__name__}` |")
                continue
            summary = _cell((inspect.getdoc(thing) or "").split("\n\n")[0])
            shown = name if inspect.isclass(thing) else f"{name}{_signature(thing)}"
            lines.append(f"| `{shown}` | {summary} |")
        lines.append("")
    return "\n".join(lines)


def _signature(function: object) -> str:
    """Names of the parameters, keyword-only ones behind a star; types and defaults are left to `help`."""
    import inspect

    parts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(parameter.name if parameter.default is parameter.empty else f"{parameter.name}=...")
    return f"({', '.join(parts)})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("{{", "{").replace("}}", "}").replace("|", "\\|")


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


PAGES = {
    "docs/cli.md": command_line,
    "docs/benchmarks.md": benchmark_table,
    "docs/findings.md": finding_table,
    "docs/python_api.md": api_page,
    "README.md": readme,
}


def main() -> int:
    """Write or check every page."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        path = DOCS.parent / name
        text = make()
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"{', '.join(stale)}: not what the code says. Fix: make docs\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
