"""Writes the generated pages of the docs: the command line, the benchmarks and the findings.

`python docs/generate.py` writes them; with `--check` it fails where they differ from the code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["COLUMNS"] = "100"
os.environ["NO_COLOR"] = "1"
os.environ["TERM"] = "dumb"

DOCS = Path(__file__).resolve().parent


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
            f"- Status: {card.status.replace('_', ' ')}\n",
            "| benchmark | split | queries | gallery | reference | ground truth | main metric |",
            "|---|---|---:|---:|---|---|---|",
        ]
        for config_name, config in card.configs.items():
            spec = registry.spec(f"{name}/{config_name}")
            lines.append(
                f"| `{spec.id}` | {config.split} | {_count(config.queries)} | {_count(config.gallery)} "
                f"| {config.reference} | {config.ground_truth} | `{spec.main_metric}` |"
            )
        if card.traps:
            lines += ["", "What users get wrong:\n", *[f"- {trap}" for trap in card.traps]]
        lines.append("")
    return "\n".join(lines)


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


PAGES = {"cli.md": command_line, "benchmarks.md": benchmark_table}


def main() -> int:
    """Write or check every page."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in PAGES.items():
        path = DOCS / name
        text = make()
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"docs/{', docs/'.join(stale)} differ from the code. Fix: make docs\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
