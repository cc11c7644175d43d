"""Make the entries anew: `python -m submissions.entries.make [--out FOLDER] [NAME ...]`.

Everything runs on the CPU, from the pixels to the rank files, and nothing is taken from a store. The same
machine gives the same bytes; another processor or another version of torch rounds the last digits of vectors
otherwise, so that a few neighbours in the rankings of the encoder's baselines may swap. Those without weights
are the same bytes on every machine: `cir entries` makes them on a user's, and says whether they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import hashlib
import re
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cir_datasets.common.terminal import echo
from submissions.embeddings.store import EmbeddingStore
from submissions.encoders.protocol import NO_ENCODER, SHAPES_ENCODER
from submissions.entries import BENCHMARKS, LIST, BaselineEntry, entries, folder
from submissions.rank_file.model import RankFile, write_bytes
from submissions.running.baselines import Baseline, Baselines, baselines, run_baselines

_HEAD = """\
# The rank files beside this list, written with them by `python -m submissions.entries.make`.
# sha256 is of the JSON inside.
"""


def file_name(baseline: Baseline, benchmark: str) -> str:
    """The name of a baseline's entry.

    Example:
        >>> file_name(Baseline("random"), "shapes/val")
        'random.shapes-val.json.gz'
    """
    # Those on pixels were published before their methods had names of their own.
    name = re.sub("_pixels$", "-pixels", baseline.name)
    return f"{name}.{benchmark.replace('/', '-')}.json.gz"


def entered(benchmark: str) -> list[Baseline]:
    """What has an entry: the baselines with the shipped encoder, then those of `further.yaml`.

    Example:
        >>> [each.name for each in entered("shapes/val")][-1]
        'tirg-shapes'
    """
    from cir_datasets.common.yaml import package_yaml

    further = package_yaml("submissions", "entries/further.yaml")[benchmark]
    return [*baselines(benchmark, encoder=SHAPES_ENCODER).run, *(Baseline(**each) for each in further)]


def make_entries(out: Path, only: Sequence[str] = ()) -> list[BaselineEntry]:
    """Make the rank files of the baselines and of what else has an entry.

    Args:
        out: folder for them; made where it is missing.
        only: names of files; empty for all.

    Returns:
        What was made, in the order of tables.

    Raises:
        MissingExtraError: torch or transformers is not installed, and an encoder's baseline is asked for.
    """
    made = []
    with tempfile.TemporaryDirectory(prefix="cir-entries-") as name:
        store = EmbeddingStore(Path(name))
        for benchmark in BENCHMARKS:
            chosen = [each for each in entered(benchmark) if not only or file_name(each, benchmark) in only]
            runs = run_baselines(benchmark, Baselines(tuple(chosen)), device="cpu", store=store)
            made += [_write(baseline, rank_file, out) for baseline, rank_file in runs]
    return made


@dataclass(frozen=True)
class Placed:
    """An entry in a folder of the user's.

    Args:
        entry: what is shipped.
        path: where it lies now.
        origin: `made` here, `kept` from an earlier call, or `copied` from the package, because it needs an
            encoder.
        same: whether its JSON is the shipped one, byte for byte.
    """

    entry: BaselineEntry
    path: Path
    origin: Literal["made", "kept", "copied"]
    same: bool


def place_entries(out: Path) -> Iterator[Placed]:
    """Put all entries into a folder: made here where no weights are needed, else copied from the package.

    A file that is there already, and is the shipped one, is kept: it is not made a second time.

    Args:
        out: folder for them; made where it is missing.

    Yields:
        Each entry once it is there, by benchmark, those that are made here first.

    Raises:
        SubmissionError: the system refuses to write there.
    """
    for benchmark in BENCHMARKS:
        listed = {entry.file: entry for entry in entries(benchmark)}
        here = [
            each
            for each in baselines(benchmark, encoder=NO_ENCODER).run
            if file_name(each, benchmark) in listed
        ]
        names = [file_name(each, benchmark) for each in here]
        kept = {name for name in names if _sha256_inside(out / name) == listed[name].sha256}
        wanted = tuple(each for each, name in zip(here, names, strict=True) if name not in kept)
        runs = run_baselines(benchmark, Baselines(wanted))
        for name in names:
            entry = listed.pop(name)
            if name in kept:
                yield Placed(entry, out / name, "kept", same=True)
                continue
            made = _write(*next(runs), out)
            yield Placed(entry, out / name, "made", same=made.sha256 == entry.sha256)
        for name, entry in listed.items():
            write_bytes(entry.path.read_bytes(), out / name)
            yield Placed(entry, out / name, "copied", same=True)


def _sha256_inside(path: Path) -> str | None:
    """sha256 of what a gzip file holds; None where there is none that can be read."""
    try:
        return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
    except (OSError, EOFError, zlib.error):
        return None


def _write(baseline: Baseline, rank_file: RankFile, out: Path) -> BaselineEntry:
    content = rank_file.to_json()
    name = file_name(baseline, rank_file.benchmark)
    write_bytes(gzip.compress(content, mtime=0), out / name)
    command = baseline.command(rank_file.benchmark, name)
    if baseline.encoder == SHAPES_ENCODER:
        command += " --device cpu"
    return BaselineEntry(
        file=name,
        benchmark=rank_file.benchmark,
        method=rank_file.method.name,
        command=command,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all entries and their list, or some entries alone."""
    import yaml

    parser = argparse.ArgumentParser(prog="python -m submissions.entries.make", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="files to make, such as random.shapes-val.json.gz; default: all"
    )
    parser.add_argument(
        "--out", type=Path, default=folder(), help="folder to write to; default: the package's"
    )
    given = parser.parse_args(arguments)
    made = make_entries(given.out, given.names)
    if not given.names:
        stale = set(given.out.glob("*.json.gz")) - {given.out / entry.file for entry in made}
        for path in stale:
            path.unlink()
        listed = [dataclasses.asdict(entry) for entry in made]
        text = yaml.safe_dump(listed, sort_keys=False, allow_unicode=True, width=200)
        write_bytes((_HEAD + text).encode(), given.out / LIST)
    for entry in made:
        echo(f"{given.out / entry.file}  {entry.sha256}")


if __name__ == "__main__":
    main()
