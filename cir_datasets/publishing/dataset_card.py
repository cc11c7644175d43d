"""README.md of a published benchmark: the Hub's YAML head and the dataset card.

Everything in it comes from the card, the hand-written part, the Arrow schemas and what was prepared; nothing
depends on the time or the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cir_datasets import registry
from cir_datasets.common.tables import markdown_rows
from cir_datasets.hook import first_lines
from cir_datasets.prepared import Prepared
from cir_datasets.publishing.card_text import CardText
from cir_datasets.publishing.layout import PublishedConfig, flat, published_fields
from cir_datasets.registry.schema import Card

_TAGS = ("composed-image-retrieval", "image-retrieval", "benchmark")
_TASKS = ("image-feature-extraction",)
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def readme(
    card: Card,
    text: CardText,
    configs: Sequence[PublishedConfig],
    prepared: Sequence[Prepared],
    repository: str | None,
) -> str:
    """The dataset card.

    Args:
        card: the benchmark's card.
        text: its hand-written part.
        configs: what was written, galleries included.
        prepared: what it was written from, a benchmark each.
        repository: `ORG/NAME` on the Hub, or None for a folder.
    """
    import yaml

    head = yaml.safe_dump(
        _head(card, text, configs), sort_keys=False, allow_unicode=True, width=1_000, default_flow_style=False
    )
    sections = [
        f"# {card.title}",
        card.summary,
        *_paper(card, text),
        _use(card, configs, repository),
        "## Configurations",
        _configurations(configs),
        "## Protocol",
        *_protocol(configs),
        "## Ids",
        *_ids(card, configs),
        "## Fields",
        *_fields(card, text, configs),
        "## Licence",
        _licence(card, text),
        "## Images",
        # Where the pictures of a folder lie is a place on its maker's disk.
        "" if card.in_folder else card.images,
        "This dataset holds no images, only their ids.",
        text.body,
        "## Bias, limits and use",
        *_considerations(text),
        *(("## Known traps", _bullets(card.traps)) if card.traps else ()),
        "## Where the rows come from",
        *_provenance(card, prepared),
        "## Citation",
        f"```bibtex\n{text.bibtex.strip()}\n```",
        "## Changes",
        _bullets(f"version {change.version}: {change.note}" for change in text.changes),
    ]
    body = "\n\n".join(section.strip() for section in sections if section.strip())
    return f"---\n{head}---\n\n{body}\n"


def _paper(card: Card, text: CardText) -> Iterable[str]:
    """The line about the paper, where there is one."""
    paper = card.paper
    if paper.known:
        followed = "The paper that it follows" if text.creators else "Paper"
        title = f"[{paper.title}]({paper.url})" if paper.url else paper.title
        yield f"{followed}: {paper.authors}. {title}. {paper.appeared}."


def _table(head: Sequence[str], right: Sequence[int], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the columns of `right` are aligned to the right."""
    cells = ([" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(markdown_rows(head, cells, right=right))


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {' '.join(line.split())}" for line in lines)


def _head(card: Card, text: CardText, configs: Sequence[PublishedConfig]) -> dict[str, Any]:
    rows = max(config.rows for config in configs)
    head: dict[str, Any] = {
        "pretty_name": card.title,
        "license": text.license_id,
        **({"language": list(text.languages)} if text.languages else {}),
        "task_categories": list(_TASKS),
        "tags": [*_TAGS, *text.tags],
        "size_categories": [next((name for limit, name in _SIZES if rows < limit), "1M<n<10M")],
        "configs": [
            {
                "config_name": config.name,
                "data_files": [{"split": config.split, "path": f"{config.name}/{config.split}-*.parquet"}],
            }
            for config in configs
        ],
        **_dataset_info(configs),
    }
    if text.license_id == "other":
        named = {"license_name": text.license_name, "license_link": text.license_url}
        head |= {key: value for key, value in named.items() if value is not None}
    return head


def _dataset_info(configs: Sequence[PublishedConfig]) -> dict[str, Any]:
    """Features and row counts, in the form that the installed `datasets` reads."""
    import datasets
    from huggingface_hub import DatasetCardData

    infos = {
        config.name: datasets.DatasetInfo(
            features=datasets.Features.from_arrow_schema(config.schema),
            splits=datasets.SplitDict(
                {config.split: datasets.SplitInfo(config.split, config.num_bytes, config.rows)}
            ),
            download_size=sum(file.num_bytes for file in config.files),
            dataset_size=config.num_bytes,
        )
        for config in configs
    }
    data = DatasetCardData()
    datasets.info.DatasetInfosDict(infos).to_dataset_card_data(data)
    return {"dataset_info": data.get("dataset_info")}


def _use(card: Card, configs: Sequence[PublishedConfig], repository: str | None) -> str:
    where = repository or f"path/to/{card.name}"
    lines = ["```python", "from datasets import load_dataset", ""]
    lines.append(f'rows = load_dataset("{where}", "{configs[0].name}", split="{configs[0].split}")')
    manifest = next((config for config in configs if config.is_manifest), None)
    if manifest is not None:
        lines.append(f'gallery = load_dataset("{where}", "{manifest.name}", split="{manifest.split}")')
    lines.append("```")
    if not card.in_folder:  # its name is known where its folder lies, and that is not published
        *imports, load = first_lines(card.name, configs[0].name, configs[0].split)
        lines += [
            "",
            "By its name, with cir-benchmarks installed:",
            "",
            "```python",
            *imports,
            "",
            load,
            "```",
        ]
    return "\n".join(lines)


def _configurations(configs: Sequence[PublishedConfig]) -> str:
    rows = []
    for config in configs:
        details = config.spec.config
        gallery = f"gallery of `{config.spec.config_name}`"
        rows.append(
            (
                f"`{config.name}`",
                config.split,
                f"{config.rows:,}",
                config.kind,
                "" if config.is_manifest or not details.turns else _turns(details.turns),
                gallery if config.is_manifest else details.note,
            )
        )
    return _table(("configuration", "split", "rows", "a row is a", "turns", "note"), (2,), rows)


def _turns(turns: Mapping[int, int]) -> str:
    return ", ".join(f"{count:,} of {number}" for number, count in turns.items())


def _protocol(configs: Sequence[PublishedConfig]) -> Iterable[str]:
    listed = {config.spec.config_name: config.rows for config in configs if config.is_manifest}
    asked = [config for config in configs if not config.is_manifest]
    rows = []
    for config in asked:
        details = config.spec.config
        size = listed.get(config.name, details.gallery)
        rows.append(
            (
                f"`{config.name}`",
                ("?" if size is None else f"{size:,}")
                + config.spec.gallery_note
                + ("" if config.name in listed else " (list not here)"),
                "removed from the ranking" if details.reference == "removed" else "kept in the ranking",
                details.ground_truth,
                str(details.subset or ""),
                f"`{config.spec.main_metric}`",
            )
        )
    head = ("configuration", "gallery", "reference image", "ground truth", "subset", "main metric")
    yield _table(head, (1,), rows)
    metrics = dict.fromkeys(metric for config in asked for metric in config.spec.metrics)
    yield f"Metrics: {', '.join(f'`{metric}`' for metric in metrics)}."
    if len(listed) < len(asked):
        yield (
            "Where the list of the gallery is not here, its publisher's file was not available when this was "
            "written; queries and ground truth are complete."
        )


def _ids(card: Card, configs: Sequence[PublishedConfig]) -> Iterable[str]:
    yield card.ids
    rows = []
    for config in configs:
        if not config.is_manifest:
            example = card.examples[config.name]
            cells = (f"`{config.name}`", f"`{example.query}`", f"`{example.images[0]}`")
            rows.append((*cells, "not checked: the data could not be had" if example.invented else ""))
    yield _table(("configuration", "a query or session", "an image", "note"), (), rows)


def _fields(card: Card, text: CardText, configs: Sequence[PublishedConfig]) -> Iterable[str]:
    groups: dict[tuple[str, str], list[PublishedConfig]] = {}
    for config in configs:
        groups.setdefault((config.kind, str(config.schema)), []).append(config)
    for (kind, _), members in groups.items():
        names = "every `<config>_images`" if kind == "image" else _named(members)
        yield f"### {kind.capitalize()} ({names})"
        fields = flat(published_fields(card.name, kind, members[0].schema, text))
        rows = [(f"`{field.path}`", field.type_words, field.description) for field in fields]
        yield _table(("field", "type", "what it is"), (), rows)


def _named(configs: Sequence[PublishedConfig]) -> str:
    return ", ".join(f"`{config.name}`" for config in configs)


def _licence(card: Card, text: CardText) -> str:
    lines = [
        f"Annotations: {card.license.annotations}" + (f" ({text.license_url})" if text.license_url else ""),
        f"Images: {card.license.images}",
    ]
    if not card.license.copies_allowed:
        said = f'The publisher does not allow every kind of copy ("{card.license.annotations}")'
        if card.in_folder:
            said = "Its makers keep it private"
        elif text.license_id == "unknown":
            said = "Whether it may be copied is not known, as no licence is stated"
        lines.append(f"{said}: this form is for your own use. Before you hand it on, make sure that you may.")
    return _bullets(lines)


def _considerations(text: CardText) -> Iterable[str]:
    rai = text.rai
    for title, statements in (
        ("Intended use", rai.data_use_cases),
        ("Biases", rai.data_biases),
        ("Limits", rai.data_limitations),
        ("Personal and sensitive information", rai.personal_sensitive_information),
        ("Social impact", (rai.data_social_impact,)),
        ("Maintenance", (rai.data_release_maintenance_plan,)),
    ):
        yield f"**{title}**"
        yield _bullets(statements)


def _provenance(card: Card, prepared: Sequence[Prepared]) -> Iterable[str]:
    files = _files_by_publisher(prepared)
    if not files:
        yield "Computed by the package cir-benchmarks itself; there is no source file."
    # The benchmark's own publisher first, then those whose galleries it borrows.
    for name in sorted(files, key=lambda name: (name != card.name, name)):
        owner, entries = registry.card(name), files[name]
        if owner.in_folder:
            yield "From the files of its makers, read by cir-benchmarks."
            hashes = [(f"`{path}`", f"`{entry['sha256']}`") for path, entry in sorted(entries.items())]
            yield _table(("file", "sha256"), (), hashes)
            continue
        source = owner.source
        at = f"revision {source.revision}" if source.revision else "no revision is pinned"
        what = "From" if name == card.name else f"Galleries of {owner.short_title}, from"
        pinned = sum(entry["pinned"] for entry in entries.values())
        yield (
            f"{what} `{source.repository}` ({source.publisher}, {at}), read by cir-benchmarks. "
            f"{pinned} of {len(entries)} files are known by a pinned sha256."
        )
        rows = [
            (f"`{path}`", f"`{entry['sha256']}`", "yes" if entry["pinned"] else "no")
            for path, entry in sorted(entries.items())
        ]
        yield _table(("publisher's file", "sha256", "pinned"), (), rows)
    yield _table(("benchmark", "data hash", "gallery hash", "notes"), (), map(_origin, prepared))


def _files_by_publisher(prepared: Sequence[Prepared]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The source files by the benchmark whose publisher they are of: a borrowed gallery has its lender's."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for one in prepared:
        lender = one.spec.config.gallery_from
        lent = registry.spec(lender) if lender is not None else None
        for path, entry in one.meta["sources"].items():
            owner = lent if lent is not None and path in lent.config.gallery_files else one.spec
            found.setdefault(owner.card.name, {})[path] = entry
    return found


def _origin(prepared: Prepared) -> Sequence[str]:
    meta = prepared.meta
    notes = [] if meta["pinned"] else ["unpinned source"]
    notes += [f"not checked: {check}" for check in meta["checks_skipped"]]
    return (
        f"`{prepared.spec.id}`, version {prepared.spec.card.version}",
        f"`{meta['data_hash']}`",
        "unknown" if meta["gallery_hash"] is None else f"`{meta['gallery_hash']}`",
        ", ".join(notes),
    )
