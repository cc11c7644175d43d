"""Every rule of docs/doors.yaml at every door that it concerns: one table, one generated test."""

from __future__ import annotations

import functools
import json
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_world as worlds
import numpy as np
import pytest
import yaml
from benchmark_world import dialogues
from transcript_mutations import lines as transcript_lines
from typer.testing import CliRunner

import cir_datasets
import cir_metrics
import submissions
from cir_datasets.construction.user_rows import custom_benchmark
from cir_datasets.registry import spec
from cir_datasets.rows.benchmark import Benchmark
from cir_metrics.errors import CirError
from submissions.transcripts.checking import check_transcript

ROOT = Path(__file__).resolve().parents[2]
TABLE = yaml.safe_load((ROOT / "docs" / "doors.yaml").read_text(encoding="utf-8"))
CASES = [
    pytest.param(door, rule, outcome, id=f"{door}: {rule}")
    for door, rules in TABLE["doors"].items()
    for rule, outcome in rules.items()
]

Pairs = list[tuple[Any, Any]]
"""Query and ranking, once a row."""


class World:
    """A benchmark, and a sound answer to each of its queries."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark
        gallery = list(benchmark.gallery or ())
        self.rows = benchmark.rows()
        self.pairs: Pairs = []
        for number, row in enumerate(self.rows):
            turned = gallery[number + 1 :] + gallery[: number + 1]
            kept = [image for image in turned if image != row["reference_image_id"]]
            self.pairs.append((row["query_id"], kept[:50]))


POOL = [f"video-{number // 8:05d}/{25 * (number % 8):06d}.jpg" for number in range(64)]
ZEROSIGHT = World(
    Benchmark.from_rows(
        spec("zerosight/test"),
        [
            worlds.query(
                str(n),
                POOL[40 + n],
                "",
                target_image_id=None,
                positive_image_ids=POOL[n : n + 2],
                aspects=["addition"],
            )
            for n in range(3)
        ],
        POOL,
    )
)
CIRCO, CIRR, DRESS = (World(made) for made in (worlds.circo(), worlds.cirr(), worlds.fashioniq("dress")))
OF_SERVERS = {"cirr-server": CIRR, "zerosight": ZEROSIGHT, "fashioniq": DRESS}


def arrays(pairs: Pairs) -> tuple[list[Any], list[Any], Any]:
    """Rankings as ids of rows, ids of columns, and scores: what is not ranked is last."""
    images = list(pairs[0][1])
    there = set(map(same_image, images))
    images += [image for image in CIRCO.benchmark.gallery or () if same_image(image) not in there]
    places = {same_image(image): column for column, image in enumerate(images)}
    scores = np.full((len(pairs), len(images)), -1000.0, dtype=np.float32)
    for row, (_, ranking) in enumerate(pairs):
        for rank, image in enumerate(ranking):
            scores[row, places[same_image(image)]] = -rank
    return [query for query, _ in pairs], images, scores


def same_image(image: Any) -> str:
    """An image of CIRCO, however it is spelled."""
    text = str(image).rpartition("/")[2].removesuffix(".jpg").removesuffix(".png")
    return text.zfill(12) if text.isdigit() else text


def checked(content: bytes, world: World) -> Any:
    """A file's rankings; refused where validation finds an error, warned where an answer counts once."""
    report = submissions.validate(content, world.benchmark, name="run", part=True)
    if not report.ok or report.rank_file is None:
        raise submissions.RefusedError("run", report)
    for found in report.findings:
        if found.code == "repeated-query":
            warnings.warn(found.message, stacklevel=2)
    assert isinstance(report.rank_file, submissions.RankFile)
    return dict(report.rank_file.rankings)


def header(world: World) -> dict[str, Any]:
    benchmark = world.benchmark
    own = {"format_version": 1, "benchmark": benchmark.id, "benchmark_version": benchmark.version}
    return {"format": "cir-rank-file", **own, "method": {"name": "toy"}}


def json_object(pairs: Pairs, **more: Any) -> str:
    """JSON whose keys may be there twice."""
    entries = [*more.items(), *((str(query), list(ranking)) for query, ranking in pairs)]
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in entries) + "}"


def native(pairs: Pairs, world: World) -> Any:
    head = json.dumps(header(world))[:-1]
    return checked(f'{head}, "rankings": {json_object(pairs)}}}'.encode(), world)


def as_lines(pairs: Pairs, world: World) -> Any:
    rows = [{"query_id": query, "ranking": list(ranking)} for query, ranking in pairs]
    head = {**header(world), "format": "cir-rank-file-lines"}
    return checked(b"".join(json.dumps(row).encode() + b"\n" for row in (head, *rows)), world)


def as_parquet(pairs: Pairs, world: World) -> Any:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    rankings = [list(map(str, ranking)) for _, ranking in pairs]
    table = pa.table({"query_id": [query for query, _ in pairs], "ranking": rankings})
    written = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"cir-rank-file": json.dumps(header(world))}), written)
    return checked(written.getvalue(), world)


def as_trec(pairs: Pairs, world: World) -> Any:
    rows = (f"{q} Q0 {image} {n + 1} {-n} toy\n" for q, ids in pairs for n, image in enumerate(ids))
    return checked("".join(rows).encode(), world)


def as_json_run(pairs: Pairs, world: World) -> Any:
    scored = (
        (q, ", ".join(f"{json.dumps(str(image))}: {-n}" for n, image in enumerate(ids))) for q, ids in pairs
    )
    entries = (f"{json.dumps(str(query))}: {{{scores}}}" for query, scores in scored)
    return checked(f"{{{', '.join(entries)}}}".encode(), world)


def plain(pairs: Pairs, world: World) -> Any:
    return checked(json_object(pairs).encode(), world)


def cirr_server(pairs: Pairs, world: World) -> Any:
    return checked(json_object(pairs, version="rc2", metric="recall").encode(), world)


def starter_kit(pairs: Pairs, world: World) -> Any:
    items = [
        {"candidate": row["reference_image_id"], "captions": row["captions"], "ranking": list(ranking)}
        for row, (_, ranking) in zip(world.rows, pairs, strict=True)
    ]
    return checked(json.dumps(items).encode(), world)


def is_unordered(pairs: Pairs) -> bool:
    return isinstance(pairs[0][1], set | frozenset | type({}.keys()))


def as_scores(pairs: Pairs, form: str) -> dict[str, Any]:
    """Query ids, image ids and scores."""
    unordered = is_unordered(pairs)
    queries, images, scores = arrays([(query, list(ranking)) for query, ranking in pairs])
    if form == "frame":
        import pandas as pd

        return {"scores": pd.DataFrame(scores, index=queries, columns=images)}
    if form == "tensor":
        import torch

        numbers = torch.tensor([int(image) for image in images])
        return {"scores": torch.tensor(scores), "query_ids": queries, "image_ids": numbers}
    return {"scores": scores, "query_ids": set(queries) if unordered else queries, "image_ids": images}


def from_scores(pairs: Pairs, form: str) -> Any:
    given = as_scores(pairs, form)
    made = submissions.rank_file_from_scores(CIRCO.benchmark, given.pop("scores"), method="toy", **given)
    return dict(made.rankings)


def from_embeddings(pairs: Pairs, form: str) -> Any:
    given = as_scores(pairs, form)
    queries = given.pop("scores")
    unit: Any = np.eye(queries.shape[1], dtype=np.float32)
    if form == "frame":
        import pandas as pd

        unit = pd.DataFrame(unit, index=queries.columns)
        queries = pd.DataFrame(queries.to_numpy(), index=queries.index)
    made = submissions.rank_file_from_embeddings(
        CIRCO.benchmark, queries, unit, method="toy", normalise=False, **given
    )
    return dict(made.rankings)


def from_lists(pairs: Pairs, form: str) -> Any:
    given: Any = dict(pairs)
    if form == "frame":
        import pandas as pd

        given = pd.DataFrame([ranking for _, ranking in pairs], index=[query for query, _ in pairs])
    return dict(submissions.rank_file_from_lists(CIRCO.benchmark, given, method="toy").rankings)


def row_of(query: Any) -> dict[str, Any]:
    """The row of a query of CIRCO, under the id that is given."""
    return {**next(row for row in CIRCO.rows if row["query_id"] == str(query)), "query_id": query}


def given_to_metrics(pairs: Pairs, form: str) -> tuple[Any, Any]:
    predictions: Any = [ranking for _, ranking in pairs]
    references: Any = [row_of(query) for query, _ in pairs]
    if form == "frame":
        import pandas as pd

        queries = [query for query, _ in pairs]
        shuffled = pd.DataFrame(predictions, index=queries)[::-1]
        return shuffled, pd.DataFrame(references).set_index("query_id")
    if form == "tensor":
        import torch

        predictions = torch.stack(list(predictions))
    return predictions, references


def single_turn(pairs: Pairs, form: str) -> Any:
    predictions, references = given_to_metrics(pairs, form)
    return cir_metrics.evaluate_single_turn(
        ["map@5", "recall@1", "mean_rank"], predictions, references
    ).values


def multi_turn(pairs: Pairs, form: str) -> Any:
    references: Any = [
        {"session_id": query, "ground_truth_ids": row_of(query)["positive_image_ids"], "num_turns": 2}
        for query, _ in pairs
    ]
    rankings: Any = [[ranking, ranking] for _, ranking in pairs]
    if form == "frame":
        import pandas as pd

        rankings = pd.DataFrame(rankings, index=[query for query, _ in pairs])[::-1]
        references = pd.DataFrame(references).set_index("session_id")
    return cir_metrics.evaluate_multi_turn(["final_recall@5", "mean_rank"], rankings, references).values


def compute(pairs: Pairs, form: str) -> Any:
    predictions, references = given_to_metrics(pairs, form)
    return module().compute(predictions=predictions, references=references, ks=(5, 10))


def add(pairs: Pairs, form: str) -> Any:
    metric = module()
    for query, ranking in pairs:
        metric.add(prediction=ranking, reference=row_of(query))
    return metric.compute(ks=(5, 10))


def add_batch(pairs: Pairs, form: str) -> Any:
    metric = module()
    for half in (pairs[:2], pairs[2:]):
        predictions, references = given_to_metrics(half, form)
        metric.add_batch(predictions=predictions, references=references)
    return metric.compute(ks=(5, 10))


def module() -> Any:
    from cir_metrics.map_at_k.map_at_k import MapAtK

    # A refused call leaves its file locked, and the next of that name waits a second for it.
    return MapAtK(experiment_id=uuid.uuid4().hex)


def user_rows(pairs: Pairs, form: str, folder: Path) -> Any:
    """A benchmark whose queries' targets are what the rankings begin with."""
    rows: Any = [
        {
            "query_id": query,
            "reference_image_id": worlds.coco(0),
            "relative_caption": f"like {ranking[0]}" if "\u202e" in str(ranking[0]) else "in red",
            "positive_image_ids": ranking[:2],
        }
        for query, ranking in pairs
        if not is_unordered(pairs)
    ]
    gallery: Any = list(CIRCO.benchmark.gallery or ())
    if is_unordered(pairs):
        rows, gallery = [{"query_id": "0"}], set(gallery)
    if form == "frame":
        import pandas as pd

        rows = pd.DataFrame(rows).set_index("query_id")
    made = custom_benchmark(folder.name, rows, gallery, folder=folder)
    return {row["query_id"]: row["positive_image_ids"] for row in made.rows()}


def ranked_by_command(pairs: Pairs, folder: Path) -> Any:
    """`cir rank`, in this process, on a benchmark of one's own with CIRCO's ids."""
    queries, images, scores = arrays(pairs)
    np.save(folder / "S.npy", scores)
    (folder / "Q.json").write_text(json.dumps(queries))
    (folder / "G.json").write_text(json.dumps(images))
    custom_benchmark(
        "ranked", CIRCO.rows, list(CIRCO.benchmark.gallery or ()), folder=folder / "ranked", reference="kept"
    )
    options = ["--scores", "S.npy", "--queries", "Q.json", "--images", "G.json", "--out", "run.json"]
    paths = [str(folder / each) if "." in each else each for each in options]
    done = CliRunner().invoke(app(), ["rank", "--benchmark", "ranked/test", "--method", "toy", *paths])
    if done.exit_code:
        raise CirError(done.output)
    return json.loads((folder / "run.json").read_text())["rankings"]


@functools.cache
def app() -> Any:
    from leaderboard.cli import build

    return build()


def without_what_it_needs() -> Any:
    """Transcripts without settings, without `k`, and with a silent end that has no reason."""
    for part in ("settings", "k"):
        with pytest.raises(CirError):
            played(part)
    return played("reason")


def played(rule: str) -> Any:
    """A transcript that is changed as a rule says."""
    lines = transcript_lines()
    head, *rounds = lines
    changed = rounds[0]
    if rule == "spelling":
        changed["top"] = [f"pictures/{changed['top'][0]}.png", *changed["top"][1:]]
        changed["target"] += ".jpg"
    elif rule == "twice_spelled":
        changed["top"][1] = f"pictures/{changed['top'][0]}.png"
    elif rule == "unknown":
        for each in rounds:
            each["top"] = [f"other-{n}" for n, _ in enumerate(each["top"])]
    elif rule == "padded":
        rounds.append(dict(changed))
    elif rule == "contradicted":
        rounds.append({**changed, "rank": changed["rank"] + 1})
    elif rule == "direction":
        changed["caption"] += "\u202e"
    elif rule == "settings":
        del head["settings"]
    elif rule == "k":
        del head["settings"]["k"]
    elif rule == "reason":
        next(each for each in rounds if each["end"].startswith("silent"))["end"] = "silent: "
    content = b"".join(json.dumps(each).encode() + b"\n" for each in (head, *rounds))
    done = check_transcript(content, dialogues.small_benchmark(), name="talk.jsonl")
    if not done.report.ok or done.transcript is None:
        raise submissions.RefusedError("talk.jsonl", done.report)
    for found in done.report.findings:
        if found.code == "repeated-query":
            warnings.warn(found.message, stacklevel=2)
    return done.transcript.rounds


PYTHON: dict[str, Callable[[Pairs, str], Any]] = {
    "rank_file_from_scores": from_scores,
    "rank_file_from_embeddings": from_embeddings,
    "rank_file_from_lists": from_lists,
    "compute": compute,
    "add": add,
    "add_batch": add_batch,
    "cir_metrics.evaluate_single_turn": single_turn,
    "cir_metrics.evaluate_multi_turn": multi_turn,
}
FILES: dict[str, Callable[[Pairs, World], Any]] = {
    "native": native,
    "lines": as_lines,
    "parquet": as_parquet,
    "trec": as_trec,
    "json-run": as_json_run,
    "plain lists": plain,
    "cirr-server": cirr_server,
    "circo-server": plain,
    "zerosight": plain,
    "fashioniq": starter_kit,
}


def changed(pairs: Pairs, rule: str, outcome: str, door: str) -> Pairs:
    """The sound answers, changed as a rule says."""
    (query, ranking), *others = pairs
    if rule == "unordered":
        return [(each, dict.fromkeys(ids).keys()) for each, ids in pairs]
    if rule == "number":
        return [(int(each), ids) for each, ids in pairs]
    if rule in ("both", "padded"):
        return [*pairs, (int(query) if rule == "both" else query, ranking)]
    if rule == "respelled":
        again = [f"pictures/{ranking[0]}.jpg", *ranking[1:-1], f"{ranking[-1]}.png"]
        return [*pairs, (int(query) if door == "rank_file_from_lists" else query, again)]
    if rule == "contradicted":
        return [*pairs, (int(query) if door == "rank_file_from_lists" else query, ranking[::-1])]
    if rule == "spelling":
        number = int(ranking[2]) if ranking[2].isdigit() else ranking[2]
        short = ranking[3].lstrip("0") if ranking[3].isdigit() else ranking[3]
        files = [f"pictures/{ranking[0]}.jpg", f"{ranking[1]}.png", number, short, *ranking[4:]]
        return [(query, files), *others]
    if rule == "twice_spelled":
        return [(query, [ranking[0], f"pictures/{ranking[0]}.png", *ranking[2:]]), *others]
    if rule == "unknown":
        return [(each, [f"other_{n}_img" for n, _ in enumerate(ids)]) for each, ids in pairs]
    if rule == "direction":
        return [(query, [ranking[0] + "\u202e", *ranking[1:]]), *others]
    if rule == "tensor" and "scores" not in door and "embeddings" not in door:
        import torch

        return [(each, torch.tensor([int(image) for image in ids])) for each, ids in pairs]
    return pairs


def through(door: str, pairs: Pairs, rule: str, folder: Path) -> Any:
    form = rule if rule in ("frame", "tensor") else ""
    if door == "custom_benchmark":
        return user_rows(pairs, form, folder / ("own" if rule else "sound"))
    if door == "cir rank":
        return ranked_by_command(pairs, folder)
    if door == "transcripts":
        return without_what_it_needs() if rule == "header" else played(rule)
    if door == "measure":
        return cir_datasets.measure({"circo/val"} if rule == "unordered" else CIRCO.rows, tags=False)  # type: ignore[arg-type]
    if door in PYTHON:
        return PYTHON[door](pairs, form)
    return FILES[door](pairs, OF_SERVERS.get(door, CIRCO))


@pytest.mark.parametrize(("door", "rule", "outcome"), CASES)
def test_every_rule_holds_at_every_door(
    door: str, rule: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIR_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CIR_BENCHMARKS", "")
    sound = OF_SERVERS.get(door, CIRCO).pairs
    given = changed(sound, rule, outcome, door)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if outcome == "refused":
            with pytest.raises(CirError):
                through(door, given, rule, tmp_path)
            return
        found = through(door, given, rule, tmp_path)
    assert found == through(door, sound, "", tmp_path)
    own = [each for each in said if issubclass(each.category, UserWarning)]
    assert bool(own) == (outcome == "once"), [str(each.message) for each in own]


def test_every_rule_and_every_door_is_named_once() -> None:
    assert {rule for rules in TABLE["doors"].values() for rule in rules} == set(TABLE["rules"])
    special = {"custom_benchmark", "cir rank", "transcripts", "measure"}
    assert set(TABLE["doors"]) == special | set(PYTHON) | set(FILES)
