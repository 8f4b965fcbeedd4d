"""What a job does on each of its nodes besides the ranks: shell code, staged files, caches."""

from collections.abc import Mapping

from jobgen.errors import one_of, shown
from jobgen.options import BY_KEY
from jobgen.spec import Specification

NODE_LIMIT = 600  # s; for each part on a node
KEYS = ("on_each_node", "after_on_each_node", "stage", "local_caches")
# The variables that name the folders of caches, and the folders of the job for them.
CACHES = {
    "TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "torch_extensions", "MIOPEN_USER_DB_PATH": "miopen_db",
    "MIOPEN_CUSTOM_CACHE_DIR": "miopen", "CUDA_CACHE_PATH": "cuda_kernels", "HF_MODULES_CACHE": "hf_modules",
}  # fmt: skip


def works_on_nodes(spec: Specification) -> bool:
    """Return whether a process is started on each node besides the ranks."""
    return any(getattr(spec, key) for key in KEYS)


def local_caches(spec: Specification) -> Mapping[str, str]:
    """Return the caches on the disks of the nodes: a variable of ``--env`` stays as it is."""
    own = {*dict(spec.env), *spec.secrets}
    return {name: folder for name, folder in CACHES.items() if spec.local_caches and name not in own}


def check_node_work(spec: Specification) -> None:
    """Refuse what has no effect, and files that would be in one place.

    Raises:
        JobgenError: an option needs another one, or does not work with one.
    """
    if not works_on_nodes(spec):
        for key in ("node_limit", "local_dir"):
            if getattr(spec, key) and not spec.is_of_site(key):  # of all its jobs
                raise spec.refuse(key, f"needs {one_of(BY_KEY[one].flag for one in KEYS)}")
        return
    files = [place for _, place in spec.stage if not place.endswith("/")]
    for place in files:
        if files.count(place) > 1:
            reason = f"has two files for the place {shown(place)}; give one another place as PATH:DEST"
            raise spec.refuse("stage", reason)
        if any(other.startswith(f"{place}/") for _, other in spec.stage):
            reason = (
                f"has a file and a folder for the place {shown(place)}; give one another place as PATH:DEST"
            )
            raise spec.refuse("stage", reason)
