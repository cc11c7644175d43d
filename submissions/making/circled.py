"""What CIRCLED's construction is given: pictures, their hashes, encoders and a language backend."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.construction.circled.ranks_file import session_traces, source_queries
from cir_datasets.construction.circled.settings import UNFILTERED
from cir_datasets.construction.circled.turns import CircledModels
from cir_metrics.errors import CirError
from submissions.cluster import Anew, RayEngine
from submissions.embeddings.pictures import (
    FilePictures,
    Pictures,
    ShapesPictures,
    pictures_of,
    publisher_paths,
)
from submissions.embeddings.ray import embed_gallery_on_ray
from submissions.making.backends import EncoderFeatures, LanguageWords

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.cluster import Cluster
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language

PAPER_DIVERSITY = "openai/clip-vit-base-patch32"
"""The encoder that tells captions apart in the paper."""


def pictures_for(benchmark: Benchmark, images: str | Path | None) -> Pictures:
    """The pictures of a gallery, and of references that lie outside it."""
    references = (one for one in benchmark.column("reference_image_id") if one is not None)
    ids = dict.fromkeys((*(benchmark.gallery or ()), *references))
    return pictures_of(benchmark, images=images, ids=list(ids))


@dataclass(frozen=True)
class OnRay:
    """A cluster, and how each of its workers loads its models.

    Args:
        cluster: where.
        encoder: makes the encoder of the search; can be pickled, as the others.
        diversity: makes the one that tells captions apart.
        language: makes the language backend.
    """

    cluster: Cluster
    encoder: Callable[[], Encoder]
    diversity: Callable[[], Encoder]
    language: Callable[[], Language]


def models_for(
    benchmark: Benchmark,
    encoder: Encoder,
    diversity: Encoder,
    language: Language,
    *,
    images: str | Path | None = None,
    batch_size: int = 64,
    workers: int = 0,
    ray: OnRay | None = None,
) -> CircledModels:
    """Encoders and a language backend as the pipeline takes them.

    With a cluster the gallery is encoded and the backend is asked there.
    """
    embed = None
    if ray is not None:
        embed = partial(embed_gallery_on_ray, ray.encoder, cluster=ray.cluster, batch_size=batch_size)

    def features(one: Encoder, embed: Any = None) -> EncoderFeatures:
        return EncoderFeatures(
            one,
            lambda ids: pictures_of(benchmark, images=images, ids=ids),
            batch_size=batch_size,
            workers=workers,
            embed=embed,
        )

    pictures = pictures_for(benchmark, images)
    search, apart, words = features(encoder, embed), features(diversity), LanguageWords(language, pictures)
    if ray is None:
        return CircledModels(search, apart, words)
    texts: Any = Anew(apart, partial(_of_texts, ray.diversity))
    asked: Any = Anew(words, partial(_asked_about, ray.language, pictures))
    return CircledModels(search, texts, asked, RayEngine(ray.cluster))


def _of_texts(load: Callable[[], Encoder]) -> EncoderFeatures:
    return EncoderFeatures(load(), lambda ids: FilePictures("none", ids, [None] * len(ids), "."))


def _asked_about(load: Callable[[], Language], pictures: Pictures) -> LanguageWords:
    return LanguageWords(load(), pictures)


def encoder_loaders(
    benchmark: Benchmark, encoder: str | None, diversity: str | None, **loading: Any
) -> tuple[Callable[[], Encoder], Callable[[], Encoder]]:
    """What loads the encoder of the search and the one that tells captions apart; the shipped one is both.

    Both are the same function where they load the same.

    Raises:
        MethodError: the benchmark is not one of shapes, and no encoder is named.
    """
    from submissions.encoders.loading import load_encoder
    from submissions.encoders.protocol import SHAPES_ENCODER
    from submissions.running.options import RunOptions

    chosen = RunOptions(encoder=encoder).encoder_for(benchmark, "the construction")
    other = diversity or (chosen if chosen == SHAPES_ENCODER else PAPER_DIVERSITY)
    first = partial(load_encoder, str(chosen), **loading)
    return first, first if other == chosen else partial(load_encoder, str(other), **loading)


def loaded_encoders(first: Callable[[], Encoder], second: Callable[[], Encoder]) -> tuple[Encoder, Encoder]:
    """What two functions load; one where they are the same."""
    loaded = first()
    return loaded, loaded if second is first else second()


def fingerprints(pictures: Sequence[Pictures], ids: Sequence[str]) -> list[str]:
    """A hash of the picture of each id: of a file its bytes, as the paper's md5; of a drawn one its pixels.

    An image without a picture is like no other; the encoder names it later.
    """
    from cir_datasets.common.progress import done_in_parallel, step_progress

    place = {image: (each, number) for each in reversed(pictures) for number, image in enumerate(each.ids)}
    found: dict[str, str] = {}
    jobs = ((image, place[image]) for image in ids)
    with step_progress("comparing pictures", len(ids)) as advance:
        for image, digest in done_in_parallel(_fingerprint, jobs, None):
            found[image] = digest or f"no picture of {image}"
            advance(1)
    return [found[image] for image in ids]


def _fingerprint(where: tuple[Pictures, int]) -> str | None:
    pictures, number = where
    try:
        if isinstance(pictures, FilePictures):
            path = pictures.paths[number]
            return None if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()
        picture = pictures.open(number)
    except (OSError, CirError):
        return None
    return hashlib.sha256(f"{picture.size}".encode() + picture.tobytes()).hexdigest()


def earlier_splits(benchmark: Benchmark, images: str | Path | None) -> list[Pictures]:
    """The pictures of the galleries that stand before the benchmark's in its card, in that order.

    The released code keeps the first picture that it sees, so that later galleries take nothing away.

    Raises:
        SourceError: the list of an earlier gallery is not available; it is named.
    """
    from cir_datasets.registry import spec

    card = benchmark.spec.card
    own = benchmark.spec.config.gallery_from or benchmark.id
    found: list[Pictures] = []
    for name, config in card.configs.items():
        other = spec(f"{card.name}/{name}")
        if other.id == own:
            break
        if config.gallery_from is None:
            found.append(_gallery_pictures(other, images))
    return found


def _gallery_pictures(spec: BenchmarkSpec, images: str | Path | None) -> Pictures:
    """The pictures of a gallery; its queries are read only where the list alone cannot be had."""
    from cir_datasets import load
    from cir_datasets.images.locate import gallery_paths, locate

    listed = dict(gallery_paths(spec))
    if not listed or (images is None and spec.card.source.publisher == "embedded"):
        return pictures_of(load(spec.id), images=images)
    located = locate(spec, listed.items(), images)
    return FilePictures.located(tuple(listed), located)


def picture_paths(benchmark: Benchmark, pictures: Pictures) -> dict[str, Any]:
    """Where the pictures of a made benchmark lie, for `write_benchmark`: below the source's folder."""
    card = benchmark.spec.card
    if isinstance(pictures, FilePictures):
        root = Path(pictures.root)
        paths = {
            image: Path(path).relative_to(root).as_posix()
            for image, path in zip(pictures.ids, pictures.paths, strict=True)
            if path is not None and Path(path).is_relative_to(root)
        }
    else:
        from cir_datasets.shapes import relative_path

        paths = {image: relative_path(image) for image in pictures.ids}
    return {"picture_folder": card.image_folder or card.name, "image_paths": paths}


def relative_paths(benchmark: Benchmark) -> dict[str, Any]:
    """As `picture_paths`, by the publisher's own list, where nobody has looked for the pictures."""
    card = benchmark.spec.card
    if card.source.publisher == "embedded":
        from cir_datasets.shapes import relative_path

        known = {image: relative_path(image) for image in benchmark.gallery or ()}
    else:
        known = {image: path for image, path in publisher_paths(benchmark).items() if path is not None}
    return {"picture_folder": card.image_folder or card.name, "image_paths": known}


def folder_benchmark(folder: Path) -> Benchmark:
    """The benchmark that a folder is; it is known by its name from then on, in this process.

    Raises:
        CardError: the folder is not a benchmark.
    """
    from cir_datasets import load
    from cir_datasets.common.paths import FOLDERS_VARIABLE
    from cir_datasets.registry.folder_card import configs_of
    from cir_datasets.registry.folders import read_folder_card

    root = folder.expanduser().absolute()
    card = read_folder_card(root)
    os.environ[FOLDERS_VARIABLE] = os.pathsep.join(
        filter(None, (os.environ.get(FOLDERS_VARIABLE), str(root)))
    )
    return load(f"{card.name}/{next(iter(configs_of(card, root)))}")


def benchmarks_of(name: str) -> list[Benchmark]:
    """The benchmarks of an id, a name or a suite, or the one of a folder.

    Raises:
        UnknownNameError: it is none of these.
        SourceError: data is not available.
    """
    from cir_datasets import load
    from cir_datasets.registry import ids_of

    folder = Path(name)
    return [folder_benchmark(folder)] if folder.is_dir() else [*map(load, ids_of(name))]


def source_pictures(benchmark: Benchmark, images: str | Path | None, ids: Sequence[str]) -> Pictures:
    """Pictures of some ids; those of a folder that was made of shapes are drawn, where no folder is named."""
    if images is None and str(made_of(benchmark).get("benchmark", "")).startswith("shapes/"):
        return ShapesPictures(benchmark.id, tuple(ids))
    return pictures_of(benchmark, images=images, ids=ids)


def source_name(benchmark: Benchmark) -> str:
    """What its sessions are called where those of several subsets are put together, as in CIRCLED's Table 5.

    Returns:
        The dataset's name; of a folder of `cir make` what made it, whatever it was made of.
    """
    made = made_of(benchmark)
    if made.get("pipeline") == "circled":
        return "circled, unfiltered" if is_unfiltered(benchmark) else "circled, made"
    return str(made.get("way", benchmark.spec.card.name))


def is_unfiltered(benchmark: Benchmark) -> bool:
    """Whether its sessions are those that the quality filters of `cir make circled` removed."""
    return benchmark.spec.card.name.endswith(UNFILTERED)


def made_of(benchmark: Benchmark) -> dict[str, Any]:
    """How the folder of a benchmark was made, as its card says; empty for a benchmark that is no folder."""
    if not benchmark.spec.card.in_folder:
        return {}
    from cir_datasets.registry.folders import folder_of, read_folder_card

    return read_folder_card(folder_of(benchmark.spec.card.name)).made


def aims_of(benchmark: Benchmark) -> dict[str, str]:
    """By session the target that its words aimed at, where known; CIRCLED's aim at the annotated one."""
    aims = {session: row["aim"] for session, row in session_traces(benchmark).items() if "aim" in row}
    lender = benchmark.spec.config.gallery_from
    query_of = source_queries(benchmark)
    if aims or lender is None or not query_of or all(len(ids) == 1 for ids in benchmark.positives):
        return aims
    from cir_datasets import load, registry
    from cir_datasets.prepared import is_here

    if not is_here(registry.spec(lender)):
        return {}
    source = load(lender, verification_mode="no_checks")
    annotated = dict(zip(source.query_ids, source.column("target_image_id"), strict=True))
    return {session: annotated[query] for session, query in query_of.items() if annotated.get(query)}
