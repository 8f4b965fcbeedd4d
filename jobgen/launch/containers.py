"""Container runtimes: one row each. This module decides what of the host enters a container; the command
lines are in templates/container/."""

from typing import NamedTuple


class ContainerRuntime(NamedTuple):
    """A container runtime; its options for devices are in the rows of the accelerators.

    ``template`` is in templates/container/. ``prefix`` begins the variables that set PATH in the container,
    for a runtime that sets PATH itself. ``image_option`` is the option of srun that names the image, if the
    runtime is a plug-in of srun. ``selects_network``: the file of an image selects the plug-in of NCCL.
    """

    title: str
    command: str
    template: str
    prefix: str | None = None
    image_option: str = ""
    selects_network: bool = False


# https://github.com/NVIDIA/pyxis/wiki/Usage
# https://docs.cscs.ch/software/container-engine/run/
# https://docs.nersc.gov/development/containers/shifter/how-to-use/
RUNTIMES = {
    "apptainer": ContainerRuntime("Apptainer", "apptainer", "apptainer", "APPTAINERENV_"),
    "singularity": ContainerRuntime("Singularity", "singularity", "apptainer", "SINGULARITYENV_"),
    "docker": ContainerRuntime("Docker", "docker", "docker"),
    "podman": ContainerRuntime("Podman", "podman", "docker"),
    "enroot": ContainerRuntime("Enroot", "enroot", "enroot"),
    "pyxis": ContainerRuntime("pyxis", "srun", "pyxis", image_option="--container-image"),
    "edf": ContainerRuntime(
        "CSCS's container engine", "srun", "pyxis", image_option="--environment", selects_network=True
    ),
    "shifter": ContainerRuntime("Shifter", "shifter", "shifter"),
}

# Their containers are no processes of the job, and are found by its id.
DAEMONS = ("docker", "podman")
# Variables that modules of the host set to paths of the host.
LEAKS = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"),
    *("CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"),
)
