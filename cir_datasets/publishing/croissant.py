"""Croissant 1.0 metadata with the responsible-AI vocabulary, and its check by mlcroissant.

A configuration is a record set. Files are named relative to the folder; once pushed, by their address on the
Hub, because a reader of the metadata alone has no folder.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from cir_datasets.errors import PublishError, missing_extra
from cir_datasets.publishing.card_text import CardText
from cir_datasets.publishing.layout import PublishedConfig, PublishedField, published_fields
from cir_datasets.registry.schema import Card

CONFORMS_TO = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]

Json = dict[str, Any]


def croissant(
    card: Card, text: CardText, configs: Sequence[PublishedConfig], repository_url: str | None
) -> Json:
    """The metadata of a published benchmark as JSON-LD.

    Args:
        card: the benchmark's card.
        text: its hand-written part.
        configs: what was written, galleries included.
        repository_url: address of the repository on the Hub, or None for a folder.
    """
    authors = tuple(re.split(r",\s*", card.paper.authors)) if card.paper.known else ()
    kind = "sc:Organization" if text.creators else "sc:Person"
    creators = [{"@type": kind, "name": name} for name in text.creators or authors]
    year = text.year or card.paper.year
    url = repository_url or card.paper.url
    return {
        "@context": _context(),
        "@type": "sc:Dataset",
        "name": card.name,
        "alternateName": card.title,
        "description": " ".join(card.summary.split()),
        "conformsTo": CONFORMS_TO,
        "version": f"{card.version}.0.0",
        **({"datePublished": str(year)} if year else {}),
        "license": _license(card, text),
        **({"url": url} if url else {}),
        **({"inLanguage": list(text.languages)} if text.languages else {}),
        "isLiveDataset": False,
        "keywords": ["composed image retrieval", "image retrieval", *text.tags],
        "citeAs": text.bibtex.strip(),
        **({"creator": creators} if creators else {}),
        **_responsible_ai(text),
        "distribution": [entry for config in configs for entry in _files(config, repository_url)]
        + _repository(configs, repository_url),
        "recordSet": [_record_set(card, text, config) for config in configs],
    }


def as_bytes(metadata: Json) -> bytes:
    """The metadata as it is written."""
    return orjson.dumps(metadata, option=orjson.OPT_INDENT_2) + b"\n"


def need_mlcroissant() -> None:
    """Say now, before anything is written, that mlcroissant is missing.

    Raises:
        MissingExtraError: it is.
    """
    if find_spec("mlcroissant") is None:
        raise missing_extra("cir datasets publish", "mlcroissant", "publish")


def check(metadata: Json | Path) -> list[str]:
    """What mlcroissant warns of; its errors are raised.

    Args:
        metadata: the metadata, or the `croissant.json` that holds it.

    Raises:
        PublishError: mlcroissant finds an error.
    """
    need_mlcroissant()
    import mlcroissant  # type: ignore[import-untyped]

    try:
        with _unlogged("absl"):  # it logs what is returned here
            dataset = mlcroissant.Dataset(jsonld=str(metadata) if isinstance(metadata, Path) else metadata)
    except (mlcroissant.ValidationError, ValueError) as error:
        where = metadata if isinstance(metadata, Path) else "croissant.json"
        raise PublishError(
            f"{where}: mlcroissant refuses it: {error}\n  Fix: correct cards/<name>.yaml or cards/<name>.md."
        ) from error
    return sorted(str(warning) for warning in dataset.metadata.ctx.issues.warnings)


@contextmanager
def _unlogged(name: str) -> Iterator[None]:
    """Keep a logger's warnings from the terminal."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _context() -> Json:
    """Croissant's own JSON-LD context, which the specification asks for word by word."""
    text = (resources.files("cir_datasets") / "publishing" / "croissant_context.json").read_bytes()
    loaded: Json = orjson.loads(text)
    return loaded


def _license(card: Card, text: CardText) -> str:
    """The address of the licence; words where there is none, because an address would assert a document."""
    if text.license_url is None:
        return f"Licence of the annotations: {card.license.annotations}."
    if text.license_id == "unknown":
        return f"The publisher states no licence ({text.license_url})."
    return text.license_url


def _responsible_ai(text: CardText) -> Json:
    stated: Json = {}
    for name, value in text.rai.model_dump().items():
        if value:
            first, *others = name.split("_")
            key = "rai:" + first + "".join(word.capitalize() for word in others)
            stated[key] = list(value) if isinstance(value, tuple) else value
    return stated


def _files(config: PublishedConfig, repository_url: str | None) -> list[Json]:
    base = "" if repository_url is None else f"{repository_url}/resolve/main/"
    entries: list[Json] = [
        {
            "@type": "cr:FileObject",
            "@id": file.path,
            "name": file.path,
            "contentUrl": base + file.path,
            "contentSize": f"{file.num_bytes} B",
            "encodingFormat": "application/x-parquet",
            "sha256": file.sha256,
        }
        for file in config.files
    ]
    if len(config.files) > 1:
        together: Json = {
            "@type": "cr:FileSet",
            "@id": f"{config.name}-files",
            "name": f"{config.name}-files",
            "encodingFormat": "application/x-parquet",
            "includes": f"{config.name}/{config.split}-*.parquet",
        }
        if repository_url is not None:
            together["containedIn"] = {"@id": _REPOSITORY}
        entries.append(together)
    return entries


_REPOSITORY = "repository"


def _repository(configs: Sequence[PublishedConfig], repository_url: str | None) -> list[Json]:
    """The repository as a whole, which a set of several pushed files is a part of."""
    if repository_url is None or all(len(config.files) == 1 for config in configs):
        return []
    return [
        {
            "@type": "cr:FileObject",
            "@id": _REPOSITORY,
            "name": _REPOSITORY,
            "contentUrl": repository_url,
            "encodingFormat": "git+https",
            # A repository has no hash of its own; the field is mandatory, and this is what the Hub writes.
            "sha256": "https://github.com/mlcommons/croissant/issues/80",
        }
    ]


def _record_set(card: Card, text: CardText, config: PublishedConfig) -> Json:
    fields = published_fields(card.name, config.kind, config.schema, text)
    single = len(config.files) == 1
    source = (
        {"fileObject": {"@id": config.files[0].path}}
        if single
        else {"fileSet": {"@id": f"{config.name}-files"}}
    )
    what = f"gallery of {config.spec.id}" if config.is_manifest else f"{config.spec.id}, {config.kind} by row"
    return {
        "@type": "cr:RecordSet",
        "@id": config.name,
        "name": config.name,
        "description": f"{what}; {config.rows} rows, split {config.split}.",
        "key": {"@id": f"{config.name}/{fields[0].path}"},
        "field": [_field(config.name, field, source) for field in fields],
    }


def _field(config_name: str, field: PublishedField, source: Json) -> Json:
    column, _, inner = field.path.partition(".")
    entry: Json = {
        "@type": "cr:Field",
        "@id": f"{config_name}/{field.path.replace('.', '/')}",
        "name": field.path,
        "description": " ".join(field.description.split()),
    }
    if field.repeated:
        entry["repeated"] = True
    if field.inside:
        return {**entry, "subField": [_field(config_name, child, source) for child in field.inside]}
    whole: Json = {**source, "extract": {"column": column}}
    if inner:
        whole["transform"] = {"jsonPath": inner}
    return {**entry, "dataType": field.croissant_type, "source": whole}
