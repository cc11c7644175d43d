"""`--engine` and `--address`: where the stages of a construction run."""

from __future__ import annotations

import pytest

from cir_metrics.errors import CallError, UnknownNameError
from submissions.making.ray import RayEngine, cluster_of, engine_of


def test_a_cluster_is_named_by_engine_and_address() -> None:
    pytest.importorskip("ray")
    cluster = cluster_of("ray", "auto")
    assert cluster.address == "auto"
    assert isinstance(engine_of("ray", None), RayEngine)
    assert engine_of("local", None) is None


def test_an_unknown_engine_and_an_address_without_a_cluster_are_refused() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no engine 'rya'\. Did you mean 'ray'\? Fix: use local or ray"
    ):
        engine_of("rya", None)
    with pytest.raises(CallError, match="--address: of a Ray cluster"):
        engine_of("local", "auto")
