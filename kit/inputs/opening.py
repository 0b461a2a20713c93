"""What is named on a command line, opened: a file, a pipe, or standard input. Each is read once, or kept.

A name that can be opened is no promise that it can be opened twice: what comes out of a pipe is gone then. So what is
no regular file is either read once as it comes, or copied into a folder first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from evictstream.streams.errors import WrongUseError

STDIN: Final = "-"
READ_BYTES: Final = 262_144


class Input(NamedTuple):
    """Something to read.

    Attributes:
        source: its name, for people.
        path: of the file or folder; None is standard input.
        is_live: it is read once, as it comes, and there may be nothing to read for long.
        begins_at: byte of standard input at which it stood, where that is a file.
    """

    source: str
    path: Path | None
    is_live: bool = False
    begins_at: int = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open it to read its bytes; a named pipe waits for whoever writes into it.

        Raises:
            WrongUseError: it cannot be opened.
        """
        if self.path is None:
            if not self.is_live:
                sys.stdin.buffer.seek(self.begins_at)
            yield sys.stdin.buffer
            return
        try:
            file = self.path.open("rb", buffering=READ_BYTES)
        except (OSError, ValueError) as error:
            raise _cannot_open(self.source, error) from error
        with file:
            yield file


def live(names: Iterable[str]) -> list[Input]:
    """Return inputs to be read as they come: what is no regular file is opened once, and only when it is read.

    Raises:
        WrongUseError: there is nothing of a name.
    """
    return [_named(name) for name in dict.fromkeys(names)]


def kept(names: Iterable[str], folder: Path) -> Iterator[Input]:
    """Give inputs that can be read as often as need be: what is no regular file is copied into a folder first.

    Raises:
        WrongUseError: there is nothing of a name, or no room for what it holds.
    """
    for number, name in enumerate(dict.fromkeys(names)):
        input_ = _named(name)
        if not input_.is_live:
            yield input_
            continue
        path = folder / str(number)
        with input_.open() as file:
            try:
                with path.open("wb") as copy:
                    shutil.copyfileobj(file, copy, READ_BYTES)
            except OSError as error:
                problem = f"{input_.source} cannot be kept: {error.strerror}"
                raise WrongUseError(problem, next_step="set TMPDIR to a folder with enough space") from error
        yield Input(input_.source, path)


def _named(name: str) -> Input:
    if name == STDIN:
        is_file = stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
        return Input("stdin", None, is_live=not is_file, begins_at=sys.stdin.buffer.tell() if is_file else 0)
    try:
        mode = Path(name).stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise _cannot_open(name, error) from error
    return Input(name, Path(name), is_live=not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)))


def _cannot_open(source: str, error: OSError | ValueError) -> WrongUseError:
    reason = getattr(error, "strerror", None) or str(error)
    return WrongUseError(f"cannot open {source}: {reason}")
