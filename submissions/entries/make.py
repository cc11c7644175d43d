"""Make the entries anew: `python -m submissions.entries.make [--out FOLDER] [NAME ...]`.

Everything runs on the CPU, from the pixels to the rank files, and nothing is taken from a store. The same
machine gives the same bytes; another processor or another version of torch rounds the last digits of vectors
otherwise, so that a few neighbours in the rankings of the encoder's baselines may swap.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from submissions.entries import BENCHMARKS, LIST, Entry, folder
from submissions.rank_file import RankFile, write_bytes
from submissions.retrieval.baselines import Baseline, Baselines, baselines, run_baselines
from submissions.retrieval.encoders import SHAPES_ENCODER
from submissions.retrieval.store import EmbeddingStore

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
    return f"{baseline.name}.{benchmark.replace('/', '-')}.json.gz"


def make_entries(out: Path, only: Sequence[str] = ()) -> list[Entry]:
    """Make the rank files of the baselines.

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
            whole = baselines(benchmark, encoder=SHAPES_ENCODER).run
            chosen = [each for each in whole if not only or file_name(each, benchmark) in only]
            runs = run_baselines(benchmark, Baselines(tuple(chosen)), device="cpu", store=store)
            made += [_write(baseline, rank_file, out) for baseline, rank_file in runs]
    return made


def _write(baseline: Baseline, rank_file: RankFile, out: Path) -> Entry:
    content = rank_file.to_json()
    name = file_name(baseline, rank_file.benchmark)
    write_bytes(gzip.compress(content, mtime=0), out / name)
    command = baseline.command(rank_file.benchmark, name)
    if baseline.encoder == SHAPES_ENCODER:
        command += " --device cpu"
    return Entry(
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
        sys.stdout.write(f"{given.out / entry.file}  {entry.sha256}\n")


if __name__ == "__main__":
    main()
