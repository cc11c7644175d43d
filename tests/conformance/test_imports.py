"""Imports point one way, and what should be cheap to import is."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from count_files import SCORE, touched
from programs import run_program

import submissions
from cir_datasets import registry
from cir_metrics.catalogue import METRICS

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ["cir_metrics", "cir_datasets", "submissions", "leaderboard"]
"""A package imports only from those before it."""

ORDER = {
    "cir_datasets": {
        "errors": "what goes wrong, in words",
        "common": "what all rooms need and no library has",
        "pages": "HTML from templates: what pages, notebooks and servers share",
        "registry": "what exists: cards, suites, overlays, caption rules",
        "sources": "where the publishers' files come from, and fetching them",
        "rows": "the typed rows, their checks and hashes, the Benchmark made of them",
        "shapes": "the embedded benchmark: scenes, captions, pictures",
        "builders": "from a publisher's files to rows: one file a benchmark",
        "prepared": "rows read once, checked, kept as Parquet, loaded again",
        "images": "where pictures lie, which are missing, what they hash to",
        "browse": "queries and rankings as one page to look at",
        "huggingface": "what load_dataset makes of a benchmark",
        "hook": "load_dataset by name",
        "publishing": "the Hub's layout, cards, Croissant, push",
        "statistics": "counts of rows, words and parts of speech",
        "audit": "is what is here what the card says",
        "export": "qrels, files of evaluators, templates, training triplets",
        "construction": "the pipelines that make benchmarks: stages in a folder, then a benchmark and a page",
        "commands": "`cir datasets`",
    },
    "submissions": {
        "errors": "what goes wrong, in words",
        "rank_file": "the rank file itself: model, columns, ids, depth, findings",
        # Judging rankings.
        "formats": "one file a format, and how a file is told apart",
        "validation": "everything wrong with a rank file, found without ground truth",
        "scoring": "from a valid rank file to numbers with signatures",
        "transform": "convert and fuse",
        "report": "everything that a score says: tables, plots, floors",
        "comparison": "methods side by side: which differences are real",
        "papers": "the tables that papers print, published rows beside our own",
        "transcripts": "dialogues: the file, what contradicts itself in it, its numbers",
        # Making rankings.
        "truncation": "texts that are longer than an encoder reads, reported once a run",
        "encoders": "pictures and texts to vectors: one file a family",
        "cluster": "parts of some work on the machines of a Ray cluster",
        "embeddings": "vectors of whole galleries, kept, resumed, spread over machines",
        "language": "captions, merges, differences, judgements by language models",
        "methods": "one file a method, the protocols, the registry, the heads",
        "running": "from a benchmark and a method to a rank file",
        "evaluator": "evaluation inside a training loop",
        "multiround": "a method in dialogue with a user, round by round",
        "training": "training of the heads and of the shapes encoder",
        "making": "encoders and language backends for the construction pipelines",
        # Where the two wings meet.
        "explaining": "what any file says, valid or not, its numbers by reading, what can be mended",
        "entries": "the rank files of the boards' baselines",
        "commands": "`cir run`, `cir validate`, `cir score` and the others",
        "intervals": "deprecated: `submissions.scoring.intervals`",
        "retrieval": "deprecated: encoders and embeddings",
    },
    "leaderboard": {
        "errors": "what goes wrong, in words",
        "options": "options that several commands have",
        "settings": "what a server is given from outside",
        "dialogues": "what a board of transcripts asks of these",
        "boards": "which boards there are, what they show, tell and need",
        "store": "submissions, their log and the uploaded files, kept",
        "identity": "owners, tokens, private links; receipts, signed",
        "intake": "the way in: which board, how much, and what may happen to a submission afterwards",
        "queue": "what waits, one file judged in a process of its own, and the loop over all",
        "standings": "who stands where, as tables and as JSON",
        "inspection": "what readers are shown of an entry's rankings",
        "server": "all of these as one object; who makes a request, benchmarks prepared, boards scored again",
        "pages": "the pages",
        "web": "the HTTP side: API and pages in one application, its limits, a port",
        "export": "standings in the formats of other places, and the pages as files",
        "play": "a person in the place of the simulated user: `cir play`",
        "client": "the other side of the API",
        "challenge": "sealed challenges, made and checked",
        "space": "the leaderboard as a Space of the Hub",
        "commands": "`cir leaderboard`, `cir submit` and `cir receipt`",
        "cli": "`cir`",
    },
}
"""The rooms, bottom first: a room imports only from those before it."""

_ROOMS = list(ORDER["submissions"])
JUDGING = _ROOMS[: _ROOMS.index("transcripts") + 1]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Modules of ours that a module imports anywhere: at its top, in a function, or for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & MODULES.keys()) or {node.module}
            found |= {node.module} if names - MODULES.keys() else set()
    return found & MODULES.keys()


@functools.cache
def edges() -> dict[str, set[str]]:
    """By module of ours the others that it imports."""
    return {name: imported(path) - {name} for name, path in MODULES.items()}


def test_no_package_imports_from_a_package_above_it() -> None:
    package = {name: PACKAGES.index(name.split(".")[0]) for name in MODULES}
    upwards = [f"{a} -> {b}" for a, others in edges().items() for b in others if package[b] > package[a]]
    assert upwards == []


@pytest.mark.parametrize("package", ORDER)
def test_the_rooms_of_a_package_import_downwards_only(package: str) -> None:
    order = list(ORDER[package])
    rooms = {name: name.split(".")[1] for name in MODULES if name.startswith(f"{package}.")}
    assert set(rooms.values()) == set(order)
    upwards = [
        f"{a} -> {b}"
        for a in rooms
        for b in edges()[a] & rooms.keys()
        if order.index(rooms[b]) > order.index(rooms[a])
    ]
    assert upwards == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = dict(edges())
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    # Those that only lead into a circle go as well, from the other side.
    while loose := left.keys() - {other for others in left.values() for other in others}:
        for name in loose:
            del left[name]
    assert sorted(left) == []


def test_judging_rankings_imports_nothing_that_makes_benchmarks_or_rankings() -> None:
    allowed = {f"submissions.{room}" for room in JUDGING}
    making = [
        f"{a} -> {b}"
        for a, others in edges().items()
        if ".".join(a.split(".")[:2]) in allowed
        for b in others
        if b.startswith("submissions.") and ".".join(b.split(".")[:2]) not in allowed
    ]
    assert making == []


def test_a_class_name_stands_for_one_class() -> None:
    """Also where one begins with an underscore: `_Gallery` beside `Gallery` is one word for two things."""
    homes: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name.lstrip("_"), []).append(f"{module}.{node.name}")
    assert [found for found in homes.values() if len(found) > 1] == []


STUBS = [ROOT / package / "__init__.pyi" for package in ("cir_datasets", "submissions")]
IMPORTED = re.compile(r"^from \.(\S+) import", re.MULTILINE)
PUBLIC = re.compile(r"^from \. import (\w+)", re.MULTILINE)


def test_scoring_imports_nothing_that_makes_benchmarks_or_rankings(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    submissions.write(submissions.make_rank_file("shapes/val", "random", k=50), run)
    making = {f"submissions.{room}" for room in ORDER["submissions"] if room not in JUDGING}
    making = making - {"submissions.commands"} | {"cir_datasets.builders", "cir_datasets.shapes"}
    found = touched(SCORE, run, tmp_path).files
    assert [name for name in found if ".".join(name.split(".")[:2]) in making] == []


SMALL = 60
"""Lines: a file of fewer has several importers, is found by name, or its first line says why it is one."""

REASON = re.compile(r"in a file of its own: \w")

PLACE = re.compile(r"([a-z_]\w*(?:\.\w+)+):\w+")
"""`module:name`, as entry points and the registry of methods write it."""


def found_by_name() -> set[str]:
    """Modules that no import statement needs to name."""
    naming = [ROOT / "setup.cfg", MODULES["submissions.methods.registry"]]
    found = {place for path in naming for place in PLACE.findall(path.read_text(encoding="utf-8"))}
    found |= {f"cir_datasets.builders.{card}" for card in registry.names()}
    found |= {f"cir_metrics.{metric}.{metric}" for metric in METRICS}
    for stub in STUBS:
        found |= {f"{stub.parent.name}.{name}" for name in PUBLIC.findall(stub.read_text(encoding="utf-8"))}
    return found | {name for name in MODULES if ".commands." in name}


def test_a_small_module_has_several_importers_or_its_first_line_says_why_it_is_one() -> None:
    importers = Counter(other for others in edges().values() for other in others)
    importers.update(
        f"{stub.parent.name}.{home}" for stub in STUBS for home in IMPORTED.findall(stub.read_text())
    )
    by_name = found_by_name()
    alone = []
    for name, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if path.name == "__init__.py" or text.count("\n") >= SMALL or importers[name] > 1 or name in by_name:
            continue
        if not REASON.search(text.partition("\n")[0]):
            alone.append(f"{name} ({text.count(chr(10))} lines, importers: {importers[name]})")
    assert alone == []


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import cir_metrics", ["evaluate", "datasets", "pyarrow", "pydantic", "orjson", "torch", "scipy"]),
        ("import cir_datasets", ["datasets", "numpy", "pyarrow", "pydantic", "torch", "evaluate", "yaml"]),
        ("import submissions", ["datasets", "numpy", "pyarrow", "pydantic", "torch", "evaluate", "orjson"]),
        (
            "import leaderboard.cli",
            ["datasets", "numpy", "pyarrow", "gradio", "fastapi", "sqlalchemy"],
        ),
        (
            # The help of all commands looks each of them up.
            "import typer.main as t, leaderboard.cli as c; list(t.get_command(c.build()).commands.values())",
            ["datasets", "numpy", "pyarrow", "gradio", "fastapi", "sqlalchemy", "torch", "pydantic"],
        ),
    ],
)
def test_an_import_loads_no_heavy_library(statement: str, forbidden: list[str]) -> None:
    code = f"{statement}\nimport sys\nprint([m for m in {forbidden!r} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    done = run_program(command, cwd=ROOT)
    assert done.stdout.strip() == "[]"
