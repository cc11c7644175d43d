"""ZeroSight's pipeline with encoders and a language backend, as `cir make zerosight` runs it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.common.stages import Row
from cir_datasets.construction.names import made_name
from cir_datasets.construction.workspace import Workspace
from cir_datasets.construction.zerosight import benchmark
from cir_datasets.construction.zerosight.frames import FRAMES
from cir_datasets.construction.zerosight.options import ZeroSightOptions
from cir_datasets.construction.zerosight.pipeline import ZeroSightModels, ZeroSightRun, run
from cir_datasets.construction.zerosight.videos import files_in, video_rows
from submissions.embeddings.pictures import FilePictures
from submissions.encoders.loading import load_encoder
from submissions.language.protocol import Language
from submissions.making.backends import EncoderFeatures, LanguageWords, language_identity

if TYPE_CHECKING:
    from PIL.Image import Image

    from cir_datasets.common.stages import Engine
    from submissions.encoders.protocol import Encoder


@dataclass(frozen=True)
class Encoders:
    """By name what looks at pictures and captions.

    Args:
        visual: of pictures, by sight.
        semantic: of pictures, by meaning.
        sentences: of captions; None is `semantic`.
        device: where they run.
    """

    visual: str
    semantic: str
    sentences: str | None = None
    device: str = "auto"


@dataclass(frozen=True)
class ZeroSightFolder:
    """What a run has written.

    Args:
        folder: the benchmark.
        report: the page.
        made: rows of all stages.
    """

    folder: Path
    report: Path
    made: ZeroSightRun


def make_zerosight(
    videos: str | Path,
    out: str | Path,
    options: ZeroSightOptions,
    encoders: Encoders,
    language: Language,
    *,
    name: str | None = None,
    title: str | None = None,
    review: str | Path | None = None,
    engine: Engine | None = None,
) -> ZeroSightFolder:
    """Run the pipeline and write its benchmark and its page.

    Args:
        videos: a folder with videos.
        out: the pipeline's folder; the benchmark is `benchmark` in it.
        options: what decides the result.
        encoders: by name.
        language: what chooses references and writes captions.
        name: of the benchmark; None is the folder's name.
        title: of the benchmark; None is made of its name.
        review: a table that people filled in.
        engine: where frames are made; None is this process.

    Raises:
        CallError: the name cannot be one of a benchmark.
        ConstructionError: see `cir_datasets.construction.zerosight.pipeline.run`.
        LanguageError: the language backend cannot go on.
    """
    target = Path(out).expanduser().absolute()
    called = made_name(name, target, "zerosight")
    shown = title or f"{called}, made as ZeroSight was"
    with Workspace.held(target):
        made = run(videos, target, options, _models(target, encoders, language), review=review, engine=engine)
        pictures = functools.partial(_picture, target / FRAMES)
        page = benchmark.write_page(made, target, title=shown, open_picture=pictures)
        folder = benchmark.write(made, target, name=called, title=shown)
    return ZeroSightFolder(folder, page, made)


def look_at(videos: str | Path, options: ZeroSightOptions) -> list[Row]:
    """What is known of the videos before anything is made."""
    source = Path(videos).expanduser().absolute()
    return list(video_rows(source, files_in(source), options))


def _models(target: Path, encoders: Encoders, language: Language) -> ZeroSightModels:
    load = functools.lru_cache(functools.partial(load_encoder, device=encoders.device))

    def features(name: str) -> EncoderFeatures:
        encoder: Encoder = load(name)
        return EncoderFeatures(encoder, functools.partial(_frames, target))

    return ZeroSightModels(
        visual=features(encoders.visual),
        semantic=features(encoders.semantic),
        sentences=features(encoders.sentences or encoders.semantic),
        words=lambda ids: LanguageWords(language, _frames(target, ids)),
        words_identity=language_identity(language.identity),
    )


def _frames(target: Path, ids: Sequence[str]) -> FilePictures:
    root = target / FRAMES
    return FilePictures("zerosight", tuple(ids), tuple(str(root / image) for image in ids), str(root))


def _picture(root: Path, image: str) -> Image:
    from cir_datasets.common.paths import open_picture

    return open_picture(root / image)
