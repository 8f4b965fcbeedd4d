"""From the settings to consistent batch sizes, config and schedule. Does not import torch."""

from dataclasses import dataclass

from .. import own
from . import batches, dsconfig, dsquery, refusals, schedules
from .converters import is_own
from .settings import Settings


@dataclass(frozen=True)
class Recipe:
    """The resolved plan of a training.

    parallel: number of data-parallel ranks; config: DeepSpeed's dict without the schedule of --scheduler;
    notes: values that were overruled or changed
    """

    settings: Settings
    batch: batches.Batch
    parallel: int
    config: dsquery.Config
    notes: list[str]

    def schedule(self, per_epoch: int) -> schedules.Plan:
        """Return the schedule for epochs of `per_epoch` steps.

        Raise CommonMistake if it does not fit the run, or if the user's own scheduler does not exist.
        """
        by_epoch = self.settings.scheduler_unit == "epoch"
        total = self.settings.epochs * (1 if by_epoch else per_epoch)
        block = dsconfig.schedule(self.config, self.settings, total).get("scheduler")
        if block and is_own(block["type"]):
            own.find("--scheduler", block["type"])
        return schedules.Plan(block, dsquery.learning_rate(self.config), total, by_epoch)


def resolve(settings: Settings, world_size: int) -> Recipe:
    """Return the recipe for `world_size` ranks. Raise CommonMistake if the settings cannot work together."""
    base = dsconfig.read(settings.deepspeed_config)
    parallel = batches.replicas(settings, world_size)
    batch, notes = batches.batch_sizes(base, settings, parallel)
    config, more = dsconfig.build(base, settings, batch, parallel)
    refusals.check(config, settings)
    return Recipe(settings, batch, parallel, config, notes + more)
