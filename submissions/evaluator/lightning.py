"""A callback of Lightning: a benchmark's numbers at the end of each validation epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from submissions.errors import MethodError

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the same library under its older name
    from pytorch_lightning.callbacks import Callback

if TYPE_CHECKING:
    from submissions.evaluator import Evaluator


class EvaluatorCallback(Callback):  # type: ignore[misc]  # mypy does not read Lightning
    """Gives validation batches to an evaluator and logs its numbers, for `ModelCheckpoint(monitor=...)`, too.

    The validation loaders are of `query_dataset` and `image_dataset`, in any order. The sanity check before
    training is passed over. Rows that Lightning repeats, to make shares of processes equal, count once.

    Args:
        evaluator: what computes the numbers.
        embed: from the module and a batch to arguments of `Evaluator.update`; None: `validation_step` returns
            them, such as `{"queries": vectors, "query_ids": batch["query_id"]}`.
    """

    def __init__(
        self, evaluator: Evaluator, embed: Callable[[Any, Any], Mapping[str, Any]] | None = None
    ) -> None:
        """See the class."""
        self.evaluator, self.embed = evaluator, embed

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin anew."""
        self.evaluator.reset()

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Take a batch.

        Raises:
            MethodError: there is no `embed`, and `validation_step` returns no arguments of `update`.
        """
        if trainer.sanity_checking:
            return
        given = outputs if self.embed is None else self.embed(pl_module, batch)
        if not isinstance(given, Mapping):
            what = "validation_step" if self.embed is None else "embed"
            raise MethodError(
                f"{what} returns {type(given).__name__}. Fix: return what Evaluator.update takes, such as "
                '{"queries": vectors, "query_ids": batch["query_id"]}.'
            )
        self.evaluator.update(**given)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Compute and log.

        Raises:
            MethodError: queries or images are missing; see `Evaluator.compute`.
        """
        if not trainer.sanity_checking:
            pl_module.log_dict(self.evaluator.compute(step=trainer.global_step))
