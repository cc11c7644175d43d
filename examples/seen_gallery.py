"""What an encoder gains from having seen the gallery: ZeroSight's Figure 8 (supplement L) on shapes.

The shipped encoder goes on learning, by CLIP's loss, on the gallery's pictures with captions that leave
things out, as a captioner does. Composed retrieval is measured before and after. A second copy learns as
long on as many pictures of another split: what it gains is not from having seen the gallery.

Example:
    python -m examples.seen_gallery --out seen --steps 200
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import cir_datasets
from cir_datasets.shapes import describe, picture, scene
from submissions import Comparison, RankFile, compare, make_rank_file
from submissions.encoders import load_encoder
from submissions.training import Plan, forget, train

BENCHMARK, OTHER = "shapes/val", "shapes/train"
METHOD, METRICS = "image_text_sum", ("recall@1", "recall@10", "map@10")


def learned(images: Sequence[str], plan: Plan, folder: Path) -> Path:
    """Let a copy of the shipped encoder learn pictures with their captions; called again, it goes on.

    Args:
        images: ids of shapes.
        plan: how.
        folder: where the encoder is written, in Hugging Face format.

    Returns:
        The folder.

    Raises:
        ValueError: it holds an encoder that learned by another plan.
    """
    note, how = folder / "plan.json", json.dumps(plan.numbers)
    if note.is_file():
        if note.read_text(encoding="utf-8") != how:
            raise ValueError(f"{folder}: holds what learned by another plan. Fix: name another --out.")
        return folder
    encoder: Any = load_encoder("shapes", device="cpu")
    model = encoder.model.requires_grad_(True)
    captions = [describe(scene(image), seed=number) for number, image in enumerate(images)]

    def loss_of(rows: NDArray[np.int64]) -> Tensor:
        shown = encoder.image_processor([picture(images[row]) for row in rows], return_tensors="pt")
        words = encoder.tokenizer([captions[row] for row in rows], padding=True, return_tensors="pt")
        loss: Tensor = model(**shown, **words, return_loss=True).loss
        return loss

    depends = {"images": list(images), "encoder": encoder.identity.revision}
    label = f"learning {len(images):,} pictures"
    train(model, loss_of, count=len(images), plan=plan, folder=folder, settings=depends, label=label)
    encoder.tokenizer.save_pretrained(folder)
    encoder.image_processor.save_pretrained(folder)
    model.save_pretrained(folder)
    note.write_text(how, encoding="utf-8")
    forget(folder)
    return folder


def ranked(encoder: str | Path, name: str, seen: str = "") -> RankFile:
    """The benchmark ranked with an encoder, under a name, which says whose pictures the encoder has seen."""
    made = make_rank_file(BENCHMARK, METHOD, encoder=load_encoder(encoder, device="cpu"))
    words: dict[str, Any] = {"name": name}
    if seen:
        words |= {"zero_shot": False, "trained_on": [f"pictures of {seen}"]}
    return replace(made, method=made.method.model_copy(update=words))


def compared(out: Path, plan: Plan) -> Comparison:
    """The encoder before, after the gallery, and after as many pictures of another split.

    Args:
        out: where the two encoders are written.
        plan: of both trainings.
    """
    gallery = cir_datasets.load(BENCHMARK).gallery or ()
    others = cir_datasets.load(OTHER).gallery or ()
    seen = learned(gallery, plan, out / "gallery")
    other = learned(others[: len(gallery)], plan, out / "other")
    files = [
        ranked("shapes", "before"),
        ranked(seen, "after its gallery", BENCHMARK),
        ranked(other, "after other pictures", OTHER),
    ]
    return compare(files, metrics=METRICS)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the two encoders")
    parser.add_argument("--steps", type=int, default=200, help="of the optimiser")
    parser.add_argument("--batch-size", type=int, default=64, help="pictures a step")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    plan = Plan(options.steps, options.batch_size, options.learning_rate, seed=options.seed)
    sys.stdout.write(compared(options.out, plan).text() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
