"""From files of captions to a folder of triplets that people have looked over, stage by stage."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from cir_datasets.construction.backends import Engine, Failed, Here, Question, Words
from cir_datasets.construction.fisd.captions import CaptionFile
from cir_datasets.construction.fisd.dealing import Dealt, Row, deal
from cir_datasets.construction.fisd.generators import Generator
from cir_datasets.construction.fisd.manners import ASPECTS, COMPLEX, Manner
from cir_datasets.construction.fisd.review import decided, take_in
from cir_datasets.construction.fisd.triplets import Decided, ReviewedTriplet
from cir_datasets.construction.workspace import FAILED, Workspace, forget_from
from cir_datasets.errors import ConstructionError, DatasetError
from cir_datasets.rows.records import query_row
from cir_datasets.shapes.draws import Draws
from cir_metrics.atomic import write_whole
from cir_metrics.errors import CallError

STAGES = {
    "sources": "what the files of captions hold, and what became of it",
    "captions": "a source caption for each triplet",
    "edits": "relative caption and caption of the target",
    "negatives": "caption of the hard negative",
    "pictures": "three pictures of one seed",
    "decisions": "what people said of them",
    "redrawn": "pictures drawn anew with another seed",
    "benchmark": "queries, and the triplets that are none",
}
BENCHMARK = "benchmark"
"""Folder of the benchmark, in that of the run."""
PICTURES = "images"
"""Folder of the pictures, in that of the benchmark."""
ROLES = ("reference", "target", "negative")
LIKES = ("the target", "the request")
"""What a hard negative is close to."""
_QUESTIONS = 32
"""Questions of a chunk."""
_SEEDS = 1 << 31


@dataclass(frozen=True)
class FisdOptions:
    """What is made.

    Args:
        per_aspect: queries wanted of each aspect, 1 or more.
        spare: captions more of each, for those that fail or are dropped, 0 or more.
        seed: of all that is drawn.
        limit: triplets in all, for a first look; None is no limit.
        chunk: triplets whose pictures are drawn and kept at once, 1 or more.
        reviewed_only: whether triplets that nobody has decided on are left out.

    Raises:
        CallError: a number is out of range.
    """

    per_aspect: int = 200
    spare: int = 20
    seed: int = 0
    limit: int | None = None
    chunk: int = 8
    reviewed_only: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        low = {"per_aspect": 1, "spare": 0, "seed": 0, "limit": 1, "chunk": 1}
        for name, least in low.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise CallError(f"{name}={value}; it is {least} or more. Fix: choose it so.")


@dataclass(frozen=True)
class MadeFisd:
    """What a run has made.

    Args:
        workspace: its folder.
        counts: a row an aspect on its sources.
        triplets: all of them, in order.
        queries: rows of the benchmark.
    """

    workspace: Workspace
    counts: tuple[Row, ...]
    triplets: tuple[ReviewedTriplet, ...]
    queries: tuple[Row, ...]


def settings_of_run(
    files: Mapping[str, Sequence[CaptionFile]],
    options: FisdOptions,
    manner: Manner,
    words: Words | None,
    generator: Generator,
) -> Row:
    """Everything that the stages depend on."""
    return {
        "captions": {aspect: [[file.name, file.sha256] for file in files[aspect]] for aspect in files},
        "per_aspect": options.per_aspect,
        "spare": options.spare,
        "seed": options.seed,
        "limit": options.limit,
        "chunk": options.chunk,
        "reviewed_only": options.reviewed_only,
        "manner": manner.identity,
        "language": None if words is None else dict(words.identity),
        "generator": dict(generator.identity),
    }


def make_fisd(
    folder: str | Path,
    files: Mapping[str, Sequence[CaptionFile]],
    *,
    manner: Manner,
    words: Words | None,
    generator: Generator,
    options: FisdOptions | None = None,
    prompts: Mapping[str, str] | None = None,
    review: str | Path | None = None,
    engine: Engine | None = None,
) -> MadeFisd:
    """Make, or go on with, all stages.

    Args:
        folder: where everything is written.
        files: by aspect its files of captions; aspects that are not named are not made.
        manner: how captions speak.
        words: edits captions; None where cardinality and edits of the files' own are all that is made.
        generator: draws the pictures.
        options: what is made.
        prompts: names and versions of the prompts, for the settings.
        review: a filled-in file of `review.csv` to take in.
        engine: where pictures are drawn; None is this process.

    Raises:
        ConstructionError: the folder holds a run with other settings, or the review cannot be taken in.
        CirError: the language backend answers nothing more; finished chunks are kept.
    """
    chosen = options or FisdOptions()
    settings = settings_of_run(files, chosen, manner, words, generator) | {"prompts": dict(prompts or {})}
    work = Workspace(folder, "fisd", STAGES, settings)

    @functools.cache
    def dealt() -> Dealt:
        return deal(files, manner, chosen.per_aspect + chosen.spare, chosen.seed, chosen.limit)

    counts = work.rows("sources", lambda: dealt().counts)
    sources = work.rows("captions", lambda: dealt().rows)
    edit = functools.partial(_edits, manner=manner, words=words, seed=chosen.seed)
    edits = work.rows_in_chunks("edits", sources, edit, size=_QUESTIONS)
    whole = _joined(sources, edits)
    deny = functools.partial(_negatives, manner=manner, words=words, seed=chosen.seed)
    negatives = work.rows_in_chunks("negatives", whole, deny, size=_QUESTIONS)
    whole = _joined(whole, negatives)
    drawn = _drawn(work, "pictures", whole, generator, chosen, engine, lambda row: 0)

    seeds = functools.partial(picture_seed, chosen.seed)
    if review is not None:
        known = {row["id"]: row for row in whole}
        take_in(review, work.folder, known, seeds, manner.most, lambda: forget_from(folder, "decisions"))
        work = Workspace(folder, "fisd", STAGES, settings)
    decisions = [
        Decided(**row)
        for row in work.rows(
            "decisions",
            lambda: (each.as_row() for each in decided(work.folder, [r["id"] for r in sources], seeds)),
        )
    ]
    attempts = {decision.id: decision.attempt for decision in decisions}
    again = [row for row in whole if attempts[row["id"]]]
    redrawn = _drawn(work, "redrawn", again, generator, chosen, engine, lambda row: attempts[row["id"]])
    pictures = {row["id"]: row for row in (*drawn, *redrawn)}
    parts = _parts(sources, edits, negatives)
    triplets = [
        _triplet(parts[decision.id], pictures.get(decision.id), decision, manner, chosen)
        for decision in decisions
    ]
    final = tuple(_final(triplets, manner, chosen))
    rows = work.rows("benchmark", lambda: map(_benchmark_row, final))
    queries = tuple(cast("Row", row["query"]) for row in rows if row["query"] is not None)
    _check_pictures(work.folder, pictures.values(), queries)
    return MadeFisd(work, tuple(counts), final, queries)


def picture_seed(seed: int, id: str, attempt: int) -> int:
    """The seed of a triplet's pictures, from 0 to 2**31 - 1."""
    return Draws("fisd pictures", seed, id, attempt).below(_SEEDS)


def _joined(rows: Sequence[Row], more: Sequence[Row]) -> list[Row]:
    """The rows that have not failed, with what the next stage has made."""
    found = {row["id"]: row for row in more}
    return [{**row, **found[row["id"]]} for row in rows if not found[row["id"]].get(FAILED)]


def _parts(*stages: Sequence[Row]) -> dict[str, Row]:
    """All that the stages of words say of each triplet, failures with the name of the stage."""
    parts: dict[str, Row] = {}
    for name, rows in zip(("captions", "edits", "negatives"), stages, strict=True):
        for row in rows:
            why = row.get(FAILED)
            parts[row["id"]] = {
                **parts.get(row["id"], {}),
                **row,
                **({FAILED: f"{name}: {why}"} if why else {}),
            }
    return parts


def _asked(words: Words | None, prompt: str, questions: Sequence[Mapping[str, str]]) -> list[Any]:
    if not questions:
        return []
    if words is None:
        raise ConstructionError(
            "edits of captions need a language backend. Fix: add --language, or give captions with "
            "relative_caption and target_caption."
        )
    return list(words.ask(prompt, [Question(each) for each in questions]))


def _edits(chunk: Sequence[Row], *, manner: Manner, words: Words | None, seed: int) -> list[Row]:
    """Relative and target caption of each row, from template, file or model."""
    answers: dict[str, Any] = {}
    for aspect in ASPECTS:
        open_ = [
            row
            for row in chunk
            if row["aspect"] == aspect and "target_caption" not in row and "noun" not in row
        ]
        found = _asked(words, f"edit_{aspect}", [{"caption": row["caption"]} for row in open_])
        answers |= {row["id"]: answer for row, answer in zip(open_, found, strict=True)}
    return [_edit(row, answers.get(row["id"], row), manner, seed) for row in chunk]


def _edit(row: Row, answer: Any, manner: Manner, seed: int) -> Row:
    if "noun" in row:
        before, after, _ = row["numbers"]
        request = manner.number_request(row["noun"], before, after, _request_draws(seed, row["id"]))
        answer = {"relative_caption": request, "target_caption": manner.counted(row["noun"], after)}
    why = answer.why if isinstance(answer, Failed) else _edit_fault(row, answer, manner)
    if why is not None:
        return {"id": row["id"], FAILED: why}
    return {"id": row["id"], **{name: _line(answer[name]) for name in ("relative_caption", "target_caption")}}


def _request_draws(seed: int, id: str) -> Draws:
    return Draws("fisd request", seed, id)


def _edit_fault(row: Row, answer: Mapping[str, str], manner: Manner) -> str | None:
    """Why an edit is of no use, or None."""
    if manner.meaning(_line(answer["target_caption"])) == manner.meaning(row["caption"]):
        return "the target's caption is that of the reference"
    words = len(answer["relative_caption"].split())
    if row["aspect"] == COMPLEX and words <= manner.complex_words:
        return f"its relative caption has {words} words, and a complex one more than {manner.complex_words}"
    return None


def _line(words: str) -> str:
    return " ".join(words.split())


def _negatives(chunk: Sequence[Row], *, manner: Manner, words: Words | None, seed: int) -> list[Row]:
    """The caption of each row's hard negative: another number, or what a model writes."""
    likes = {row["id"]: Draws("fisd negative", seed, row["id"]).choice(LIKES) for row in chunk}
    open_ = [row for row in chunk if "noun" not in row]
    asked = [
        {
            "reference": row["caption"],
            "change": row["relative_caption"],
            "target": row["target_caption"],
            "like": likes[row["id"]],
        }
        for row in open_
    ]
    found = _asked(words, "hard_negative", asked)
    answers = {row["id"]: answer for row, answer in zip(open_, found, strict=True)}
    return [_negative(row, answers.get(row["id"]), likes[row["id"]], manner) for row in chunk]


def _negative(row: Row, answer: Any, like: str, manner: Manner) -> Row:
    if "noun" in row:
        return {"id": row["id"], "negative_caption": manner.counted(row["noun"], row["numbers"][2])}
    if isinstance(answer, Failed):
        return {"id": row["id"], FAILED: answer.why}
    caption = _line(answer["negative_caption"])
    for name, other in (("target", row["target_caption"]), ("reference", row["caption"])):
        if manner.meaning(caption) == manner.meaning(other):
            return {"id": row["id"], FAILED: f"the hard negative's caption is that of the {name}"}
    return {"id": row["id"], "negative_caption": caption, "like": like}


class _Keeping:
    """An engine whose results bring files, which are written here before a chunk counts as done."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder

    def map(self, work: Callable[[Any], Any], chunks: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Each chunk's number and rows."""
        for number, (rows, files) in self._engine.map(work, chunks):
            for name, content in files:
                try:
                    write_whole(self._folder / name, content)
                except OSError as error:
                    raise ConstructionError(
                        f"{self._folder / name}: cannot be written: {error.strerror}. Fix: make room."
                    ) from error
            yield number, rows


def _drawn(
    work: Workspace,
    stage: str,
    rows: Sequence[Row],
    generator: Generator,
    options: FisdOptions,
    engine: Engine | None,
    attempt: Callable[[Row], int],
) -> list[Row]:
    """A stage of pictures."""
    items = [
        {
            "id": row["id"],
            "attempt": attempt(row),
            "seed": picture_seed(options.seed, row["id"], attempt(row)),
            "captions": [row["caption"], row["target_caption"], row["negative_caption"]],
            "images": _image_ids(options.seed, row["id"], attempt(row)),
        }
        for row in rows
    ]
    keeping = _Keeping(engine or Here(), work.folder / BENCHMARK / PICTURES)
    make = cast("Callable[[Sequence[Row]], list[Row]]", functools.partial(_draw, generator=generator))
    return work.rows_in_chunks(stage, items, make, size=options.chunk, engine=keeping)


def _image_ids(seed: int, id: str, attempt: int) -> list[str]:
    """Ids of reference, target and negative, which do not say which is which."""
    aspect, _, number = id.rpartition("_")
    ending = f"_redrawn{attempt}" if attempt else ""
    places = Draws("fisd names", seed, id).shuffled((1, 2, 3))
    return [f"{aspect}/{number}_{place}{ending}.png" for place in places]


def _draw(chunk: Sequence[Row], *, generator: Generator) -> tuple[list[Row], list[tuple[str, bytes]]]:
    """Rows of drawn triplets, and their files."""
    rows: list[Row] = []
    files: list[tuple[str, bytes]] = []
    for item in chunk:
        known = {"id": item["id"], "attempt": item["attempt"], "seed": item["seed"]}
        try:
            pictures = generator.draw(item["captions"], item["seed"])
        except DatasetError as error:
            rows.append({**known, FAILED: str(error).partition(" Fix: ")[0]})
            continue
        ids = dict(zip(ROLES, item["images"], strict=True))
        hashes = [hashlib.sha256(picture).hexdigest() for picture in pictures]
        if len(set(hashes)) < len(hashes):
            rows.append({**known, FAILED: "two of its pictures are the same"})
            continue
        files += zip(item["images"], pictures, strict=True)
        rows.append({**known, "images": ids, "sha256": dict(zip(ROLES, hashes, strict=True))})
    return rows, files


def _triplet(
    parts: Row, pictures: Row | None, decision: Decided, manner: Manner, options: FisdOptions
) -> ReviewedTriplet:
    """A triplet with a person's corrections."""
    failed = parts.get(FAILED)
    if failed is None and pictures is not None and pictures.get(FAILED):
        failed = f"pictures: {pictures[FAILED]}"
    captions = [parts.get(name, "") for name in ("caption", "target_caption", "negative_caption")]
    request, numbers = parts.get("relative_caption", ""), list(parts.get("numbers", ()))
    before = {"captions": captions, "relative_caption": request, "numbers": numbers}
    if failed is None and numbers and decision.counts:
        numbers = [new or old for new, old in zip(decision.counts, numbers, strict=True)]
        captions = [manner.counted(parts["noun"], number) for number in numbers]
        draws = _request_draws(options.seed, decision.id)
        request = manner.number_request(parts["noun"], numbers[0], numbers[1], draws)
        if len(set(numbers)) < len(numbers):
            failed = f"review: its pictures show {', '.join(map(str, numbers))}, and two of them are the same"
    request = decision.relative_caption or request
    if failed is None and decision.verdict == "drop":
        failed = f"review: {decision.note or 'dropped'}"
    if failed is None and options.reviewed_only and decision.verdict != "keep":
        failed = "review: nobody has decided on it"
    now = {"captions": captions, "relative_caption": request, "numbers": numbers}
    drawn = {} if pictures is None else pictures
    return ReviewedTriplet(
        id=decision.id,
        aspect=parts["aspect"],
        captions=tuple(captions),
        relative_caption=request,
        images=tuple(drawn.get("images", {}).values()),
        seed=drawn.get("seed", 0),
        decision=decision,
        failed=failed,
        original=None if now == before else before,
        noun=parts.get("noun"),
        numbers=tuple(numbers),
    )


def _final(
    triplets: Sequence[ReviewedTriplet], manner: Manner, options: FisdOptions
) -> Iterator[ReviewedTriplet]:
    """The triplets, those that are not needed or would have two right answers with the reason."""
    shown: dict[Hashable, str] = {}
    targets: dict[Hashable, str] = {}
    kept: dict[str, int] = {}
    for each in triplets:
        failed = each.failed
        if failed is None and kept.get(each.aspect, 0) == options.per_aspect:
            failed = f"spare: {options.per_aspect:,} of its aspect are there"
        if failed is None:
            meanings = [manner.meaning(caption) for caption in each.captions]
            other = shown.get(meanings[1]) or next((targets[m] for m in meanings if m in targets), None)
            if other is not None:
                failed = f"ambiguous: a picture of {other} would answer as well, or be answered by its target"
            else:
                kept[each.aspect] = kept.get(each.aspect, 0) + 1
                shown |= dict.fromkeys(meanings, each.id)
                targets[meanings[1]] = each.id
        yield replace(each, failed=failed)


def _benchmark_row(triplet: ReviewedTriplet) -> Row:
    row = {
        "id": triplet.id,
        "aspect": triplet.aspect,
        "captions": dict(zip(ROLES, triplet.captions, strict=True)),
        "seed": triplet.seed,
        "verdict": triplet.decision.verdict,
        "original": triplet.original,
        "query": None,
    }
    if triplet.failed is not None:
        return {**row, FAILED: triplet.failed}
    reference, target, negative = triplet.images
    return row | {
        "query": query_row(
            triplet.id,
            reference_image_id=reference,
            captions=[triplet.relative_caption],
            relative_caption=triplet.relative_caption,
            target_image_id=target,
            positive_image_ids=[target],
            negative_image_ids=[negative],
            aspects=[triplet.aspect],
        )
    }


def _check_pictures(folder: Path, drawn: Iterable[Row], queries: Sequence[Row]) -> None:
    """Whether the pictures of the queries are those that were drawn."""
    hashes = {row["images"][role]: row["sha256"][role] for row in drawn if "images" in row for role in ROLES}
    for query in queries:
        for image in gallery([query]):
            path = folder / BENCHMARK / PICTURES / image
            if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != hashes[image]:
                raise ConstructionError(
                    f"{path}: it is not the picture that was drawn. Fix: put it back, or run "
                    f"`cir make again {folder} --from pictures`."
                )


def gallery(queries: Sequence[Row]) -> list[str]:
    """All pictures of some queries, in order: reference, target and hard negatives of each, by id."""
    found = (
        image
        for query in queries
        for image in sorted(
            (query["reference_image_id"], query["target_image_id"], *query["negative_image_ids"])
        )
    )
    return list(dict.fromkeys(found))
