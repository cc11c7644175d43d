"""What a run of CIRR's pipeline ends with: a benchmark, one of its dialogue paths, and a page about it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from cir_datasets.common.atomic import write_whole
from cir_datasets.common.plots import INK, empty_figure, quiet_axes
from cir_datasets.common.stages import FAILED, Row
from cir_datasets.construction.cirr import answers as handed_in
from cir_datasets.construction.cirr.corpus import Corpus
from cir_datasets.construction.cirr.pairs import paths_of, sessions_of
from cir_datasets.construction.cirr.plan import DIALOGUES, PATHS
from cir_datasets.construction.folder import write_benchmark
from cir_datasets.construction.report import Example, Section, Step, table_of, write_report
from cir_datasets.construction.workspace import BENCHMARK, Workspace
from cir_datasets.registry.folder_card import PICTURES
from cir_datasets.registry.folders import CARD_FILE
from cir_datasets.rows.records import query_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT = "report.html"

METRICS = ("recall@1", "recall@5", "recall@10", "recall@50")
SUBSET_METRICS = ("recall_subset@1", "recall_subset@2", "recall_subset@3")
"""CIRR's; of small subsets those alone that not every ranking has in full."""
MAIN_METRIC = "mean(recall@5, recall_subset@1)"
DIALOGUE_METRIC = "final_recall@10"
"""What is looked for is only said in full at the last turn."""

DIALOGUE_TRAP = (
    "The ground truth of a session is the image that its last turn leads to; an earlier turn leads to the "
    "reference of the next one."
)

_EXAMPLES = 6


def write_output(
    workspace: Workspace, corpus: Corpus, *, name: str, title: str, settings: Mapping[str, Any]
) -> tuple[tuple[Path, ...], Path, dict[str, int]]:
    """Write benchmarks and page.

    Returns:
        The folders of the benchmarks, of queries and of sessions, as far as captions make any; the page;
        counts.
    """
    rows = {state.name: _rows(state.file) for state in workspace.states() if state.file.suffix == ".jsonl"}
    pairs = {row["pair"]: row for row in rows["pairs"]}
    captions = {row["pair"]: row["caption"] for row in rows.get("captions", ()) if FAILED not in row}
    members = {row["subset"]: row["members"] for row in rows["overlaps"] if FAILED not in row}
    soft = handed_in.soft_targets(rows["pairs"], rows.get("captions", ()))
    configs, galleries = _queries(pairs, captions, members, soft)
    paths = paths_of([pairs[pair] for pair in captions])
    dialogues = {
        split: sessions_of([path for path in paths if path["split"] == split], captions)
        for split in sorted({path["split"] for path in paths})
    }
    made: list[Path] = []
    parts: tuple[tuple[str, Mapping[str, list[Row]], dict[str, Any]], ...] = (
        (
            BENCHMARK,
            configs,
            {
                "name": name,
                "title": title,
                "summary": f"Retrieval in subsets of similar images of {corpus.name}, made as CIRR was.",
                # Without the reference there are size - 1 images to choose from.
                "metrics": METRICS + SUBSET_METRICS[: settings["plan"]["rule"]["size"] - 2],
                "main_metric": MAIN_METRIC,
            },
        ),
        (
            DIALOGUES,
            dialogues,
            {
                "name": f"{name}_{DIALOGUES}",
                "title": f"{title}, dialogue paths",
                "summary": f"Dialogues within and across subsets of similar images of {corpus.name}.",
                "main_metric": DIALOGUE_METRIC,
                "traps": (DIALOGUE_TRAP,),
            },
        ),
    )
    for folder, of, said in parts:
        root = workspace.folder / folder
        if not of:
            # Captions of an earlier call may have been outvoted since.
            (root / CARD_FILE).unlink(missing_ok=True)
            continue
        own = {split: galleries[split] for split in of}
        _write_pictures(root / PICTURES, corpus, sorted({one for many in own.values() for one in many}))
        made.append(
            write_benchmark(
                root,
                configs=of,
                galleries=own,
                reference="removed",
                image_paths=corpus.paths,
                picture_folder=corpus.folder,
                made={"pipeline": "cirr", **settings},
                **said,
            )
        )
    if dialogues:
        write_whole(
            workspace.folder / DIALOGUES / PATHS, b"".join(orjson.dumps(path) + b"\n" for path in paths)
        )
    counts = _counts(rows, captions, configs, dialogues, settings["plan"]["splits"])
    report = write_report(
        workspace.folder / REPORT,
        title=title,
        summary=f"Made of {counts['images']:,} images of {corpus.name} as CIRR was (Liu et al., ICCV 2021).",
        stages=workspace.states(),
        sections=_sections(rows, counts, captions, settings),
        open_picture=corpus.open,
    )
    return tuple(made), report, counts


def _queries(
    pairs: Mapping[str, Row],
    captions: Mapping[str, str],
    members: Mapping[int, Sequence[str]],
    soft: Mapping[str, Sequence[Row]],
) -> tuple[dict[str, list[Row]], dict[str, list[str]]]:
    configs: dict[str, list[Row]] = {}
    images: dict[str, set[str]] = {}
    for pair_id, caption in captions.items():
        pair = pairs[pair_id]
        configs.setdefault(pair["split"], []).append(
            query_row(
                pair_id,
                reference_image_id=pair["reference"],
                relative_caption=caption,
                target_image_id=pair["target"],
                subset_image_ids=list(members[pair["subset"]]),
                **({"target_soft": soft[pair_id]} if soft else {}),
            )
        )
        images.setdefault(pair["split"], set()).update(members[pair["subset"]])
    order = sorted(configs)
    return {split: configs[split] for split in order}, {split: sorted(images[split]) for split in order}


def _write_pictures(folder: Path, corpus: Corpus, images: Sequence[str]) -> None:
    """Files of pictures that are drawn; those of a folder stay where they are."""
    if corpus.folder is not None:
        return
    for image in images:
        file = folder / f"{image}.png"
        if not file.is_file():
            buffer = io.BytesIO()
            corpus.open(image).save(buffer, "PNG")
            write_whole(file, buffer.getvalue())


def _rows(file: Path) -> list[Row]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()] if file.is_file() else []


def _counts(
    rows: Mapping[str, Sequence[Row]],
    captions: Mapping[str, str],
    configs: Mapping[str, Sequence[Row]],
    dialogues: Mapping[str, Sequence[Row]],
    splits: Iterable[str],
) -> dict[str, int]:
    good = {stage: sum(FAILED not in row for row in found) for stage, found in rows.items()}
    used = Counter(row["split"] for row in rows["overlaps"] if FAILED not in row)
    return {
        "images": len(rows["images"]),
        "images that are used": good["images"],
        "first images tried": len(rows["subsets"]),
        "subsets": good["subsets"],
        "subsets that are used": good["overlaps"],
        **{f"subsets of {split} that are used": used[split] for split in splits},
        "pairs": len(rows["pairs"]),
        "dialogue paths": len(rows["paths"]),
        "captions": len(captions),
        **{f"queries of {split}": len(queries) for split, queries in configs.items()},
        **{f"sessions of {split}": len(sessions) for split, sessions in dialogues.items()},
    }


def _sections(
    rows: Mapping[str, Sequence[Row]],
    counts: Mapping[str, int],
    captions: Mapping[str, str],
    settings: Mapping[str, Any],
) -> list[Section]:
    left_out = Counter(
        (stage, _kind(row[FAILED])) for stage, found in rows.items() for row in found if FAILED in row
    )
    tables = [table_of("Counts", ("what", "number"), counts.items())]
    if left_out:
        rows_left = ((*which, number) for which, number in sorted(left_out.items()))
        tables.append(table_of("Left out", ("stage", "why", "rows"), rows_left))
    found = [Section("From images to queries", tuple(tables))]
    used = [row for row in rows["overlaps"] if FAILED not in row]
    found.append(
        Section(
            "Subsets",
            plots=(("Similarity to the first image, by place", _similarities(used)),),
            examples=tuple(_example(row, rows["pairs"], captions) for row in used[:_EXAMPLES]),
            notes=(_in_words(settings["plan"]),),
        )
    )
    if rows.get("answers"):
        found.append(_people(rows["answers"]))
    return found


def _in_words(plan: Mapping[str, Any]) -> str:
    rule = plan["rule"]
    return (
        f"The rule: below {rule['alike']}, of the next {rule['ranked']} each that is more than "
        f"{rule['apart']} below the last one added, {rule['size']} images in all; two subsets share "
        f"{plan['shared']} images at most."
    )


def _kind(why: str) -> str:
    """A reason without the numbers that make each its own."""
    return "".join(
        "#" if each.isdigit() else each for each in why.partition(" with subset")[0].partition(" as ")[0]
    )


def _example(subset: Row, pairs: Sequence[Row], captions: Mapping[str, str]) -> Example:
    own = [pair for pair in pairs if pair["subset"] == subset["subset"]]
    said = [
        f"{pair['places'][0] + 1} to {pair['places'][1] + 1}: {captions[pair['pair']]}"
        for pair in own
        if pair["pair"] in captions
    ]
    steps = tuple(
        Step(image, f"image {place + 1}", "" if place == 0 else f"{subset['similarities'][place - 1]:.4f}")
        for place, image in enumerate(subset["members"])
    )
    return Example(f"subset {subset['subset']} ({subset['split']})", steps, "; ".join(said))


def _people(answers: Sequence[Row]) -> Section:
    columns = ("annotator", "answers", "refused", "marked", "median_words", "median_seconds")
    rows = []
    for one in handed_in.annotators_of(answers):
        # As texts: a median may be a fraction.
        figures = ("" if one[name] is None else str(one[name]) for name in columns[1:])
        rows.append((one["annotator"] or "without a name", *figures))
    alike = handed_in.agreement(answers)
    note = f"Pairs that several annotators answered: {alike['pairs']}."
    if alike["decided_alike"] is not None:
        note += f" Both wrote, or both marked the pair, in {alike['decided_alike']:.1%} of the couples."
    if alike["shared_words"] is not None:
        note += f" Their captions share {alike['shared_words']:.1%} of their words."
    heads = tuple(name.replace("_", " ") for name in columns)
    return Section("Annotators", (table_of("Annotators", heads, rows),), notes=(note,))


def _similarities(subsets: Sequence[Row]) -> Figure:
    figure = empty_figure(6.0, 2.4, pads=(0.05, 0.05))
    axes = figure.subplots()
    quiet_axes(axes)
    by_place = list(zip(*(subset["similarities"] for subset in subsets), strict=True))
    axes.boxplot(by_place, showfliers=False, medianprops={"color": INK})
    axes.set_xticklabels([f"image {place}" for place in range(2, len(by_place) + 2)])
    axes.set_ylabel("cosine", fontsize=7)
    return figure
