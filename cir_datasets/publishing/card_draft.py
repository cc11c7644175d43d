"""The dataset card of a folder of its makers: its README.md, and drafts of what that does not say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.common.yaml import read_yaml
from cir_datasets.errors import CardError
from cir_datasets.registry.folders import card_of_folder, folder_of, read_folder_card

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
        head, body = _parts(text)
        kept = read_yaml(f"\n{head}", str(path), CardError) or {}
        if not isinstance(kept, dict) or not isinstance(kept.get("rai", {}), dict):
            raise CardError(f"{path}: its head does not hold fields. Fix: write lines such as `tags: [x]`.")
        fields = {**fields, **kept, "rai": {**fields["rai"], **kept.get("rai", {})}}
    return {**fields, "body": body.strip() or card.title}, str(path)


def _parts(text: str) -> tuple[str, str]:
    """The head between two lines of `---`, or none, and the body."""
    if not text.startswith(_FENCE):
        return "", text
    head, closing, body = text.removeprefix(_FENCE).partition(f"\n{_FENCE}")
    return (head, body) if closing else ("", text)


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
