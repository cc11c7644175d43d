"""`verify`: is what is here what the card says, where do the papers say otherwise, and what leaks.

Faults are what a score should not be built on: a source that is not the pinned one, a wrong count, a broken
record, a damaged cache. Known differences from the papers, images shared between splits and repeated queries
are named as such; they are properties of the published data, and no fault.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cir_datasets import registry, sources
from cir_datasets.common.terminal import counted
from cir_datasets.errors import CountError, DamagedError, DatasetError, RecordError, UnpinnedDataWarning
from cir_datasets.prepared import is_here, last_prepared, load
from cir_datasets.registry.folders import CARD_FILE, folder_of, read_folder_card
from cir_datasets.rows.benchmark import GALLERY, SOURCE_QUERY
from cir_datasets.rows.checks import Tally, check_counts, checked_rows
from cir_datasets.rows.hashing import data_hash, galleries_hash, gallery_hash
from cir_datasets.rows.records import references_of

if TYPE_CHECKING:
    from cir_datasets.registry import BenchmarkSpec
    from cir_datasets.registry.schema import Card
    from cir_datasets.rows.benchmark import Benchmark
    from cir_datasets.rows.records import Row
    from cir_datasets.sources import SourceFile


_LEAST_JOINED = 0.5
"""Share of sessions that must begin with a query of their source; publishers may have edited captions."""


@dataclass(frozen=True)
class Leak:
    """What a benchmark shares with a train split.

    An image counts as *listed* where it is in the train split's gallery (all that is known of an image when a
    model is trained on pictures), and as *used* where a row of the train split names it.

    Args:
        train: id of the train split.
        rows: number of this benchmark's rows whose ground truth is public.
        target_listed: rows with a target that the train split lists.
        target_used: rows with a target that a row of the train split names.
        references: distinct reference images here.
        reference_listed: of those, how many the train split lists.
        reference_used: of those, how many a row of the train split names.
    """

    train: str
    rows: int
    target_listed: int
    target_used: int
    references: int
    reference_listed: int
    reference_used: int

    @property
    def any(self) -> bool:
        """Whether anything is shared."""
        return self.target_listed + self.target_used + self.reference_listed + self.reference_used > 0

    def to_dict(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return asdict(self)

    def text(self) -> str:
        """The numbers in a sentence."""
        references = (
            f"{self.reference_listed:,} of {self.references:,} reference images are "
            f"({self.reference_used:,} in its rows)"
        )
        if not self.rows:
            return f"images of {self.train}: {references}"
        if not self.target_listed:
            return f"images of {self.train}: no target; {references}"
        share = 100 * self.target_listed / self.rows
        return (
            f"{share:.1f} % of the targets ({self.target_listed:,} of {self.rows:,}) are images of "
            f"{self.train}, {self.target_used:,} in its rows; {references}"
        )


def leaks(benchmark: Benchmark, train: Benchmark) -> Leak:
    """Count what a benchmark shares with a train split.

    Args:
        benchmark: what is evaluated on.
        train: what is trained on.
    """
    used = {image for row in train.rows() for image in (*references_of(row), *_targets(row))}
    listed = used | (train.gallery_set or frozenset())
    rows = benchmark.rows()
    targets = [found for row in rows if (found := _targets(row))]
    references = {image for row in rows for image in references_of(row)}
    return Leak(
        train=train.id,
        rows=len(targets),
        target_listed=sum(not listed.isdisjoint(found) for found in targets),
        target_used=sum(not used.isdisjoint(found) for found in targets),
        references=len(references),
        reference_listed=len(references & listed),
        reference_used=len(references & used),
    )


def shared_turns(sessions: Benchmark, queries: Benchmark) -> int:
    """How many turns of sessions are queries of another benchmark: reference, caption and target.

    Args:
        sessions: whose turns have targets of their own.
        queries: single ones, with public ground truth.
    """
    known = {
        (row["reference_image_id"], row["relative_caption"], row["target_image_id"]) for row in queries.rows()
    }
    turns = (turn for row in sessions.rows() for turn in row["turns"])
    asked = ((t["reference_image_id"], t["relative_caption"], t["target_image_id"]) for t in turns)
    return sum(each in known for each in asked)


def repeated(benchmark: Benchmark) -> list[list[str]]:
    """Groups of rows with the same references and captions; ids in the publisher's order."""
    groups: defaultdict[Any, list[str]] = defaultdict(list)
    for query_id, row in zip(benchmark.query_ids, benchmark.rows(), strict=True):
        parts = row.get("turns") or [row]
        asked = tuple(
            (part["reference_image_id"], part["relative_caption"], tuple(part.get("captions") or ()))
            for part in parts
        )
        groups[asked].append(query_id)
    return [ids for ids in groups.values() if len(ids) > 1]


def _targets(row: Row) -> list[str]:
    found: list[str] = row["ground_truth_ids"] if "session_id" in row else row["positive_image_ids"]
    return found


Kind = Literal[
    "sources",
    "rows",
    "counts",
    "hashes",
    "difference",
    "joined",
    "leak",
    "repeated",
    "unchecked",
    "sessions",
]


@dataclass(frozen=True)
class Result:
    """One thing that was looked at.

    Args:
        kind: what was looked at.
        verdict: `ok`; `note`, a property of the data that one should know; `fault`.
        message: what was found.
        details: the same for a program.
    """

    kind: Kind
    verdict: Literal["ok", "note", "fault"]
    message: str
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Verification:
    """Everything that was found about one benchmark."""

    id: str
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is a fault."""
        return all(result.verdict != "fault" for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """The verification as JSON values."""
        return {"id": self.id, "ok": self.ok, "results": [result.to_dict() for result in self.results]}

    @property
    def of_the_dataset(self) -> tuple[Result, ...]:
        """What concerns all configurations of the dataset alike, so that it need be printed only once."""
        return tuple(found for found in self.results if found.kind == "difference" and "of" in found.details)

    def text(self, printed: Collection[Result] = ()) -> str:
        """The verification for people: a line a result.

        Args:
            printed: results that were printed before and are left out here.
        """
        left = [result for result in self.results if result not in printed]
        lines = [f"  {result.verdict:<5}  {result.kind:<10}  {result.message}" for result in left]
        return "\n".join([f"{self.id}: {'verified' if self.ok else 'FAULTY'}", *lines])


def verify(benchmark_id: str, *, data_dir: str | Path | None = None) -> Verification:
    """Check a benchmark anew: sources, records, counts, hashes; and report what is known and what leaks.

    Args:
        benchmark_id: such as `cirr/val`.
        data_dir: the publisher's folder or its parent; None looks below `CIR_DATA_HOME`, then downloads.

    Raises:
        UnknownNameError: no benchmark has that id.
        SourceError: a publisher's file cannot be found or fetched.

    Example:
        >>> found = verify("shapes/val")
        >>> found.ok, [result.kind for result in found.results][:4]
        (True, ['sources', 'rows', 'counts', 'hashes'])
    """
    spec = registry.spec(benchmark_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnpinnedDataWarning)  # reported as a result
        results = [_sources(spec, data_dir)]
        try:
            benchmark = _loaded(benchmark_id, data_dir)
        except RecordError as error:
            results.append(Result("rows", "fault", str(error)))
        except DamagedError as error:
            results.append(Result("hashes", "fault", str(error)))
        else:
            results += [_rows(benchmark), _counts(benchmark), _hashes(benchmark)]
            results += _differences(benchmark)
            results += _joined(benchmark)
            results += _repeated(benchmark)
            results += _leaks(benchmark, data_dir)
            results += _queries(benchmark, data_dir)
    return Verification(spec.id, tuple(results))


def _loaded(benchmark_id: str, data_dir: str | Path | None) -> Benchmark:
    """The benchmark as scoring would load it; where its counts are wrong, as it is."""
    try:
        return load(benchmark_id, data_dir=data_dir)
    except CountError:
        return load(benchmark_id, data_dir=data_dir, verification_mode="no_checks")


def _sources(spec: BenchmarkSpec, data_dir: str | Path | None) -> Result:
    if spec.card.source.publisher == "embedded":
        return Result("sources", "ok", "embedded: the rows are made by the package itself")
    if data_dir is None and not sources.at_hand(spec) and last_prepared(spec.base) is not None:
        return Result(
            "sources",
            "note",
            "no source file is available; what was prepared from them last is checked below",
        )
    files = sources.resolve(spec.base, data_dir)
    if spec.card.in_folder:
        return _files_of_folder(spec, files)
    states = {
        name: "unpinned" if file.pin is None else "pinned" if file.pinned else "changed"
        for name, file in files.items()
    }
    details = {name: {"state": states[name], "sha256": file.sha256} for name, file in files.items()}
    counted = Counter(states.values())
    said = ", ".join(f"{count} {state}" for state, count in sorted(counted.items()))
    if counted["changed"]:
        changed = [files[name] for name, state in states.items() if state == "changed"]
        first = {_owner(spec, file.name).source.instructions: file for file in reversed(changed)}
        named = " and ".join(f"{file.path} (sha256 {file.sha256[:12]})" for file in reversed(first.values()))
        said += (
            f": {named} is not the file that the card pins. Fix: get it again "
            f"({'; '.join(reversed(first))}), or use it knowingly: scores say unpinned"
        )
        return Result("sources", "fault", said, details)
    verdict: Literal["ok", "note"] = "note" if counted["unpinned"] else "ok"
    said += "; no hash is known yet of what is unpinned" if counted["unpinned"] else ", each as published"
    return Result("sources", verdict, said, details)


def _files_of_folder(spec: BenchmarkSpec, files: Mapping[str, SourceFile]) -> Result:
    """Whether the files of a folder are as the package wrote them, where its card has their hashes."""
    noted = read_folder_card(folder_of(spec.card.name)).hashes
    changed = [name for name, file in files.items() if file.sha256 != noted.get(name, file.sha256)]
    if changed:
        said = (
            f"{' and '.join(str(files[name].path) for name in changed)}: changed since it was written. "
            f"Fix: make it again; if you meant the change, raise version: in {CARD_FILE} and remove hashes:"
        )
        return Result("sources", "fault", said, {"changed": changed})
    how = "each as the package wrote it" if noted else f"{CARD_FILE} has no hashes: to compare with"
    return Result("sources", "ok", f"{counted(len(files), 'file')} of the folder, {how}")


def _owner(spec: BenchmarkSpec, name: str) -> Card:
    """The card that lists a file: another benchmark's, where its gallery is borrowed."""
    lender = spec.config.gallery_from
    if lender is None or name in (*spec.config.files, *spec.config.gallery_files):
        return spec.card
    return registry.spec(lender).card


def _rows(benchmark: Benchmark) -> Result:
    rows, noun = benchmark.rows(), "sessions" if benchmark.multi_turn else "queries"
    origin = f"{benchmark.id}, as prepared"
    try:
        for _ in checked_rows(benchmark.spec, rows, benchmark.gallery, lambda n: f"{origin}: record {n}"):
            pass
    except RecordError as error:
        return Result("rows", "fault", str(error))
    where = (
        "every image is in the gallery" if benchmark.gallery is not None else "the gallery is not available"
    )
    verdict: Literal["ok", "note"] = "ok" if benchmark.gallery is not None else "note"
    return Result("rows", verdict, f"{len(rows):,} {noun} with ids of their own; {where}")


def _counts(benchmark: Benchmark) -> Result:
    tally = Tally()
    for row in benchmark.rows():
        tally.add(row)
    size = None if benchmark.gallery is None else len(benchmark.gallery)
    try:
        check_counts(benchmark.spec, tally, size, "as prepared", "as prepared")
    except CountError as error:
        return Result("counts", "fault", str(error))
    gallery = "gallery not counted" if size is None else counted(size, "image")
    return Result("counts", "ok", f"{counted(tally.rows, 'row')} and {gallery}, as the card says")


def _hashes(benchmark: Benchmark) -> Result:
    wrong = []
    if data_hash(benchmark.rows()) != benchmark.data_hash:
        wrong.append("rows")
    if benchmark.per_query:
        lists = zip(benchmark.query_ids, benchmark.column(GALLERY), strict=True)
        found = galleries_hash(dict(lists))
    else:
        found = gallery_hash(benchmark.gallery or ())
    if benchmark.gallery is not None and found != benchmark.gallery_hash:
        wrong.append("gallery")
    details = {"data_hash": benchmark.data_hash, "gallery_hash": benchmark.gallery_hash}
    if wrong:
        fix = f"Fix: cir datasets prepare --force {benchmark.spec.base.id}"
        said = f"the prepared {' and '.join(wrong)} differ from what was prepared. {fix}"
        return Result("hashes", "fault", said, details)
    gallery = "" if benchmark.gallery_hash is None else f", gallery {benchmark.gallery_hash[:7]}"
    return Result("hashes", "ok", f"data {benchmark.data_hash[:7]}{gallery}", details)


def _differences(benchmark: Benchmark) -> Iterator[Result]:
    """What the card says about the papers' figures; each of ours is counted again."""
    spec = benchmark.spec
    if spec.overlay is not None:
        return
    counted: dict[str, float | None] = {
        "queries": len(benchmark),
        "gallery": None if benchmark.gallery is None else len(benchmark.gallery),
    }
    if benchmark.multi_turn:
        counted["average_turns"] = round(sum(benchmark.column("num_turns")) / len(benchmark), 2)
    for known in spec.config.known_differences:
        found = counted.get(known.what)
        text = f"{known.text()} (as known)"
        if found is not None and found != known.ours:
            yield Result(
                "difference", "fault", f"{known.what}: the card says {known.ours} here, but it is {found}"
            )
        else:
            yield Result("difference", "note", text, known.model_dump())
    for known in spec.card.known_differences:
        text = f"{known.text()} (as known, of {spec.card.name} as a whole)"
        yield Result("difference", "note", text, {**known.model_dump(), "of": spec.card.name})


def _joined(benchmark: Benchmark) -> Iterator[Result]:
    """How many sessions began with a query of the benchmark that they were made of."""
    lender = benchmark.spec.config.gallery_from
    if lender is None or SOURCE_QUERY not in benchmark.table.column_names:
        return
    if not {*registry.spec(lender).config.files} <= benchmark.source_hashes.keys():
        said = f"no session was looked up in {lender}, whose queries are not available"
        yield Result("unchecked", "note", said, {"missing": [lender]})
        return
    found = benchmark.column(SOURCE_QUERY)
    lost = [name for name, query in zip(benchmark.query_ids, found, strict=True) if query is None]
    joined = len(found) - len(lost)
    said = (
        f"{100 * joined / len(found):.1f} % of the sessions ({joined:,} of {len(found):,}) begin with a "
        f"query of {lender}: reference, caption and target of turn 1"
    )
    if lost:
        said += f"; of no query: {', '.join(lost[:3])}{', ...' if len(lost) > 3 else ''}"
    if joined < _LEAST_JOINED * len(found):
        said += ". Fix: get the publisher's file again; this one holds other sessions"
        yield Result("joined", "fault", said, {"source": lender, "joined": joined, "of_no_query": lost})
    else:
        details = {"source": lender, "joined": joined, "of_no_query": lost}
        yield Result("joined", "note" if lost else "ok", said, details)


def _repeated(benchmark: Benchmark) -> Iterator[Result]:
    found = repeated(benchmark)
    if found:
        extra = sum(len(ids) - 1 for ids in found)
        shown = ", ".join(" = ".join(ids) for ids in found[:3]) + (", ..." if len(found) > 3 else "")
        what = "references and captions" if benchmark.multi_turn else "reference and captions"
        one, many = ("session", "sessions") if benchmark.multi_turn else ("query", "queries")
        noun = f"{one} repeats" if extra == 1 else f"{many} repeat"
        yield Result(
            "repeated",
            "note",
            f"{extra:,} {noun} another's {what}: {shown}",
            {"groups": found, "extra": extra},
        )


def _leaks(benchmark: Benchmark, data_dir: str | Path | None) -> Iterator[Result]:
    """Images of this benchmark's rows that a train split of the same dataset holds."""
    spec = benchmark.spec
    if spec.config.split == "train":
        return
    missing, apart = [], []
    for name, config in spec.card.configs.items():
        other = registry.spec(f"{spec.card.name}/{name}")
        if config.split != "train" or other.kind != spec.kind:
            continue
        train = _at_hand(other, data_dir)
        if train is None:
            missing.append(other.id)
            continue
        found = leaks(benchmark, train)
        if found.any:
            yield Result("leak", "note", found.text(), found.to_dict())
        else:
            apart.append(other.id)
    if apart:
        yield Result("leak", "ok", f"no image is shared with {', '.join(apart)}", {"apart": apart})
    if missing:
        yield Result(
            "unchecked", "note", f"leaks from {', '.join(missing)}: not available", {"missing": missing}
        )


def _queries(benchmark: Benchmark, data_dir: str | Path | None) -> Iterator[Result]:
    """Turns of dialogues that are single queries of the same dataset, which a model may have seen."""
    if benchmark.turn_targets is None:
        return
    card, turns = benchmark.spec.card, sum(benchmark.column("num_turns"))
    for name, config in card.configs.items():
        other = registry.spec(f"{card.name}/{name}")
        if other.kind == "multi_turn" or config.ground_truth == "withheld":
            continue
        queries = _at_hand(other, data_dir)
        if queries is None:
            yield Result("unchecked", "note", f"turns that are queries of {other.id}: not available")
            continue
        count = shared_turns(benchmark, queries)
        said = f"{count:,} of {turns:,} turns are queries of {other.id}, with caption and target"
        seen = "; a model trained on those has seen the dialogues" if count else ""
        verdict: Literal["note", "ok"] = "note" if count else "ok"
        yield Result("leak", verdict, said + seen, {"queries": other.id, "turns": turns, "shared": count})


def _at_hand(spec: BenchmarkSpec, data_dir: str | Path | None) -> Benchmark | None:
    """A train split, where it can be had without a download."""
    if data_dir is None and not is_here(spec):
        return None
    try:
        return load(spec.id, data_dir=data_dir, verification_mode="no_checks")
    except DatasetError:
        return None
