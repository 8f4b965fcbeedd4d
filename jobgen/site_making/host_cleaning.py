"""What ``jobgen host clean`` removes from the folder of the runs of a host.

Runs have copies of the contents in the store of code, never links: so nothing that is removed from it is
missing in a run, and the next submission sends it again.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.errors import JobgenError
from jobgen.hosts.calls import Done, complaint
from jobgen.hosts.host import Host
from jobgen.schedulers.jobs import key
from jobgen.schedulers.table import SCHEDULERS
from jobgen.sites.host_file import HostFile

_PATIENCE = 3600  # s; a store may have many files
_DAY = 86400  # s


class Amount(NamedTuple):
    """Files, and their size in KiB."""

    files: int
    size: int


def clean_store(host: Host, file: HostFile) -> Amount:
    """Remove what the store of code has had for a day or more.

    Raises:
        JobgenError: it cannot be removed.
        UnreachableError: the host does not answer.
    """
    script = f"""\
cd {shlex.quote(f"{file.runs}/.store")} 2> /dev/null && [ -d objects ] || {{ echo 0 0 0; exit; }}
files=$(find objects -type f -mtime +0 | wc -l)
before=$(du -sk . | awk '{{ print $1 }}')
find objects -type f -mtime +0 -exec rm -f {{}} + || exit
find incoming ! -name incoming -prune -mtime +0 -exec rm -rf {{}} + 2> /dev/null
echo $files $before $(du -sk . | awk '{{ print $1 }}')
"""
    files, before, after = map(int, _out(host, script).split())
    return Amount(files, max(0, before - after))


def old_runs(host: Host, file: HostFile, age: int) -> list[str]:
    """Return the names of the runs at a host in which no file has changed for ``age`` seconds, and whose jobs
    have ended.

    Raises:
        JobgenError: the folder cannot be read.
        SchedulerError: the scheduler does not say which jobs have ended.
    """
    days = max(1, -(-age // _DAY))
    script = f"""\
cd {shlex.quote(file.runs)} 2> /dev/null || exit 0
for d in */; do
  d=${{d%/}}
  if [ -h "$d" ] || [ ! -d "$d/.submission" ] || [ ! -f "$d/job.sh" ]; then continue; fi
  [ -z "$(find "$d" ! -mtime +{days - 1} | head -n 1)" ] || continue
  printf '%s\\0' "$d" "$(cat "$d"/.submission/*/answer 2> /dev/null)"
done
"""
    cells = _out(host, script).split("\0")
    jobs = SCHEDULERS[file.scheduler].jobs()
    ids = {name: jobs.submitted(answer) for name, answer in zip(cells[::2], cells[1::2], strict=False)}
    every = [job for some in ids.values() for job in some]
    found = jobs.ask(every, host) if every else ()
    live = {key(job.id) for job in found if job.live or job.state == "unknown"}
    return [name for name, some in ids.items() if not live.intersection(map(key, some))]


def remove_runs(host: Host, file: HostFile, names: Sequence[str]) -> int:
    """Remove directories of runs at a host, and return their size in KiB.

    Raises:
        JobgenError: one cannot be removed.
    """
    paths = " ".join(shlex.quote(f"./{name}") for name in names)
    script = f"""\
cd {shlex.quote(file.runs)} || exit
du -sk {paths} | awk '{{ size += $1 }} END {{ print size }}'
rm -rf {paths}
"""
    return int(_out(host, script))


def _out(host: Host, script: str) -> str:
    answer = host.run(script, patience=_PATIENCE)
    if answer.status:
        why = complaint(Done(answer.status, "", answer.err))
        raise JobgenError(f"the folder of the runs at {host.name} cannot be cleaned: {why}")
    return answer.out.decode("utf-8", "surrogateescape")
