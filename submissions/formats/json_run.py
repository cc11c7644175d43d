"""The JSON run of pytrec_eval and ranx, `{query: {image: score}}`, and MTEB's file of one task's predictions.

MTEB puts that object under the name of a subset and that of a split, beside `mteb_model_meta`. As in a TREC
run the score decides, equal scores are ordered by a hash of query and image, a turn of a session is
`SESSION#TURN`, and the ranking of a query's own subset is `QUERY#subset`.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from submissions.formats import odd_files, trec
from submissions.formats.native import check_images
from submissions.rank_file.columns import Columns, Gathering
from submissions.rank_file.content import Budget, is_whole, kind_of
from submissions.rank_file.findings import Findings, json_type, shown
from submissions.rank_file.model import JSON_RUN

if TYPE_CHECKING:
    from submissions.formats.native import ReaderContext, UncheckedFile
    from submissions.rank_file.benchmarks import Spelling
    from submissions.rank_file.model import RankFile

_META = "mteb_model_meta"
_NUMBER = "give every image a finite number as its score, or leave the image out"
_AT_ONCE = 10_000
"""Scores whose images are gathered at once, at least."""
_MOST = float(np.finfo(np.float64).max)
_ONE_RUN = "keep one subset and one split in the file, the benchmark's"


def parse(content: bytes, context: ReaderContext) -> UncheckedFile | None:
    """Read a JSON run.

    Args:
        content: the file's bytes.
        context: findings, benchmarks, and what was asked for; the run does not name its benchmark.

    Returns:
        What could be read, or None where a score cannot be read.
    """
    findings, budget = context.findings, context.budget
    budget.spend_text(content, "scores")
    if not odd_files.is_utf8(content, findings):
        return None
    run = _plain(content, budget)
    if run is None:
        budget.spend("odd_bytes", len(content))
        run = _careful(content, findings, budget)
    return None if run is None else trec.unchecked_run(run, context, JSON_RUN, "a JSON run")


def dump(rank_file: RankFile) -> bytes:
    """The JSON run; scores fall by one from the length of a ranking to 1, so that nothing ties.

    Raises:
        ConversionError: an id is ranked twice or is no text, or the run would not be taken for one.
    """
    written = io.BytesIO()
    for qid, ids in trec.rankings_by_qid(rank_file):
        scores = {image: float(len(ids) - at) for at, image in enumerate(ids)}
        if len(scores) < len(ids):
            raise trec.unwritable(qid, "an image is there twice, which an object of scores cannot say")
        try:
            part = orjson.dumps({qid: scores})
        except TypeError as error:
            raise trec.unwritable(qid, "an id of it is no Unicode text") from error
        written.write((b"," if written.tell() else b"{") + part[1:-1])
    written.write(b"}\n")
    content = written.getvalue()
    if kind_of(content) != JSON_RUN:
        first = next((qid for qid, _ in trec.rankings_by_qid(rank_file)), "")
        raise trec.unwritable(first, "a JSON run that starts with it would not be taken for one")
    return content


class _ScoredRun:
    """Scored images by qid in the making."""

    def __init__(self, budget: Budget, method: str = "") -> None:
        self.budget, self.method = budget, method
        self.qids, self.scores = list[str](), array("d")
        self._gathering, self._lists = Gathering(by_turn=False), list[list[str]]()
        self._taken = 0

    def take(self, qid: str, scores: Mapping[str, float]) -> None:
        self.budget.check("ids", len(scores))
        self.qids.append(qid)
        self._lists.append(list(scores))
        self.scores.extend(scores.values())
        if len(self.scores) - self._taken >= _AT_ONCE:
            self.gather()

    def gather(self) -> None:
        """What is taken query by query costs an array each."""
        self._gathering.take(self.qids[len(self._gathering.names) :], self._lists)
        self._lists, self._taken = [], len(self.scores)

    def columns(self, spelling: Spelling) -> Columns:
        """By qid its images, the best first."""
        columns = self._gathering.columns()
        check_images(columns, self.budget)
        if changed := spelling.changes(columns.image_ids):
            columns = columns.respelled([changed.get(image, image) for image in columns.image_ids])
        owners = np.repeat(np.arange(len(columns), dtype=np.int32), columns.lengths)
        scores, names = np.frombuffer(self.scores), columns.names
        best = trec.best_first(scores, owners, columns.codes, names, columns.image_ids)
        return Columns(names, columns.codes[best], columns.offsets, columns.images)


def _plain(content: bytes, budget: Budget) -> _ScoredRun | None:
    """The run of a text without anything odd, a query at a time; else None."""
    from msgspec import MsgspecError, Raw
    from msgspec.json import Decoder

    if b"\\" in content:
        return None
    scored = Decoder(dict[str, float])
    run = _ScoredRun(budget)
    try:
        for qid, raw in Decoder(dict[str, Raw]).decode(content).items():
            run.take(qid, scored.decode(raw))
        run.gather()
    except (MsgspecError, RecursionError, ValueError):
        return None  # Something is odd: what, is said by those who look closer.
    return run if is_whole(content, len(run.qids) + len(run.scores)) else None


def _careful(content: bytes, findings: Findings, budget: Budget) -> _ScoredRun | None:
    """The run of any text, or None, with a finding for each place that is wrong."""
    document = odd_files.careful_json(content, findings)
    if findings.errors or not isinstance(document, dict):
        return None
    method = ""
    if _META in document:
        meta, splits = document.pop(_META), list(document.values())
        runs = [run for each in splits if isinstance(each, dict) for run in each.values()]
        if len(splits) != 1 or len(runs) != 1 or not isinstance(runs[0], dict):
            what = f"it holds the predictions of {len(runs)} splits; one is read."
            findings.add("wrong-format", what, fix=_ONE_RUN)
            return None
        document, method = runs[0], str(meta.get("model_name") or "") if isinstance(meta, dict) else ""
    run = _ScoredRun(budget, method)
    for qid, scores in document.items():
        if not isinstance(scores, Mapping):
            budget.spend("broken")
            what = f"the query holds {json_type(scores)}; it must be an object of scores by image id."
            findings.add("bad-type", what, cause="query", query=qid)
            continue
        for image, fault in _faults(scores):
            budget.spend("broken")
            findings.add("bad-type", fault, cause="score", query=qid, value=image, fix=_NUMBER)
        if not findings.errors:
            run.take(qid, {image: float(score) for image, score in scores.items()})
    run.gather()
    return None if findings.errors else run


def _faults(scores: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for image, score in scores.items():
        if not image:
            yield image, "an image id is an empty string."
        elif type(score) not in (int, float):
            value = "" if score is None or isinstance(score, list | dict) else f" ({shown(score)})"
            yield image, f"the score of {shown(image)} is {json_type(score)}{value}; a score is a number."
        elif not abs(score) <= _MOST:
            yield image, f"the score of {shown(image)} is beyond the numbers of a double."
