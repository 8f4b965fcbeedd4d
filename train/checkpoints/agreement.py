"""Agreement of all ranks on the checkpoint to resume from: the newest one whose files are all intact."""

from pathlib import Path
from typing import Any

from torch import distributed

from .. import peers, report
from ..device import Device
from ..errors import CommonMistake
from ..report import Run
from .directory import Check, Checkpoint, damage, ids, read
from .resume import none_is_whole, whole_ones


def settle(checkpoint: Checkpoint, check: Check, device: Device, run: Run, group: Any = None) -> Checkpoint:
    """Return `checkpoint` if it is intact. Otherwise, warn and return the newest intact one before it.

    Called on all ranks. group: see peers.exchange. Raise CommonMistake on all ranks if there is none, or if
    the user named `checkpoint`.
    """
    # On a network file system, ranks may see different files for a moment: all use the list of rank 0.
    paths = _of_rank_0([str(checkpoint.directory), *map(str, checkpoint.before)], device, group)
    trouble: list[str] = list(_of_rank_0(checkpoint.trouble, device, group))
    for path in map(Path, paths):
        wrong = _damage(path, device, group, check)
        if wrong is None:
            if trouble:
                _warn(run, trouble, path)
            return checkpoint if path == checkpoint.directory else read(path)._replace(by_user=False)
        if checkpoint.by_user:
            others = [name for name in _of_rank_0(ids(path.parent), device, group) if name != path.name]
            whole = [name for name in others if _damage(path.parent / name, device, group) is None]
            raise CommonMistake(f"--resume {path.name}: {wrong}; {whole_ones(whole)}")
        trouble.append(wrong)
    raise CommonMistake(none_is_whole(checkpoint.directory.parent, trouble))


def _damage(directory: Path, device: Device, group: Any, check: Check | None = None) -> str | None:
    """Return the damage that the first rank with a problem has found, or None; the same on all ranks."""
    same = check is not None and check.directory == directory
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    mine = check.damage() if check and same else damage(directory, rank, ranks)
    return next((text for text in peers.exchange(mine, device, group) if text is not None), None)


def _of_rank_0(fact: Any, device: Device, group: Any) -> Any:
    return peers.exchange(fact, device, group)[0]


def _warn(run: Run, trouble: list[str], path: Path) -> None:
    if run.is_main:
        report.complain(f"warning: {'; '.join(trouble)}; {path.name}, the newest intact one, is used instead")
