"""What SC4CIR would ask of a language backend: calls, tokens and hours, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cir_datasets.common.tables import Cell, Table
from submissions.language.asking import ModelQuestion
from submissions.language.forms import Instruction
from submissions.language.loading import calls_at_once
from submissions.language.prompts import load_prompts
from submissions.methods.registry import needs_of
from submissions.methods.reverse_processes import CANDIDATE_PROMPT, REVERSE_PROMPT
from submissions.methods.sc4cir import SC4CIR, Firsts
from submissions.methods.turns import gallery_of, subset_members, turns_of
from submissions.rank_file.benchmarks import needs_subset
from submissions.running.make import loaded_benchmark, named_method

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.turns import Turn
    from submissions.running.options import RunOptions

_ANSWER = 40
"""Tokens of an answer; an assumption."""
_LETTERS = 4
"""Letters of a token; an assumption."""


class Questions(NamedTuple):
    """One kind of question, as many of them as there can be.

    Args:
        what: its name.
        calls: how many; equal ones are asked once, and none that has an answer on disk.
        tokens_in: of all questions.
        tokens_out: of all answers.
    """

    what: str
    calls: int
    tokens_in: int
    tokens_out: int


def estimated(
    benchmark: str | Benchmark, method: str, options: RunOptions, picture_tokens: int
) -> list[Questions]:
    """What a run would ask at most; nothing is loaded and nobody is asked.

    Args:
        benchmark: what would be ranked.
        method: name of the method, or `module:Class`.
        options: with a re-ranker; the language backend as a name.
        picture_tokens: tokens of a picture, as the model counts them.

    Raises:
        CirError: as for `make_rank_file`, of the call.
    """
    benchmark = loaded_benchmark(benchmark)
    name, who = named_method(method, options)
    options.check(benchmark, name, who)
    how = options.reranker or SC4CIR()
    turns = _asked_about(benchmark, how)
    gallery = gallery_of(benchmark)
    whole = min(how.top, len(gallery.ids) - benchmark.excludes_reference)
    rows = benchmark.rows() if needs_subset(benchmark) else []
    # Of a subset, at most its members beside the candidates of the whole gallery.
    beside = sum(min(how.top, len(subset_members(row))) for row in rows)
    candidates = len(turns) * whole + beside
    prompts = load_prompts(options.prompts)
    found = []
    if "s2" in how.used:
        template = prompts[REVERSE_PROMPT]
        asked = [ModelQuestion(template, {"change": turn.text}, form=Instruction).prompt for turn in turns]
        letters = sum(map(len, asked))
        found.append(_questions("T', once a query", len(turns), letters, len(turns) * picture_tokens))
        if "language" in needs_of(who):
            # A caption of the candidate, and what is merged of it and T'.
            own = 2 * candidates
            letters = own * len(prompts["merge"].text)
            what = f"{name} of each candidate and T'"
            found.append(_questions(what, own, letters, candidates * picture_tokens))
    if "s3" in how.used:
        prompt = ModelQuestion(prompts[CANDIDATE_PROMPT], form=Instruction).prompt
        found.append(
            _questions(
                "T'', once a candidate", candidates, candidates * len(prompt), 2 * candidates * picture_tokens
            )
        )
    return found


def estimate_table(
    benchmark: str, found: Sequence[Questions], options: RunOptions, call_seconds: float
) -> Table:
    """The estimates as a table, with hours."""
    at_once = calls_at_once(options.language) if isinstance(options.language, str) else 1
    whole = Questions(
        "together", *(sum(column) for column in zip(*(each[1:] for each in found), strict=True))
    )
    rows = [
        (
            Cell(each.what),
            Cell(f"{each.calls:,}"),
            Cell(f"{each.tokens_in:,}"),
            Cell(f"{each.tokens_out:,}"),
            Cell(f"{each.calls * call_seconds / at_once / 3600:,.2f}"),
        )
        for each in ((*found, whole) if found else ())
    ]
    return Table(
        f"{SC4CIR.title} on {benchmark}, at most: {call_seconds:g} seconds a call, {at_once} at once, "
        f"{_ANSWER} tokens an answer",
        ("what", "calls", "tokens in", "tokens out", "hours"),
        tuple(rows),
    )


def _asked_about(benchmark: Benchmark, how: SC4CIR) -> list[Turn]:
    firsts = Firsts(how, benchmark)
    turns = (turn for row in benchmark.rows() for turn in turns_of(row))
    return [turn for turn in turns if firsts.wants(turn) and turn.reference is not None and turn.text.strip()]


def _questions(what: str, calls: int, letters: int, pictures: int) -> Questions:
    return Questions(what, calls, -(-letters // _LETTERS) + pictures, calls * _ANSWER)
