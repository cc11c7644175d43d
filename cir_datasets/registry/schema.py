"""What a benchmark card (`cards/<name>.yaml`) must say, checked by pydantic when it is read."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, RootModel, model_validator

from cir_datasets.common.paths import BENCHMARK_FORMATS, NAME, PictureFormat
from cir_metrics.catalogue import METRICS, parse_metric
from cir_metrics.errors import CirError


def _metric(name: str) -> str:
    """A name that `parse_metric` knows."""
    try:
        parse_metric(name)
    except CirError as error:
        raise ValueError(str(error)) from error
    return name


def _metric_without_turn(name: str) -> str:
    if "@turn" in name:
        raise ValueError(f"{name!r} names a turn. Fix: write {name.partition('@turn')[0]!r}, for all turns.")
    return _metric(name)


def _commit(revision: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise ValueError(
            f"{revision!r} is not a whole commit. Fix: write its 40 hex digits, or null where none is known."
        )
    return revision


MetricName = Annotated[str, AfterValidator(_metric_without_turn)]
"""A metric as it is printed: `recall@5`, `hits_auc@10`, `mean_rank`."""

PrintedName = Annotated[str, AfterValidator(_metric)]
"""The name that a value is reported under: a metric's, or `hits@10@turn2`."""

Count = Annotated[int, Field(strict=True, ge=1)]
"""How many there are of what cannot be none."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

_IMAGE_FIELD = r"\{(relative_path|image_id)\}"
ImagePath = Annotated[str, Field(pattern=rf"^([^{{}}/][^{{}}]*)?{_IMAGE_FIELD}([^{{}}]|{_IMAGE_FIELD})*$")]
"""Where an image may lie below its folder: a path with `{relative_path}` or `{image_id}` in it."""

ConfigName = Annotated[str, Field(pattern=rf"^{NAME}$")]

_MEAN = re.compile(r"^mean\(([^()]+)\)$")


class StrictModel(BaseModel):
    """Base of what cards say: never changed, and without fields that are not known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Paper(StrictModel):
    """Where the benchmark is described."""

    title: str
    authors: str
    venue: str
    year: Count | None
    """None where nothing has appeared."""
    url: str

    @property
    def known(self) -> bool:
        """Whether there is one: a benchmark of one's own need not have appeared anywhere."""
        return bool(self.url) or self.year is not None

    @property
    def text(self) -> str:
        """It in a line, without its address."""
        return f"{self.authors}. {self.title}. {self.appeared}."

    @property
    def appeared(self) -> str:
        """Venue and year in words."""
        return self.venue if self.year is None else f"{self.venue} {self.year}"


class Licence(StrictModel):
    """Licences, of the annotations and of the images apart."""

    annotations: str
    images: str
    copies_allowed: bool
    """Whether the publisher's terms let us hand on a copy of the annotations."""


class Source(StrictModel):
    """Where the publisher's files come from.

    `folder` is the name of the publisher's folder below `CIR_DATA_HOME`. `revision` is a commit in full, or
    null where none could be had yet: the source is then unpinned. `files` is the JSON list of the publisher's
    files with size and sha256, null where unknown.
    """

    publisher: Literal["github", "hub", "embedded", "unpublished", "challenge", "folder"]
    """`unpublished`: the publisher has not released the files yet; users bring their own folder. `challenge`:
    the files lie beside the card, which an organiser has made. `folder`: they lie beside a `FolderCard`."""
    repository: str
    folder: str
    revision: Annotated[str, AfterValidator(_commit)] | None
    files: str | None = None
    instructions: str
    """What a user does to get the files by hand."""
    pages: tuple[str, ...] = ()
    """The publishers' pages, where files that are not published yet are to appear."""

    @property
    def pinned(self) -> bool:
        """Whether a revision is known."""
        return self.revision is not None or self.publisher == "embedded"


class PinnedFile(StrictModel):
    """Size and hash of a publisher's file."""

    bytes: Annotated[int, Field(strict=True, ge=0)]
    sha256: Sha256


class SourceFiles(RootModel[dict[str, PinnedFile | None]]):
    """The publisher's files, `sources/<name>.json`: what each must be, or null where nothing is known yet."""


class PaperDifference(StrictModel):
    """A figure that is published elsewhere and that the publisher's own files do not bear out."""

    what: str
    """`queries`, `gallery` or `average_turns` are counted again by `cir datasets verify`."""
    published: Annotated[int | float, Field(ge=0)]
    """The other figure."""
    ours: Annotated[int | float, Field(ge=0)]
    why: str
    """Where the other figure stands, and what is known of the reason."""
    called: str = "published"
    """What the other figure is, where no paper states it."""

    def text(self) -> str:
        """The difference in a line."""
        return (
            f"{self.what.replace('_', ' ')}: {self.ours:,} here, {self.published:,} {self.called}: {self.why}"
        )


class Config(StrictModel):
    """One configuration of a benchmark: one split, one gallery, one protocol."""

    split: Literal["train", "validation", "test"]
    queries: Count | None
    """Rows (queries or sessions); null where no count is published."""
    gallery: Count | None
    gallery_from: str | None = None
    """Another benchmark's id whose gallery this one ranks (CIRCLED: the source split's)."""
    gallery_optional: bool = False
    """Whether queries load and files are scored without the gallery list (ids are then not checked)."""
    reference: Literal["kept", "removed"]
    """Whether the reference image stays in the ranking."""
    ground_truth: Literal["public", "withheld"] = "public"
    subset: Annotated[int, Field(strict=True, ge=2)] | None = None
    """Size of the query's own subset, reference included (CIRR: 6)."""
    turns: dict[Count, Annotated[int, Field(strict=True, ge=0)]] | None = None
    """Sessions by number of turns, where the paper gives them."""
    files: tuple[str, ...] = ()
    """The publisher's files that hold the rows, relative to its folder."""
    gallery_files: tuple[str, ...] = ()
    known_differences: tuple[PaperDifference, ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _counts_agree(self) -> Config:
        if self.turns is not None and self.queries is not None and sum(self.turns.values()) != self.queries:
            raise ValueError(
                f"`turns` counts {sum(self.turns.values()):,} sessions, and `queries` {self.queries:,}"
            )
        counted = {"queries": self.queries, "gallery": self.gallery}
        for known in self.known_differences:
            if known.what in counted and known.ours != counted[known.what]:
                raise ValueError(
                    f"a known difference says {known.ours:,} {known.what} here, but `{known.what}` is "
                    f"{counted[known.what]}"
                )
        return self


class ExampleIds(StrictModel):
    """Ids of one configuration: what its queries and images are called."""

    query: str
    """Id of a query or session; of a session that has two turns, where there is one."""
    images: Annotated[tuple[str, ...], Field(min_length=3)]
    """Ids of images of its gallery; where the query has a subset, of that."""
    invented: bool = False
    """Whether they only have the form, because the data could not be had yet; else the data holds them."""
    turns: Annotated[int, Field(ge=2)] = 2
    """Turns of the session, where the configuration does not count them."""


class ReportExtras(StrictModel):
    """What a score's report holds besides the board's metrics."""

    metrics: tuple[MetricName, ...] = ()
    """Further metrics of a query, for the whole benchmark."""
    by_aspect: tuple[MetricName, ...] = ()
    """Metrics that are also given by aspect."""
    aspect_names: dict[str, str] = {}
    """How tables call the aspects, in the order of their rows."""

    @model_validator(mode="after")
    def _aspects_have_names(self) -> ReportExtras:
        if bool(self.by_aspect) != bool(self.aspect_names):
            raise ValueError("by_aspect and aspect_names go together")
        return self


class Floor(StrictModel):
    """What a method without weights scores."""

    command: str
    """What made the numbers."""
    metrics: Annotated[dict[PrintedName, Annotated[float, Field(ge=0)]], Field(min_length=1)]
    """By printed name the value, a fraction."""


class Floors(StrictModel):
    """Recorded floors of one configuration; they hold for the rows and the gallery of these hashes alone."""

    data_hash: Sha256
    gallery_hash: Sha256
    image_only: Floor | None = None
    text_only: Floor | None = None

    def methods(self) -> dict[str, Floor]:
        """The recorded ones by name."""
        found = {"image_only": self.image_only, "text_only": self.text_only}
        return {name: floor for name, floor in found.items() if floor is not None}


class Card(StrictModel):
    """A benchmark card: everything about a benchmark that is not a row."""

    name: Annotated[str, Field(pattern=rf"^{NAME}$")]
    title: str
    version: Count
    """+1 whenever a published number can move."""
    builder_version: Count = 1
    """+1 whenever the rows of an unchanged source can change; part of the key of what is prepared."""
    kind: Literal["single_turn", "multi_turn", "mixed"]
    """`mixed` where some configurations hold queries and some sessions (shapes)."""
    status: Literal["published", "embedded", "pending_publication", "challenge", "folder"]
    summary: str
    gallery: Literal["common", "per_query"] = "common"
    """`per_query` where each query ranks the images of its own list, the rows' field `gallery_image_ids`;
    each configuration's `gallery` then counts their union."""
    paper: Paper
    license: Licence
    source: Source
    configs: Annotated[dict[ConfigName, Config], Field(min_length=1)]
    metrics: Annotated[tuple[MetricName, ...], Field(min_length=1)]
    main_metric: str
    multi_turn_metrics: tuple[MetricName, ...] = ()
    """Metrics of the multi-turn configurations of a mixed benchmark."""
    multi_turn_main_metric: str | None = None
    report: ReportExtras = ReportExtras()
    floors: dict[str, Floors] = {}
    """By configuration."""
    images: str
    """How a user gets the images, and whether scoring needs them (it never does)."""
    image_folder: str | None = None
    """Folder of the images below `CIR_IMAGES`, in the publisher's own layout."""
    image_paths: Annotated[tuple[ImagePath, ...], Field(min_length=1)] = (
        "{relative_path}",
        "{image_id}",
        "{image_id}.png",
        "{image_id}.jpg",
    )
    """Where an image may lie below that folder; the first path that exists is taken. `{relative_path}` is the
    manifest's, and a path that needs it is passed over where the manifest has none."""
    image_formats: Annotated[tuple[PictureFormat, ...], Field(min_length=1)] = BENCHMARK_FORMATS
    """Formats that an image is opened with, whatever its name ends with."""
    folder_schema: str = ""
    """What the files hold, in Markdown, where the format is ours because the publisher has none yet."""
    ids: Annotated[str, Field(min_length=1)]
    """What the id of a query or session is and what that of an image, each with an example in backticks."""
    examples: dict[str, ExampleIds]
    """By configuration; every configuration has one."""
    known_differences: tuple[PaperDifference, ...] = ()
    """Differences that concern all configurations together."""
    traps: tuple[str, ...] = ()
    """What users get wrong, a sentence each."""
    private: bool = False
    """Whether the data belongs to somebody who has not said that it may leave this machine."""
    extra_fields: Annotated[
        tuple[str, ...], Field(validation_alias=AliasChoices("extra_fields", "own_fields"))
    ] = ()
    """Of a folder or a challenge: the fields of its rows, or of their turns, that not every one has.

    Challenges made before 0.2 say `own_fields`."""

    @property
    def in_folder(self) -> bool:
        """Whether it is a folder of its makers, and not a benchmark of the package or a challenge."""
        return self.source.publisher == "folder"

    @property
    def short_title(self) -> str:
        """The title up to its first comma or colon, `CIRR`."""
        return re.split(r"[,:]", self.title)[0]

    @model_validator(mode="after")
    def _what_is_pending_is_explained(self) -> Card:
        unpublished = self.source.publisher == "unpublished"
        if unpublished != (self.status == "pending_publication"):
            raise ValueError("status pending_publication and publisher unpublished go together")
        if unpublished and not (self.source.pages and self.folder_schema):
            raise ValueError("a benchmark that is pending publication needs source.pages and folder_schema")
        return self

    @model_validator(mode="after")
    def _configs_fit(self) -> Card:
        for name, config in self.configs.items():
            if name.endswith("_images"):
                raise ValueError(f"the configuration {name!r} must not end in _images, as its gallery does")
            if not config.files and self.source.publisher != "embedded":
                raise ValueError(f"configs.{name} names no `files`")
        return self

    @model_validator(mode="after")
    def _galleries_fit(self) -> Card:
        if self.gallery == "common":
            return self
        if self.kind != "single_turn":
            raise ValueError("`gallery: per_query` is for queries; sessions rank a common gallery")
        other = [
            name for name, config in self.configs.items() if config.gallery_from or config.gallery_optional
        ]
        if other:
            raise ValueError(f"configs.{other[0]}: with `gallery: per_query` the rows hold the gallery")
        return self

    @model_validator(mode="after")
    def _metrics_fit_the_kind(self) -> Card:
        mixed = self.kind == "mixed"
        if mixed != bool(self.multi_turn_metrics) or mixed != bool(self.multi_turn_main_metric):
            raise ValueError(
                "multi_turn_metrics and multi_turn_main_metric are for a card of kind mixed, which needs both"
            )
        first = "multi_turn" if self.kind == "multi_turn" else "single_turn"
        for protocol, names in ((first, self.metrics), ("multi_turn", self.multi_turn_metrics)):
            for name in names:
                entry = METRICS[parse_metric(name)[0]]
                if protocol not in entry.protocols:
                    has = "sessions" if protocol == "multi_turn" else "queries"
                    raise ValueError(f"metric {name!r} cannot be computed of {has}. Fix: leave it out")
                if entry.reads_subset and not any(config.subset for config in self.configs.values()):
                    raise ValueError(f"metric {name!r} needs a `subset`, which no configuration has")
        return self

    @model_validator(mode="after")
    def _ids_have_examples(self) -> Card:
        without = [name for name in self.configs if name not in self.examples]
        if without:
            raise ValueError(f"`examples` has no line for the configuration {without[0]!r}")
        elsewhere = [name for name in self.examples if name not in self.configs]
        if elsewhere:
            raise ValueError(f"`examples` names {elsewhere[0]!r}, which is not a configuration")
        if self.in_folder:
            return self  # the ids are those of its files, whatever characters they have
        quoted = set(re.findall(r"`([^`]+)`", self.ids))
        if not any(
            each.query in quoted and quoted.intersection(each.images) for each in self.examples.values()
        ):
            raise ValueError("`ids` must name the query and an image of one of `examples`, each in backticks")
        return self

    @model_validator(mode="after")
    def _report_fits(self) -> Card:
        reported = {*self.metrics, *self.report.metrics}
        unknown = [name for name in self.report.by_aspect if name not in reported]
        if unknown:
            raise ValueError(
                f"report.by_aspect names {unknown[0]!r}, which neither `metrics` nor `report.metrics` lists"
            )
        elsewhere = [name for name in self.floors if name not in self.configs]
        if elsewhere:
            raise ValueError(f"floors are recorded for {elsewhere[0]!r}, which is not a configuration")
        return self

    @model_validator(mode="after")
    def _main_metric_is_listed(self) -> Card:
        for main, listed in (
            (self.main_metric, self.metrics),
            (self.multi_turn_main_metric, self.multi_turn_metrics),
        ):
            missing = [name for name in main_metric_terms(main) if name not in listed] if main else []
            if missing:
                raise ValueError(f"main_metric {main!r} uses {missing[0]!r}, which `metrics` does not list")
        return self


def main_metric_terms(expression: str) -> tuple[str, ...]:
    """The metrics of a main-metric expression: a name, or `mean(name, name, ...)`.

    Example:
        >>> main_metric_terms("mean(recall@5, recall_subset@1)")
        ('recall@5', 'recall_subset@1')
        >>> main_metric_terms("map@10")
        ('map@10',)
    """
    match = _MEAN.match(expression.strip())
    inside = match.group(1) if match else expression
    return tuple(term.strip() for term in inside.split(","))


MICRO_SUFFIX = "@micro"
"""Ends the printed name of a suite's number that is averaged over queries, not over the members."""


def member_metric(metric: str) -> str:
    """The members' metric behind a number of a suite, `recall@10` behind `recall@10@micro`."""
    return metric.removesuffix(MICRO_SUFFIX)


def is_micro(metric: str) -> bool:
    """Whether a printed name is that of a micro mean, in which every query weighs the same."""
    return metric.endswith(MICRO_SUFFIX)
