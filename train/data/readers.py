"""The task that the settings name, and the readers of digits, MNIST and CIFAR-10.

mnist: the idx files, plain or .gz. cifar10: the python batches, as a directory or as .tar.gz.
"""

import gzip
import io
import pickle
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..config import Settings
from ..config.converters import is_own
from ..errors import BadInput, CommonMistake
from . import cache, own, text
from .task import Data, Split, Task

NUMERALS = tuple("0123456789")
CIFAR_CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
# Mean and standard deviation of each training set's pixels, on a scale of 0 to 1.
CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def of(settings: Settings) -> Task:
    """Return the task that the settings name, with its data.

    Raise BadInput if a file is missing or damaged, or if --normalize does not fit the data.
    """
    if settings.task == "text":
        result = text.task(settings)
    else:
        result = load(settings.task, settings.data[0] if settings.data else None, settings.cache)
    if settings.normalize is None:
        return result
    half = len(settings.normalize) // 2
    train, test = (
        source.scaled(settings.normalize[:half], settings.normalize[half:])
        for source in (result.train, result.test)
    )
    return replace(result, train=train, test=test)


def load(task: str, directory: Path | None, cache_folder: Path | None = None) -> Task:
    """Return the task of this name, with data from `directory` (None for digits).

    cache_folder: the directory of --cache, or None. A task package.module:name is the user's own, see own.py.
    Raise BadInput, naming the file, if a file is missing or damaged.
    """
    if directory is not None and not directory.is_dir():
        raise BadInput(f"--data {directory} is not a directory on this host")
    if cache_folder is not None:
        return cache.through(cache_folder, task, directory, lambda: _read(task, directory)).task()
    return own.load(task, directory) if is_own(task) else _read(task, directory).task()


def _read(task: str, directory: Path | None) -> Data:
    """Return the arrays of images. Raise CommonMistake if the user's own data are something else."""
    if is_own(task):
        data = own.load(task, directory).data()
        if data is None:
            raise CommonMistake(
                f"--cache keeps arrays of images and their classes, which {task} does not return"
            )
        return data
    if task == "digits":
        return digits()
    assert directory is not None
    return mnist(directory) if task == "mnist" else cifar10(directory)


def digits() -> Data:
    """Return scikit-learn's digits: 1437 training and 360 test images of 8 x 8 pixels, valued 0 to 16."""
    table = _digits_table()
    images, labels = table[:, :64].reshape(-1, 1, 8, 8), table[:, 64].astype(np.int64)
    # The file is sorted by writer. The split is always the same and independent of the run's seed.
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:1437], order[1437:]
    return Data(
        Split(images[train], labels[train]),
        Split(images[test], labels[test]),
        NUMERALS,
        16.0,
        (0.305,),
        (0.376,),
    )


def _digits_table() -> np.ndarray:
    spec = find_spec("sklearn")
    if spec is None or not spec.submodule_search_locations:
        raise BadInput("--task digits needs scikit-learn, which this Python does not have")
    file = Path(spec.submodule_search_locations[0], "datasets", "data", "digits.csv.gz")
    if file.is_file():  # faster by a second than importing scikit-learn
        return np.loadtxt(file, delimiter=",", dtype=np.uint8)
    from sklearn.datasets import load_digits

    bundle = load_digits()
    return np.column_stack([bundle.data, bundle.target]).astype(np.uint8)


def mnist(directory: Path) -> Data:
    """Return MNIST from the four idx files of yann.lecun.com/exdb/mnist, plain or .gz."""
    train = _idx_split(directory, "train", "train")
    test = _idx_split(directory, "t10k", "test")
    return Data(train, test, NUMERALS, 255.0, (0.1307,), (0.3081,))


def _idx_split(directory: Path, prefix: str, what: str) -> Split:
    images = read_idx(_idx_file(directory, f"{prefix}-images-idx3-ubyte"), dimensions=3)
    file = _idx_file(directory, f"{prefix}-labels-idx1-ubyte")
    labels = read_idx(file, dimensions=1)
    if len(images) != len(labels) or len(labels) == 0:
        raise BadInput(f"the {what} set in {directory} has {len(images)} images but {len(labels)} labels")
    return _split(images[:, None], labels, len(NUMERALS), file)


def _idx_file(directory: Path, name: str) -> Path:
    places = (directory, directory / "MNIST" / "raw", directory / "raw")
    for place in places:
        # Some copies have a dot where the original has a hyphen.
        for form in (name, name.replace("-idx", ".idx")):
            for file in (place / form, place / f"{form}.gz"):
                if file.is_file():
                    return file
    raise BadInput(f"--task mnist: {name} (or {name}.gz) is missing in {directory}")


def read_idx(file: Path, dimensions: int) -> np.ndarray:
    """Return the content of an idx file of unsigned bytes, plain or .gz, as a uint8 array.

    Layout: two zero bytes, 8 for unsigned byte, the number of dimensions, each size as a big-endian 32-bit
    number, the values. Raise BadInput for any other layout, or if the number of dimensions is not
    `dimensions`.
    """
    content = _bytes(file)
    header = 4 + 4 * dimensions
    if len(content) < header or content[:4] != bytes([0, 0, 8, dimensions]):
        raise BadInput(f"{file} is not an idx file of unsigned bytes in {dimensions} dimension(s)")
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", dimensions, 4))
    count = int(np.prod(shape, dtype=np.int64))
    if len(content) - header != count:
        raise BadInput(f"{file} is damaged: its header gives {count} values, it has {len(content) - header}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _bytes(file: Path) -> bytes:
    try:
        content = file.read_bytes()
        return gzip.decompress(content) if file.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{file} cannot be read: {error}") from None


def cifar10(directory: Path) -> Data:
    """Return CIFAR-10 from the python batches of cs.toronto.edu/~kriz/cifar.html.

    `directory` contains cifar-10-batches-py/, the files of that directory, or cifar-10-python.tar.gz. Raise
    BadInput if a file is missing or damaged.
    """
    names = [f"data_batch_{i}" for i in range(1, 6)]
    folders = [
        place for place in (directory / "cifar-10-batches-py", directory) if (place / names[0]).is_file()
    ]
    archive = directory / "cifar-10-python.tar.gz"
    if folders:
        folder = folders[0]
        for name in (*names, "test_batch"):
            if not (folder / name).is_file():
                raise BadInput(f"--task cifar10: {name} is missing in {folder}")
        batches = {name: _batch(_bytes(folder / name), folder / name) for name in (*names, "test_batch")}
    elif archive.is_file():
        batches = _from_archive(archive, (*names, "test_batch"))
    else:
        raise BadInput(
            f"--task cifar10: {directory} has neither cifar-10-batches-py/data_batch_1 nor data_batch_1 nor "
            "cifar-10-python.tar.gz"
        )
    train = Split(*(np.concatenate(parts) for parts in zip(*(batches[name] for name in names), strict=True)))
    return Data(train, batches["test_batch"], CIFAR_CLASSES, 255.0, CIFAR_MEAN, CIFAR_STD)


def _from_archive(archive: Path, names: tuple[str, ...]) -> dict[str, Split]:
    batches = {}
    try:
        # Read from front to back ("|"): seeking would decompress the archive again for every member.
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                name = Path(member.name).name
                stream = tar.extractfile(member) if name in names else None
                if stream is not None:
                    batches[name] = _batch(stream.read(), Path(archive, name))
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise BadInput(f"{archive} cannot be read: {error}") from None
    for name in names:
        if name not in batches:
            raise BadInput(f"--task cifar10: {name} is missing in {archive}")
    return batches


class _BatchUnpickler(pickle.Unpickler):
    """An unpickler that builds NumPy arrays only: a pickle could otherwise call any function."""

    NAMES = frozenset({"_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer"})
    MODULES = frozenset(
        {
            *("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy._core.numeric"),
            "numpy.core.numeric",
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module in self.MODULES and name in self.NAMES) or (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it loads {module}.{name}, which no CIFAR-10 batch needs")


def _batch(content: bytes, file: Path) -> Split:
    loads: Callable[[], Any] = _BatchUnpickler(io.BytesIO(content), encoding="bytes").load
    try:
        batch = {k.decode() if isinstance(k, bytes) else k: v for k, v in loads().items()}
        images = np.asarray(batch["data"], np.uint8).reshape(-1, 3, 32, 32)
        labels = np.asarray(batch["labels"])
    # A damaged pickle can raise almost any exception.
    except Exception as error:
        raise BadInput(f"{file} is not a python batch of CIFAR-10: {error or type(error).__name__}") from None
    if len(images) != len(labels):
        raise BadInput(f"{file} has {len(images)} images but {len(labels)} labels")
    return _split(images, labels, len(CIFAR_CLASSES), file)


def _split(images: np.ndarray, labels: np.ndarray, classes: int, file: Path) -> Split:
    labels = labels.astype(np.int64)
    if len(labels) and not (labels.min() >= 0 and labels.max() < classes):
        raise BadInput(f"{file} has a label outside 0 to {classes - 1}")
    return Split(np.ascontiguousarray(images), labels)
