"""No number is added up by a kernel that the processor chooses: `cir_metrics.sums` adds floats."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("cir_metrics", "cir_datasets", "submissions", "leaderboard")
MODULES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))

KERNELS = {
    *("mean", "nanmean", "average", "std", "var", "dot", "vdot", "inner", "matmul", "einsum", "tensordot"),
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "float_power", "lgamma"),
    *("sin", "cos", "tan", "tanh", "cbrt", "logaddexp"),
}
"""Names of functions and methods whose last digits depend on the processor, or on a C library."""

VECTORS = ("submissions/encoders/magiclens_fusion.py", "submissions/methods/heads/", "submissions/training/")
"""Networks and their training: what torch computes is never the same on two machines."""

ALLOWED = {
    "cir_datasets/construction/cirr/neighbours.py": "a product preselects; sums that are exact decide",
    "cir_datasets/construction/zerosight/likeness.py": "a product decides far from a threshold alone",
    "cir_datasets/shapes/render.py": "products of whole numbers",
    "cir_metrics/gallery.py": "a product decides only what its bound of error allows",
    "cir_metrics/resampling.py": "products that are exact",
    "leaderboard/boards/pricing.py": "bits of information, of which whole numbers of answers are made",
    "submissions/methods/composing.py": "vectors of encoders",
    "submissions/methods/pixels/image_only.py": "products of whole numbers",
    "submissions/methods/pixels/text_only.py": "products of whole numbers",
    "submissions/evaluator/ranking.py": "a product decides only what its bound of error allows",
    "submissions/evaluator/trainer.py": "`log` is the Trainer's",
    "submissions/running/aggregation.py": "vectors of encoders",
}


def kernels(module: str) -> list[str]:
    """The places where a module uses one of them."""
    found = []
    for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8"))):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            found.append(f"line {node.lineno}: @")
        elif isinstance(called, ast.Attribute) and called.attr in KERNELS:
            found.append(f"line {called.lineno}: {called.attr}")
    return found


@pytest.mark.parametrize("module", [each for each in MODULES if not each.startswith(VECTORS)])
def test_no_kernel_adds_up_what_is_printed_or_stored(module: str) -> None:
    if module in ALLOWED:
        assert kernels(module), f"{module} needs no exemption any more"
    else:
        assert kernels(module) == [], "use cir_metrics.sums"
