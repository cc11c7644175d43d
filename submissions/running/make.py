"""From a benchmark and a method to a rank file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cir_datasets.registry.caption_rules import caption_rule as check_caption_rule
from cir_metrics.errors import MissingExtraError
from submissions.embeddings.embed import check_pictures, embed_gallery
from submissions.embeddings.pictures import pictures_of
from submissions.encoders.truncation import one_truncation_warning
from submissions.errors import MethodError
from submissions.methods.card import method_card
from submissions.methods.composing import Composer, Context
from submissions.methods.own import describe_method
from submissions.methods.protocols import Ranker, Scorer
from submissions.methods.registry import (
    PIXELS,
    composer_names,
    kind_of_class,
    method_of,
    methods_for,
    needs_of,
)
from submissions.methods.turns import Candidates, Turn, gallery_of, turns_of
from submissions.rank_file.depth import board_depth
from submissions.rank_file.model import Method, RankBundle, RankFile
from submissions.running.aggregation import Aggregation
from submissions.running.aggregation import aggregation as aggregation_of
from submissions.running.answers import Answers
from submissions.running.by_embeddings import rank_by_embeddings
from submissions.running.by_lists import rank_by_lists
from submissions.running.by_scores import rank_by_scores
from submissions.running.options import (
    LOADING,
    USUAL,
    check_counts,
    check_loading,
    check_pixels,
    check_unused,
    checked_encoder,
    checked_k,
    checked_language,
    checked_store,
    not_usual,
)
from submissions.running.search import check_search

if TYPE_CHECKING:
    from cir_datasets.rows.benchmark import Benchmark
    from submissions.embeddings.store import EmbeddingStore
    from submissions.encoders.protocol import Encoder
    from submissions.language.protocol import Language

DEFAULT_AGGREGATION = "weighted"
"""How turns become one vector, unless the caller names another way: what CIRCLED's appendix B finds best."""


@one_truncation_warning()
def make_rank_file(
    benchmark: str | Benchmark,
    method: str | Composer | Scorer | Ranker,
    *,
    encoder: str | Path | Encoder | None = None,
    images: str | Path | None = None,
    aggregation: str | None = None,
    alpha: float | None = None,
    k: int | None = None,
    caption_rule: str | None = None,
    search: str = "exact",
    language: str | Language | None = None,
    checkpoint: str | Path | None = None,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    batch_size: int = 64,
    workers: int = 2,
    skip_missing: bool = False,
    store: EmbeddingStore | str | Path | None = None,
) -> RankFile:
    """Rank a benchmark by a method.

    Args:
        benchmark: an id or a benchmark.
        method: a name of `method_names()`, `module:Class`, or a `Composer`, `Scorer` or `Ranker`
            of your own.
        encoder: a name or folder for `load_encoder`, or an encoder; "pixels" for the methods that need no
            weights. Default: the shipped encoder on benchmarks of shapes; elsewhere a method that needs one
            asks for it.
        images: folder of the images; default: below `CIR_IMAGES`, and shapes are drawn.
        aggregation: how a session's turns become one ranking: latest, average, weighted or feedback;
            default: weighted, without weights what the method says.
        alpha: of weighted, from 0 (excluded) to 1; default 0.8.
        k: images a ranking, from 1 to 1,000; default: what the board's metrics use. Where the gallery holds
            fewer, all of them are ranked.
        caption_rule: name of the rule that makes text of captions; default: `strip_capitalize_and` where a
            question has several captions, else `single`.
        search: exact, flat, hnsw or ivfpq.
        language: a name for `load_language`, or a language backend, for methods that caption or merge.
        checkpoint: a method's own trained weights.
        revision: the encoder's commit on the Hub.
        device: where the encoder runs: auto, cpu, cuda, ...
        dtype: type of the encoder's numbers: float32, float16, bfloat16.
        batch_size: images or texts that are encoded at once.
        workers: processes that read images.
        skip_missing: keep images that are missing or unreadable as members of the gallery, behind all that
            were seen, instead of refusing to start.
        store: where embeddings are kept, a store or its folder; default: below `CIR_CACHE_HOME`.

    Returns:
        A valid rank file; the same call gives the same bytes on the same machine.

    Raises:
        UnknownNameError: no benchmark, method, aggregation, caption rule or search has that name.
        MethodError: the method cannot rank this benchmark, an option does not fit it, or k is out of range.
        SourceError: the benchmark's data or images are not at hand.
        EncoderError: the encoder cannot be loaded.
        MissingExtraError: torch, transformers or FAISS is needed and not installed.

    Example:
        >>> made = make_rank_file("shapes/val", "image_text_sum", encoder="pixels", k=10)
        >>> made.method.name, len(made.rankings)
        ('Image + text, sum', 300)
    """
    encoder, store = checked_encoder(encoder), checked_store(store)
    options = {
        "encoder": encoder,
        "images": images,
        "caption_rule": caption_rule,
        "search": search,
        "language": checked_language(language),
        "checkpoint": checkpoint,
        "revision": revision,
        "device": device,
        "dtype": dtype,
        "batch_size": batch_size,
        "workers": workers,
        "skip_missing": skip_missing,
    }
    check_search(search)
    if isinstance(benchmark, str):
        import cir_datasets

        benchmark = cir_datasets.load(benchmark)
    elif not hasattr(benchmark, "spec"):
        raise MethodError(
            f"benchmark= is of type {type(benchmark).__name__}. "
            "Fix: pass an id, or what cir_datasets.load gives."
        )
    depth = checked_k(board_depth(benchmark).used if k is None else k)
    how = None
    if aggregation is not None or alpha is not None:
        if not benchmark.multi_turn:
            raise MethodError(
                f"{benchmark.id} has no turns to aggregate. Fix: leave --aggregation and --alpha out."
            )
        how = aggregation_of(aggregation or DEFAULT_AGGREGATION, alpha=alpha)
    name = method if isinstance(method, str) else type(method).__name__
    who = _method(method, encoder, checkpoint)
    kind = kind_of_class(who)
    if kind != "composer":
        unused = not_usual(options) + (["aggregation"] if kind == "ranker" and how is not None else [])
        check_unused(name, unused)
        if kind == "ranker":
            return _by_lists(name, cast("Ranker", who), benchmark, depth)
        return _by_scores(name, cast("Scorer", who), benchmark, depth, how)
    check_counts(batch_size, workers)
    ranker = cast("Composer", who)
    gallery = gallery_of(benchmark)
    turns = [turn for row in benchmark.rows() for turn in turns_of(row)]
    rule = caption_rule or default_caption_rule(turns)
    check_caption_rule(rule)
    speaker = _language(name, ranker, language)
    chosen = _own_encoder(name, ranker, encoder) or chosen_encoder(name, benchmark, encoder)
    check_pixels(name, chosen)
    check_loading(chosen, options)
    pictures = pictures_of(benchmark, images=images)
    if isinstance(chosen, str):
        from submissions.encoders.loading import load_encoder

        try:
            chosen = load_encoder(chosen, revision=revision, device=device, dtype=dtype)
        except MissingExtraError as error:
            if encoder is None and name in methods_for(benchmark):
                raise MissingExtraError(
                    f"{error}, or add --encoder {PIXELS}, which needs no torch"
                ) from error
            raise
    if not describe_method(name, ranker, chosen).text_fields and caption_rule is not None:
        raise MethodError(f"{name} reads no captions, and has no use for --caption-rule. Fix: leave it out.")
    _check_references(name, turns, gallery, benchmark, images, skip_missing)
    embedded = embed_gallery(
        chosen, pictures, store=store, batch_size=batch_size, workers=workers, skip_missing=skip_missing
    )
    context = Context(chosen, embedded, pictures, speaker, benchmark, rule, images, batch_size, skip_missing)
    how = how or aggregation_of(DEFAULT_AGGREGATION)
    made, answers = rank_by_embeddings(name, ranker, context, gallery, turns, how, depth, search)
    return _file(benchmark, made, answers)


@one_truncation_warning()
def make_bundle(suite: str, method: str | Composer | Scorer | Ranker, **options: Any) -> RankBundle:
    """Rank every benchmark of a suite by a method; an encoder is loaded once.

    Args:
        suite: the suite's id, such as `fashioniq/val`.
        method: as for `make_rank_file`.
        options: as for `make_rank_file`.

    Raises:
        UnknownNameError: no suite has that id, and as for `make_rank_file`.
        MethodError: as for `make_rank_file`.
    """
    from cir_datasets.registry.suites import suite as suite_of

    declared, encoder = suite_of(suite), checked_encoder(options.get("encoder"))
    if (
        isinstance(encoder, str)
        and kind_of_class(_method(method, encoder, options.get("checkpoint"))) == "composer"
    ):
        from submissions.encoders.loading import load_encoder

        check_pixels(method if isinstance(method, str) else type(method).__name__, encoder)
        loading = {name: options.pop(name, USUAL[name]) for name in LOADING}
        check_loading(encoder, loading)
        options["encoder"] = load_encoder(encoder, **loading)
    runs = tuple(make_rank_file(each, method, **options) for each in declared.benchmarks)
    return RankBundle(suite, runs)


def default_caption_rule(turns: Sequence[Turn]) -> str:
    """The caption rule of questions unless the caller names one.

    Example:
        >>> default_caption_rule([Turn("1", None, "red", ("red",))])
        'single'
    """
    return "strip_capitalize_and" if any(len(turn.captions) > 1 for turn in turns) else "single"


def chosen_encoder(name: str, benchmark: Benchmark, encoder: str | Encoder | None) -> str | Encoder:
    """The encoder of a call; without one the shipped encoder, where its pictures are ranked.

    Args:
        name: the method's, for the message.
        benchmark: what is ranked.
        encoder: what the call says.

    Raises:
        MethodError: none was given, and the benchmark has no encoder of its own.
    """
    from submissions.encoders.protocol import SHAPES_ENCODER

    if encoder is not None:
        return encoder
    if benchmark.spec.card.source.publisher == "embedded":
        return SHAPES_ENCODER
    raise MethodError(
        f"{name} needs an encoder for {benchmark.id}. "
        "Fix: add --encoder NAME (encoder=), such as openai/clip-vit-large-patch14 or a folder."
    )


def _method(
    method: str | Composer | Scorer | Ranker,
    encoder: str | Encoder | None,
    checkpoint: str | Path | None,
) -> Composer | Scorer | Ranker:
    if isinstance(method, type):
        raise MethodError(f"{method.__name__} is a class. Fix: pass a method made of it, or its name.")
    if not isinstance(method, str):
        if kind_of_class(method) is None:
            raise MethodError(
                f"{type(method).__name__} has none of compose, scores and rank. Fix: see docs/running.md."
            )
        return method
    return method_of(
        method,
        encoder=encoder if isinstance(encoder, str) else None,
        checkpoint=None if checkpoint is None else str(checkpoint),
    )


def _own_encoder(name: str, ranker: Composer, encoder: str | Encoder | None) -> str | None:
    """The encoder that a method's checkpoint is; None where it is none, or was loaded by the caller."""
    own: str | None = getattr(ranker, "own_encoder", None)
    if own is not None and isinstance(encoder, str) and encoder != own:
        raise MethodError(f"{name} brings its own encoder, {own}. Fix: leave --encoder out.")
    return own if encoder is None else None


def _by_lists(name: str, ranker: Ranker, benchmark: Benchmark, depth: int) -> RankFile:
    described = describe_method(name, ranker)
    return _file(benchmark, described, rank_by_lists(name, ranker, gallery_of(benchmark), depth))


def _by_scores(
    name: str, ranker: Scorer, benchmark: Benchmark, depth: int, how: Aggregation | None
) -> RankFile:
    how = how or aggregation_of(getattr(ranker, "aggregation", "latest"))
    described = describe_method(name, ranker)
    answers = rank_by_scores(name, ranker, gallery_of(benchmark), how, depth)
    if benchmark.multi_turn:
        described = described.model_copy(update={"aggregation": how.text})
    return _file(benchmark, described, answers)


def _check_references(
    name: str,
    turns: Sequence[Turn],
    gallery: Candidates,
    benchmark: Benchmark,
    images: str | Path | None,
    skip_missing: bool,
) -> None:
    """Find missing references outside the gallery before it is encoded; a user's own method may read none."""
    outside = [turn.reference for turn in turns if turn.reference and turn.reference not in gallery.place]
    if outside and name in composer_names() and "reference" in method_card(name).reads:
        pictures = pictures_of(benchmark, images=images, ids=list(dict.fromkeys(outside)))
        check_pictures(pictures, skip_missing=skip_missing)


def _language(name: str, ranker: Any, language: str | Language | None) -> Language | None:
    if "language" not in needs_of(ranker):
        if language is not None:
            raise MethodError(f"{name} asks no language backend. Fix: leave --language out.")
        return None
    if language is None:
        raise MethodError(
            f"{name} needs a language backend. "
            "Fix: add --language NAME: oracle (shapes), openai:MODEL or transformers:FOLDER."
        )
    if not isinstance(language, str):
        return language
    from submissions.language import load_language

    loaded: Language = load_language(language)
    return loaded


def _file(benchmark: Benchmark, method: Method, answers: Answers) -> RankFile:
    return RankFile(
        benchmark=benchmark.id,
        benchmark_version=benchmark.version,
        method=method,
        rankings=answers.rankings,
        subset_rankings=answers.subset_rankings,
    )
