"""Reviews of a benchmark's queries: what people are shown of it, and what their answers come to.

    review.json, review.csv, review.html, pictures/    what is given out
    answers.jsonl, outcome.md                          what came back, and a figure a source and question

What else comes out is said by the form: a field of the queries (`columns_of`), an overlay of those that are
clean (`clean`), or, where people choose among `candidates`, a ranking.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from cir_datasets.common.atomic import write_errors, write_whole
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.common.terminal import Cell
from cir_datasets.construction.filled_tables import read_text
from cir_datasets.construction.report import table_of
from cir_datasets.construction.review.form import ReviewForm, names_in
from cir_datasets.construction.review.page import PAGE, write_review
from cir_datasets.errors import ConstructionError
from cir_datasets.images.picture import small_jpeg
from cir_datasets.registry.overlays import Overlay
from cir_datasets.shapes.draws import Draws
from cir_metrics.resampling import bootstrap_means, percentile_interval

if TYPE_CHECKING:
    from PIL.Image import Image

    from cir_datasets.common.terminal import Table
    from cir_datasets.construction.review.agreement import Review
    from cir_datasets.rows.benchmark import Benchmark

FILE = "review.json"
CANDIDATES = "candidates"
"""Field of an item: the query's subset without the reference, in a drawn order."""
_SIDE, _QUALITY = 512, 85
_PICTURES = ("reference", "target", "targets", CANDIDATES)


def drawn_items(
    form: ReviewForm, sources: Mapping[str, Sequence[Benchmark]], *, sample: int | None = None, seed: int = 0
) -> list[Row]:
    """The items of a form, those of all sources mixed, so that nobody knows where one comes from.

    Args:
        form: what is asked.
        sources: by name the benchmarks of single queries; several share a sample evenly.
        sample: items of each source; None takes the form's, 0 all.
        seed: of all draws.

    Raises:
        ConstructionError: a benchmark has sessions, or lacks what the form shows.
    """
    number = form.sample if sample is None else sample
    found: list[Row] = []
    for name, members in sources.items():
        for place, benchmark in enumerate(members):
            cases = list(_cases(form, benchmark))
            share = number // len(members) + (place < number % len(members)) if number else len(cases)
            drawn = Draws("review", form.name, benchmark.id, seed).sample(cases, share)
            found += [{"source": name, "benchmark": benchmark.id, **case} for case in drawn]
    mixed = Draws("review", form.name, seed).shuffled(found)
    items = [{form.id: f"{place:05d}", **item} for place, item in enumerate(mixed, start=1)]
    for item in items:
        item[CANDIDATES] = Draws("candidates", seed, item[form.id]).shuffled(item[CANDIDATES])
    return items


def _cases(form: ReviewForm, benchmark: Benchmark) -> Iterator[Row]:
    shown = {field.field for field in form.pictures} | set(form.sorted_pictures)
    if benchmark.multi_turn:
        raise ConstructionError(
            f"{benchmark.id}: it has sessions, and the form {form.name} is about single queries. Fix: name "
            "benchmarks of these."
        )
    for row in benchmark.rows():
        reference, targets = row["reference_image_id"], row["positive_image_ids"]
        case = {
            "query": row["query_id"],
            "caption": "; ".join(filter(None, row["captions"])),
            "reference": reference,
            "targets": targets,
            CANDIDATES: [image for image in row["subset_image_ids"] if image != reference],
        }
        for target in targets if form.cases == "targets" else [row["target_image_id"]]:
            whole = case | {"target": target}
            lacking = next((name for name in _PICTURES if name in shown and not whole[name]), None)
            if lacking is not None:
                raise ConstructionError(
                    f"{benchmark.id}: form {form.name} shows the field {lacking!r}, which its queries lack. "
                    "Fix: name a benchmark that has it."
                )
            yield whole


def give_out(
    folder: Path,
    form: ReviewForm,
    items: Sequence[Row],
    open_picture: Callable[[str, str], Image],
    places: Mapping[str, str],
) -> Path:
    """Write the page, the table and the pictures that people are given.

    Args:
        folder: of the review.
        form: what is asked.
        items: of `drawn_items`.
        open_picture: gives the picture of a benchmark's image id.
        places: by benchmark what it is loaded by: its id, or its folder.

    Returns:
        The page.

    Raises:
        ConstructionError: another review is in the folder, or the system refuses to write.
    """
    shown = [field.field for field in form.pictures] + form.sorted_pictures
    files: dict[tuple[str, str], str] = {}

    def file_of(item: Row, image: str) -> str:
        return files.setdefault((item["benchmark"], image), f"pictures/{len(files)}.jpg")

    page = []
    for item in items:
        of = {name: [item[name]] if isinstance(item[name], str) else item[name] or [] for name in shown}
        page.append(
            item
            | {
                # The number is shown, as an id could say something.
                name: [
                    {"picture": file_of(item, one), "name": one, "text": str(at)}
                    for at, one in enumerate(many, 1)
                ]
                for name, many in of.items()
            }
        )
    content = orjson.dumps(
        {
            "form": form.model_dump(mode="json"),
            "run": _run_of(form, items),
            "places": dict(places),
            "items": list(items),
        },
        option=orjson.OPT_INDENT_2,
    )
    if (folder / FILE).is_file() and (folder / FILE).read_bytes() != content:
        raise ConstructionError(f"{folder}: it holds another review. Fix: name another --out.")
    with write_errors(folder, ConstructionError):
        for (benchmark, image), file in files.items():
            if not (folder / file).is_file():
                write_whole(folder / file, small_jpeg(open_picture(benchmark, image), _SIDE, _QUALITY))
        write_review(folder, form, page, f"Review: {form.name}", run=_run_of(form, items))
        write_whole(folder / FILE, content)
    return folder / PAGE


def _run_of(form: ReviewForm, items: Sequence[Row]) -> str:
    content = orjson.dumps([form.model_dump(mode="json"), list(items)])
    return "r" + hashlib.sha256(content).hexdigest()[:12]


def given_out(folder: Path) -> tuple[ReviewForm, list[Row], str, dict[str, str]]:
    """Form, items, run and places of a review, as `give_out` had them.

    Raises:
        ConstructionError: the folder holds none.
    """
    try:
        whole = orjson.loads(read_text(folder / FILE, ConstructionError))
        return ReviewForm.model_validate(whole["form"]), whole["items"], whole["run"], whole["places"]
    except (KeyError, TypeError, ValueError) as error:
        raise ConstructionError(
            f"{folder / FILE}: it holds no review. Fix: name a folder of `cir make review`."
        ) from error


def outcome_table(form: ReviewForm, items: Sequence[Row], review: Review) -> Table:
    """A row a source and question: the mean over people of the mean over cases, and its 95 % interval.

    Cases of one query are drawn together in the bootstrap (percentile, 10,000 draws over queries). Of choices
    it is the number that a choice stands for, or else a share a choice; of stars and numbers the value; of
    candidates the share of answers that are the target; of texts that a field takes, that of those that
    apply.

    Args:
        form: what was asked.
        items: all items that were given out.
        review: of `import_answers`.
    """
    known = {item[form.id]: item for item in items}
    by_case: defaultdict[tuple[str, str], defaultdict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    people: Counter[str] = Counter()
    for answer in review.answers:
        if FAILED not in answer:
            item = known[answer[form.id]]
            people[item[form.id]] += 1
            for name, value in _figures(form, item, answer):
                by_case[item["source"], name][item[form.id]].append(value)
    order = [question.name for question in form.questions]

    def place(name: str) -> int:
        question = name.partition(": ")[0]
        return order.index(question) if question in order else len(order)

    rows: list[list[Any]] = []
    for source, name in sorted(by_case, key=lambda one: (one[0], place(one[1]))):
        queries: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        for case, values in by_case[source, name].items():
            queries[known[case]["benchmark"], known[case]["query"]].append(sum(values) / len(values))
        sums = np.array([[sum(values), len(values)] for values in queries.values()], dtype=np.float64)
        draws = bootstrap_means(sums, key=source)
        low, high = map(float, percentile_interval(draws[:, 0] / draws[:, 1]))
        mean = float(sums[:, 0].sum() / sums[:, 1].sum())
        alpha = review.alpha.get(name.partition(": ")[0])
        papers = form.published.get(name, {})
        paper = papers.get(source, papers.get(source.partition("/")[0]))
        rows.append([source, name, len(by_case[source, name]), *map(_cell, (mean, low, high, alpha, paper))])
    for name in {row[1]: None for row in rows}:
        if all(row[-1].value is None for row in rows if row[1] == name):
            papers = form.published.get(name, {})
            rows += [
                [f"{whose} (paper)", name, None, _cell(value), *[_cell(None)] * 4]
                for whose, value in papers.items()
            ]
    short = sum(people[item[form.id]] < form.people for item in items)
    note = f"{short:,} of {len(items):,} {form.item[1]} have fewer than {form.people} answers."
    columns = ("source", "question", form.item[1], "mean", "low", "high", "alpha", "paper")
    return table_of(f"Review: {form.name}", columns, rows, (note,) if short else ())


def _cell(value: float | None) -> Cell:
    return Cell("" if value is None else f"{value:.4f}", value)


def _figures(form: ReviewForm, item: Row, answer: Row) -> Iterator[tuple[str, float]]:
    stars = []
    texts = [name for names in form.columns_of.values() for name in names]
    reasons = {other for question in form.questions if question.name in texts for other in question.unless}
    for question in form.questions:
        text = answer[question.columns[0]]
        if question.kind == "sort" and question.pictures == CANDIDATES and item["target"] is not None:
            yield question.name, float(names_in(text) == [item["target"]])
        elif question.name in texts:
            yield question.name, float(bool(text))
        elif not text or question.name in reasons or question.kind in {"text", "sort"}:
            continue
        elif question.kind != "choice":
            yield question.name, float(text)
            stars += [float(text)] if question.kind == "stars" else []
        elif question.scores:
            yield question.name, question.scores[text]
        else:
            yield from ((f"{question.name}: {one}", float(one == text)) for one in question.choices)
    if len(stars) > 1:
        yield "average", sum(stars) / len(stars)


def candidate_rankings(form: ReviewForm, items: Sequence[Row], review: Review) -> dict[str, list[str]]:
    """By query its candidates, those that most people chose first, equal ones in the order of the page.

    Args:
        form: what was asked.
        items: all items of one benchmark.
        review: of `import_answers`.
    """
    question = next((one for one in form.questions if one.pictures == CANDIDATES), None)
    if question is None:
        return {}
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    known = {item[form.id]: item for item in items}
    for answer in review.answers:
        if FAILED not in answer and (item := known.get(answer[form.id])) is not None:
            votes[item["query"]].update(names_in(answer[question.columns[0]]))
    return {
        item["query"]: sorted(item[CANDIDATES], key=lambda image: -votes[item["query"]][image])
        for item in items
        if item["query"] in votes
    }


def clean_queries(form: ReviewForm, items: Sequence[Row], review: Review) -> list[str]:
    """Queries of which people, by most of their answers, say of every case that it is clean.

    Args:
        form: what was asked.
        items: all items of one benchmark.
        review: of `import_answers`.
    """
    merged = {row[form.unit or form.id]: row for row in review.merged}
    verdicts: dict[str, bool] = {}
    for item in items:
        row = merged[item[form.unit or form.id]]
        is_clean = all(row[name] in kept for name, kept in form.clean.items())
        verdicts[item["query"]] = is_clean and verdicts.get(item["query"], True)
    return sorted(query for query, is_clean in verdicts.items() if is_clean) if form.clean else []


def filled_fields(form: ReviewForm, items: Sequence[Row], review: Review) -> dict[str, Row]:
    """By query the fields that answers became; what does not apply is written as `[code] words`.

    Args:
        form: what was asked.
        items: all items of one benchmark.
        review: of `import_answers`.
    """
    questions = {question.name: question for question in form.questions}
    merged = {row[form.unit or form.id]: row for row in review.merged if row["answers"]}

    def text(row: Row, name: str) -> str:
        other = next((other for other in questions[name].unless if row[other]), None)
        if row[name] or other is None:
            return str(row[name] or "")
        return f"[{row[other]}] {questions[other].choices[row[other]]}"

    return {
        item["query"]: {
            field: [text(merged[item[form.id]], name) for name in names]
            for field, names in form.columns_of.items()
        }
        for item in items
        if item[form.id] in merged and form.columns_of
    }


def write_outcome(folder: Path, review: Review, table: str, overlays: Sequence[Overlay]) -> list[Path]:
    """Write all answers, the table, and overlays.

    Returns:
        The files of the overlays.

    Raises:
        ConstructionError: the system refuses to write.
    """
    found = []
    with write_errors(folder, ConstructionError):
        lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in review.answers)
        write_whole(folder / "answers.jsonl", b"".join(lines))
        write_whole(folder / "outcome.md", f"{table}\n".encode())
        for overlay in overlays:
            found.append(folder / f"{overlay.benchmark.replace('/', '_')}+{overlay.name}.json")
            write_whole(found[-1], orjson.dumps(overlay.to_dict(), option=orjson.OPT_INDENT_2))
    return found
