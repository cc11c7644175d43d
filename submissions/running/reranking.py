"""SC4CIR: a function from a rank file to a rank file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from cir_datasets.common.terminal import counted
from submissions.embeddings.embed import check_gallery, check_pictures
from submissions.encoders.check import checked_vectors
from submissions.errors import MethodError
from submissions.methods.reverse_processes import Reranker, Ways
from submissions.methods.sc4cir import SC4CIR, Cost, Forward, by_rank, turns_to_rerank
from submissions.rank_file.model import Method, RankFile
from submissions.running.describing import (
    LONGEST_NAME,
    asks_scene_graphs,
    encoder_label,
    labelled,
    language_label,
    trained_by_encoder,
)
from submissions.running.options import RunOptions, option_words

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.pictures import Pictures
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import FormLanguage, Language
    from submissions.methods.composing import Composer
    from submissions.methods.protocols import Ranker, Scorer
    from submissions.methods.turns import Candidates, Turn
    from submissions.rank_file.benchmarks import BenchmarkLike, FileLike
    from submissions.rank_file.model import RankBundle

_CAPTION_RULE = "trim_and"
"""How SC4CIR reads several captions of a turn: as `Turn.text` has them."""
_LONGEST, _LONGEST_NOTES = 300, 2000
"""Characters of a field of the rank file."""


class Similarity(Protocol):
    """How alike a method finds a query and an image."""

    @property
    def encoder(self) -> Encoder | None:
        """That of the method, where it has one."""

    @property
    def missing(self) -> frozenset[str]:
        """Images that it could not look at."""

    @property
    def ways(self) -> Ways | None:
        """S2; None where nobody knows it."""

    def similarities(self, asked: Sequence[tuple[Turn, Sequence[str]]]) -> Sequence[Sequence[float]]:
        """S1 of the images of each turn, best first; it may end before those without a picture."""


class ByRank:
    """A rank file of which no more is known than its order: S1 is by rank.

    Args:
        top: N.
    """

    encoder: Encoder | None = None
    missing: frozenset[str] = frozenset()
    ways: Ways | None = None

    def __init__(self, top: int) -> None:
        """See the class."""
        self._top = top

    def similarities(self, asked: Sequence[tuple[Turn, Sequence[str]]]) -> list[list[float]]:
        """S1 by rank."""
        return [by_rank(self._top, images) for _, images in asked]


def rerank(
    rank_file: FileLike,
    benchmark: BenchmarkLike = None,
    *,
    language: str | Language | None = None,
    top: int = SC4CIR.top,
    processes: str | None = None,
    turns: str = SC4CIR.turns,
    encoder: str | Path | Encoder | None = None,
    method: str | Composer | Scorer | Ranker | None = None,
    images: str | Path | None = None,
    options: RunOptions | None = None,
) -> RankFile | RankBundle:
    """Put the best images of each ranking in the order of SC4CIR; what stands behind them stays.

    Second rankings (CIRR's subsets) are ranked anew as well, bundles member by member. `make_rank_file` with
    `rerank="sc4cir"` is the method's rank file and then this.

    Args:
        rank_file: a valid rank file, or bundle, in any format, of whatever method.
        benchmark: what it answers, as in `validate`.
        language: who writes T' and T'': a name for `load_language`, or a backend; not needed for s1 alone.
        top: N, how many images of a ranking are ranked anew, 1 to 1,000.
        processes: what is added up: s1, s2, s3, or several with + between them; default: all three with a
            `method`, s1+s3 without one.
        turns: of a session `last` or `each`.
        encoder: the method's, where it has one, which s3 compares words by as well; else that of s3 alone.
        method: the method that made the rank file, by which s1 and s2 are computed. Without it s1 is by rank,
            1 - (rank - 1) / N, and there is no s2.
        images: folder of the images; default: below `CIR_IMAGES`, and shapes are drawn.
        options: further ones, of pictures, encoders and the method, as for `make_rank_file`.

    Returns:
        A rank file or bundle whose method block says how it was ranked anew.

    Raises:
        RefusedError: validation found errors in the file.
        MethodError: an option does not fit, or the file was ranked anew before.
        LanguageError: not one query has the answers that it needs.
        CirError: as for `make_rank_file`.

    Example:
        >>> from submissions import make_rank_file
        >>> made = make_rank_file("shapes/val", "random")
        >>> rerank(made, top=10, processes="s1").rankings == made.rankings
        True
    """
    settings = rerank_options(
        method,
        options,
        language=language,
        top=top,
        processes=processes,
        turns=turns,
        encoder=encoder,
        images=images,
    )
    return rerank_file(rank_file, benchmark, method, settings)


def rerank_options(
    method: str | Composer | Scorer | Ranker | None,
    options: RunOptions | None = None,
    *,
    top: int = SC4CIR.top,
    processes: str | None = None,
    turns: str = SC4CIR.turns,
    encoder: str | Path | Encoder | None = None,
    **others: Any,
) -> RunOptions:
    """What `rerank` is given, as the options of a run.

    Args:
        method: as for `rerank`.
        options: likewise, and so are the others.
        top: N.
        processes: what is added up.
        turns: which of a session.
        encoder: the method's or that of s3.
        others: further fields of `RunOptions`; None: as in `options`.
    """
    from submissions.methods.registry import kind_of, kind_of_class

    kind = kind_of(method) if isinstance(method, str) else kind_of_class(method)
    if processes is None:
        processes = SC4CIR.processes if method is not None else "s1+s3"
    changes: dict[str, Any] = {"encoder" if kind == "composer" else "rerank_encoder": encoder, **others}
    return (options or RunOptions()).changed(
        rerank=SC4CIR.name,
        rerank_top=top,
        rerank_processes=processes,
        rerank_turns=turns,
        **{name: value for name, value in changes.items() if value is not None},
    )


def rerank_file(
    rank_file: FileLike,
    benchmark: BenchmarkLike,
    method: str | Composer | Scorer | Ranker | None,
    options: RunOptions,
    costs: list[Cost] | None = None,
) -> RankFile | RankBundle:
    """What `rerank` does, by the options of a run.

    Args:
        rank_file: as for `rerank`.
        benchmark: likewise.
        method: likewise.
        options: with a re-ranker.
        costs: filled with what re-ranking took.

    Raises:
        CirError: as for `rerank`.
    """
    from submissions.methods.registry import kind_of_class
    from submissions.methods.turns import gallery_of
    from submissions.rank_file.model import answer_of
    from submissions.running.named import named_method, process_of

    how = cast("SC4CIR", options.reranker)
    asked, runs = files_to_rerank(rank_file, benchmark, method, options)
    options = options.with_language()
    made = []
    for run, own in runs:
        name, who = (run.method.name, None) if method is None else named_method(method, options)
        candidates = [
            image for _, ranking in rankings_to_rerank(run, own, how) for image in ranking[: how.top]
        ]
        encoded = kind_of_class(who) == "composer"
        unseen = unseen_pictures(own, how, options, candidates, encoded=encoded)
        similarity: Similarity = ByRank(how.top)
        if who is not None:
            gallery = gallery_of(own)
            _check_known(candidates, gallery, name)
            similarity = process_of(name, who, gallery, options)
        made.append(reranked(name, run, own, similarity, options, unseen, costs))
    return answer_of(asked, made)


def _check_known(images: Sequence[str], gallery: Candidates, name: str) -> None:
    strange = next((image for image in images if image not in gallery.place), None)
    if strange is not None:
        raise MethodError(
            f"{strange!r:.100} is not in the gallery of {gallery.benchmark.id}, which {name} ranks. "
            "Fix: leave the method out (--method): s1 is then by rank."
        )


def files_to_rerank(
    rank_file: FileLike,
    benchmark: BenchmarkLike,
    method: str | Composer | Scorer | Ranker | None,
    options: RunOptions,
) -> tuple[str, list[tuple[RankFile, Benchmark]]]:
    """The benchmark or suite that a file answers, and its rank files with the benchmark of each, checked.

    Args:
        rank_file: as for `rerank`.
        benchmark: likewise.
        method: likewise.
        options: with a re-ranker.

    Raises:
        RefusedError: validation found errors in the file.
        MethodError: an option does not fit, or the file was ranked anew before.
    """
    from submissions.rank_file.benchmarks import Benchmarks
    from submissions.rank_file.findings import RefusedError
    from submissions.rank_file.model import RankBundle, runs_of
    from submissions.running.named import named_method
    from submissions.validation import validate

    if method is None and "s2" in cast("SC4CIR", options.reranker).used:
        raise MethodError(
            "the process s2 asks the method that made the rank file, and none is named. "
            "Fix: name it (--method), or leave s2 out: s1+s3."
        )
    unused = [name for name in options.given if name in ("k", "search")]
    if unused:
        raise MethodError(
            f"a rank file's rankings keep their length and images, and rerank has no use for "
            f"{option_words(unused)}. Fix: leave it out."
        )
    benchmarks = Benchmarks(benchmark)
    report = validate(rank_file, benchmarks, part=True)
    if not report.ok or report.rank_file is None:
        raise RefusedError(f"{report.file} cannot be ranked anew.", report)
    answer, found = report.rank_file, []
    for run in runs_of(answer):
        if run.method.reranking:
            raise MethodError(
                f"{report.file}: {run.method.name} was ranked anew before ({run.method.reranking}). "
                "Fix: take the rank file that was made without the re-ranker."
            )
        own = benchmarks.load(run.benchmark)
        options.check(own, *((run.method.name, None) if method is None else named_method(method, options)))
        found.append((_as_lists(run, by_turn=own.multi_turn), own))
    return answer.suite if isinstance(answer, RankBundle) else answer.benchmark, found


def rankings_to_rerank(run: RankFile, benchmark: Benchmark, how: SC4CIR) -> Iterator[tuple[Turn, list[str]]]:
    """The rankings that are ranked anew, with what each answers: the first one of a turn, then the second."""
    for row, place, turn in turns_to_rerank(benchmark, how):
        key = row["session_id"] if benchmark.multi_turn else row["query_id"]
        if key in run.rankings:
            yield turn, run.rankings[key][place] if benchmark.multi_turn else run.rankings[key]
        if key in (run.subset_rankings or {}):
            yield turn, cast("dict[str, list[str]]", run.subset_rankings)[key]


def _as_lists(run: RankFile, *, by_turn: bool) -> RankFile:
    """A copy whose rankings are lists, which may be put in another order."""

    def lists(answer: Sequence[Any]) -> list[Any]:
        return [list(turn) for turn in answer] if by_turn else list(answer)

    return RankFile(
        run.benchmark,
        run.benchmark_version,
        run.method,
        {key: lists(answer) for key, answer in run.rankings.items()},
        {key: list(answer) for key, answer in run.subset_rankings.items()} if run.subset_rankings else None,
    )


def unseen_pictures(
    benchmark: Benchmark,
    how: SC4CIR,
    options: RunOptions,
    candidates: Sequence[str] | None = None,
    *,
    encoded: bool,
) -> frozenset[str]:
    """Look before the work at the pictures that the language backend may be asked about.

    Args:
        benchmark: what is ranked.
        how: says which turns are ranked anew.
        options: of the run.
        candidates: the images that are ranked anew; None where they are not known yet, and may be any.
        encoded: whether those of the gallery are encoded, and so looked at, by the method itself.

    Returns:
        The images without a picture, which are skipped.

    Raises:
        MissingImagesError: pictures are missing or cannot be read, and may not be skipped.
        SourceError: the folder is missing, or none is named.
    """
    if not how.asks:
        return frozenset()
    references = dict.fromkeys(turn.reference for _, _, turn in turns_to_rerank(benchmark, how))
    if encoded or candidates is None:
        known = set(benchmark.gallery or ())
        asked = [image for image in references if image and image not in known]
    else:
        asked = [image for image in dict.fromkeys((*references, *candidates)) if image]
    missing = check_pictures(_pictures(benchmark, options, asked), skip_missing=options.skip_missing)
    if candidates is None and not encoded:
        missing |= check_gallery(_pictures(benchmark, options, None), skip_missing=options.skip_missing)
    return missing


def reranked(
    name: str,
    run: RankFile,
    benchmark: Benchmark,
    similarity: Similarity,
    options: RunOptions,
    unseen: frozenset[str],
    costs: list[Cost] | None = None,
) -> RankFile:
    """A rank file with the first images of its rankings in the order of SC4CIR.

    Args:
        name: the method's, for messages.
        run: whose lists are put in order, in place.
        benchmark: what it answers.
        similarity: S1 and S2.
        options: of the run; what they name is loaded already, but the text encoder of S3.
        unseen: images without a picture, which are skipped.
        costs: filled with what re-ranking took.

    Raises:
        EncoderError: the text encoder cannot be loaded, or encodes no texts.
        LanguageError: not one query has the answers that it needs.
        MissingImagesError: a picture turns out to be unreadable, and may not be skipped.
        SourceError: the pictures are not available.
    """
    how = cast("SC4CIR", options.reranker)
    lists = list(rankings_to_rerank(run, benchmark, how))
    firsts = [(turn, ranking[: how.top]) for turn, ranking in lists]
    scores: Sequence[Sequence[float]] = [[0.0] * len(images) for _, images in firsts]
    if "s1" in how.used:
        scores = similarity.similarities(firsts)
    texts = _text_encoder(options, benchmark, similarity.encoder) if "s3" in how.used else None
    speaker = cast("FormLanguage | None", options.language) if how.asks else None

    def encode(words: Sequence[str]) -> NDArray[np.float32]:
        own = cast("Encoder", texts)
        parts = [words[at : at + options.batch_size] for at in range(0, len(words), options.batch_size)]
        return np.concatenate(
            [checked_vectors(own, own.encode_texts(part), len(part), "texts") for part in parts]
        )

    said = next((turn.text for turn, _ in lists if turn.text.strip()), None)
    if texts is not None and said is not None:
        encode([said])  # an encoder without words is found out before anybody is asked
    work = Reranker(
        how,
        speaker,
        lambda ids: _pictures(benchmark, options, ids),
        encode,
        similarity.ways,
        f"{name}: SC4CIR on {benchmark.id}",
        unseen=unseen | similarity.missing,
        skip_missing=options.skip_missing,
    )
    work.rerank([Forward(*each, first) for each, first in zip(lists, scores, strict=True)])
    if costs is not None:
        costs.append(work.cost)
    method = _described(run.method, how, speaker, texts, similarity.encoder, work.cost, benchmark)
    return replace(run, method=_with_unseen(method, sorted(work.unseen)))


def _with_unseen(described: Method, unseen: Sequence[str]) -> Method:
    """A method block that counts the images without a picture, which were not candidates, too."""
    if len(unseen) <= (described.skipped_images or 0):
        return described
    named = ", ".join(unseen[:3]) + (", ..." if len(unseen) > 3 else "")
    words = f"{counted(len(unseen), 'picture')} missing or unreadable, not ranked anew: {named}."
    change = {"skipped_images": len(unseen), "notes": f"{described.notes} {words}"[:_LONGEST_NOTES]}
    return Method.model_validate(described.to_dict() | change)


def _pictures(benchmark: Benchmark, options: RunOptions, ids: Sequence[str] | None) -> Pictures:
    from submissions.embeddings.pictures import pictures_of

    return pictures_of(benchmark, images=options.images, ids=ids)


def _text_encoder(options: RunOptions, benchmark: Benchmark, own: Encoder | None) -> Encoder:
    """The text encoder of S3: the one that is named, else the run's own, else the one of shapes."""
    from submissions.encoders.loading import load_encoder

    if options.rerank_encoder is None and own is not None:
        return own
    chosen = options.rerank_encoder_for(benchmark)
    if not isinstance(chosen, str):
        return chosen
    return load_encoder(chosen, **options.rerank_loading(has_encoder=own is not None))


def _described(
    described: Method,
    how: SC4CIR,
    speaker: FormLanguage | None,
    texts: Encoder | None,
    own: Encoder | None,
    cost: Cost,
    benchmark: Benchmark,
) -> Method:
    """What the rank file says of a method whose rankings were ranked anew."""
    parts = [f"top {how.top}", " + ".join(each.upper() for each in how.used)]
    if benchmark.multi_turn:
        parts.append("the last turn" if how.turns == "last" else "each turn")
    notes = [described.notes, f"Ranked anew by SC4CIR ({how.paper})."]
    labels = []
    if speaker is not None:
        labels.append(language_label(speaker.identity))
        parts.append(f"words by {labels[-1]}")
        said = f"Language: {speaker.identity.text()}."
        notes += [said] if said not in described.notes else []
    if texts is not None:
        label = encoder_label(texts.identity)
        parts.append(f"S3 by {label}")
        labels += [label] if own is None or texts.identity != own.identity else []
        notes.append(f"Text encoder of S3: {texts.identity.text()}.")
    change: dict[str, Any] = {
        "name": renamed(described.name, how.label, labels),
        "reranking": _with_counts(", ".join(parts), cost.counts),
        "notes": " ".join(part for part in notes if part)[:_LONGEST_NOTES],
    }
    if how.asks:
        change["text_fields"] = described.text_fields or ["relative_caption"]
        change["caption_rule"] = described.caption_rule or _CAPTION_RULE
    if texts is not None:
        change |= trained_by_encoder(described, texts.identity, benchmark)
    if speaker is not None and asks_scene_graphs(speaker.identity):
        change["oracle"] = "scene_graphs"
    return Method.model_validate(described.to_dict() | change)


def _with_counts(settings: str, counts: str) -> str:
    """Settings and counts in one field; where there is no room for both, the settings are cut off."""
    room = _LONGEST - len(f"SC4CIR (); {counts}")
    return f"SC4CIR ({settings[:room]}); {counts}"


def renamed(name: str, reranker: str, labels: Sequence[str]) -> str:
    """A method's name with the re-ranker in it, before what stands in brackets, which the labels join.

    Example:
        >>> renamed("Image + text, sum (shapes encoder)", "SC4CIR", ["oracle"])
        'Image + text, sum + SC4CIR (shapes encoder, oracle)'
        >>> renamed("Random", "SC4CIR s1", [])
        'Random + SC4CIR s1'
    """
    method, _, rest = name.partition(" (")
    listed = [part for part in rest.removesuffix(")").split(", ") if part]
    inside = ", ".join([*listed, *(label for label in labels if label not in listed)])
    whole = f"{method[: LONGEST_NAME - len(reranker) - len(' + ')]} + {reranker}"
    return labelled(whole, inside) if inside else whole
