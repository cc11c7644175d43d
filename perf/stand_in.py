"""Invented benchmarks of the size of real ones, for the scripts of this folder.

`write_stand_in` writes ZeroSight's own files: 54,740 queries over 197,313 images with path-like ids, 5.16
positives and 10.89 hard negatives a query on average. `write_run` writes a rank file for them, 50 images a
query; `write_released` writes the same questions and rankings as the two files that ZeroSight's evaluator
reads. `write_cirr` writes the folder of CIRR's validation split: 4,181 queries over 2,297 images.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

ZEROSIGHT = (54_740, 197_313)
"""Queries and images."""
CIRR_VAL = (4_181, 2_297)
"""Queries and images."""

TRAIN_SHARE = 0.9
FRAMES_A_VIDEO = 40
CATEGORIES = ("addition", "subtraction", "viewpoint", "background", "attribute", "relative")
SENTENCE = "the second rider stands further left on a green road without its red roof at night in heavy rain"


def image(number: int) -> str:
    video, frame = divmod(number, FRAMES_A_VIDEO)
    return f"frames/v_{video * 2654435761 % 2**32:08x}/{frame * 25:06d}.jpg"


def write_stand_in(folder: Path, queries: int, images: int) -> None:
    """Write train.json, test.json and images.json a record at a time."""
    generator = random.Random(20_26)
    folder.mkdir(parents=True)
    if (queries, images) == ZEROSIGHT:
        (folder / "full").touch()
    train = round(queries * TRAIN_SHARE)
    for name, numbers in (("train", range(train)), ("test", range(train, queries))):
        with (folder / f"{name}.json").open("w", encoding="utf-8") as handle:
            handle.write("[")
            for number in numbers:
                first = generator.randrange(images - FRAMES_A_VIDEO)
                positives = min(1 + sum(generator.random() < 0.52 for _ in range(8)), 9)
                negatives = sum(generator.random() < 0.5445 for _ in range(20))
                chosen = generator.sample(range(first + 1, first + FRAMES_A_VIDEO), positives + negatives)
                record = {
                    "id": str(number),
                    "reference": image(first),
                    "caption": " ".join(generator.choices(SENTENCE.split(), k=14)),
                    "category": CATEGORIES[number % 6],
                    "groundtruths": [image(each) for each in chosen[:positives]],
                    "negativeInstances": [image(each) for each in chosen[positives:]],
                }
                handle.write((",\n" if number != numbers.start else "") + json.dumps(record))
            handle.write("]\n")
    with (folder / "images.json").open("w", encoding="utf-8") as handle:
        handle.write("[" + ",\n".join(json.dumps(image(number)) for number in range(images)) + "]\n")


def write_run(folder: Path, out: Path) -> None:
    """A rank file: some positives and hard negatives among frames of the same neighbourhood."""
    import cir_datasets

    benchmark = cir_datasets.load("zerosight/all", data_dir=folder, verification_mode=mode(folder))
    gallery = benchmark.gallery or []
    generator = random.Random(7)
    rankings = {}
    for query, positives, negatives in zip(
        benchmark.query_ids, benchmark.positives, benchmark.column("negative_image_ids"), strict=True
    ):
        start = generator.randrange(len(gallery) - 80)
        mixed = [*positives, *negatives, *gallery[start : start + 80]]
        generator.shuffle(mixed)
        rankings[query] = list(dict.fromkeys(mixed))[:50]
    document = {
        "format": "cir-rank-file",
        "format_version": 1,
        "benchmark": "zerosight/all",
        "benchmark_version": 1,
        "method": {"name": "stand-in"},
        "rankings": rankings,
    }
    out.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")


def mode(folder: Path) -> str:
    """All checks where the stand-in has ZeroSight's counts."""
    return "all_checks" if (folder / "full").exists() else "no_checks"


def write_released(folder: Path) -> None:
    """queries.json and results.json, as ZeroSight's evaluator takes them, from the stand-in and run.json."""
    queries: list[dict[str, Any]] = []
    for name in ("train", "test"):
        for query in json.loads((folder / f"{name}.json").read_text(encoding="utf-8")):
            queries.append({key: query[key] for key in ("id", "groundtruths", "negativeInstances")})
    rankings = json.loads((folder / "run.json").read_text(encoding="utf-8"))["rankings"]
    (folder / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(rankings), encoding="utf-8")


def write_cirr(root: Path, queries: int, images: int) -> None:
    """captions, captions_ext and image_splits of CIRR's validation split, all invented."""
    generator = random.Random(20_21)
    names = [f"dev-{number // 4}-{number // 2 % 2}-img{number % 2}" for number in range(images)]
    captions: list[dict[str, Any]] = []
    extended: list[dict[str, Any]] = []
    for number in range(queries):
        members = generator.sample(names, 6)
        reference, target = generator.sample(members, 2)
        shared = {"pairid": 12_000 + 2 * number, "reference": reference, "target_hard": target}
        place = {"id": number // 9, "members": members, "reference_rank": members.index(reference)}
        caption = " ".join(generator.choices(SENTENCE.split(), k=11))
        captions.append({**shared, "target_soft": {target: 1.0}, "caption": caption, "img_set": place})
        extended.append({**shared, "caption_extend": {str(key): caption for key in range(4)}})
    for path, content in (
        ("captions/cap.rc2.val.json", captions),
        ("captions_ext/cap.ext.rc2.val.json", extended),
        ("image_splits/split.rc2.val.json", {name: f"./dev/{name}.png" for name in names}),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(content), encoding="utf-8")
