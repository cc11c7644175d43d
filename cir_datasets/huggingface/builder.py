"""The benchmarks as Hugging Face datasets: what `load_dataset("cirr", "val")` builds.

One class serves every benchmark; its name is `dataset_name`, its configurations are the card's and the
`<config>_images` manifests. Rows come from our own prepared Parquet, so that `load_dataset` and
`cir_datasets.load` cannot differ. The folder in the Hugging Face cache is named after the prepared key, which
holds the hash of the source files and the checks made: a changed source is never hidden by an older cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets.builder import Key
from datasets.table import table_cast

from cir_datasets import registry
from cir_datasets.errors import CountError, DatasetError
from cir_datasets.prepared import CHECKS_VARIABLE, ensure, manifest_file, row_schema
from cir_datasets.registry import IMAGES_SUFFIX, BenchmarkSpec
from cir_datasets.registry.overlays import overlay_ids
from cir_datasets.rows.records import image_schema

UNPREPARED = "unprepared"
"""Stands for the hash until the source files have been read."""

_BATCH_ROWS = 10_000
_NO_FOLDER = "memory://"
"""A cache that `datasets` does not lock, as none is needed before the files are known."""


def builder_configs(name: str) -> list[datasets.BuilderConfig]:
    """The configurations of a benchmark and of the overlays on it, each followed by its gallery's."""
    card = registry.card(name)
    laid = [found.partition("/")[2] for found in overlay_ids() if found.startswith(f"{name}/")]
    return [
        datasets.BuilderConfig(name=config + suffix, version=f"{card.version}.0.0", description=card.summary)
        for config in (*card.configs, *laid)
        for suffix in ("", IMAGES_SUFFIX)
    ]


def fill_cache(
    benchmark_id: str, data_dir: str | Path | None = None, verification_mode: str = "all_checks"
) -> list[Path]:
    """Put a benchmark and its gallery into the Hugging Face cache; the folders.

    From then on `load_dataset("cirr", "val")` works without importing `cir_datasets`. A gallery whose list
    is not available is left out.
    """
    spec = registry.spec(benchmark_id)
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
    names = [spec.config_id] + ([spec.config_id + IMAGES_SUFFIX] if prepared.images_file else [])
    folders = []
    for config_name in names:
        builder = datasets.load_dataset_builder(
            spec.card.name, config_name, data_dir=None if data_dir is None else str(data_dir)
        )
        with _without_bars():
            builder.download_and_prepare(verification_mode=verification_mode)
        folders.append(Path(builder.cache_dir))
    return folders


def cached_folders(spec: BenchmarkSpec) -> set[Path]:
    """The folders of a benchmark, of all configurations and keys, in the Hugging Face cache."""
    return set(Path(datasets.config.HF_DATASETS_CACHE, spec.card.name).glob("*/*/*"))


@contextmanager
def _without_bars() -> Iterator[None]:
    """Writing our Parquet once more takes moments: the bars of `datasets` would only be noise."""
    shown = datasets.are_progress_bars_disabled() is False
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
            datasets.enable_progress_bars()


class CirBenchmark(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """One benchmark; `dataset_name` says which.

    `data_dir` is the publisher's folder or its parent. It is not a part of the configuration's name in the
    cache: the content of its files is (through the prepared key).
    """

    def __init__(
        self, cache_dir: str | None = None, *args: Any, data_dir: str | None = None, **kwargs: Any
    ) -> None:
        """Take `data_dir` for ourselves and leave the rest to `datasets`."""
        self._data_dir = None if data_dir is None else Path(data_dir).expanduser().absolute()
        self._file: Path | None = None
        # `datasets` locks the folder of its cache already here, where nothing of ours can lie yet: what was
        # prepared by another user, on a read-only disk or on one without locks could not even be read.
        super().__init__(_NO_FOLDER, *args, **kwargs)
        self._cache_dir_root = str(Path(cache_dir or datasets.config.HF_DATASETS_CACHE).expanduser())
        self._cache_downloaded_dir = str(Path(self._cache_dir_root, datasets.config.DOWNLOADED_DATASETS_DIR))

    @property
    def _spec(self) -> BenchmarkSpec:
        return registry.spec(f"{self.dataset_name}/{self.config.name.removesuffix(IMAGES_SUFFIX)}")

    @property
    def _is_manifest(self) -> bool:
        return bool(self.config.name.endswith(IMAGES_SUFFIX))

    def _info(self) -> datasets.DatasetInfo:
        spec = self._spec
        card = spec.card
        schema = image_schema() if self._is_manifest else row_schema(spec)
        return datasets.DatasetInfo(
            description=card.summary,
            features=datasets.Features.from_arrow_schema(schema),
            homepage=card.paper.url,
            license=card.license.annotations,
            citation=card.paper.text if card.paper.known else "",
        )

    def download_and_prepare(
        self,
        output_dir: str | None = None,
        download_config: Any = None,
        download_mode: Any = None,
        verification_mode: Any = None,
        **kwargs: Any,
    ) -> None:
        """Prepare the benchmark, then write it to the cache folder of its key."""
        checks = datasets.VerificationMode(verification_mode or datasets.VerificationMode.BASIC_CHECKS)
        reuse = datasets.DownloadMode.REUSE_DATASET_IF_EXISTS
        fresh = datasets.DownloadMode(download_mode or reuse) == datasets.DownloadMode.FORCE_REDOWNLOAD
        self._prepare(checks.value, force=fresh)
        whole = Path(self._cache_dir, datasets.config.DATASET_INFO_FILENAME).is_file()
        if whole and not fresh and output_dir is None:
            self.info = datasets.DatasetInfo.from_directory(self._cache_dir)
        else:
            try:
                super().download_and_prepare(
                    output_dir, download_config, download_mode, verification_mode=verification_mode, **kwargs
                )
            except OSError as error:
                raise DatasetError(
                    f"{output_dir or self._cache_dir_root}: the cache of datasets cannot be written: {error}."
                    " Fix: set HF_DATASETS_CACHE to a folder of yours on a disk with locks, or load without "
                    "it: cir_datasets.load."
                ) from error
        with suppress(OSError):  # another user's, or read-only
            # Without our import `datasets` takes the youngest folder: make that the one prepared last.
            os.utime(self._cache_dir)

    def as_streaming_dataset(self, *args: Any, **kwargs: Any) -> Any:
        """Prepare the benchmark first, so that what is wrong is said here and not at the first row.

        `load_dataset` does not hand `verification_mode` on to streams; `CIR_VERIFICATION_MODE` stands in.

        Raises:
            CountError: the rows are not as many as the card says.
        """
        mode = os.environ.get(CHECKS_VARIABLE) or datasets.VerificationMode.BASIC_CHECKS.value
        try:
            self._prepare(mode)
        except CountError as error:
            raise CountError(f"{error} For a stream set {CHECKS_VARIABLE}=no_checks instead.") from error
        return super().as_streaming_dataset(*args, **kwargs)

    def _prepare(self, verification_mode: str, *, force: bool = False) -> None:
        """Find or make our Parquet, and move to the cache folder of its key."""
        prepared = ensure(
            self._spec.id, data_dir=self._data_dir, verification_mode=verification_mode, force=force
        )
        self._file = manifest_file(prepared) if self._is_manifest else prepared.rows_file
        self.hash = prepared.key
        self._cache_dir = self._build_cache_dir()
        self._output_dir = self._cache_dir

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        # Without a file (nobody has prepared yet) this still tells `datasets` the name of the split.
        files = [] if self._file is None else [str(self._file)]
        return [datasets.SplitGenerator(name=self._spec.config.split, gen_kwargs={"files": files})]

    def _generate_tables(self, files: list[str]) -> Iterator[tuple[Any, Any]]:
        for file in files:
            for number, batch in enumerate(pq.ParquetFile(file).iter_batches(_BATCH_ROWS)):
                table = pa.Table.from_batches([batch])
                yield Key(0, number), table_cast(table, self.info.features.arrow_schema)
