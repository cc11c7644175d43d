"""docs/validate_every_epoch.md: its blocks run in their order, by Lightning and the Trainer themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import submissions

PAGE = Path(__file__).resolve().parents[4] / "docs" / "validate_every_epoch.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_four_forms_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    world: dict[str, Any] = {"__name__": "page"}
    for block in BLOCKS[:3]:
        exec(block, world)
    score = submissions.score(tmp_path / "best.json")
    best = world["evaluator"].best()
    assert score.metrics == {
        name.removeprefix("shapes/val/"): value
        for name, value in world["values"].items()
        if name.removeprefix("shapes/val/") in score.metrics
    }
    assert json.loads((tmp_path / "best.json").read_text())["method"]["name"] == "Tiny"
    assert best.step == 0

    exec(BLOCKS[3], world)
    metric = "shapes/val/recall@10"
    found = world["trainer"].callbacks[0].evaluator
    assert float(world["best"].best_model_score) == pytest.approx(found.best("recall@10").value)
    assert world["trainer"].callback_metrics.keys() == found.compute().keys()

    exec(BLOCKS[4], world)
    state = world["trainer"].state
    assert state.best_metric == world["evaluator"].best("recall@10").value
    assert [f"eval_{metric}" in row for row in state.log_history].count(True) == 1

    exec(BLOCKS[5], world)
    model, loaders = world["trainer"].model, world["loaders"]
    own = submissions.Evaluator("shapes/val")
    with torch.no_grad():
        for batch in (batch for loader in loaders for batch in loader):
            own.update(**world["embed"](model, batch))
    assert world["trainer"].evaluate()[f"eval_{metric}"] == own.compute()[metric]
