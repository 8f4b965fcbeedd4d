"""From the settings to consistent batch sizes, config and schedule. Does not import torch."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from .. import user_code
from . import batches, refusals, schedules
from .converters import is_own
from .deepspeed import merge, origin, pipeline, query
from .settings import Settings


class Length(NamedTuple):
    """The length of a training: optimizer steps in all, and epochs, of which the last may be incomplete."""

    steps: int
    epochs: int


def length(settings: Settings, per_epoch: int) -> Length:
    """Return the length that --epochs and --max-steps give, for epochs of `per_epoch` steps."""
    steps = settings.epochs * per_epoch
    if settings.max_steps:
        steps = min(steps, settings.max_steps)
    return Length(steps, -(-steps // per_epoch))


@dataclass(frozen=True)
class Recipe:
    """The resolved plan of a training.

    settings: with the values of the config file; parallel: number of data-parallel ranks; config: DeepSpeed's
    dict without the schedule of --scheduler; notes: values that were overruled or changed; lr_ranks: number
    of ranks of which --scale-lr computes the learning rate, that of the first run if this one resumes with
    another number
    """

    settings: Settings
    batch: batches.Batch
    parallel: int
    config: query.Config
    notes: list[str]
    lr_ranks: int

    def schedule(self, per_epoch: int, higher: bool = False) -> schedules.Plan:
        """Return the schedule for epochs of `per_epoch` steps. higher: see schedules.Plan.

        Raise CommonMistake if it does not fit the run, or if the user's own scheduler does not exist.
        """
        by_epoch = self.settings.scheduler_unit == "epoch"
        steps, epochs = length(self.settings, per_epoch)
        total = epochs if by_epoch else steps
        block = merge.schedule(self.config, self.settings, total).get("scheduler")
        source = origin.name(self.settings, "scheduler.type")
        if block and is_own(block["type"]):
            user_code.find(source, block["type"])
        return schedules.Plan(block, query.learning_rate(self.config), total, by_epoch, higher, source)


def resolve(settings: Settings, world_size: int, before: batches.Before | None = None) -> Recipe:
    """Return the recipe for `world_size` ranks.

    before: batch sizes of the checkpoint to resume from. Raise CommonMistake if the settings cannot work
    together, or if this number of ranks cannot divide the global batch of the checkpoint.
    """
    base, auto_paths = merge.read(settings.deepspeed_config)
    settings = replace(
        settings,
        drop_last=settings.drop_last or bool(base.get("dataloader_drop_last")),
        log_every=settings.log_every or base.get("steps_per_print"),
    )
    parallel = batches.replicas(settings, world_size)
    if before and before.parallel != parallel:
        batch, notes = batches.same_total(before, base, settings, parallel)
    else:
        batch, notes = batches.batch_sizes(base, settings, parallel)
    lr_ranks = before.lr_ranks if before else parallel
    config, more = merge.build(base, settings, batch, parallel, auto_paths, lr_ranks)
    refusals.check(config, settings)
    notes += [*more, *pipeline.notes(base, settings)]
    return Recipe(settings, batch, parallel, config, notes, lr_ranks)
