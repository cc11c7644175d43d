"""Writes the generated pages of the docs, and the tables of the README and of other pages, from the code.

`python docs/generate.py` writes them; with `--check` it fails where they differ from the code.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

os.environ["COLUMNS"] = "100"
os.environ["NO_COLOR"] = "1"
os.environ["TERM"] = "dumb"

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"

MADE = {
    "circled": "sessions-as-circled",
    "cirr": "subsets-as-cirr",
    "fisd": "aspects-as-fisd",
    "zerosight": "hard-negatives-as-zerosight",
}
"""Benchmarks whose construction is on a page, by its heading."""

PIXELS = "`image_only_pixels`"
PAIRED = ["method", "against", "difference", "p (Holm)", "verdict"]


def command_line() -> str:
    """`docs/cli.md`: every command with its options."""
    from command_page import page

    return page()


def benchmark_table() -> str:
    """`docs/benchmarks.md`: a row for every benchmark."""
    from cir_datasets import registry

    lines = [
        "# Benchmarks\n",
        "Written by `make docs` from the cards. After this page you can choose a benchmark, load it, and",
        "know what its users get wrong. `cir datasets show NAME` prints all of one, `cir datasets browse`",
        "shows its queries [with your pictures](images.md#looking-at-queries-and-rankings).\n",
        "Loading and scoring need no images. Each is loaded by its name after\n",
        "```python",
        *_imports(),
        "```",
        "",
    ]
    for name in registry.names():
        card = registry.card(name)
        paper = card.paper
        lines += [
            f"## {card.title}\n",
            *_first_lines(card),
            f"{card.summary}\n",
            f"- Paper: {_short(paper.authors)}: [{paper.title}]({paper.url}), {paper.appeared}",
            f"- Licence of the annotations: {card.license.annotations}",
            f"- Licence of the images: {card.license.images}",
            f"- Images: {card.images.removesuffix(' Loading and scoring need no images.')}",
            f"- Ids: {' '.join(card.ids.split())}",
            *([f"- Status: {card.status.replace('_', ' ')}"] if card.status == "pending_publication" else []),
            "",
            *_configurations(card),
        ]
        lines += _figures(card)
        if name in MADE:
            lines += ["", f"How it was made, with its files: [cir make {name}](make.md#{MADE[name]})."]
        lines += _differences(card)
        if card.traps:
            lines += ["", "What users get wrong:\n", *[f"- {trap}" for trap in card.traps]]
        lines.append("")
    return "\n".join(lines)


def _imports() -> list[str]:
    """What makes the names known."""
    from cir_datasets.hook import first_lines

    *imports, _ = first_lines("NAME", "", "")
    return imports


def _configurations(card: Any) -> list[str]:
    """A row for each, with a column for what is not the same in all; that is said once, above them."""
    from cir_datasets import registry

    rows = []
    for name, config in card.configs.items():
        spec = registry.spec(f"{card.name}/{name}")
        rows.append(
            {
                "benchmark": f"`{spec.id}`",
                "split": _split(config),
                "queries": _count(config.queries),
                "gallery": _gallery(spec),
                "turns": str(spec.turns),
                "reference": config.reference,
                "main metric": f"`{spec.main_metric}`",
            }
        )
    same = [name for name in rows[0] if len(rows) > 1 and len({row[name] for row in rows}) == 1]
    heads = [name for name in rows[0] if name not in same]
    shared = [f"{name} {rows[0][name]}" for name in same]
    table = _table(heads, [f"| {' | '.join(row[name] for name in heads)} |" for row in rows])
    return [*([f"All have: {', '.join(shared)}.\n"] if shared else []), table]


def _short(authors: str) -> str:
    """The first author, and whether there are others."""
    first, *others = authors.split(", ")
    return f"{first} et al." if others else first


def _split(config: Any) -> str:
    return config.split if config.ground_truth == "public" else f"{config.split}, {config.ground_truth}"


def _first_lines(card: Any) -> list[str]:
    """How a benchmark is loaded by its name."""
    from cir_datasets.hook import first_lines

    public = [name for name, config in card.configs.items() if config.ground_truth == "public"]
    name = next((found for found in public if card.configs[found].split == "validation"), public[0])
    *_, load = first_lines(card.name, name, card.configs[name].split)
    return [f"`{load}`\n"]


def _figures(card: Any) -> list[str]:
    """The pictures of queries that `examples/query_figures.py` draws."""
    names = [name for name in card.configs if (DOCS / "images" / f"{card.name}-{name}.png").exists()]
    return [
        line
        for name in names
        for line in (
            "",
            f"![Pictures of {card.name}/{name}](images/{card.name}-{name}.png)",
        )
    ]


def _differences(card: Any) -> list[str]:
    """Where published figures and the publisher's files disagree, by the reason."""
    found: dict[str, list[str]] = {}
    known = [
        (f"`{card.name}/{name}` ", each) for name, c in card.configs.items() for each in c.known_differences
    ]
    for name, each in [*known, *(("", each) for each in card.known_differences)]:
        figures = f"{each.ours:,} here, {each.published:,} {each.called}"
        found.setdefault(f"{each.what.replace('_', ' ')}, {each.why}", []).append(name + figures)
    if not found:
        return []
    lines = [f"- {why}: {'; '.join(figures)}" for why, figures in found.items()]
    return ["", "Known differences (`cir datasets verify` counts again):\n", *lines]


def readme() -> str:
    """`README.md` with its table of benchmarks written anew between the markers."""
    return _filled(README, {"benchmarks": readme_table()})


def _filled(page: Path, tables: Mapping[str, str]) -> str:
    """A page with its tables written anew, each between the two comments that name it."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"{page.name} lacks {begin} or {end}. Fix: put both lines where the table goes.")
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


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
        _several([_gallery(spec) for spec in specs]),
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


def shapes_encoder() -> str:
    """`docs/encoders.md` with the tables of the shapes encoder, which score and compare the entries."""
    composed, floor = "`image_text_sum`", f"{PIXELS} | `latest`"
    queries = {
        "`text_only`": "text_only-shapes",
        "`image_only`": "image_only-shapes",
        PIXELS: "image_only-pixels",
        composed: "image_text_sum-shapes",
        "`captioning`": "captioning-shapes",
        "`cirevl`": "cirevl-shapes",
    }
    sessions = {
        f"{composed} | `{name}`": f"image_text_sum-shapes-{name}"
        for name in ("latest", "average", "weighted", "feedback")
    }
    sessions |= {floor: "image_only-pixels", "`captioning` | `weighted`": "captioning-shapes"}
    sessions |= {
        f"`cirevl` | `{name}`": f"cirevl-shapes-{name}" for name in ("latest", "weighted", "feedback")
    }
    names, turns = list(queries), list(sessions)
    shown = {
        "words-queries": (names[4:], [*((name, PIXELS) for name in names[4:]), ("`cirevl`", composed)]),
        "sessions": (turns[:5], []),
        "words-sessions": (turns[5:], []),
    }
    asked = (["method"], ["recall@1", "recall@10", "map@10"], "recall@10")
    turned = (
        ["method", "aggregation"],
        ["hits@10@turn1", "final_recall@10", "hits_auc@10"],
        "hits_auc@10",
    )
    tables = {}
    for benchmark, files, (labels, metrics, main) in (
        ("shapes/val", queries, asked),
        ("shapes/multiturn_val", sessions, turned),
    ):
        reports = _entries(benchmark, files)
        scores = score_rows(reports, metrics)
        tests = paired_rows(reports, main) if benchmark == "shapes/val" else {}
        for table, (rows, pairs) in shown.items():
            if rows[0] in reports:
                tables[table] = _table([*labels, *metrics], [scores[row] for row in rows])
                if pairs:
                    tables[f"{table}-tests"] = _table(PAIRED, [tests[pair] for pair in pairs])
    return _filled(DOCS / "encoders.md", tables)


def _entries(benchmark: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Scores of entries, by what a table calls them."""
    import submissions
    from submissions.entries import entries

    paths = {entry.file: entry.path for entry in entries(benchmark)}
    ending = f".{benchmark.replace('/', '-')}.json.gz"
    return {label: submissions.score(paths[name + ending]) for label, name in names.items()}


def score_rows(reports: Mapping[str, Any], metrics: Iterable[str]) -> dict[str, str]:
    """A row for each score, per cent with intervals, behind its label."""
    from submissions.scoring.intervals import intervals

    rows = {}
    for label, report in reports.items():
        ends = intervals(report).values
        cells = []
        for name in metrics:
            # Four places first, which is what the encoder's recipe holds.
            numbers = (round(each, 4) for each in (report.metrics[name], ends[name].low, ends[name].high))
            cells.append("{:.1f} [{:.1f}, {:.1f}]".format(*(100 * each for each in numbers)))
        rows[label] = f"| {' | '.join([label, *cells])} |"
    return rows


def paired_rows(reports: Mapping[str, Any], metric: str) -> dict[tuple[str, str], str]:
    """A row for each ordered pair of scores: what `cir compare` says of all of them at once."""
    from submissions import compare

    found = compare(list(reports.values()), metrics=[metric])
    rows = {}
    for (one, other), pair in zip(itertools.combinations(reports, 2), found.pairs, strict=True):
        each = pair.differences[metric]
        p = f"{each.adjusted:.4f}" if each.adjusted >= 0.0001 else "<0.0001"
        for first, second, numbers in (
            (one, other, (each.difference, each.interval.low, each.interval.high)),
            (other, one, (-each.difference, -each.interval.high, -each.interval.low)),
        ):
            verdict = ("better" if numbers[0] > 0 else "worse") if each.significant else "not significant"
            labels = [name.replace(" | ", ", ") for name in (first, second)]
            difference = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * number for number in numbers))
            rows[first, second] = f"| {' | '.join([*labels, difference, p, verdict])} |"
    return rows


def _table(head: list[str], rows: list[str]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows])


def api_page() -> str:
    """`docs/python_api.md`: the public functions and classes of every room."""
    import inspect
    from importlib import import_module

    lines = [
        "# Python API\n",
        "Written by `make docs` from the docstrings. After this page you can find the function of a task.",
        "`...` are options, which `help(name)` explains with ranges, defaults and an example.\n",
    ]
    for room in (
        "cir_datasets",
        "submissions",
        "submissions.language",
        "cir_metrics",
        "cir_metrics.measures",
    ):
        module = import_module(room)
        about = (inspect.getdoc(module) or "").splitlines()[0]
        lines += [f"## `{room}`\n", f"{about}\n"]
        own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == room]
        listed = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
        errors = []
        for name in sorted(listed, key=str.lower):
            thing = getattr(module, name)
            if getattr(thing, "__name__", name) != name:
                continue  # an earlier name of another one
            if inspect.isclass(thing) and issubclass(thing, Exception):
                errors.append(f"`{name}`")
            elif callable(thing):
                summary = _line(re.split(r"(?<=[\w`)])[.;:](?=\s|$)", inspect.getdoc(thing) or "")[0])
                shown = name if inspect.isclass(thing) else f"{name}{_signature(thing)}"
                lines.append(f"- `{shown}`: {summary}")
        lines += ["", f"Errors: {', '.join(errors)}."] if errors else []
        lines.append("")
    return "\n".join(lines)


def _signature(function: object) -> str:
    """Names of the parameters without a default; types and options are left to `help`."""
    import inspect

    parts: list[str] = []
    given = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    for parameter in given:
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.default is parameter.empty:
            named = parameter.kind is parameter.KEYWORD_ONLY
            parts.append(f"{stars}{parameter.name}{'=' if named else ''}")
    if len(parts) < len(given):
        parts.append("...")
    return f"({', '.join(parts)})"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("{{", "{").replace("}}", "}")


def _gallery(spec: Any) -> str:
    """Its images, and whether each query ranks a list of its own among them."""
    return _count(spec.config.gallery) + spec.gallery_note


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def rank_files() -> str:
    """`docs/rank_files.md` with its words and its doors written anew between the markers."""
    from submissions.rank_file.texts import words_of

    rows = [f"- `{word}`: {_line(meaning)}" for word, meaning in words_of("oracle").items()]
    backbones = ", ".join(f"`{word}`" for word in words_of("backbone"))
    words = [
        "`oracle` says what a method knows that no user's query holds:\n",
        *rows,
        f"\n`backbone` is one of {backbones}.",
    ]
    return _filled(DOCS / "rank_files.md", {"words": "\n".join(words), "doors": _doors()})


def _doors() -> str:
    """The rules of `doors.yaml`, with the doors that differ from most."""
    import yaml

    table = yaml.safe_load((DOCS / "doors.yaml").read_text(encoding="utf-8"))
    lines = []
    for rule, text in table["rules"].items():
        outcomes = {door: rules[rule] for door, rules in table["doors"].items() if rule in rules}
        ((usual, _), *_) = Counter(outcomes.values()).most_common(1)
        others = [f"{outcome} at `{door}`" for door, outcome in outcomes.items() if outcome != usual]
        lines.append(f"- **{rule.replace('_', ' ')}** ({', '.join([usual, *others])}): {text}")
    return "\n".join(lines)


def reports() -> str:
    """`docs/reports.md` with the table of the papers' tables and figures written anew."""
    import yaml

    papers = yaml.safe_load((DOCS / "papers.yaml").read_text(encoding="utf-8"))
    head = ["paper", "table, figure or protocol", "command", "what cannot be had here"]
    rows = [
        f"| {paper} | {row['what']} | {_command(row)} | {row.get('needs', '')} |"
        for paper, listed in papers.items()
        for row in listed
    ]
    return _filled(DOCS / "reports.md", {"papers": _table(head, rows)})


def _command(row: Mapping[str, str]) -> str:
    return f"`{row['command']}`" if "command" in row else "none"


PAGES = {
    "docs/cli.md": command_line,
    "docs/benchmarks.md": benchmark_table,
    "docs/encoders.md": shapes_encoder,
    "docs/python_api.md": api_page,
    "docs/rank_files.md": rank_files,
    "docs/reports.md": reports,
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
