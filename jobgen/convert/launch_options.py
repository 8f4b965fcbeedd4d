"""The options of srun and mpirun with values; "" needs no counterpart, "lost" has none."""

from jobgen.launchers import LAUNCHERS

SRUN_FLAGS = LAUNCHERS["srun"].line.flags
MPI_FLAGS = LAUNCHERS["mpirun"].line.flags
SRUN_VALUES = {
    "-n": "ranks", "--ntasks": "ranks", "-N": "nodes", "--nodes": "nodes", "--ntasks-per-node": "each",
    "-c": "", "--cpus-per-task": "", "--mpi": "", "--export": "export", "--jobid": "", "--wait": "", "-W": "",
    "--gpus-per-task": "", "--gpus-per-node": "", "--gres": "", "--mem": "", "-p": "", "--partition": "",
    "-A": "", "--account": "", "-t": "", "--time": "",
    "--input": "input", "-i": "input", "--cpu-bind": "lost", "--gpu-bind": "lost", "-w": "lost",
    "--nodelist": "lost",
    "--distribution": "lost", "-m": "lost", "--chdir": "lost", "-D": "lost", "--output": "lost", "-o": "lost",
    "--error": "lost", "-e": "lost", "--exclude": "lost", "-x": "lost", "--constraint": "lost", "-C": "lost",
    "--hint": "lost", "--mem-bind": "lost", "--network": "lost",
}  # fmt: skip
MPI_VALUES = {
    "-np": "ranks", "-n": "ranks", "--np": "ranks", "-c": "ranks", "-hostfile": "hosts",
    "--hostfile": "hosts",
    "-machinefile": "hosts", "--machinefile": "hosts", "-f": "hosts", "-x": "export", "--map-by": "map",
    "--bind-to": "bind", "-bind-to": "bind", "-ppn": "each", "--ppn": "each", "-npernode": "each",
    "--npernode": "each", "-N": "each", "--depth": "cpus", "-d": "cpus", "--cpu-bind": "", "--env": "export",
    "--mca": "mca", "-mca": "mca", "-genv": "genv", "-wdir": "chdir", "--wdir": "chdir", "-wd": "chdir",
}  # fmt: skip
