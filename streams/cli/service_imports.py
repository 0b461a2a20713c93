"""How a command that runs until it is stopped imports what it needs: its start is the time in which nobody acts."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def service_imports() -> Iterator[None]:
    """Import inside of this what a service needs, and structlog not before.

    - The garbage collector would look through all that is imported dozens of times, and find nothing: a seventh of the
      start. It leaves that out afterwards, too.
    - structlog would import rich, a tenth of the start. What it draws with it, logs draw themselves.
    """
    gc.disable()
    modules: dict[str, Any] = sys.modules
    modules.setdefault("rich", None)  # says to the import system that there is none
    try:
        yield
    finally:
        if modules["rich"] is None:
            del modules["rich"]
        gc.freeze()
        gc.enable()
