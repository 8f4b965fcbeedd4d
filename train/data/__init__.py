"""The data sets, from local files. Nothing is downloaded, and torchvision is not needed."""

from .readers import CIFAR_CLASSES, CIFAR_MEAN, CIFAR_STD, NUMERALS, digits, load, of
from .task import Data, Split, Task

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
