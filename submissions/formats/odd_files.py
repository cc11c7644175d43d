"""What is odd about a file that is not plainly a rank file, in words; imported for such files alone.

A text that the plain reader leaves is read again here, with care: repeated keys (the last silently wins), NaN
and Infinity, lone surrogates, numbers beyond a double, and nesting that exhausts the stack become findings.
Rankings of a wrong type are named one by one.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from cir_datasets.common.yaml import package_yaml
from cir_metrics.ids import plain_id
from submissions.errors import MissingFileError
from submissions.rank_file.columns import Columns
from submissions.rank_file.content import LOOKED_AT, MAX_NESTING, inside, is_whole, strings_in
from submissions.rank_file.findings import MAX_EXAMPLES, Findings, json_type, ordinal, shown

if TYPE_CHECKING:
    from submissions.rank_file.benchmarks import Spelling

_CHUNK = 2**20
_EMPTY = "write it again: submissions.write does, and cir multiround for transcripts"
_ITSELF = "take the rank file itself: of a page its raw download, of a pointer what  git lfs pull  fetches"
_TOO_DEEP = f"its lists or objects are nested more than {MAX_NESTING} deep; a rank file needs six levels."
_RANK_IT = (
    "rank them, with the ids of rows and columns:  cir rank --benchmark ID --scores {file} --queries FILE "
    "--images FILE --method NAME --out run.json"
)
_ARRAYS = (".npy", ".npz", ".pt", ".pth", ".safetensors")
_QUERY_KEYS = ("query_id", "pairid", "pair_id", "qid", "id")
"""What objects call the query whose ranking they hold."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKUP = (b"<!doctype html", b"<html", b"<?xml", b"<svg")


def note_array(path: Path, head: bytes, findings: Findings) -> bool:
    """Whether a file is an array of NumPy, or by its name one of NumPy, PyTorch and others; noted."""
    if not head.startswith(b"\x93NUMPY") and path.suffix.lower() not in _ARRAYS:
        return False
    findings.add("unreadable", "it holds an array of numbers; a rank file holds ids.", fix=_RANK_IT)
    return True


def note_unopened(path: Path, error: OSError | ValueError, findings: Findings) -> None:
    """Say why a file cannot be opened.

    Raises:
        MissingFileError: no file has that name.
    """
    if str(path) == "-":
        raise MissingFileError(
            "-: standard input is not read, since a file is read more than once. "
            "Fix: write it to a file, `cat > run.json`, and name that."
        )
    if not path.exists():
        example = f"`cir datasets show {findings.benchmark or 'cirr/val'} --format`"
        hint = f"Fix: correct the name; what such a file holds, for example {example} prints."
        if path.suffix.lower() in _ARRAYS:
            hint = f"Fix: correct the name, then {_RANK_IT.format(file=path)}"
        raise MissingFileError(f"{path}: no such file. {hint}") from error
    if path.is_dir():
        findings.add("unreadable", "this is a folder, not a file.", fix="name the rank file inside it")
        return
    findings.add(
        "unreadable",
        f"the system refuses to read it: {getattr(error, 'strerror', error)}.",
        fix="name a file that you may read, and write what comes through a pipe into one first",
    )


def other_kind(head: bytes) -> str | None:
    """What a file is that no reader here takes, as the end of a sentence; None where its bytes do not say it.

    Args:
        head: the file's first bytes; where they are packed with gzip, what is inside is looked at.

    Example:
        >>> other_kind(b"\\x89PNG\\r\\n\\x1a\\n and more"), other_kind(b'{"benchmark": "shapes/val"}')
        ('a PNG picture', None)
    """
    head = inside(head)
    if head[:LOOKED_AT].lstrip()[:14].lower().startswith(_MARKUP):
        return "a page of HTML or XML"
    kinds: dict[str, str] = package_yaml("submissions", "formats/other_kinds.yaml")
    return next((words for begins, words in kinds.items() if head.startswith(begins.encode("latin-1"))), None)


def is_utf8(content: bytes, findings: Findings) -> bool:
    """Whether there is text in UTF-8, with a finding where there is not."""
    if not content.strip():
        findings.add("malformed", "the file is empty.", fix=_EMPTY)
        return False
    try:
        if not content.isascii():
            _check_utf8(content)
    except UnicodeDecodeError as error:
        kind = "UTF-16" if content.startswith(_UTF16) else other_kind(content)
        findings.add(
            "unreadable", f"this is {kind}." if kind else f"byte {error.start + 1:,} is not UTF-8 text."
        )
        return False
    return True


def _check_utf8(content: bytes) -> None:
    """Decode a text part by part: one wide character makes the whole take four bytes a character.

    Raises:
        UnicodeDecodeError: it is not UTF-8; `start` counts from its beginning.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _CHUNK):
        kept = len(decoder.getstate()[0])
        part = content[start : start + _CHUNK]
        try:
            decoder.decode(part, final=start + _CHUNK >= len(content))
        except UnicodeDecodeError as error:
            error.start += start - kept
            raise


def _explain(content: bytes, error: orjson.JSONDecodeError, findings: Findings) -> None:
    reason = error.msg.rstrip(".")
    where = f"line {error.lineno:,}, column {error.colno:,}"
    kind = None if content[: error.pos].strip() else other_kind(content[:LOOKED_AT])
    if kind is not None:
        findings.add("malformed", f"this is {kind}.", fix=_ITSELF)
        return
    if "depth limit" in reason:
        message = _TOO_DEEP
    elif any(content.startswith(word, error.pos) for word in (b"NaN", b"Infinity", b"-Infinity")):
        message = f"{where}: NaN and Infinity are not JSON."
    else:
        message = f"{where}: {reason}."
    findings.add("malformed", message)


def _first_repeat(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _place(document: Any, owner: dict[str, Any]) -> str:
    if document is owner:
        return "the top level"
    if isinstance(document, dict):
        for key, value in document.items():
            if value is owner:
                return shown(key)
            if key == "runs" and isinstance(value, list):
                for number, run in enumerate(value, start=1):
                    place = _place(run, owner)
                    if place != "an inner object":
                        return f"run {number}, {place}"
    return "an inner object"


def careful_json(content: bytes, findings: Findings) -> Any:
    """The value of any text, whose faults are named."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("Not enough memory"):
            raise MemoryError(error.msg) from error
        _explain(content, error, findings)
        return None
    if value is None:
        findings.add("wrong-format", "the file holds null; a rank file is an object.")
        return None
    try:
        strings = strings_in(value)
    except RecursionError:
        findings.add("malformed", _TOO_DEEP)
        return None
    if b"\\" not in content and is_whole(content, strings):
        return value
    del value
    repeats: list[tuple[str, dict[str, Any]]] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            repeats.append((_first_repeat(pairs), built))
        return built

    document = json.loads(content, object_pairs_hook=build)
    for key, owner in repeats[:MAX_EXAMPLES]:
        findings.add(
            "repeated-key", f"the key {shown(key)} is there twice in {_place(document, owner)}.", value=key
        )
    if len(repeats) > MAX_EXAMPLES:
        findings.add("repeated-key", "", count=len(repeats) - MAX_EXAMPLES)
    return document


@dataclass
class CarefulRankings:
    """Reads rankings one by one, and says what is wrong with each.

    Args:
        section: `rankings` or `subset_rankings`.
        by_turn: whether an answer is a list of rankings.
        spelling: which the image ids get; a number may be an id, too.
        findings: collects `bad-type`.
        changed: by id its spelling.
    """

    section: str
    by_turn: bool
    spelling: Spelling
    findings: Findings
    changed: dict[Any, str] = field(default_factory=dict)

    def columns(self, raw: Mapping[Any, Any]) -> Columns:
        """The answers; those with a finding are `Columns.unreadable`."""
        # Of all ids at once: what a gallery's ids may be meant by is looked up for each call.
        lists = chain.from_iterable(each for each in raw.values() if isinstance(each, list | tuple))
        items = chain.from_iterable(each if isinstance(each, list | tuple) else (each,) for each in lists)
        self.changed = self.spelling.changes(dict.fromkeys(i for i in items if type(i) in (str, int)))
        answers: dict[str, list[Any]] = {}
        unreadable = set()
        for query, answer in raw.items():
            if not _is_text(query):
                message = f"{self.section}: the key {query!r} is not a string; query ids are."
                self.findings.add("bad-type", message, cause=f"{self.section}-key")
                continue
            found = self._turns(answer, query) if self.by_turn else self._ranking(answer, query, None)
            answers[query] = [] if found is None else found
            if found is None:
                unreadable.add(query)
        columns = Columns.of_lists(answers, by_turn=self.by_turn)
        columns.unreadable = frozenset(unreadable)
        return columns

    def _turns(self, answer: Any, query: str) -> list[list[str]] | None:
        is_list = isinstance(answer, list | tuple)
        if not is_list or (answer and all(isinstance(item, str) for item in answer)):
            holds = "one ranking" if is_list else json_type(answer)
            message = f"the session's answer is {holds}; it must be a list of rankings, one a turn."
            value = None if is_list else answer
            self.findings.add("bad-type", message, cause="turns", query=query, value=value)
            return None
        turns = [self._ranking(item, query, number) for number, item in enumerate(answer, start=1)]
        sound = [turn for turn in turns if turn is not None]
        return sound if len(sound) == len(turns) else None

    def _ranking(self, answer: Any, query: str, turn: int | None) -> list[str] | None:
        part = "ranking" if self.section == "rankings" else "subset ranking"
        cause, value, position = self.section, answer, None
        if not isinstance(answer, list | tuple):
            message = f"the {part} is {json_type(answer)}; it must be a list of image ids, best first."
        else:
            ids: list[Any] = [self.changed.get(i, i) if type(i) in (str, int) else i for i in answer]
            wrong = (at for at, item in enumerate(ids, start=1) if not item or not _is_text(item))
            position = next(wrong, None)
            if position is None:
                return ids
            cause, value = f"{self.section}-id", ids[position - 1]
            if type(value) is list and turn is None:
                message = f"the {part} holds lists; a benchmark without turns wants a flat list of image ids."
            elif value == "":
                message = f"the {ordinal(position)} image id of the {part} is an empty string."
            else:
                named = isinstance(value, list | dict) or value is None
                kind = "no Unicode text" if isinstance(value, str) else json_type(value)
                kind += "" if named else f" ({shown(value)})"
                message = f"the {ordinal(position)} image of the {part} is {kind}; an image id is a string."
        place = type(value) is int
        fix = (
            "write the ids of images; a number may be a place in your list of the gallery" if place else None
        )
        self.findings.add(
            "bad-type", message, cause=cause, query=query, turn=turn, value=value, position=position, fix=fix
        )
        return None


def by_query(items: list[Any], ranking: str, reference: str) -> dict[str, Any] | None:
    """The rankings of a list of objects by query id; None where no key names each query once.

    Args:
        items: such as `[{"pairid": 12063, "ranking": [...]}, ...]`.
        ranking: the key of an object's ranking.
        reference: the key that items of FashionIQ have, which their order tells apart.
    """
    if not all(isinstance(item, dict) and ranking in item and reference not in item for item in items):
        return None
    for key in _QUERY_KEYS:
        ids = [plain_id(item.get(key)) for item in items]
        if ids and None not in ids and len(set(ids)) == len(ids):
            return {str(query): item[ranking] for query, item in zip(ids, items, strict=True)}
    return None


def _is_text(value: object) -> bool:
    """Whether a value is a string that UTF-8 can hold."""
    if type(value) is not str:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def reason(entry: Any) -> str:
    """Why pydantic refuses a field of a method block, as the end of a sentence."""
    kind = entry["type"]
    if kind == "missing":
        return "it is missing"
    if kind == "string_too_long":
        return (
            f"it has {len(entry['input']):,} characters; at most {entry['ctx']['max_length']:,} are accepted"
        )
    if kind == "string_too_short":
        return "it is empty"
    if kind == "string_type":
        return f"it is {json_type(entry['input'])}; it must be a string"
    if kind == "list_type":
        return f"it is {json_type(entry['input'])}; it must be a list of strings"
    if kind in ("bool_type", "bool_parsing"):
        return f"it is {json_type(entry['input'])}; it must be true, false or null"
    if kind == "value_error":
        return str(entry["ctx"]["error"])
    return str(entry["msg"]).rstrip(".")
