"""Train the encoder that comes with the package, in a clone.

Example:
    python -m examples.shapes_encoder --out FOLDER
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cir_datasets.common.terminal import echo
from cir_metrics.errors import CirError
from examples.shapes_encoder.recipe import Order
from examples.shapes_encoder.training import STEPS, train_shapes


def main() -> None:
    """Train and print the folder; stopped and called again, it goes on from its last epoch or half minute."""
    parser = argparse.ArgumentParser(prog="python -m examples.shapes_encoder", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("shapes_encoder"), help="the folder to write")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of the optimiser")
    parser.add_argument("--seed", type=int, default=0, help="of weights, batches and captions")
    parser.add_argument("--threads", type=int, default=1, help="processor threads; part of the recipe")
    call = parser.parse_args()
    echo(f"{call.out}: drawing the pictures of shapes/train, then {call.steps:,} steps ...", err=True)
    try:
        echo(str(train_shapes(call.out, Order(call.steps, call.seed, call.threads))))
    except CirError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
