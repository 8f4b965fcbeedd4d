"""From what was asked to how it is trained: batch, config and schedule that agree. No torch here."""

from dataclasses import dataclass

from .. import own
from . import Settings, batches, dsconfig, refusals, schedules
from .converters import is_own


@dataclass(frozen=True)
class Recipe:
    """How this run trains. parallel: ranks that take samples of their own; config: DeepSpeed's dict but
    for the schedule; notes: what was overruled or lifted."""

    settings: Settings
    batch: batches.Batch
    parallel: int
    config: dsconfig.Config
    notes: list[str]

    def schedule(self, per_epoch: int) -> schedules.Plan:
        """The schedule for epochs of that many steps.

        Raises CommonMistake for one that does not fit the run, or is not there.
        """
        by_epoch = self.settings.scheduler_unit == "epoch"
        total = self.settings.epochs * (1 if by_epoch else per_epoch)
        block = dsconfig.schedule(self.config, self.settings, total).get("scheduler")
        if block and is_own(block["type"]):
            own.find("--scheduler", block["type"])
        return schedules.Plan(block, dsconfig.learning_rate(self.config), total, by_epoch)


def resolve(settings: Settings, world_size: int) -> Recipe:
    """The recipe for so many ranks. Raises CommonMistake for what cannot work."""
    base = dsconfig.read(settings.deepspeed_config)
    parallel = batches.replicas(settings, world_size)
    batch, notes = batches.batch_sizes(base, settings, parallel)
    config, more = dsconfig.build(base, settings, batch, parallel)
    refusals.check(config, settings)
    return Recipe(settings, batch, parallel, config, notes + more)
