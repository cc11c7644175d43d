"""What people wrote about a benchmark for its dataset card: `cards/<name>.md`, or a folder's README.md.

The file has a YAML head (licence as the Hub names it, BibTeX, descriptions of the benchmark's own fields, the
responsible-AI statements of Croissant, changes) and a body of prose on what was collected, and how. A folder
of a user's gets a draft of what its README.md does not say.
"""

from __future__ import annotations

import functools
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from cir_datasets.common.yaml import checked, read_model, read_yaml
from cir_datasets.errors import CardError
from cir_datasets.registry.folders import card_of_folder, folder_of, folders, read_folder_card
from cir_datasets.registry.schema import StrictModel

if TYPE_CHECKING:
    from cir_datasets.registry.folder_card import FolderCard
    from cir_datasets.registry.schema import Card

README = "README.md"
_FENCE = "---\n"
DRAFT = "# A draft: writing the benchmark again writes it anew. Remove this line to keep your own words.\n"
"""The first line of a head that nobody has edited."""


def drafted(folder: Path) -> str:
    """A README.md for a folder: a head that says what is not known, and a body on how it was made."""
    import yaml

    short, card = read_folder_card(folder), card_of_folder(folder)
    head = yaml.safe_dump(_draft(card, short), sort_keys=False, allow_unicode=True, width=100)
    return f"{_FENCE}{DRAFT}{head}{_FENCE}\n{_body(card, short)}"


def is_draft(text: str) -> bool:
    """Whether nobody has taken the draft as their own."""
    return text.startswith(_FENCE + DRAFT)


def folder_fields(name: str) -> tuple[dict[str, Any], str]:
    """The fields of a registered folder's dataset card, and the file that says them; gaps are drafted.

    Raises:
        CardError: its README.md cannot be read, or has a malformed head.
    """
    folder = folder_of(name)
    short, card, path = read_folder_card(folder), card_of_folder(folder), folder / README
    fields, body = _draft(card, short), _body(card, short)
    if path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CardError(f"{path}: cannot be read: {error}. Fix: save it as UTF-8.") from error
        head, body = _parts(text) or ("", text)
        kept = read_yaml(f"\n{head}", str(path), CardError) or {}
        if not isinstance(kept, dict) or not isinstance(kept.get("rai", {}), dict):
            raise CardError(f"{path}: its head does not hold fields. Fix: write lines such as `tags: [x]`.")
        fields = {**fields, **kept, "rai": {**fields["rai"], **kept.get("rai", {})}}
    return {**fields, "body": body.strip() or card.title}, str(path)


def _parts(text: str) -> tuple[str, str] | None:
    """The head between two lines of `---`, and the body; None where a text does not begin with a head."""
    start, fence, rest = text.partition(_FENCE)
    head, closing, body = rest.partition(f"\n{_FENCE}")
    return None if start or not fence or not closing else (head, body)


def _draft(card: Card, short: FolderCard) -> dict[str, Any]:
    unknown = "Not stated."
    paper = card.paper
    appeared = "" if paper.year is None else f",\n  year   = {{{paper.year}}}"
    author = f",\n  author = {{{paper.authors}}}{appeared}" if paper.known else ""
    return {
        "license_id": "unknown" if short.license == "unknown" else "other",
        "license_url": None,
        "tags": ["own-benchmark"],
        "languages": [],
        "bibtex": f"@misc{{{card.name},\n  title  = {{{paper.title}}}{author}\n}}\n",
        "rai": {
            "data_collection": "See below how it was made." if short.made else unknown,
            "data_collection_type": [unknown],
            "data_annotation_protocol": [unknown],
            "data_biases": [unknown],
            "data_limitations": [unknown],
            "data_use_cases": ["Comparing methods of composed image retrieval."],
            "data_social_impact": unknown,
            "personal_sensitive_information": [unknown],
            "data_release_maintenance_plan": unknown,
        },
        "changes": [{"version": card.version, "note": "As its makers wrote it."}],
    }


def _body(card: Card, short: FolderCard) -> str:
    import yaml

    parts = ["## About", card.summary]
    if short.made:
        made = yaml.safe_dump(short.made, sort_keys=False, allow_unicode=True, width=100)
        parts += ["## How it was made", f"```yaml\n{made}```"]
    return "\n\n".join(parts) + "\n"


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
    parts = _parts(text)
    if parts is None:
        raise CardError(
            f"{path}: it must start with a YAML head between two lines of ---. Fix: see cards/cirr.md."
        )
    head, body = parts
    # The fence is a line, too: messages count the lines of the file.
    return read_model(CardText, f"\n{head}", path, CardError, body=body.strip())
