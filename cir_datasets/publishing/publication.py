"""`Publication`: a benchmark in the Hub's repository layout, and the documents that lie beside its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cir_datasets.common.terminal import counted
from cir_datasets.prepared import Prepared
from cir_datasets.publishing.card_text import card_text
from cir_datasets.publishing.croissant import as_bytes, check, croissant
from cir_datasets.publishing.dataset_card import readme
from cir_datasets.publishing.layout import PublishedConfig

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
                    "files": [
                        {"path": file.path, "sha256": file.sha256, "num_bytes": file.num_bytes}
                        for file in config.files
                    ],
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
