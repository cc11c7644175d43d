"""How much of the time of encoding a gallery is the model's own forward pass, and how many images a second.

    python perf/encoding.py                                   # the shapes encoder, on CPU
    python perf/encoding.py --model vit-b-32                  # of that size, with random weights
    python perf/encoding.py --model vit-l-14 --device cuda --dtype float16 --batch-size 256 --workers 12
    python perf/encoding.py --profile                         # also the functions that take longest

Pictures of shapes/val go through `embed_gallery` into an empty store: drawn, resized, encoded, written. Wall
time is that of the whole call, starting its worker processes included, loading the model not.

    forward    in the model's image tower, between hooks on it (on a GPU between events of its stream)
    encoder    the rest of the encoder: to the device, scaling pixels, vectors of length 1, back
    waiting    for pictures
    writing    shards
    around     the rest: looking for shards, starting and ending processes, checking the array

Runs take turns with a plain loop that draws, prepares and encodes in one process. Printed are medians.
Workers and the model's threads are as many as there are cores, unless told otherwise: where they share cores,
what workers take from the model is in `forward`, and threads that wait for each other make it far slower.
`alone` is what the same forward passes take on pictures that are ready, while nothing else runs.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fresh import Verdict, add_bound_option, at_least

import cir_datasets
from submissions.embeddings.embed import Timing, embed_gallery
from submissions.embeddings.pictures import pictures_of
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.loading import load_encoder

BOUNDS = {"forward / wall time": at_least(0.85)}
"""On the CPU."""
SIZES = {
    "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
    "vit-b-32": {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
    },
    "vit-l-14": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
    },
}
PIXELS = {"tiny": (32, 8), "vit-b-32": (224, 32), "vit-l-14": (224, 14)}
"""Side of a picture and of a patch."""


def random_clip(name: str, folder: Path) -> Path:
    """A CLIP with random weights whose image tower has a size that is known; its text tower is small."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    words = Tokenizer(models.WordLevel({"a": 0, "end": 1}, unk_token="a"))
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="end", pad_token="end").save_pretrained(folder)
    side, patch = PIXELS[name]
    torch.manual_seed(0)
    config = CLIPConfig(
        text_config={**SIZES["tiny"], "vocab_size": 2, "bos_token_id": 0, "eos_token_id": 1},
        vision_config={**SIZES[name], "image_size": side, "patch_size": patch},
        projection_dim=SIZES[name]["hidden_size"] * 3 // 4,
    )
    CLIPModel(config).save_pretrained(folder)
    CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    ).save_pretrained(folder)
    return folder


class Forward:
    """Adds up the time in a CLIP's image tower, from its first layer to its projection."""

    def __init__(self, model: Any, cuda: bool) -> None:
        import torch

        self.seconds = 0.0
        self._events: list[tuple[Any, Any]] = []
        self._started: Any = None

        def moment() -> Any:
            if not cuda:
                return time.perf_counter()
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event

        def before(*_: Any) -> None:
            self._started = moment()

        def after(*_: Any) -> None:
            ended = moment()
            if cuda:
                self._events.append((self._started, ended))
            else:
                self.seconds += ended - self._started

        model.vision_model.register_forward_pre_hook(before)
        model.visual_projection.register_forward_hook(after)
        self._wait: Callable[[], None] = torch.cuda.synchronize if cuda else lambda: None

    def take(self) -> float:
        """Seconds since this was last asked."""
        self._wait()
        self.seconds += sum(start.elapsed_time(end) for start, end in self._events) / 1000
        taken, self.seconds = self.seconds, 0.0
        self._events.clear()
        return taken


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument(
        "--model", default="shapes", help=f"shapes, a folder, or random weights of a size: {', '.join(SIZES)}"
    )
    options.add_argument("--device", default="cpu", help="cpu, cuda, ...")
    options.add_argument("--dtype", default="float32", help="of the forward pass")
    options.add_argument("--images", type=int, help="pictures; all of shapes/val where it is left out")
    options.add_argument("--batch-size", type=int, default=64, help="pictures that the model takes at once")
    options.add_argument("--workers", type=int, default=1, help="processes that draw and prepare pictures")
    options.add_argument(
        "--threads", type=int, help="of the model; cores without workers if left out, 1 at least"
    )
    options.add_argument("--repeat", type=int, default=3, help="runs of each, by turns")
    options.add_argument("--profile", action="store_true", help="also show the functions that take longest")
    add_bound_option(options)
    given = options.parse_args()
    verdict = Verdict(BOUNDS, given.bound)
    threads = given.threads or max(1, (os.cpu_count() or 1) - given.workers)
    benchmark = cir_datasets.load("shapes/val")
    gallery = list(
        itertools.islice(itertools.cycle(benchmark.gallery), given.images or len(benchmark.gallery))
    )
    pictures = pictures_of(benchmark, ids=gallery)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        name = str(random_clip(given.model, folder / given.model)) if given.model in SIZES else given.model
        encoder: Any = load_encoder(name, device=given.device, dtype=given.dtype, threads=threads)
        forward = Forward(encoder.model, given.device.startswith("cuda"))

        def pipeline(number: int, workers: int) -> tuple[float, float, Timing]:
            timing, started = Timing(), time.perf_counter()
            embed_gallery(
                encoder,
                pictures,
                store=EmbeddingStore(folder / f"store-{workers}-{number}"),
                batch_size=given.batch_size,
                workers=workers,
                progress=False,
                timing=timing,
            )
            seconds = time.perf_counter() - started
            return seconds, forward.take(), timing

        ready = [pictures.open(place) for place in range(min(given.batch_size, len(gallery)))]
        prepared = encoder.prepare(ready)

        def alone() -> float:
            for _ in range(-(-len(gallery) // given.batch_size)):
                encoder.encode_prepared(prepared)
            return forward.take()

        alone()  # A first pass is slower.
        runs = [
            (pipeline(number, given.workers), pipeline(number, 0), alone()) for number in range(given.repeat)
        ]
        profile = cProfile.Profile()
        if given.profile:
            profile.runcall(pipeline, given.repeat, given.workers)
    wall = statistics.median(fed[0] for fed, _, _ in runs)
    spent = statistics.median(fed[1] for fed, _, _ in runs)
    timings = [fed[2] for fed, _, _ in runs]
    rows = {
        "forward": spent,
        "encoder": statistics.median(one.model for one in timings) - spent,
        "waiting": statistics.median(one.waiting for one in timings),
        "writing": statistics.median(one.writing for one in timings),
    }
    rows["around"] = wall - sum(rows.values())
    print(
        f"{len(gallery):,} pictures of shapes, {encoder.identity.text()}, {encoder.device}, batches of "
        f"{given.batch_size}, {threads} threads, {given.workers} workers, {given.repeat} runs"
    )
    for row, seconds in rows.items():
        print(f"{row:10} {seconds:9.3f} s {100 * seconds / wall:6.1f} %")
    loop = statistics.median(plain[0] for _, plain, _ in runs)
    bare = statistics.median(passes for _, _, passes in runs)
    print(f"{'all':10} {wall:9.3f} s {len(gallery) / wall:10,.0f} images/s")
    print(f"{'plain loop':10} {loop:9.3f} s {len(gallery) / loop:10,.0f} images/s")
    print(f"{'alone':10} {bare:9.3f} s {len(gallery) / bare:10,.0f} images/s")
    if given.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(12)
    verdict.head()
    verdict.show("forward / wall time", spent / wall)
    verdict.end()


if __name__ == "__main__":
    main()
