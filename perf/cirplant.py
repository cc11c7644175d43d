"""Time and memory of CIRPLANT's training on CIRR's real annotations, with random features for the images.

    python perf/cirplant.py                                    # an epoch of cirr/train, small network
    python perf/cirplant.py --layers 12 --hidden-size 768 --heads 12 --steps 3   # BERT's base model

Needs `CIR_DATA_HOME`, and no images: a pixel stands for each, and its vector is 2,048 random numbers.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import cir_datasets
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.protocol import Identity
from submissions.errors import EncoderError
from submissions.training.composition_training import train_composition
from submissions.training.training_options import CirplantTraining, TirgTraining

DIMENSIONS = 2048


class RandomFeatures:
    """A random vector of length 1 for each picture, by its pixel."""

    identity = Identity("random", "1", "random", "pixel", "float32", DIMENSIONS)

    def encode_images(self, images: Sequence[Image.Image]) -> NDArray[np.float32]:
        seeds = [image.getpixel((0, 0)) for image in images]
        found = np.stack([np.random.default_rng(seed).standard_normal(DIMENSIONS) for seed in seeds])
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise EncoderError("random features know images alone, not texts. Fix: time a method without texts.")


def write_pixels(benchmark: str, folder: Path) -> None:
    """One pixel for each image, of a colour of its own, in NLVR2's layout."""
    for number, image in enumerate(cir_datasets.load(benchmark).gallery or ()):
        split = image.split("-")[0]
        path = folder / ("images/train/0" if split == "train" else split) / f"{image}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (1, 1), (number >> 16, number >> 8 & 255, number & 255)).save(path)


def main(arguments: Sequence[str]) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--benchmark", default="cirr/train")
    options.add_argument("--steps", type=int, default=None, help="default: an epoch")
    options.add_argument("--composition", default="cirplant")
    options.add_argument("--layers", type=int, default=2)
    options.add_argument("--hidden-size", type=int, default=256)
    options.add_argument("--heads", type=int, default=4)
    options.add_argument("--threads", type=int, default=1)
    given = options.parse_args(arguments)
    import torch

    torch.set_num_threads(given.threads)
    sizes = {"hidden_size": given.hidden_size, "layers": given.layers, "heads": given.heads}
    with tempfile.TemporaryDirectory() as made:
        folder, begun = Path(made), time.perf_counter()
        write_pixels(given.benchmark, folder / "nlvr2")
        print(f"pixels written in {time.perf_counter() - begun:.1f} s", flush=True)
        marks: list[tuple[float, float]] = []
        options = {
            "encoder": RandomFeatures(),
            "benchmark": given.benchmark,
            "out": folder / "head",
            "epochs": 1,
            "epoch_steps": given.steps,
            "images": folder / "nlvr2",
            "device": "cpu",
        }
        done = train_composition(
            TirgTraining(**options, hidden_size=given.hidden_size)
            if given.composition == "tirg"
            else CirplantTraining(**options, **sizes),
            store=EmbeddingStore(folder / "store"),
            say=lambda line: marks.append((time.perf_counter(), time.process_time())) or print(line),  # type: ignore[func-returns-value]
        )
        wall, processor = (
            now - then for now, then in zip((time.perf_counter(), time.process_time()), marks[0], strict=True)
        )
        weights = (folder / "head/model.safetensors").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.composition} on {given.benchmark}: {done.steps:,} steps of 32, vectors included")
    print(f"loss {done.first_loss:.4f} -> {done.last_loss:.4f}")
    print(f"{wall:.1f} s, {processor:.1f} s of processor; {1000 * processor / done.steps:.0f} ms a step")
    print(f"{peak:,.0f} MiB at most; weights {weights / 2**20:.1f} MiB")


if __name__ == "__main__":
    main(sys.argv[1:])
