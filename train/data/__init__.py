"""The data sets, as NumPy arrays from local files. Nothing is downloaded, and torchvision is not needed."""

from .dataset import Data, Split
from .readers import CIFAR_CLASSES, CIFAR_MEAN, CIFAR_STD, NUMERALS, digits, load

__all__ = ["CIFAR_CLASSES", "CIFAR_MEAN", "CIFAR_STD", "NUMERALS", "Data", "Split", "digits", "load"]
