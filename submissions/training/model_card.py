"""A trained checkpoint's folder as a model repository: README.md, `.eval_results/`, and the way to the Hub.

Numbers come from a rank file that the checkpoint makes and `score` judges, each with its signature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cir_datasets.common.atomic import write_whole
from cir_datasets.publishing.hub import check_repository, hub_push
from cir_datasets.registry.schema import main_metric_terms
from cir_metrics.errors import CallError
from cir_metrics.sums import exact_mean
from submissions.encoders.protocol import SHAPES_ENCODER
from submissions.errors import CheckpointError
from submissions.methods.card import method_card
from submissions.methods.heads.checkpoints import CONFIG, WEIGHTS
from submissions.methods.heads.wordpieces import TOKENIZER

if TYPE_CHECKING:
    from submissions.encoders.protocol import Encoder
    from submissions.scoring.score_report import ScoreReport

PAGE, RESULTS = "README.md", ".eval_results"

_UNFOLDED = 2**20


def check_push(repository: str, benchmarks: Iterable[str | None], *, even_private: bool = False) -> bool:
    """Refuse, before anything is trained, what must not be pushed.

    A checkpoint holds words of the captions that it was trained on, and numbers of what it was measured on.

    Args:
        repository: where it is to go, `ORG/NAME`.
        benchmarks: ids of those that it was trained or measured on; None is left out.
        even_private: push it though a benchmark's card says `private: true`.

    Returns:
        Whether one is private, so that the repository must be private.

    Raises:
        CallError: `repository` is not an id, or a benchmark is private and `even_private` is false.
        UnknownNameError: no benchmark has that name.
    """
    from cir_datasets.registry import members_of, spec

    check_repository("--push", repository)
    cards = (spec(member).card for each in benchmarks if each is not None for member in members_of(each))
    names = [card.name for card in cards if card.private]
    if names and not even_private:
        raise CallError(
            f"--push {repository}: the card of {names[0]} says private: true, and a checkpoint holds words "
            "of its captions. Fix: push it to a private repository with --even-private, or write "
            "private: false in its card.yaml."
        )
    return bool(names)


def check_report(benchmark_id: str, images: str | Path | None = None) -> None:
    """Refuse, before anything is trained, a benchmark that could not be ranked and scored at the end.

    Args:
        benchmark_id: as of `describe_checkpoint`.
        images: folder of its images; None looks below `CIR_IMAGES`, and draws shapes.

    Raises:
        UnknownNameError: no benchmark has that name.
        CallError: its ground truth is withheld.
        MissingImagesError: pictures are missing.
        SourceError: the data or the folder of images is not available.
    """
    import cir_datasets
    from submissions.embeddings.embed import check_gallery
    from submissions.embeddings.pictures import pictures_of

    benchmark = cir_datasets.load(benchmark_id)
    if benchmark.ground_truth_withheld:
        raise CallError(
            f"--report {benchmark_id}: its publisher withholds the ground truth. "
            "Fix: name a split whose ground truth is public, such as cirr/val."
        )
    check_gallery(pictures_of(benchmark, images=images), skip_missing=False)


def describe_checkpoint(
    folder: Path,
    encoder: Encoder,
    *,
    report: str | None = None,
    images: str | Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Write the model card, and where a benchmark is named its numbers and `.eval_results/`.

    Args:
        folder: a checkpoint of `cir train cirplant` or `cir train tirg`.
        encoder: the encoder that it was trained on.
        report: id of a benchmark that is ranked and scored; None leaves a card that is there as it is.
        images: folder of the benchmark's images.
        say: gets a line about what is done.

    Raises:
        CirError: the benchmark cannot be ranked or scored.
    """
    described = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    if report is None:
        if not (folder / PAGE).is_file():
            _write(folder / PAGE, _page(described, None))
        return
    import submissions

    name = described["model_type"]
    say(f"ranking {report} for the model card ...")
    made = submissions.make_rank_file(report, name, checkpoint=folder, encoder=encoder, images=images)
    scored = submissions.score(made)
    _write(folder / RESULTS / f"{re.sub(r'[^a-z0-9_]', '_', report)}.yaml", _results(scored))
    _write(folder / PAGE, _page(described, scored))


def push_checkpoint(
    folder: Path, repository: str, *, private: bool = False, only_private: bool = False
) -> str:
    """Upload a checkpoint in one commit; the commit's address. What else lies in the folder is not sent.

    The token is the one that huggingface_hub finds: `HF_TOKEN`, or `hf auth login`.

    Args:
        folder: with `config.json`.
        repository: `ORG/NAME`, made where it is not there yet.
        private: whether a repository that is made is private.
        only_private: refuse a repository that is public.

    Raises:
        CallError: `repository` is not an id.
        CheckpointError: the folder holds no checkpoint, the repository is public and must not be, or the Hub
            refused or could not be reached; the last revision there is untouched.
    """
    from huggingface_hub import CommitOperationAdd

    check_repository("--push", repository)
    if not (folder / CONFIG).is_file():
        raise CheckpointError(f"{folder}: holds no {CONFIG}. Fix: name the folder of a finished training.")
    own = [folder / name for name in (CONFIG, WEIGHTS, *TOKENIZER, PAGE)]
    files = [
        path
        for path in (*own, *sorted((folder / RESULTS).glob("*.yaml")))
        if path.is_file() and not path.is_symlink()
    ]
    operations: list[Any] = [
        CommitOperationAdd(path.relative_to(folder).as_posix(), str(path)) for path in files
    ]
    with hub_push(repository, CheckpointError) as there:
        there.api.create_repo(repository, private=private or only_private, exist_ok=True)
        there.step = "reading whether it is private"
        if only_private and there.api.model_info(repository).private is not True:
            raise CheckpointError(
                f"{there.url}: is public, and the checkpoint was trained or measured on what is private. "
                "Nothing was pushed. Fix: name a repository that is private, or that is not there yet."
            )
        there.step = "uploading and committing"
        commit = there.api.create_commit(
            repository, operations, commit_message=f"{folder.name}, by cir-benchmarks"
        )
    return str(commit.commit_url)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode(), durable=True)


def _results(scored: ScoreReport) -> str:
    """The main metric as the Hub's boards read it, with the signatures of its parts."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    terms = [name for name in main_metric_terms(scored.main_metric) if name in scored.metrics]
    value = exact_mean([scored.metrics[name] for name in terms])
    signatures = "; ".join(scored.signature_text(name) for name in terms)
    entry = EvalResultEntry(
        dataset_id=scored.benchmark.partition("/")[0],
        task_id=re.sub(r"[^a-z0-9_]", "_", scored.benchmark),
        value=round(100 * value, 2),
        notes=f"{scored.main_metric} in per cent; {signatures}",
    )
    return yaml.safe_dump(
        eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True, width=_UNFOLDED
    )


def _page(described: Mapping[str, Any], scored: ScoreReport | None) -> str:
    """The model card: what it is, how it was trained, its numbers with their signatures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    name, model = described["model_type"], described["encoder"]["model"]
    head = {
        "library_name": "cir-benchmarks",
        "tags": ["composed-image-retrieval", name],
        "datasets": [described["training"]["benchmark"].partition("/")[0]],
    }
    pages = Environment(  # a page of Markdown, which nothing is escaped in
        loader=PackageLoader("submissions", "training"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return pages.get_template("model_card.md").render(
        **described,
        head=yaml.safe_dump(head, sort_keys=False).strip(),
        card=method_card(name),
        scored=scored,
        text=_text,
        per_cent=lambda value: f"{100 * value:.2f}",
        # Where a folder of it lies is the reader's matter.
        encoder_name=model if model == SHAPES_ENCODER or "/" in model else "ENCODER_FOLDER",
    )


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    return "float32" if value is None else str(value)
