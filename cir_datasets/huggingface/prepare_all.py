"""Preparing several benchmarks in one go: what `cir datasets prepare` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cir_datasets import registry
from cir_datasets.common.progress import step_progress
from cir_datasets.common.terminal import counted, counted_rows
from cir_datasets.errors import DatasetError
from cir_datasets.prepared import Prepared, checks_wanted, ensure, home_of
from cir_datasets.sources.download import asking_once


@dataclass(frozen=True)
class Outcome:
    """A benchmark that was prepared, and where.

    Args:
        prepared: what is read from then on.
        hub_folders: those in the Hugging Face cache.
        there_before: whether all of it was there already, so that nothing was written.
    """

    prepared: Prepared
    hub_folders: tuple[Path, ...]
    there_before: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The outcome for a program."""
        meta = self.prepared.meta
        return {
            "id": self.prepared.spec.id,
            "rows": meta["rows"],
            "gallery": meta["gallery"],
            "pinned": meta["pinned"],
            "checks_skipped": meta["checks_skipped"],
            "folder": str(self.prepared.folder),
            "hub_cache": [str(folder) for folder in self.hub_folders],
        }

    def text(self) -> str:
        """The outcome in a line, and where it lies."""
        meta = self.prepared.meta
        rows = counted_rows(meta["rows"], self.prepared.spec.kind == "multi_turn")
        gallery = (
            "gallery not available"
            if meta["gallery"] is None
            else f"{counted(meta['gallery'], 'image')} in the gallery"
        )
        notes = ["" if meta["pinned"] else "unpinned", "counts not checked" if meta["checks_skipped"] else ""]
        head = ", ".join([rows, gallery, *filter(None, notes)])
        where = [self.prepared.folder, *self.hub_folders]
        return "\n".join([f"{self.prepared.spec.id}: {head}", *(f"  {folder}" for folder in where)])


def prepare_all(
    names_or_ids: Sequence[str],
    data_dir: Path | None,
    verification_mode: str | None,
    *,
    force: bool,
    hub_cache: bool,
    say: Callable[[str], None],
) -> Iterator[Outcome]:
    """Prepare benchmarks one after the other; one that fails does not stop the others.

    A server that cannot be reached is asked for the first file alone.

    Args:
        names_or_ids: benchmark ids, names (all configurations) or suites.
        data_dir: the publisher's folder or its parent, or None.
        verification_mode: `all_checks` or `no_checks`; None takes `CIR_VERIFICATION_MODE`, else `all_checks`.
        force: prepare again what is there already.
        hub_cache: fill the Hugging Face cache too.
        say: takes the failure of one among several, as it happens.

    Yields:
        Each benchmark that was prepared, as soon as it is.

    Raises:
        UnknownNameError: there is no such name or id; nothing has been prepared then.
        DatasetError: the failure of the only benchmark, or how many of several failed.
    """
    wanted = registry.ids_of(*names_or_ids)
    mode = checks_wanted(verification_mode)  # once: the Hugging Face cache is filled by the same
    failures: list[DatasetError] = []
    with asking_once(), step_progress("preparing", len(wanted)) as advance:
        for benchmark_id in wanted:
            try:
                yield _prepare(benchmark_id, data_dir, mode, force, hub_cache)
            except DatasetError as error:
                if len(wanted) == 1:
                    raise
                failures.append(error)
                say(f"cir: {error}")
            advance(1)
    if failures:
        raise type(failures[0])(
            f"{len(failures)} of {len(wanted)} benchmarks could not be prepared, see above."
        )


def _prepare(
    benchmark_id: str, data_dir: Path | None, verification_mode: str, force: bool, hub_cache: bool
) -> Outcome:
    spec = registry.spec(benchmark_id)
    before = set(home_of(spec).glob("*"))
    prepared = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode, force=force)
    folders: list[Path] = []
    if hub_cache:
        from cir_datasets.huggingface.builder import cached_folders, fill_cache

        before |= cached_folders(spec)
        folders = fill_cache(benchmark_id, data_dir, verification_mode)
    return Outcome(prepared, tuple(folders), not force and {prepared.folder, *folders} <= before)
