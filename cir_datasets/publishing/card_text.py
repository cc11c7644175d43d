"""What people wrote about a benchmark for its dataset card: `cards/<name>.md`.

The file has a YAML head (licence as the Hub names it, BibTeX, descriptions of the benchmark's own fields, the
responsible-AI statements of Croissant, changes) and a body of prose on what was collected, and how.
"""

from __future__ import annotations

import functools
from importlib import resources
from typing import Annotated

from pydantic import Field

from cir_datasets.common.yaml import checked, read_model
from cir_datasets.errors import CardError
from cir_datasets.publishing.card_draft import folder_fields
from cir_datasets.registry.folders import folders
from cir_datasets.registry.schema import StrictModel

_FENCE = "---\n"

Words = Annotated[str, Field(min_length=1)]
Statements = Annotated[tuple[Words, ...], Field(min_length=1)]


class ResponsibleAi(StrictModel):
    """Croissant's RAI vocabulary; `croissant.json` holds the statements as `rai:dataCollection` and so on."""

    data_collection: Words
    data_collection_type: Statements
    data_annotation_protocol: Statements
    data_annotation_platform: tuple[Words, ...] = ()
    machine_annotation_tools: tuple[Words, ...] = ()
    annotations_per_item: str | None = None
    annotator_demographics: tuple[Words, ...] = ()
    data_preprocessing_protocol: tuple[Words, ...] = ()
    data_collection_missing_data: str | None = None
    data_biases: Statements
    data_limitations: Statements
    data_use_cases: Statements
    data_social_impact: Words
    personal_sensitive_information: Statements
    data_release_maintenance_plan: Words


class CardChange(StrictModel):
    """What changed with a version of the benchmark here."""

    version: Annotated[int, Field(ge=1)]
    note: Words


class CardText(StrictModel):
    """The hand-written part of a dataset card."""

    license_id: Words
    """The licence of the annotations by the Hub's identifier, `other` or `unknown` where it has none."""
    license_name: str | None = None
    """Name of an `other` licence, in the Hub's manner: `cdla-permissive`."""
    license_url: Annotated[str, Field(pattern=r"^https://")] | None
    """Where the licence, or the publisher's word on it, is read; None where it stands nowhere else."""
    languages: tuple[Words, ...] = ("en",)
    """Empty where nobody has said."""
    tags: tuple[Words, ...] = ()
    creators: tuple[Words, ...] = ()
    """Who made the benchmark, where that is not the paper's authors."""
    year: int | None = None
    """When it came out, where that is not the paper's year."""
    bibtex: Words
    fields: dict[str, Words] = Field(default_factory=dict)
    """Descriptions of the benchmark's own fields, dotted where nested: `target_soft.score`."""
    rai: ResponsibleAi
    changes: Annotated[tuple[CardChange, ...], Field(min_length=1)]
    body: Words


def card_text(name: str) -> CardText:
    """The hand-written part of a benchmark's dataset card.

    Raises:
        CardError: `cards/<name>.md`, or the README.md of a folder, is not there or breaks the form.

    Example:
        >>> card_text("cirr").license_id
        'mit'
    """
    if name in folders():
        fields, where = folder_fields(name)
        return checked(CardText, fields, where, CardError)
    return _packaged_text(name)


@functools.cache
def _packaged_text(name: str) -> CardText:
    path = f"cards/{name}.md"
    try:
        text = (resources.files("cir_datasets") / "cards" / f"{name}.md").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CardError(
            f"{path}: no such file, so {name} cannot be published. Fix: write it, as cards/cirr.md is."
        ) from error
    head, body = _parts(path, text)
    # The fence is a line, too: messages count the lines of the file.
    return read_model(CardText, f"\n{head}", path, CardError, body=body.strip())


def _parts(path: str, text: str) -> tuple[str, str]:
    """The YAML head and the body of a file that starts and fences its head with `---`."""
    start, fence, rest = text.partition(_FENCE)
    head, closing, body = rest.partition(f"\n{_FENCE}")
    if start or not fence or not closing:
        raise CardError(
            f"{path}: it must start with a YAML head between two lines of ---. Fix: see cards/cirr.md."
        )
    return head, body
