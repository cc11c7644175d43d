"""`Publication`: what is published at a place, the documents beside its data, and what was there before.

A folder or a repository may be written again by the benchmark that it holds alone, and a configuration that
is there goes away only where the caller says so: its `croissant.json` says what there is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from cir_datasets.common.terminal import counted
from cir_datasets.errors import PublishError
from cir_datasets.prepared import Prepared
from cir_datasets.publishing.card_text import card_text
from cir_datasets.publishing.croissant import as_bytes, check, croissant
from cir_datasets.publishing.dataset_card import readme
from cir_datasets.publishing.layout import PublishedConfig


@dataclass(frozen=True)
class Earlier:
    """An earlier publication.

    Args:
        where: the folder or the address of the repository.
        name: the benchmark that it holds.
        files: paths of its Parquet files, relative to the place.
    """

    where: str
    name: str
    files: frozenset[str]


class _File(BaseModel):
    id: str = Field(alias="@id")


class _Metadata(BaseModel):
    name: str
    distribution: tuple[_File, ...]


def read_earlier(content: bytes, where: str, error: type[PublishError] = PublishError) -> Earlier:
    """The publication that a `croissant.json` describes.

    Args:
        content: the file's bytes.
        where: the folder or the address of the repository, for messages.
        error: of what is refused.

    Raises:
        PublishError: it was not written by `publish`.

    Example:
        >>> read_earlier(b'{"name": "cirr", "distribution": [{"@id": "val/a.parquet"}]}', "there").files
        frozenset({'val/a.parquet'})
    """
    try:
        metadata = _Metadata.model_validate_json(content)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        place = "".join(f"`{step}` " for step in first["loc"])
        raise error(
            f"{where}: its croissant.json is not metadata of an earlier publication "
            f"({place}{first['msg']}); nothing was changed there. Fix: choose another place, or move that "
            "file away."
        ) from fault
    paths = (entry.id for entry in metadata.distribution if entry.id.endswith(".parquet"))
    # What leads out of the folder is not ours.
    ours = (path for path in paths if not path.startswith("/") and ".." not in path)
    return Earlier(where, metadata.name, frozenset(ours))


def check_earlier(
    earlier: Earlier,
    name: str,
    configs: Collection[str],
    *,
    remove_others: bool,
    error: type[PublishError] = PublishError,
) -> None:
    """Refuse what would take away published data that the caller has not given up.

    Args:
        earlier: what is there, `files` limited to those that really are.
        name: the benchmark that is to be published there.
        configs: its configurations that will be there afterwards, galleries included.
        remove_others: whether the caller gives up the other configurations.
        error: of what is refused.

    Raises:
        PublishError: another benchmark is there, or configurations would go.
    """
    if earlier.name != name:
        raise error(
            f"{earlier.where}: holds another benchmark, {earlier.name!r}; nothing was changed there.\n"
            f"  Fix: give {name} a place of its own."
        )
    lost = sorted({path.partition("/")[0] for path in earlier.files} - set(configs))
    if lost and not remove_others:
        raise error(
            f"{earlier.where}: configurations that are published there would be removed, because they are "
            f"not named now or their data is not available: {', '.join(lost)}. Nothing was changed there.\n"
            f"  Fix: publish all configurations ({name}) with their data available, or give these up with "
            "--remove-others (remove_others=True)."
        )


README, CROISSANT = "README.md", "croissant.json"
_YEAR = "Fix: write the year of publication, as in `year: 2026`, into the head of the benchmark's README.md."


@dataclass(frozen=True)
class Publication:
    """A benchmark that was published.

    Args:
        name: the benchmark's name.
        folder: the folder that holds it.
        configs: what was written, galleries included.
        skipped: ids of benchmarks whose data is not available, each with the reason.
        notes: what a user should know: licence, galleries that are not available.
        warnings: what mlcroissant warns of.
        commit_url: address of the commit on the Hub, or None where nothing was pushed.
    """

    name: str
    folder: Path
    configs: tuple[PublishedConfig, ...]
    skipped: Mapping[str, str]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    commit_url: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The publication for a program."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "configs": [
                {
                    "name": config.name,
                    "split": config.split,
                    "rows": config.rows,
                    "files": [asdict(file) for file in config.files],
                }
                for config in self.configs
            ],
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "commit_url": self.commit_url,
        }

    def text(self) -> str:
        """The publication in a few lines."""
        size = sum(file.num_bytes for config in self.configs for file in config.files)
        galleries = sum(config.is_manifest for config in self.configs)
        rows = counted(len(self.configs) - galleries, "configuration")
        counts = f"{rows} and {counted(galleries, 'gallery', 'galleries')}"
        lines = [f"{self.name}: {counts}, {size:,} bytes of Parquet", f"  {self.folder}"]
        return "\n".join(lines if self.commit_url is None else [*lines, f"  {self.commit_url}"])


def documents(
    publication_configs: Sequence[PublishedConfig],
    prepared: Sequence[Prepared],
    repository: str | None = None,
    repository_url: str | None = None,
) -> tuple[dict[str, bytes], list[str]]:
    """README.md and croissant.json by file name, and what mlcroissant warns of.

    Raises:
        PublishError: mlcroissant refuses the metadata.
    """
    card = prepared[0].spec.card
    text = card_text(card.name)
    metadata = croissant(card, text, publication_configs, repository_url)
    warnings = [f"{said} {_YEAR}" if "datePublished" in said else said for said in check(metadata)]
    page = readme(card, text, publication_configs, prepared, repository)
    return {README: page.encode(), CROISSANT: as_bytes(metadata)}, warnings
