"""The networks, written for a single device, without any use of ranks."""

from .images import build, check, cnn

__all__ = ["build", "check", "cnn"]
