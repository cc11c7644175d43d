"""`cir rank`: from scores, embeddings or lists that a user already has to a rank file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cir_datasets.commands import benchmark_values, command, option
from cir_datasets.common.terminal import echo
from submissions.commands.outputs import WritesRankFile, check_file, warn_of_short_rankings

if TYPE_CHECKING:
    from cir_datasets.registry.suites import Suite
    from submissions.running.user_ids import Names

_FILE = "of a suite a folder with one a member"
_ARRAY = f".npy, .npz, .pt or .safetensors; {_FILE}"

_OPTIONS = {
    "scores": "--scores",
    "query_embeddings": "--query-embeddings",
    "image_embeddings": "--image-embeddings",
    "lists": "--lists",
    "subset_lists": "--subset-lists",
    "query_ids": "--queries",
    "image_ids": "--images",
}
"""By argument of the functions the option that gives it."""
_SWITCHES = {"by_position": "--by-position", "normalise": "--no-normalise"}
_DOORS = {
    "scores": ("query_ids", "image_ids", "by_position"),
    "query_embeddings": ("image_embeddings", "query_ids", "image_ids", "by_position", "normalise"),
    "lists": ("subset_lists", "image_ids"),
}
"""The ways in, and what each has a use for."""


class RankOptions(WritesRankFile):
    """What `cir rank` takes."""

    benchmark: str = option(
        ..., "Id of the benchmark, or suite, that was ranked.", "-b", values=benchmark_values
    )
    method: str = option(..., "Name of the method, 1 to 80 characters, as tables show it.", "-m")
    scores: Path | None = option(
        None, f"Scores, a row a query and a column an image, higher is better: {_ARRAY}."
    )
    query_embeddings: Path | None = option(None, f"Embeddings of composed queries, a row a query: {_ARRAY}.")
    image_embeddings: Path | None = option(None, f"Embeddings of the gallery, a row an image: {_ARRAY}.")
    lists: Path | None = option(None, f"Rankings, JSON: {{query id: \\[image ids, best first]}}; {_FILE}.")
    subset_lists: Path | None = option(
        None, f"Beside --lists: rankings of each query's subset (CIRR), JSON; {_FILE}."
    )
    query_ids: Path | None = option(
        None,
        f"Query id of each row, of a session SESSION#TURN: a line each, or a JSON list; {_FILE}.",
        "--queries",
    )
    image_ids: Path | None = option(
        None, f"Image id of each column or row: a line each, or a JSON list; {_FILE}.", "--images"
    )
    by_position: bool = option(False, "Ids that are not given are the benchmark's own, in its order.")
    normalise: bool = option(
        True,
        "Scale embeddings to length 1, so that their cosine ranks; else their dot product does.",
        "--normalise/--no-normalise",
    )


@command
def rank_command(options: RankOptions) -> None:
    """Make a rank file of scores, of embeddings or of lists that you already have; of a suite a bundle.

    Rows and columns are joined to the benchmark by ids. References are taken out where the protocol does it,
    CIRR's subsets are ranked, too, and rankings are cut to what the board uses. The name of the file written
    is printed. docs/scores.md has each way in with an example.

    \b
    Example:
        cir rank --benchmark cirr/val --scores S.npy --queries Q.txt --images G.txt --method Ours \\
            --out run.json
        cir rank --benchmark cirr/val --query-embeddings Q.npy --image-embeddings G.npy --queries Q.txt \\
            --images G.txt --method Ours --out run.json
        cir rank --benchmark shapes/val --lists rankings.json --method Ours --out run.json
    """
    from submissions.running.user_embeddings import ranked_by_embeddings
    from submissions.running.user_ids import Names, RankSettings, parts_of, ranked_parts
    from submissions.running.user_lists import ranked_by_lists
    from submissions.running.user_scores import ranked_by_scores

    named = {argument: getattr(options, argument) for argument in _OPTIONS}
    paths = {argument: path for argument, path in named.items() if path is not None}
    flags = {"by_position": options.by_position, "normalise": not options.normalise}
    door = _door({*paths, *(name for name, is_given in flags.items() if is_given)})
    check_file(options.out)
    short = warn_of_short_rankings(options.benchmark, options.k)
    written = {argument: f"{option} FILE" for argument, option in _OPTIONS.items()}
    names = Names(options=written | {"by_position": _SWITCHES["by_position"]})
    needs_no_ids = options.by_position or door == "lists"
    parts = [
        (benchmark, *_read(files, of, needs_no_ids))
        for benchmark, files, of in parts_of(options.benchmark, paths, names, _files_in)
    ]
    ranked_by = {"scores": ranked_by_scores, "lists": ranked_by_lists}.get(door, ranked_by_embeddings)
    file = options.write(ranked_parts(options.benchmark, parts, ranked_by, options.call(RankSettings)))
    if not short:
        echo(_next_step(options.benchmark, file), err=True)


def _door(given: set[str]) -> str:
    """Which of the three ways in is taken.

    Args:
        given: the arguments that are given, and the switches that are set.

    Raises:
        CallError: none, several, or with an option of another one.
    """
    from cir_metrics.errors import CallError

    doors = [door for door in _DOORS if door in given]
    if len(doors) != 1:
        said = " and ".join(_OPTIONS[door] for door in doors) or "none of them"
        raise CallError(
            "what is to be ranked is --scores, --query-embeddings with --image-embeddings, or --lists; "
            f"{said} {'are' if len(doors) > 1 else 'is'} given. Fix: give exactly one."
        )
    (door,) = doors
    if door == "query_embeddings" and "image_embeddings" not in given:
        raise CallError("--query-embeddings: the gallery's are missing. Fix: add --image-embeddings FILE.")
    for argument, word in (_OPTIONS | _SWITCHES).items():
        if argument in given and argument not in (door, *_DOORS[door]):
            raise CallError(f"{word} has no effect beside {_OPTIONS[door]}. Fix: leave it out.")
    return door


def _read(paths: Mapping[str, Path], names: Names, needs_no_ids: bool) -> tuple[dict[str, Any], Names]:
    """What files hold by argument, and what messages call it.

    Raises:
        MissingFileError: one is not there.
        MethodError: one cannot be read, or is not what the option wants.
    """
    from submissions.commands.rank_inputs import read_array, read_ids, read_lists
    from submissions.running.user_ids import not_given

    values: dict[str, Any] = {}
    lines = set()
    for argument, of in (("query_ids", "row"), ("image_ids", "column")):
        if argument not in paths and not needs_no_ids:
            raise not_given(argument, of, replace(names, member=""))
    # What is cheap to refuse comes first.
    for argument, path in sorted(paths.items(), key=lambda item: not item[0].endswith("_ids")):
        option = _OPTIONS[argument]
        if argument in ("lists", "subset_lists"):
            values[argument] = read_lists(path, option)
        elif argument in ("query_ids", "image_ids"):
            values[argument], by_line = read_ids(path, option)
            lines |= {argument} if by_line else set()
        else:
            values[argument] = read_array(path, option)
    files = {argument: str(path) for argument, path in paths.items()}
    return values, replace(names, files=files, lines=frozenset(lines))


def _files_in(suite: Suite, argument: str, folder: Path, names: Names) -> dict[str, Path]:
    """The file of each member of the suite."""
    from submissions.commands.rank_inputs import ENDINGS
    from submissions.errors import MethodError
    from submissions.running.user_ids import by_member

    option, ending = _OPTIONS[argument], ENDINGS[argument]
    wanted = ", ".join(f"{member.partition('/')[2]}{ending[0]}" for member in suite.benchmarks)
    if not folder.is_dir():
        raise MethodError(
            f"{option} {folder}: {suite.id} is a suite, and this is not a folder. "
            f"Fix: name a folder that holds {wanted}."
        )
    files = sorted(path for path in folder.iterdir() if path.name.endswith(ending))
    stems = [path.name.partition(".")[0] for path in files]
    twice = next((stem for stem in stems if stems.count(stem) > 1), None)
    if twice is not None:
        raise MethodError(f"{option} {folder}: several files are named {twice}. Fix: leave one there.")
    return by_member(suite, argument, dict(zip(stems, files, strict=True)), names)


def _next_step(benchmark: str, written: str) -> str:
    """What to do with the file: nobody here can score an answer to withheld queries."""
    from cir_datasets.registry import spec
    from cir_datasets.registry.challenges import is_challenge
    from cir_datasets.registry.suites import find_suite
    from submissions.formats.servers import server_format

    if is_challenge(benchmark):
        return f"Where it stands: cir submit {written} --to URL"
    if find_suite(benchmark) is None:
        found = spec(benchmark)
        server = server_format(found.card.name)
        if found.config.ground_truth == "withheld" and server is not None:
            return f"For the publisher's server: cir convert {written} --to {server}"
    return f"Where it stands: cir score {written}"
