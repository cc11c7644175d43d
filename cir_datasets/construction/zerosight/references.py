"""References: a model chooses one of each window of ten frames, and those too alike go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.backends import Failed, Question, Words
from cir_datasets.construction.zerosight.likeness import Vectors, similar, too_like
from cir_datasets.construction.zerosight.options import Thresholds

WINDOW = 10
FIRST_PROMPT, LATER_PROMPT = "frame", "next_frame"


@dataclass
class _Windows:
    """How far the windows of a video are."""

    frames: Sequence[str]
    at: int = 0
    chosen: str | None = None
    rows: list[Row] = field(default_factory=list)

    def window(self) -> tuple[str, ...]:
        """The next pictures to choose from: ten, or the last reference and the nine that follow."""
        if self.chosen is None:
            return tuple(self.frames[self.at : self.at + WINDOW])
        return (self.chosen, *self.frames[self.at : self.at + WINDOW - 1])


def choose(words: Words, videos: Sequence[tuple[str, Sequence[str]]]) -> list[Row]:
    """A row a window: which frame was chosen, or none.

    The first reference of a video is looked for in windows of ten frames, where the answer 0 is none. After a
    pick a window is that reference and the next nine frames that no window has held; the answers are 2 to 10,
    and 1 is none. All videos are asked about at once, window by window.

    Args:
        words: what chooses.
        videos: id and frames of each, in order.
    """
    walks = {video: _Windows(frames) for video, frames in videos}
    while going := [(video, walk) for video, walk in walks.items() if walk.at < len(walk.frames)]:
        first = [(video, walk) for video, walk in going if walk.chosen is None]
        later = [(video, walk) for video, walk in going if walk.chosen is not None]
        for prompt, some in ((FIRST_PROMPT, first), (LATER_PROMPT, later)):
            questions = [Question({"number": str(len(walk.window()))}, walk.window()) for _, walk in some]
            answers = words.ask(prompt, questions) if questions else []
            for (video, walk), answer in zip(some, answers, strict=True):
                _take(video, walk, answer)
    return [row for walk in walks.values() for row in walk.rows]


def _take(video: str, walk: _Windows, answer: Mapping[str, Any] | Failed) -> None:
    window = walk.window()
    later = walk.chosen is not None
    row: Row = {"video": video, "window": list(window), "prompt": LATER_PROMPT if later else FIRST_PROMPT}
    walk.at += len(window) - later
    if isinstance(answer, Failed):
        walk.rows.append(row | {"reference": None, FAILED: answer.why})
        return
    choice = int(answer["choice"])
    none, least = (1, 2) if later else (0, 1)
    row |= {"answer": choice, "reference": None}
    if choice != none and not least <= choice <= len(window):
        row[FAILED] = f"the answer {choice} names none of {len(window)} pictures"
    elif choice != none:
        walk.chosen = row["reference"] = window[choice - 1]
    walk.rows.append(row)


def kept_references(
    references: Sequence[tuple[str, str]],
    places: Mapping[str, int],
    visual: Vectors,
    semantic: Vectors,
    thresholds: Thresholds,
) -> list[Row]:
    """A row a reference: first those too like an earlier one of their video by sight go, then by meaning.

    Args:
        references: video and image of each, in order.
        places: row of the vectors by image.
        visual: shape (frames, dimensions).
        semantic: shape (frames, dimensions).
        thresholds: from which similarity on the later one goes.
    """
    rows = []
    by_video: dict[str, list[str]] = {}
    for video, image in references:
        by_video.setdefault(video, []).append(image)
    for video, images in by_video.items():
        left = images
        why: dict[str, str] = {}
        for what, vectors, limit in (
            ("visual", visual, thresholds.reference_visual),
            ("semantic", semantic, thresholds.reference_semantic),
        ):
            own = [places[image] for image in left]
            name = dict(zip(own, left, strict=True))
            for place, earlier in zip(own, too_like(vectors, own, limit), strict=True):
                if earlier is not None:
                    cosine = float(similar(vectors[place][None], vectors[earlier][None])[0])
                    why[name[place]] = f"its {what} similarity to {name[earlier]} is {cosine}"
            left = [image for image in left if image not in why]
        rows += [
            {"video": video, "image": image, **({FAILED: why[image]} if image in why else {})}
            for image in images
        ]
    return rows
