"""What `evictstream` names as public: importable without Kafka and Faust, and described."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from types import ModuleType

import pytest

import evictstream

PUBLIC = ("evictstream.models.kubernetes", "evictstream.models.messages", "evictstream.kit.recordings")
BROKER_LIBRARIES = {"aiokafka", "faust", "kafka", "mode"}

every_package = pytest.mark.parametrize("package", PUBLIC)


def public_names(package: ModuleType) -> dict[str, object]:
    """What a package lists in `__all__`; the whole of its public modules where it lists nothing."""
    if hasattr(package, "__all__"):
        return {name: getattr(package, name) for name in package.__all__}
    found: dict[str, object] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            one = importlib.import_module(f"{package.__name__}.{module.name}")
            found[module.name] = one
            found |= {
                f"{module.name}.{name}": value
                for name, value in vars(one).items()
                if not name.startswith("_") and getattr(value, "__module__", None) == one.__name__
            }
    return found


def test_the_package_names_what_is_public() -> None:
    assert tuple(re.findall(r"^- `([a-z.]+)`", evictstream.__doc__ or "", re.MULTILINE)) == PUBLIC


@every_package
def test_public_packages_import_no_broker_library(package: str) -> None:
    program = f"import sys, {package}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert BROKER_LIBRARIES.isdisjoint(done.stdout.split())


@every_package
def test_every_public_name_has_a_docstring(package: str) -> None:
    module = importlib.import_module(package)
    names = public_names(module)
    described = {name: value for name, value in names.items() if inspect.ismodule(value) or callable(value)}
    assert module.__doc__
    assert described
    assert [name for name, value in described.items() if not inspect.getdoc(value)] == []
