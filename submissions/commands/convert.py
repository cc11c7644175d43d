"""`cir convert`: rank files from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cir_datasets.commands import LoadsBenchmarks, argument, command, option
from cir_datasets.common.terminal import echo
from submissions.commands import Benchmark, as_text

if TYPE_CHECKING:
    from submissions.transform.convert import Converted


class ConvertOptions(LoadsBenchmarks):
    """What `cir convert` takes."""

    files: list[str] = argument(
        ...,
        "One rank file of any format, the CIRR server's two, a bundle, or a native file for each "
        "member of a suite.",
    )
    to: str = option(
        ...,
        "Format to write: native, lines (JSON Lines), parquet, trec, json-run, cirr-server, circo-server, "
        "zerosight or fashioniq.",
    )
    benchmark: Benchmark = None
    out: Path | None = option(
        None,
        "Where to write: a file or folder; of several files each adds its part to the name. "
        "Default: beside the first input, named after it and the format.",
        "-o",
    )
    name: str | None = option(None, "Name of what is made: the method's in the file, up to 80 characters.")
    compress: bool = option(
        False, "Compress native, lines or trec with gzip; so does --out with a name in .gz.", "--gzip"
    )
    as_json: bool = option(False, "Print JSON: the files written, with format, part, notes.", "--json")


@command
def convert_command(options: ConvertOptions) -> None:
    """Write a rank file in another format; the CIRR server's two files are joined and split.

    The names of the files written are printed, one a line. What the new format cannot hold is said on
    stderr. A bundle becomes one file a member, but for --to native. One file for each member of a suite
    becomes a bundle, with the suite's id as --benchmark.

    \b
    Example:
        cir convert run.json --to parquet
        cir convert dress.json shirt.json toptee.json --to native --benchmark fashioniq/val --out bundle.json
    """
    from submissions.rank_file.model import write_bytes
    from submissions.transform.convert import convert

    to, out = options.to, options.out
    compress = options.compress or (out is not None and out.suffix.lower() == ".gz" and not out.is_dir())
    written = []
    made = options.call(convert, compress=compress)
    targets = [_target(converted, options.files[0], to, out) for converted in made]
    if out is None:
        _keep_inputs(options.files, targets)
    for converted, target in zip(made, targets, strict=True):
        path = str(write_bytes(converted.content, target))
        written.append({"file": path, "format": to, "part": converted.part, "notes": list(converted.notes)})
        for note in converted.notes:
            echo(f"{path}: {note}", err=True)
        if not options.as_json:
            echo(path)
    if options.as_json:
        echo(as_text(written))


def _target(converted: Converted, first: str, to: str, out: Path | None) -> Path:
    """Where a converted file goes: beside the first input, or where the caller said."""
    from submissions.rank_file.texts import label_of

    part = f".{converted.part}" if converted.part else ""
    own = "" if converted.ending.startswith((f".{to}", ".jsonl")) else f".{to}"
    name = f"{label_of(first)}{own}{part}{converted.ending}"
    if out is None:
        return Path(first).with_name(name)
    if out.is_dir() or not out.suffix:
        return out / name
    if not part:
        return out
    stem = label_of(out.name)
    return out.with_name(f"{stem}{part}{out.name.removeprefix(stem)}")


def _keep_inputs(files: list[str], targets: list[Path]) -> None:
    """Refuse to replace a file that was read, unless the caller named it.

    Raises:
        CallError: the name made for an output is an input's.
    """
    from cir_metrics.errors import CallError

    inputs = {Path(file).resolve() for file in files}
    for target in targets:
        if target.resolve() in inputs:
            raise CallError(f"{target} would be replaced. Fix: name another file with --out.")
