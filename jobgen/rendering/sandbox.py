"""The environment of the templates of users."""

from __future__ import annotations

from types import BuiltinMethodType, ModuleType

from jinja2.sandbox import ImmutableSandboxedEnvironment

_TEXT = (str, tuple, list, dict, int)


class Sandbox(ImmutableSandboxedEnvironment):
    """Templates that use values and filters, but no modules and classes, and no functions of Python."""

    def is_safe_attribute(self, obj: object, attr: str, value: object) -> bool:
        return not isinstance(value, (ModuleType, type)) and super().is_safe_attribute(obj, attr, value)

    def is_safe_callable(self, obj: object) -> bool:
        of_jinja = obj in self.globals.values() or type(obj).__module__.startswith("jinja2.")
        of_text = isinstance(obj, BuiltinMethodType) and type(obj.__self__) in _TEXT
        return (of_jinja or of_text) and super().is_safe_callable(obj)
