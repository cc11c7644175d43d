"""The stages of the pipeline, from videos to the folder of a benchmark."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cir_datasets.common.stages import FAILED, Engine, Row
from cir_datasets.construction.backends import Features, Words
from cir_datasets.construction.workspace import Workspace
from cir_datasets.construction.zerosight import queries
from cir_datasets.construction.zerosight.frames import EVERY, FrameWriter
from cir_datasets.construction.zerosight.options import ZeroSightOptions
from cir_datasets.construction.zerosight.references import choose, kept_references
from cir_datasets.construction.zerosight.review import read_review, reviewed_rows, write_review
from cir_datasets.construction.zerosight.videos import digest_of, files_in, video_rows
from cir_datasets.errors import ConstructionError

PIPELINE = "zerosight"
STAGES: Mapping[str, str] = {
    "videos": "videos, what they say of themselves, and which are late enough",
    "frames": "frames at one a second",
    "visual": "vectors of all frames, by sight",
    "semantic": "vectors of all frames, by meaning",
    "references": "a frame chosen of each window of ten",
    "kept_references": "references without those too like an earlier one",
    "targets": "frames of the same video that are alike, but not too alike",
    "candidate_captions": "a caption from each reference to each of its targets",
    "consensus": "captions that agree: positives and hard negatives",
    "final_captions": "one caption a query",
    "review": "what people decided",
    "pool_frames": "frames of videos without queries",
    "pool": "images of the gallery",
    "split": "one query in ten for testing",
}
_VIDEOS_A_CHUNK = 4
_ASKED_A_CHUNK = 64
_TEST_SHARE = 10


@dataclass(frozen=True)
class ZeroSightModels:
    """What the pipeline asks.

    Args:
        visual: vectors of pictures by sight (the paper: ViT-L/16).
        semantic: vectors of pictures by meaning (the paper: CLIP ViT-L/14).
        sentences: vectors of captions (the paper: BERT).
        words: a language backend for the frames of these ids.
        words_identity: what its answers depend on, as JSON values.
    """

    visual: Features
    semantic: Features
    sentences: Features
    words: Callable[[Sequence[str]], Words]
    words_identity: Mapping[str, Any]

    def settings(self) -> dict[str, Any]:
        """Who they are, as JSON values."""
        return {
            "visual": dict(self.visual.identity),
            "semantic": dict(self.semantic.identity),
            "sentences": dict(self.sentences.identity),
            "language": dict(self.words_identity),
        }


@dataclass(frozen=True)
class ZeroSightRun:
    """What the stages have given.

    Args:
        rows: of each stage of rows.
        settings: of the run.
        visual: vectors of all frames.
        semantic: vectors of all frames.
        review_left: whether the folder's table of a review says something that was not taken in.
    """

    rows: Mapping[str, list[Row]]
    settings: Mapping[str, Any]
    visual: Any
    semantic: Any
    review_left: bool = False

    def good(self, stage: str) -> list[Row]:
        """The rows of a stage that did not fail."""
        return [row for row in self.rows[stage] if not row.get(FAILED)]


def run(
    videos: str | Path,
    out: str | Path,
    options: ZeroSightOptions,
    models: ZeroSightModels,
    *,
    review: str | Path | None = None,
    engine: Engine | None = None,
) -> ZeroSightRun:
    """Run all stages that have not run yet; the caller holds the folder (`Workspace.held`).

    Args:
        videos: a folder with videos, searched with its sub-folders.
        out: the pipeline's folder.
        options: what decides the result.
        models: what is asked.
        review: a table that people filled in; where it decides something new, the stages from `review` on are
            made anew with it. What it does not decide stays as it was decided before.
        engine: where frames are made; None is this process.

    Raises:
        ConstructionError: there are no videos, none is late enough, none gives a query; see `Workspace`.
    """
    source, target = Path(videos).expanduser().absolute(), Path(out).expanduser().absolute()
    files = files_in(source)
    settings = {**options.settings(), **models.settings(), "videos_sha256": digest_of(source, files)}
    looked_at = functools.cache(lambda: list(video_rows(source, files, options)))
    if not Workspace.begun(target):
        # Refused before anything is noted: other options may follow in the same folder.
        _some(looked_at(), "no video is left")
    space = Workspace(target, PIPELINE, STAGES, settings)
    rows: dict[str, list[Row]] = {}
    rows["videos"] = space.rows("videos", looked_at)
    good = _some(rows["videos"], "no video is left")
    rows["frames"] = space.rows_in_chunks(
        "frames", good, FrameWriter(source, target, options.pictures), size=_VIDEOS_A_CHUNK, engine=engine
    )
    frames = _some(rows["frames"], "no video has frames")
    ids = [str(row["image"]) for row in frames]
    places = {image: place for place, image in enumerate(ids)}
    of_video: dict[str, list[str]] = {}
    for row in frames:
        of_video.setdefault(str(row["video"]), []).append(str(row["image"]))
    visual = space.vectors("visual", lambda: models.visual.images(ids))
    semantic = space.vectors("semantic", lambda: models.semantic.images(ids))
    words = models.words(ids)
    rows["references"] = space.rows_in_chunks(
        "references", list(of_video.items()), lambda some: choose(words, some), size=_VIDEOS_A_CHUNK
    )
    rows["kept_references"] = space.rows(
        "kept_references",
        lambda: kept_references(
            [(row["video"], row["reference"]) for row in rows["references"] if row["reference"]],
            places,
            visual,
            semantic,
            options.thresholds,
        ),
    )
    rows["targets"] = space.rows(
        "targets", lambda: _targets(rows["kept_references"], of_video, places, visual, semantic, options)
    )
    pairs = [
        (str(row["query"]), str(row["reference"]), str(target["image"]))
        for row in rows["targets"]
        if not row.get(FAILED)
        for target in row["targets"]
    ]
    rows["candidate_captions"] = space.rows_in_chunks(
        "candidate_captions", pairs, lambda some: queries.candidate_rows(words, some), size=_ASKED_A_CHUNK
    )
    rows["consensus"] = space.rows(
        "consensus", lambda: queries.consensus_rows(models.sentences, rows["candidate_captions"], options)
    )
    rows["final_captions"] = space.rows_in_chunks(
        "final_captions",
        [row for row in rows["consensus"] if not row.get(FAILED)],
        lambda some: queries.final_rows(words, some),
        size=_ASKED_A_CHUNK,
    )
    final = [row for row in rows["final_captions"] if not row.get(FAILED)]
    rows["review"] = space.rows("review", lambda: reviewed_rows(final, {}))
    if review is not None:
        decisions = read_review(Path(review).expanduser(), final, rows["review"])
        decided = list(reviewed_rows(final, decisions, rows["review"]))
        if decided != rows["review"]:
            space.forget_from("pool_frames")
            rows["review"] = space.write_rows("review", decided)
    review_left = write_review(target, final, rows["review"], taken_in=review)
    used = queries.used_videos(rows["targets"])
    unused = [row for row in good if row["video"] not in used]
    rows["pool_frames"] = _pool_frames(
        space, unused, frames, FrameWriter(source, target, options.pictures, raw=True), options, engine
    )
    kept = [row for row in rows["review"] if not row.get(FAILED)]
    rows["pool"] = space.rows(
        "pool",
        lambda: queries.pool_rows(
            rows["targets"],
            [str(row["reference"]) for row in kept],
            [row for row in rows["pool_frames"] if not row.get(FAILED)],
        ),
    )
    rows["split"] = space.rows("split", lambda: split_rows([str(row["query"]) for row in kept], options.seed))
    return ZeroSightRun(rows, settings, visual, semantic, review_left)


def split_rows(names: Sequence[str], seed: int) -> Iterator[Row]:
    """A row a query: one in ten is for testing, drawn by the seed; of a few at least one.

    Example:
        >>> [row["split"] for row in split_rows(["a", "b", "c"], seed=0)].count("test")
        1
    """
    drawn = sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
    test = set(drawn[: max(1, round(len(drawn) / _TEST_SHARE))])
    for name in names:
        yield {"query": name, "split": "test" if name in test else "train"}


def _targets(
    references: Sequence[Row],
    of_video: Mapping[str, list[str]],
    places: Mapping[str, int],
    visual: Any,
    semantic: Any,
    options: ZeroSightOptions,
) -> Iterator[Row]:
    chosen: dict[str, list[str]] = {}
    for row in references:
        if not row.get(FAILED):
            chosen.setdefault(str(row["video"]), []).append(str(row["image"]))
    for video, some in chosen.items():
        images = of_video[video]
        # A video's frames stand beside each other, so that a slice of the file is enough.
        here = slice(places[images[0]], places[images[-1]] + 1)
        yield from queries.target_rows(video, some, images, visual[here], semantic[here], options.thresholds)


def _pool_frames(
    space: Workspace,
    unused: Sequence[Row],
    frames: Sequence[Row],
    writer: FrameWriter,
    options: ZeroSightOptions,
    engine: Engine | None,
) -> list[Row]:
    if options.pool_frames == "raw":
        return space.rows_in_chunks("pool_frames", unused, writer, size=_VIDEOS_A_CHUNK, engine=engine)
    names = {row["video"] for row in unused}
    seen: dict[str, int] = {}

    def sampled() -> Iterator[Row]:
        for row in frames:
            if row["video"] in names:
                place = seen[row["video"]] = seen.get(row["video"], -1) + 1
                if place % EVERY == 0:
                    yield row

    return space.rows("pool_frames", sampled)


def _some(rows: Sequence[Row], what: str) -> list[Row]:
    """The rows that did not fail; going on with none is refused, with the commonest reason."""
    good = [row for row in rows if not row.get(FAILED)]
    if not good:
        reasons = [str(row[FAILED]) for row in rows]
        common = max(sorted(set(reasons)), key=reasons.count)
        fix = "correct or replace these files."
        if " date " in common or " after " in common:
            fix = (
                "write the days into metadata.csv beside the videos (columns file and date); else they come "
                "from the containers. --unknown-dates keep or after: none takes videos without them."
            )
        raise ConstructionError(f"{what}: of {reasons.count(common):,} of {len(rows):,} {common}. Fix: {fix}")
    return good
