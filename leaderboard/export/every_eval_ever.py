"""Standings as records of Every Eval Ever, the shared database of evaluation results.

The records follow version 0.3.0 of `eval.schema.json` of https://github.com/evaleval/every_eval_ever. It
takes the aggregates of a ranking task: any metric, its direction, its bounds. The rankings have no place
there, since its instances are prompts and answers; nothing is written query by query.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from leaderboard.export.hub import Exporter, HubResult, shown, task_id

SCHEMA_VERSION = "0.3.0"


def records(results: Sequence[HubResult], exporter: Exporter, at: datetime) -> dict[str, bytes]:
    """Records by path, one an entry: `every_eval_ever/data/BENCHMARK/OWNER/MODEL/UUID.json`.

    Args:
        results: from `leaderboard.export.hub.select`.
        exporter: who exports.
        at: when the records are made.
    """
    files = {}
    for one in results:
        path = f"every_eval_ever/data/{_benchmark(one)}/{one.repository}/{_uuid(one)}.json"
        files[path] = (json.dumps(_record(one, exporter, at), indent=2, ensure_ascii=False) + "\n").encode()
    return files


def _benchmark(one: HubResult) -> str:
    return f"cir_{task_id(one.board)}"


def _uuid(one: HubResult) -> uuid.UUID:
    """The same at each export of a submission, in the form of version 4, which the database wants."""
    named = f"{one.board.id} {one.entry.submission.id}".encode()
    return uuid.UUID(bytes=hashlib.sha256(named).digest()[:16], version=4)


def _record(one: HubResult, exporter: Exporter, at: datetime) -> dict[str, Any]:
    made = f"{at.timestamp():.0f}"
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{_benchmark(one)}/{one.repository}/{made}",
        "evaluation_timestamp": one.scored_at.isoformat(),
        "retrieved_timestamp": made,
        "source_metadata": {
            "source_name": exporter.server,
            "source_type": "evaluation_run",
            "source_organization_name": exporter.server,
            **({"source_organization_url": exporter.url} if exporter.url else {}),
            # Who made the model is not known here.
            "evaluator_relationship": "other",
            "additional_details": {
                "rankings": "computed and sent by the submitter",
                "scores": "computed from these rankings by the server",
            },
        },
        "eval_library": {"name": "cir-benchmarks", "version": _signature(one)["package_version"]},
        "model_info": {
            "name": one.entry.name,
            "id": one.repository,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                **_method(one),
            },
        },
        "evaluation_results": list(_results(one, exporter)),
    }


def _method(one: HubResult) -> dict[str, str]:
    """The method's fields, which the schema wants as texts."""
    fields = {key: value for key, value in one.entry.method.items() if key != "name"}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in fields.items()}


def _results(one: HubResult, exporter: Exporter) -> Iterator[dict[str, Any]]:
    board, entry = one.board, one.entry
    yield _value(one, exporter, board.primary, board.primary_direction, board.primary_unit, entry.value)
    for column in board.columns:
        found = entry.metrics.get(column.metric)
        if found is not None and column.metric != board.primary:
            yield _value(one, exporter, column.metric, column.direction, column.unit, found)


def _value(
    one: HubResult, exporter: Exporter, metric: str, direction: str, unit: str, value: float
) -> dict[str, Any]:
    signature = one.entry.submission.scores["signatures"].get(metric, _signature(one))  # type: ignore[index]
    bounds = {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
    ranks = {"score_type": "continuous", "min_score": 1.0, "max_score": "Infinity"}
    return {
        "evaluation_result_id": f"{task_id(one.board)}:{metric}",
        "evaluation_name": one.board.title,
        "source_data": {
            "dataset_name": one.board.benchmark,
            "source_type": "hf_dataset",
            "hf_repo": exporter.dataset,
            "hf_split": "+".join(dict.fromkeys(spec.config.split for spec in one.board.specs)),
            "samples_number": signature["n"],
        },
        "metric_config": {
            "metric_id": f"cir.{metric}",
            "metric_name": metric,
            "metric_unit": "proportion" if unit == "percent" else "rank",
            "lower_is_better": direction == "lower",
            **(bounds if unit == "percent" else ranks),
        },
        "score_details": {"score": shown(value, unit), "details": {"signature": signature["text"]}},
    }


def _signature(one: HubResult) -> dict[str, Any]:
    """The signature of what ranks."""
    found: dict[str, Any] = (one.entry.submission.scores or {})["signatures"][one.board.primary_terms[0]]
    return found
