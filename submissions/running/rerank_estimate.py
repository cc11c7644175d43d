"""What SC4CIR would ask of a language backend: calls, tokens and hours, before anything is asked."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cir_datasets.common.estimates import ANSWER_TOKENS, CHARACTERS, Estimate, Work, questions
from cir_datasets.rows.benchmark import first_ranking, second_on_board
from submissions.language.asking import ModelQuestion
from submissions.language.forms import Instruction
from submissions.language.loading import calls_at_once
from submissions.language.prompts import load_prompts
from submissions.methods.composing import texts_of
from submissions.methods.registry import needs_of
from submissions.methods.reverse_processes import CANDIDATE_PROMPT, REVERSE_PROMPT
from submissions.methods.sc4cir import SC4CIR, turns_to_rerank
from submissions.methods.turns import gallery_of, removed_reference, turns_of
from submissions.running.make import loaded_benchmark, named_method
from submissions.running.rerank import files_to_rerank
from submissions.running.reranking import rankings_to_rerank

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.methods.turns import Candidates, Turn
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike
    from submissions.running.options import RunOptions


def estimated(
    benchmark: str | Benchmark, method: str, options: RunOptions, picture_tokens: int
) -> list[Work]:
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
    turns = [turn for _, _, turn in turns_to_rerank(benchmark, how)]
    asked = [turn for turn in turns if _has_way_back(turn)]
    gallery = gallery_of(benchmark)
    first, second = first_ranking(benchmark.spec), second_on_board(benchmark.spec)
    if first.column:
        lengths = benchmark.query_lists(first).lengths.tolist()
    else:
        lengths = [len(gallery.ids) - (removed_reference(turn, gallery) in gallery.place) for turn in asked]
    if second is not None:
        # At most its members beside the candidates of the whole gallery.
        lengths += benchmark.query_lists(second).lengths.tolist()
    candidates = sum(min(how.top, length) for length in lengths)
    return _calls(benchmark, name, who, asked, candidates, options, picture_tokens)


def estimated_for(
    rank_file: FileLike,
    benchmark: BenchmarkLike,
    method: str | None,
    options: RunOptions,
    picture_tokens: int,
) -> dict[str, list[Work]]:
    """What ranking a file anew would ask at most, by benchmark.

    Args:
        rank_file: as for `rerank`.
        benchmark: likewise.
        method: likewise.
        options: as for `estimated`.
        picture_tokens: likewise.

    Raises:
        CirError: as for `rerank`, of the call.
    """
    how, work = options.reranker or SC4CIR(), {}
    for run, member in files_to_rerank(rank_file, benchmark, method, options)[1]:
        candidates: dict[Turn, set[str]] = {}
        for turn, ranking in rankings_to_rerank(run, member, how):
            if _has_way_back(turn):
                candidates.setdefault(turn, set()).update(ranking[: how.top])
        name, who = (run.method.name, None) if method is None else named_method(method, options)
        number = sum(map(len, candidates.values()))
        work[member.id] = _calls(member, name, who, list(candidates), number, options, picture_tokens)
    return work


def _calls(
    benchmark: Benchmark,
    name: str,
    who: object,
    turns: Sequence[Turn],
    candidates: int,
    options: RunOptions,
    picture_tokens: int,
) -> list[Work]:
    how, prompts, work = options.reranker or SC4CIR(), load_prompts(options.prompts), []
    ask = functools.partial(questions, picture_tokens=picture_tokens)
    if "language" in needs_of(who):
        back = candidates if "s2" in how.used else 0
        work += _of_the_method(name, who, gallery_of(benchmark), options, back, picture_tokens)
    if "s2" in how.used:
        template = prompts[REVERSE_PROMPT]
        asked = [ModelQuestion(template, {"change": turn.text}, form=Instruction).prompt for turn in turns]
        work.append(ask("T', once a query", len(turns), letters=sum(map(len, asked)), pictures=1))
    if "s3" in how.used:
        prompt = ModelQuestion(prompts[CANDIDATE_PROMPT], form=Instruction).prompt
        letters = candidates * len(prompt)
        work.append(ask("T'', once a candidate", candidates, letters=letters, pictures=2))
    return work


def estimate_of(benchmark: str, work: Sequence[Work], options: RunOptions, call_seconds: float) -> Estimate:
    """What is asked for a benchmark, with hours."""
    assumed = f"{SC4CIR.title} on {benchmark}, at most, {ANSWER_TOKENS} tokens an answer"
    at_once = calls_at_once(options.language) if isinstance(options.language, str) else 1
    return Estimate(assumed, work, at_once=at_once, call_seconds=call_seconds)


def _of_the_method(
    name: str, who: object, gallery: Candidates, options: RunOptions, back: int, picture_tokens: int
) -> list[Work]:
    """What a method asks by itself: forward of each turn, and on the way back of each candidate and T'."""
    from submissions.methods.captioning import Captioning

    prompts = load_prompts(options.prompts)
    turns = [turn for row in gallery.benchmark.rows() for turn in turns_of(row)]
    shown = {turn.reference for turn in turns if turn.reference is not None}
    # Those of the gallery and the references are all the images that there are.
    captions = min(len(shown) + back, len(shown.union(gallery.ids)))
    letters = captions * len(ModelQuestion(prompts["caption"]).prompt)
    what = f"{name}: a caption an image"
    work = [questions(what, captions, letters=letters, pictures=1, picture_tokens=picture_tokens)]
    if isinstance(who, Captioning):
        return work  # it puts the words behind the caption, and has nothing merged
    caption = "x" * (ANSWER_TOKENS * CHARACTERS)
    rule = options.caption_rule_for(turns, name, ["relative_caption"])
    seen = [turn for turn in turns if turn.reference is not None]
    changes = [text for texts in texts_of(seen, rule) for text in texts]

    def prompt(change: str) -> str:
        return ModelQuestion(prompts["merge"], {"caption": caption, "change": change}).prompt

    letters = sum(len(prompt(change)) for change in changes) + back * len(prompt(caption))
    return [*work, questions(f"{name}: a merge a text", len(changes) + back, letters=letters)]


def _has_way_back(turn: Turn) -> bool:
    return turn.reference is not None and bool(turn.text.strip())
