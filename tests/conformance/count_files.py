"""How many of our files a command runs through, counted in a fresh process from `sys.modules`.

    python tests/conformance/count_files.py

A file counts when its module was executed. A package's `__init__.py` that defines no function and no class is
a front: a docstring, perhaps names that are imported when they are used. Fronts are counted apart, so two
figures are printed: the files, and with fronts. The ways:

- score: `cir score run.json`, from the command line to the printed table; run.json ranks shapes/val.
- upload: the leaderboard's application is made with API and pages, the file is posted to it, judged by a
  process of its own, and read back from its board.
- judge: that process.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cir_metrics", "cir_datasets", "submissions", "leaderboard")

SCORE = """
import sys
from leaderboard.cli import main
sys.argv = ["cir", "score", {run!r}]
try:
    main()
except SystemExit as done:
    if done.code:
        raise
"""
UPLOAD = """
import time
from pathlib import Path
from fastapi.testclient import TestClient
from leaderboard.web.app import create_app
with TestClient(create_app(Path({home!r}))) as client:
    content = Path({run!r}).read_bytes()
    form, files = {{"board": "shapes/val", "publish": "yes"}}, {{"file": ("run.json", content)}}
    sent = client.post("/api/submissions", data=form, files=files)
    until = time.monotonic() + 300
    while not (table := client.get("/api/boards/shapes/val").json())["entries"]:
        if time.monotonic() > until:
            raise SystemExit(f"not on the board: {{sent.text}}")
        time.sleep(0.1)
"""
JUDGE = """
import io, json, os, sys
from leaderboard.queue.child import main
request = {{"file": {run!r}, "benchmark": "shapes/val", "file_name": "run", "form": {{}}, "values_to": None}}
request |= {{"ground_truth": None, "dialogue": None, "right_by": None, "keys": []}}
sys.argv, sys.stdin = ["child", str(os.getppid()), str(2**31), "60"], io.StringIO(json.dumps(request))
main()
"""
REPORT = """
import json, sys
with open({out!r}, "w") as out:
    json.dump({{name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}}, out)
"""


@dataclass(frozen=True)
class Touched:
    """Our modules that a process has executed, by name.

    Args:
        files: those with content.
        fronts: packages whose `__init__.py` defines nothing.
    """

    files: dict[str, Path]
    fronts: dict[str, Path]


def touched(way: str, run: Path, folder: Path) -> Touched:
    """The modules of ours that a way goes through, in a process of its own.

    Args:
        way: SCORE, UPLOAD or JUDGE.
        run: a rank file for shapes/val.
        folder: an empty folder to work in.
    """
    out = folder / "modules.json"
    program = way.format(run=str(run), home=str(folder / "home")) + REPORT.format(out=str(out))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True
    )
    found = json.loads(out.read_text(encoding="utf-8"))
    paths = {name: Path(path) for name, path in found.items() if path and name.split(".")[0] in PACKAGES}
    fronts = {name: path for name, path in paths.items() if _is_front(path)}
    return Touched({name: path for name, path in paths.items() if name not in fronts}, fronts)


def _is_front(path: Path) -> bool:
    if path.name != "__init__.py":
        return False
    defined = (ast.FunctionDef, ast.ClassDef)
    return not any(isinstance(node, defined) for node in ast.parse(path.read_text(encoding="utf-8")).body)


def lines_of(touched: Touched) -> list[str]:
    """What is printed of a way: both figures, then its files by package with their lengths."""
    total = len(touched.files) + len(touched.fronts)
    lines = [f"{len(touched.files)} of our files; {total} with the fronts of packages"]
    for name, path in sorted(touched.files.items()):
        lines.append(f"  {name} {path.read_text(encoding='utf-8').count(chr(10))}")
    return lines


def main() -> None:
    """Print all ways."""
    import submissions

    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run.json"
        submissions.write(submissions.make_rank_file("shapes/val", "random", k=50), run)
        for name, way in (("score", SCORE), ("upload", UPLOAD), ("judge", JUDGE)):
            folder = Path(scratch) / name
            folder.mkdir()
            print(f"{name}:", "\n".join(lines_of(touched(way, run, folder))), sep=" ")


if __name__ == "__main__":
    main()
