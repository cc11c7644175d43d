"""`convert`: between the native format and the formats of the servers that hold withheld ground truth.

CIRR's server wants two files; converting to it splits a rank file, converting from it joins the two.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cir_metrics.errors import UnknownNameError, did_you_mean
from submissions.errors import ConversionError, RefusedError
from submissions.findings import shown
from submissions.formats import (
    CIRCO_SERVER,
    CIRR_SERVER,
    FORMATS,
    NATIVE,
    ZEROSIGHT,
    circo_server,
    cirr_server,
    zerosight,
)
from submissions.parsing import read
from submissions.reading import MAX_BYTES
from submissions.validation import validate

if TYPE_CHECKING:
    from submissions.rank_file import RankFile
    from submissions.validation import BenchmarkLike

_SERVERS = {CIRR_SERVER: cirr_server, CIRCO_SERVER: circo_server, ZEROSIGHT: zerosight}


@dataclass(frozen=True)
class Converted:
    """One file that a conversion makes.

    Args:
        part: what tells it from the others (`recall`, `recall_subset`), or "" where there is one file only.
        content: its bytes.
    """

    part: str
    content: bytes


def convert(
    files: Sequence[str | os.PathLike[str] | bytes],
    to: str,
    *,
    benchmark: BenchmarkLike = None,
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> list[Converted]:
    """Write rank files in another format.

    Args:
        files: one file, or the CIRR server's two, in either order.
        to: `native`, `cirr-server`, `circo-server` or `zerosight`.
        benchmark: what the files answer; needed where their format does not say it.
        name: the method's name in a native file made from a server's; default: the first file's name.
        max_bytes: bytes that are read of each file at most.

    Returns:
        The files made: one, or CIRR's `recall` and `recall_subset`.

    Raises:
        UnknownNameError: no format has that name.
        MissingFileError: no file has that name.
        RefusedError: a file is broken, or a server would refuse what it holds.
        ConversionError: the files do not belong together, or not to that server.

    Example:
        >>> recall = b'{"version": "rc2", "metric": "recall", "12063": ["dev-0-0-img0"]}'
        >>> [converted] = convert([recall], "native", benchmark="cirr/val", name="toy")
        >>> b'"rankings":{"12063":["dev-0-0-img0"]}' in converted.content
        True
    """
    if to not in FORMATS:
        raise UnknownNameError(
            f"no format {to!r}.{did_you_mean(to, FORMATS)} There are {', '.join(FORMATS)}."
        )
    runs = [_read_one(file, benchmark, max_bytes) for file in files]
    joined = _join(runs)
    if name is not None:
        joined = _named(joined, name)
    if to == NATIVE:
        if not joined.rankings:
            raise ConversionError(
                "there are rankings of the subsets only; a native rank file also ranks the gallery. "
                'Fix: give the CIRR server\'s "recall" file as well.'
            )
        return [Converted("", joined.to_json())]
    server = _SERVERS[to]
    dataset = joined.benchmark.partition("/")[0]
    if dataset not in server.BENCHMARKS:
        raise ConversionError(
            f"{to} takes rankings of {server.BENCHMARKS[0]}, and this file answers {joined.benchmark}. "
            f"Fix: choose another format with --to."
        )
    label = "rank file" if isinstance(files[0], bytes) else os.fspath(files[0])
    report = validate(dataclasses.replace(joined, format=to), benchmark, part=True, name=label)
    if not report.ok:
        raise RefusedError(f"{report.file} would be refused by the server.", report)
    return [Converted(part, content) for part, content in server.dump(joined).items()]


def _read_one(file: str | os.PathLike[str] | bytes, benchmark: BenchmarkLike, max_bytes: int) -> RankFile:
    from submissions.rank_file import RankFile

    found = read(file, benchmark=benchmark, max_bytes=max_bytes)
    if not isinstance(found, RankFile):
        raise ConversionError("a bundle is not converted as a whole. Fix: convert its rank files one by one.")
    return found


def _join(runs: Sequence[RankFile]) -> RankFile:
    if not runs:
        raise ConversionError("there is no file to convert. Fix: name one.")
    first = runs[0]
    for run in runs[1:]:
        if run.benchmark != first.benchmark:
            raise ConversionError(
                f"the files answer {first.benchmark} and {run.benchmark}. Fix: join files of one benchmark."
            )
        if run.rankings and first.rankings:
            raise ConversionError(
                "two files rank the gallery. Fix: give one for recall and one for recall_subset."
            )
        if run.subset_rankings is not None and first.subset_rankings is not None:
            raise ConversionError(
                "two files rank the subsets. Fix: give one for recall and one for recall_subset."
            )
        subset = first.subset_rankings if first.subset_rankings is not None else run.subset_rankings
        first = dataclasses.replace(first, rankings=first.rankings or run.rankings, subset_rankings=subset)
    return first


def _named(rank_file: RankFile, name: str) -> RankFile:
    from pydantic import ValidationError

    from submissions.rank_file import Method

    try:
        method = Method.model_validate({**rank_file.method.to_dict(), "name": name})
    except ValidationError as error:
        reason = str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise ConversionError(f"the name {shown(name)} is refused: {reason}. Fix: choose another.") from error
    return dataclasses.replace(rank_file, method=method)
