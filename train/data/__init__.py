"""The data sets, from local files. Nothing is downloaded, and torchvision is not needed."""

from .dataset import Data, Split, Task
from .readers import CIFAR_CLASSES, CIFAR_MEAN, CIFAR_STD, NUMERALS, digits, load, of

__all__ = [
    "CIFAR_CLASSES",
    "CIFAR_MEAN",
    "CIFAR_STD",
    "NUMERALS",
    "Data",
    "Split",
    "Task",
    "digits",
    "load",
    "of",
]
