"""Rules about processes in the background."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.bash import LOOPS
from jobgen.check.rule import WARNING, rule
from jobgen.check.script import Hit, Script


@rule(
    "bare-wait",
    WARNING,
    "wait that loses the status",
    """`wait` without a process waits for all processes and exits with 0, whatever their status: `$?` after
    it has no information, and the job succeeds. Wait for each process.""",
    message="wait without a process ends with 0, whatever the processes did: a failure is not seen",
    fix='keep each $! and wait for it: wait "$pid" || status=$?',
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 1 &
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 2 &
    wait
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 1 &
    one=$!
    srun --nodes=1 --ntasks=1 --exact python3 train.py --fold 2 &
    wait "$one"
    wait "$!"
    """,
)
def bare_wait(script: Script) -> Iterator[Hit]:
    works = [command for command in script.commands if command.works and command.background]
    waits = list(script.named("wait"))
    if not works or not waits or any(wait.arguments for wait in waits):
        return
    line = waits[-1].line
    yield Hit(line)


@rule(
    "unwaited-background",
    WARNING,
    "A background process that nobody waits for",
    """When the script exits, the job ends: the scheduler kills the processes that still run in the
    background.""",
    message="the script ends while this is running in the background, and the scheduler then kills it",
    fix="end the script with wait",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py &
    echo started
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py &
    echo started
    wait "$!"
    """,
)
def unwaited(script: Script) -> Iterator[Hit]:
    waited = max((wait.node.start for wait in script.named("wait", "fg")), default=-1)
    works = [
        command
        for command in script.commands
        if command.works or command.name in ("ssh", "pbsdsh", "bash", "sh")
    ]
    ended = max((command.node.start for command in works if not command.background), default=-1)
    for command in works:
        if not command.background or command.node.under("function_definition", "command_substitution"):
            continue
        if waited <= command.node.start and ended <= command.node.end:
            yield Hit(command.line)
            return


@rule(
    "sleep-as-sync",
    WARNING,
    "sleep to wait for a process",
    """A fixed delay fails when the file system, the network or the node is slow. Test in a loop with a
    limit whether the other side is ready.""",
    message="a sleep does not know when the process before it is ready: it is too short on a slow day",
    fix="ask in a loop, with a limit, until it answers",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    /opt/site/server &
    sleep 20
    srun /opt/site/client
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    /opt/site/server &
    for ((try = 0; try < 60; try++)); do
      if /opt/site/ping; then break; fi
      sleep 1
    done
    srun /opt/site/client
    """,
)
def sleep_sync(script: Script) -> Iterator[Hit]:
    for command in script.named("sleep"):
        whole = command.statement
        before = whole.previous()
        if before is not None and before.type == "&" and not command.background and not whole.under(*LOOPS):
            yield Hit(command.line)
