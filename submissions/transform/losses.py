"""What a format cannot hold of a rank file, in sentences for whoever converts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cir_datasets.common.terminal import counted
from submissions.formats.servers import DEPTH, SERVERS, SUBSET_DEPTH
from submissions.rank_file.columns import Columns
from submissions.rank_file.findings import shown
from submissions.rank_file.model import CIRR_SERVER, FASHIONIQ, JSON_RUN, NATIVE, TREC

if TYPE_CHECKING:
    from submissions.rank_file.model import RankFile


def losses(rank_file: RankFile, to: str) -> tuple[str, ...]:
    """What the file in the new format will not say.

    Args:
        rank_file: what is written, with the format that it was read from.
        to: name of the new format.

    Example:
        >>> from submissions.rank_file.model import Method, RankFile
        >>> method = Method(name="CLIP sum", backbone="ViT-B/32")
        >>> for sentence in losses(RankFile("cirr/val", 1, method, {"1": ["a"]}), "trec"):
        ...     print(sentence)
        the benchmark cirr/val, version 1, is left out: reading the file needs --benchmark.
        of the method a TREC run holds the name only: backbone is left out.
        the method's name is written as the tag "CLIP_sum".
    """
    said = []
    judged = SERVERS[to].judges if to in SERVERS else ""
    if judged and judged != rank_file.benchmark:  # its format holds the other splits as well
        said.append(
            f"the server judges {judged} alone, and refuses this file, which answers "
            f"{rank_file.benchmark}. Fix: score it with  cir score  , or upload rankings of {judged}."
        )
    if rank_file.format == NATIVE and (to in (TREC, JSON_RUN) or to in SERVERS):
        said.append(
            f"the benchmark {rank_file.benchmark}, version {rank_file.benchmark_version}, is left out: "
            "reading the file needs --benchmark."
        )
    if rank_file.format in (TREC, JSON_RUN) and to != rank_file.format:
        form = "TREC run" if rank_file.format == TREC else "JSON run"
        said.append(f"the scores of the {form} are left out: a rank file holds the order only.")
    if to == TREC:
        said += _trec(rank_file)
    elif (to == JSON_RUN or to in SERVERS) and rank_file.format in (NATIVE, TREC, JSON_RUN):
        said.append(f"the method {shown(rank_file.method.name)} is left out: {to} has no place for it.")
    if to in SERVERS.keys() - {CIRR_SERVER} and rank_file.subset_rankings is not None:
        said.append(f"the rankings of the subsets are left out: {to} has no place for them.")
    if to in SERVERS.keys() - {FASHIONIQ}:
        said += _cut(rank_file, to)
    return tuple(said)


def _trec(rank_file: RankFile) -> list[str]:
    from submissions.formats.trec import tag_of

    said = []
    others = [field for field in rank_file.method.to_dict() if field != "name"]
    if others:
        verb = "is" if len(others) == 1 else "are"
        said.append(f"of the method a TREC run holds the name only: {', '.join(others)} {verb} left out.")
    tag = tag_of(rank_file)
    if tag != rank_file.method.name:
        said.append(f"the method's name is written as the tag {shown(tag)}.")
    empty = sum(map(_empty, rank_file.sections().values()))
    if empty:
        said.append(f"{counted(empty, 'ranking')} without images left out: a TREC run has no line for that.")
    return said


def _empty(answers: Mapping[str, Any]) -> int:
    """Number of rankings without images."""
    if isinstance(answers, Columns):
        return int((answers.lengths == 0).sum())
    # Of a query its one ranking, of a session all.
    turns = (each if each and isinstance(each[0], list) else [each] for each in answers.values())
    return sum(not ids for rankings in turns for ids in rankings)


def _cut(rank_file: RankFile, to: str) -> list[str]:
    said = []
    longer = _longer(rank_file.rankings, DEPTH)
    if longer:
        said.append(
            f"{counted(longer, 'ranking')} cut to the first {DEPTH} images, which is all that {to} takes."
        )
    subsets = rank_file.subset_rankings or {}
    longer = _longer(subsets, SUBSET_DEPTH) if to == CIRR_SERVER else 0
    if longer:
        said.append(f"{counted(longer, 'ranking')} of a subset cut to the first {SUBSET_DEPTH} images.")
    return said


def _longer(answers: Mapping[str, Any], depth: int) -> int:
    """Number of rankings with more images than that."""
    if isinstance(answers, Columns):
        return int((answers.lengths > depth).sum())
    return sum(len(ids) > depth for ids in answers.values())
