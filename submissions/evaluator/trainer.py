"""For the Trainer of transformers, a callback and a `compute_metrics`: the numbers at each evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

if TYPE_CHECKING:
    from submissions.evaluator import Evaluator


class EvaluatorTrainerCallback(TrainerCallback):  # type: ignore[misc]  # transformers' bases lack types
    """Encodes queries and images at each evaluation, and logs the numbers, also for `metric_for_best_model`.

    They are called as in `eval_fashioniq/val/recall@10`. Of several processes
    each encodes a share.

    Args:
        trainer: whose callback it becomes, by `trainer.add_callback`.
        evaluator: what computes the numbers.
        embed: from the model and a batch to arguments of `Evaluator.update`, such as
            `{"queries": vectors, "query_ids": batch["query_id"]}`; without gradients, in evaluation mode.
        loaders: DataLoaders of `query_dataset` and `image_dataset`.
    """

    def __init__(
        self,
        trainer: Any,
        evaluator: Evaluator,
        embed: Callable[[Any, Any], Mapping[str, Any]],
        loaders: Iterable[Any],
    ) -> None:
        """See the class."""
        self.trainer, self.evaluator, self.embed = trainer, evaluator, embed
        self.loaders = [trainer.accelerator.prepare_data_loader(loader) for loader in loaders]

    def on_evaluate(
        self, args: Any, state: Any, control: Any, *, model: Any, metrics: dict[str, float], **given: Any
    ) -> None:
        """Encode, compute and log.

        Raises:
            MethodError: queries or images are missing; see `Evaluator.compute`.
        """
        training = model.training
        model.eval()
        self.evaluator.reset()
        with torch.no_grad():
            for loader in self.loaders:
                for batch in loader:
                    self.evaluator.update(**self.embed(model, batch))
        model.train(training)
        values = self.evaluator.compute(step=state.global_step)
        logged = {f"eval_{name}": value for name, value in values.items()}
        self.trainer.log(dict(logged))
        metrics.update(logged)


def compute_metrics(
    evaluator: Evaluator, query_ids: Sequence[str], image_ids: Sequence[str]
) -> Callable[[Any], dict[str, float]]:
    """What `Trainer(compute_metrics=...)` takes, where queries and images are rows of `eval_dataset`.

    The model gives each row a vector, as its only output beside the loss. The Trainer has joined the rows of
    all processes by then.

    Args:
        evaluator: what computes the numbers; of one benchmark.
        query_ids: ids of the first rows of `eval_dataset`, which are queries.
        image_ids: ids of the rows behind them, which are images.

    Returns:
        From an `EvalPrediction` to the numbers by name; the Trainer puts `eval_` before.
    """

    def computed(prediction: Any) -> dict[str, float]:
        vectors, count = prediction.predictions, len(query_ids)
        return evaluator(
            queries=vectors[:count], query_ids=query_ids, images=vectors[count:], image_ids=image_ids
        )

    return computed
