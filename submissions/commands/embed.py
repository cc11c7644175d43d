"""`cir embed`: the pictures of a gallery as vectors, ahead of `cir run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cir_datasets.commands import LoadsBenchmarks, benchmark_values, command, option
from cir_datasets.common.terminal import counted, echo
from submissions.commands import as_text
from submissions.running.method_options import EncoderOptions, EngineOptions, LoadingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from submissions.embeddings.folder import Embeddings
    from submissions.embeddings.pictures import Pictures

_READERS = {"local": 2, "ray": 0}


class EmbedOptions(
    EncoderOptions,
    LoadingOptions,
    EngineOptions,
    LoadsBenchmarks,
    on_line=("revision", "dtype", "engine", "address"),
):
    """What `cir embed` takes."""

    benchmark: str = option(
        ..., "Id of the benchmark, or suite, whose galleries are embedded.", "-b", values=benchmark_values
    )
    batch_size: int = option(64, "Batch: images that are encoded at once.", min=1, in_file=True)
    workers: int | None = option(
        None,
        "Workers: processes that open and prepare images; 0: the one that encodes. Default: "
        "2; with ray 0 in each of its workers.",
        in_file=True,
    )
    shard_size: int = option(1024, "Images that are written at once; cir run expects 1024.")
    skip_missing: bool = option(
        False,
        "Go on without what is missing: images that cannot be read have zeros as vectors, which rank last.",
    )
    max_workers: int | None = option(
        None, "With ray: workers at a time; default: all that fit.", in_file=True
    )
    cpus_per_worker: float | None = option(
        None, "With ray: processors (threads) of a worker; default 1.", in_file=True
    )
    gpus_per_worker: float | None = option(
        None, "With ray: GPUs of a worker; default 1 where the cluster has any.", in_file=True
    )
    as_json: bool = option(
        False,
        "Print JSON: key, file, benchmark, images, missing, dimensions, encoder; of a suite a list.",
        "--json",
    )


@command
def embed_command(options: EmbedOptions) -> None:
    """Embed a benchmark's gallery into the store below CIR_CACHE_HOME, where cir run finds it.

    What is there is not encoded again, and a call that was stopped, even killed, goes on where it was. The
    file that is printed is a NumPy array, a row an image in the gallery's order (ids.json beside it). Of a
    suite each member's gallery is embedded, by an encoder that is loaded once, and has a file of its own.

    \b
    Example:
        cir embed --benchmark shapes/val
        cir embed --benchmark cirr/val --encoder openai/clip-vit-large-patch14 --images ~/images
        cir embed --benchmark circo/val --encoder ./my_clip --engine ray --address auto
    """
    import functools

    import cir_datasets
    from cir_datasets.common.shared_stages import VECTORS
    from cir_datasets.registry import members_of
    from submissions.cluster import cluster_of
    from submissions.embeddings.embed import Timing, embed_gallery
    from submissions.embeddings.pictures import pictures_of
    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.loading import load_encoder
    from submissions.running.options import LOADING, RunOptions

    benchmark, engine = options.benchmark, options.engine
    cluster = cluster_of(
        engine,
        options.address,
        workers=options.max_workers,
        cpus=options.cpus_per_worker,
        gpus=options.gpus_per_worker,
    )
    members = members_of(benchmark)
    galleries = [cir_datasets.load(member) for member in members]
    loading = {name: getattr(options, name) for name in LOADING}
    name = str(RunOptions(encoder=options.encoder, **loading).encoder_for(galleries[0], "cir embed"))
    # All of them are found before the first is embedded, which may take days.
    pictures = [pictures_of(gallery, images=options.images) for gallery in galleries]
    load = functools.partial(load_encoder, name, **loading)
    store, readers = EmbeddingStore(), _READERS[engine] if options.workers is None else options.workers
    described = []
    how: dict[str, Any] = {
        "store": store,
        "batch_size": options.batch_size,
        "shard_size": options.shard_size,
        "skip_missing": options.skip_missing,
    }
    embed: Callable[[Pictures], Embeddings]
    timing = Timing()
    if cluster is not None:
        from submissions.embeddings.ray import embed_gallery_on_ray

        embed = functools.partial(embed_gallery_on_ray, load, cluster=cluster, readers=readers, **how)
    else:
        embed = functools.partial(embed_gallery, load(), workers=readers, timing=timing, **how)
    for member, own in zip(members, pictures, strict=True):
        made = embed(own)
        folder = store.folder(made.identity, own, shard_size=options.shard_size)
        if made.missing:
            echo(f"cir: {counted(len(made.missing), 'missing image')}; zeros in place of vectors.", err=True)
        file = folder.path(VECTORS, ".npy")
        if not options.as_json:
            echo(str(file))
        described.append(
            {
                "key": folder.key,
                "file": str(file),
                "benchmark": member,
                "images": len(made.ids),
                "missing": sorted(made.missing),
                "dimensions": made.identity.dimensions,
                "encoder": made.identity.to_dict(),
            }
        )
    if cluster is None:
        echo(f"cir: {timing.text()}", err=True)
    if options.as_json:
        echo(as_text(described[0] if members == (benchmark,) else described))
