"""From prepared benchmarks to a folder in the Hub's layout, and to the Hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets import registry
from cir_datasets.common.atomic import staging_folder
from cir_datasets.common.progress import step_progress
from cir_datasets.common.terminal import counted
from cir_datasets.errors import IntegrityError, SourceError
from cir_datasets.prepared import Prepared, ensure
from cir_datasets.publishing.card_text import card_text
from cir_datasets.publishing.croissant import check, need_mlcroissant
from cir_datasets.publishing.layout import PublishedConfig, write_config
from cir_datasets.publishing.publication import (
    CROISSANT,
    Earlier,
    Publication,
    check_earlier,
    documents,
    read_earlier,
)
from cir_datasets.registry import IMAGES_SUFFIX
from cir_metrics.errors import CallError

if TYPE_CHECKING:
    from cir_datasets.registry.schema import Card


def publish(
    benchmarks: str | Sequence[str],
    to: str | Path,
    *,
    data_dir: str | Path | None = None,
    verification_mode: str | None = None,
    skip_missing: bool = False,
    push_to: str | None = None,
    may_copy: str | None = None,
    private: bool | None = None,
    even_private: bool = False,
    remove_others: bool = False,
) -> list[Publication]:
    """Write benchmarks in the Hub's repository layout, and push one of them if asked.

    `to/<name>/` then holds Parquet a configuration, the dataset card (README.md) and Croissant metadata
    (croissant.json), checked by mlcroissant. The same rows give the same bytes.

    Args:
        benchmarks: benchmark ids, names (all configurations) or suites.
        to: folder to write to; each benchmark gets a folder of its name in it.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.
        verification_mode: `all_checks`, or `no_checks` to skip the counts (the card then says so); None takes
            `CIR_VERIFICATION_MODE`, else `all_checks`.
        skip_missing: leave out what is not available instead of raising; `Publication.skipped` lists it.
        push_to: `ORG/NAME`, a dataset repository on the Hub, made where it is not there yet.
        may_copy: the licence's words, where the publisher does not allow every copy and you may push.
        private: whether a repository that is made is private; None: that of a folder of one's own is.
        even_private: push a folder whose card says `private: true`, to a private repository.
        remove_others: remove configurations that were published at that place and are not now; without it
            that is refused.

    Raises:
        UnknownNameError: there is no such benchmark.
        CallError: the folder holds something else; several benchmarks or a licence stand against the push.
        SourceError: a benchmark's data is not available; the message names it.
        PublishError: mlcroissant refuses the metadata, or the push failed; another benchmark is there, or
            configurations that are there would be removed.
        MissingExtraError: mlcroissant is not installed.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> (done,) = publish("shapes/multiturn_val", folder.name)
        >>> [config.name for config in done.configs]
        ['multiturn_val', 'multiturn_val_images']
        >>> sorted(path.name for path in done.folder.iterdir())
        ['README.md', 'croissant.json', 'multiturn_val', 'multiturn_val_images']
        >>> folder.cleanup()
    """
    wanted = _by_name([benchmarks] if isinstance(benchmarks, str) else benchmarks)
    target = Path(to).expanduser().absolute()
    if push_to is not None:
        _check_push(wanted, push_to, may_copy, private, even_private)
    need_mlcroissant()
    for name, ids in wanted.items():
        card_text(name)  # a card that cannot be written is said before any work
        _check_folder(target / name)
        _check_removals(target / name, name, _with_galleries(ids), remove_others)
    prepared, skipped = _prepare(wanted, data_dir, verification_mode, skip_missing)
    for name, found in prepared.items():
        _check_removals(target / name, name, _names(found), remove_others)
    done = []
    with step_progress("publishing", sum(len(found) for found in prepared.values())) as advance:
        for name, found in prepared.items():
            done.append(_publish_one(target / name, found, skipped[name], advance))
    if push_to is not None:
        from cir_datasets.publishing.hub import push

        (one,) = done
        private = registry.card(one.name).in_folder if private is None else private
        done = [push(one, prepared[one.name], push_to, private=private, remove_others=remove_others)]
    return done


def _by_name(wanted: Sequence[str]) -> dict[str, list[str]]:
    """The ids that names, ids and suites stand for, by benchmark."""
    found: dict[str, list[str]] = {}
    for benchmark_id in registry.ids_of(*wanted):
        spec = registry.spec(benchmark_id)
        if spec.overlay is not None:
            raise CallError(
                f"{spec.id}: an overlay is handed on as its own file. "
                f"Fix: publish {spec.base.id} and give the overlay's file beside it."
            )
        found.setdefault(spec.card.name, []).append(benchmark_id)
    return found


def _check_push(
    wanted: Mapping[str, Sequence[str]],
    push_to: str,
    may_copy: str | None,
    private: bool | None,
    even_private: bool,
) -> None:
    if len(wanted) != 1:
        raise CallError(
            f"--push {push_to}: {len(wanted)} benchmarks ({', '.join(wanted)}) do not share a repository. "
            "Fix: publish one benchmark at a time, each to a repository of its own."
        )
    if push_to.count("/") != 1 or not all(push_to.split("/")):
        raise CallError(f"--push {push_to!r}: a repository is named ORG/NAME. Fix: put your name before it.")
    _check_repository_name(push_to)
    (name,) = wanted
    card = registry.card(name)
    if card.in_folder:
        _check_private(card, private, even_private)
        return
    licence = card.license
    if not licence.copies_allowed and may_copy != licence.annotations:
        said = "" if may_copy is None else f" (you wrote {may_copy!r})"
        raise CallError(
            f'{name}: the licence of its annotations is "{licence.annotations}", which does not allow every '
            f"copy; nothing was pushed{said}.\n"
            f'  Fix: where you may publish a copy, say so with  --i-may-copy "{licence.annotations}"'
        )


def _check_private(card: Card, private: bool | None, even_private: bool) -> None:
    """What its owner keeps private is pushed at the owner's word alone, and then to a private repository."""
    if card.private and (not even_private or private is False):
        what = "" if not even_private else ", and a public repository would show it to all"
        fix = (
            "push it to a private repository with  --even-private"
            if not even_private
            else "leave --public out"
        )
        raise CallError(
            f"{card.name}: its card says private: true{what}; nothing was pushed.\n"
            f"  Fix: {fix}, or write private: false in its card.yaml."
        )


def _check_repository_name(push_to: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(push_to)
    except HFValidationError as error:
        raise CallError(
            f"--push {push_to!r}: the Hub takes no such name; nothing was written: {error}\n"
            "  Fix: name the repository ORG/NAME with letters, digits, single '-', '_' and '.', none of them "
            "first or last."
        ) from error


def _check_folder(folder: Path) -> None:
    """A folder of that name must be one of ours, or empty: nobody's files are touched."""
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / CROISSANT).is_file()):
        raise CallError(
            f"{folder}: is there already and was not written by `cir datasets publish`. "
            "Fix: choose another --to, or move it away."
        )


def _check_removals(folder: Path, name: str, configs: set[str], remove_others: bool) -> None:
    earlier = _earlier(folder)
    if earlier is not None:
        check_earlier(earlier, name, configs, remove_others=remove_others)


def _with_galleries(ids: Sequence[str]) -> set[str]:
    names = {benchmark_id.partition("/")[2] for benchmark_id in ids}
    return names | {name + IMAGES_SUFFIX for name in names}


def _names(prepared: Sequence[Prepared]) -> set[str]:
    """The configurations that will be written, galleries included."""
    asked = {one.spec.config_name for one in prepared}
    return asked | {one.spec.config_name + IMAGES_SUFFIX for one in prepared if one.images_file is not None}


def _prepare(
    wanted: Mapping[str, Sequence[str]],
    data_dir: str | Path | None,
    verification_mode: str | None,
    skip_missing: bool,
) -> tuple[dict[str, list[Prepared]], dict[str, dict[str, str]]]:
    found: dict[str, list[Prepared]] = {}
    skipped: dict[str, dict[str, str]] = {name: {} for name in wanted}
    with step_progress("preparing", sum(map(len, wanted.values()))) as advance:
        for name, ids in wanted.items():
            for benchmark_id in ids:
                try:
                    one = ensure(benchmark_id, data_dir=data_dir, verification_mode=verification_mode)
                    found.setdefault(name, []).append(one)
                except IntegrityError:
                    raise
                except SourceError as error:
                    skipped[name][benchmark_id] = str(error)
                advance(1)
    missing = {benchmark_id: words for group in skipped.values() for benchmark_id, words in group.items()}
    if missing and (not skip_missing or not found):
        first = next(iter(missing.values()))
        raise SourceError(
            f"the data of {len(missing)} of {sum(map(len, wanted.values()))} benchmarks is not available: "
            f"{', '.join(missing)}. Nothing was written.\n"
            f"  Fix: get it, or publish the others with --skip-missing. The first: {first}"
        )
    return found, skipped


def _publish_one(
    folder: Path, prepared: Sequence[Prepared], skipped: Mapping[str, str], advance: Callable[[int], None]
) -> Publication:
    card = prepared[0].spec.card
    with staging_folder(
        folder.parent, f".{folder.name}-", error=CallError, fix="choose another --to."
    ) as staging:
        configs: list[PublishedConfig] = []
        for one in prepared:
            configs += _write_both(one, staging)
            advance(1)
        pages, warnings = documents(configs, prepared)
        for name, content in pages.items():
            (staging / name).write_bytes(content)
        check(staging / CROISSANT)
        _move(staging, folder)
    return Publication(
        name=card.name,
        folder=folder,
        configs=tuple(configs),
        skipped=skipped,
        notes=tuple(_notes(card, prepared)),
        warnings=tuple(warnings),
    )


def _write_both(prepared: Prepared, folder: Path) -> Iterator[PublishedConfig]:
    spec = prepared.spec
    yield write_config(prepared.rows_file, folder, spec.config_name, spec, is_manifest=False)
    if prepared.images_file is not None:
        name = spec.config_name + IMAGES_SUFFIX
        yield write_config(prepared.images_file, folder, name, spec, is_manifest=True)


def _notes(card: Card, prepared: Sequence[Prepared]) -> Iterator[str]:
    if card.private:
        yield "its card says private: true: the folder stays here unless you hand it on"
    elif not card.license.copies_allowed:
        yield (
            f'the licence of the annotations is "{card.license.annotations}", which does not allow every '
            "copy: this one is for your own use"
        )
    lacking = [one.spec.id for one in prepared if one.images_file is None]
    if lacking:
        yield (
            f"the list of the gallery is not available, so its images are not part of {', '.join(lacking)}"
        )
    skipped = [one.spec.id for one in prepared if one.meta["checks_skipped"]]
    if skipped:
        yield f"the counts of {counted(len(skipped), 'benchmark')} were not checked; the dataset card says so"


def _move(staging: Path, folder: Path) -> None:
    """Put the new files in place and take away the Parquet that only the earlier publication had.

    The folder itself stays: it may be a clone of a repository, with files that are not ours.
    """
    new = {path.relative_to(staging).as_posix() for path in staging.rglob("*") if path.is_file()}
    earlier = _earlier(folder)
    for path in sorted(new, key=lambda path: (path == CROISSANT, path)):  # what lists the files comes last
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (staging / path).replace(folder / path)
    for path in (earlier.files if earlier is not None else frozenset()) - new:
        (folder / path).unlink(missing_ok=True)
        if (folder / path).parent.is_dir() and not any((folder / path).parent.iterdir()):
            (folder / path).parent.rmdir()


def _earlier(folder: Path) -> Earlier | None:
    """The earlier publication in a folder, with those of its Parquet files that are still there."""
    metadata = folder / CROISSANT
    if not metadata.is_file():
        return None
    found = read_earlier(metadata.read_bytes(), str(folder))
    there = (path for path in found.files if (folder / path).is_file())
    return replace(found, files=frozenset(there))
