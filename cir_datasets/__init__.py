"""What is asked: benchmarks of composed image retrieval, as typed rows and as Hugging Face datasets.

`import cir_datasets` makes the benchmarks' names known to `datasets.load_dataset`, in either import order,
and imports nothing heavy: names below are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cir_datasets.datasets_hook import install as _install

if TYPE_CHECKING:
    from cir_datasets.attaching import attach_images as attach_images
    from cir_datasets.benchmark import Benchmark as Benchmark
    from cir_datasets.caption_rules import CaptionRule as CaptionRule
    from cir_datasets.caption_rules import caption_rule as caption_rule
    from cir_datasets.caption_rules import caption_rule_names as caption_rule_names
    from cir_datasets.coverage import image_coverage as image_coverage
    from cir_datasets.coverage import image_paths as image_paths
    from cir_datasets.evaluator_files import evaluator_queries as evaluator_queries
    from cir_datasets.image_hashes import hash_images as hash_images
    from cir_datasets.image_hashes import hashed_manifest as hashed_manifest
    from cir_datasets.images import image_manifest as image_manifest
    from cir_datasets.overlays import Overlay as Overlay
    from cir_datasets.overlays import add_overlay as add_overlay
    from cir_datasets.overlays import overlay_ids as overlay_ids
    from cir_datasets.overlays import read_overlay as read_overlay
    from cir_datasets.prepared import load as load
    from cir_datasets.prepared import prepare as prepare
    from cir_datasets.publishing.publication import Publication as Publication
    from cir_datasets.publishing.publication import publish as publish
    from cir_datasets.registry import BenchmarkSpec as BenchmarkSpec
    from cir_datasets.registry import benchmark_ids as benchmark_ids
    from cir_datasets.registry import names as names
    from cir_datasets.registry import spec as spec
    from cir_datasets.statistics.measuring import Statistics as Statistics
    from cir_datasets.statistics.measuring import measure as measure
    from cir_datasets.templating import template_names as template_names
    from cir_datasets.templating import write_template as write_template
    from cir_datasets.training_triplets import Triplet as Triplet
    from cir_datasets.training_triplets import Triplets as Triplets
    from cir_datasets.training_triplets import triplets as triplets
    from cir_datasets.verification import Verification as Verification
    from cir_datasets.verification import verify as verify

_HOMES = {
    "CaptionRule": "caption_rules",
    "Triplet": "training_triplets",
    "Triplets": "training_triplets",
    "attach_images": "attaching",
    "caption_rule": "caption_rules",
    "caption_rule_names": "caption_rules",
    "hash_images": "image_hashes",
    "hashed_manifest": "image_hashes",
    "image_coverage": "coverage",
    "image_paths": "coverage",
    "triplets": "training_triplets",
    "Benchmark": "benchmark",
    "BenchmarkSpec": "registry",
    "Publication": "publishing.publication",
    "Overlay": "overlays",
    "Statistics": "statistics.measuring",
    "Verification": "verification",
    "add_overlay": "overlays",
    "benchmark_ids": "registry",
    "image_manifest": "images",
    "load": "prepared",
    "measure": "statistics.measuring",
    "names": "registry",
    "overlay_ids": "overlays",
    "prepare": "prepared",
    "publish": "publishing.publication",
    "read_overlay": "overlays",
    "spec": "registry",
    "verify": "verification",
    "evaluator_queries": "evaluator_files",
    "template_names": "templating",
    "write_template": "templating",
}

__all__ = [
    "Benchmark",
    "BenchmarkSpec",
    "CaptionRule",
    "Overlay",
    "Publication",
    "Statistics",
    "Triplet",
    "Triplets",
    "Verification",
    "add_overlay",
    "attach_images",
    "benchmark_ids",
    "caption_rule",
    "caption_rule_names",
    "evaluator_queries",
    "hash_images",
    "hashed_manifest",
    "image_coverage",
    "image_manifest",
    "image_paths",
    "load",
    "measure",
    "names",
    "overlay_ids",
    "prepare",
    "publish",
    "read_overlay",
    "spec",
    "template_names",
    "triplets",
    "verify",
    "write_template",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_install()
