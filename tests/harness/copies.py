"""Starts programs as copies of a process that has imported the product, which spares each the second that imports take.

`python -m tests.harness.copies` is the process that is copied, one for each process of pytest. It has no thread and no
connection; an order is a command line, an environment and the ends of pipes. What it forks runs the module as
`python -m` does: same signals, output, exit codes and end, but for what modules hold. A program that has to be
measured, or that has other options of the interpreter, is started by `subprocess` itself.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

STRICT: Final = (
    "-W",
    "error",
    *(f"-Wignore:{name} is deprecated:DeprecationWarning" for name in ("read_text", "open_text")),
)
"""Options of the interpreter: warnings are errors, but for those that pyproject.toml lets pass."""

LARGEST_ORDER_BYTES: Final = 200_000  # an environment has some ten thousand
LEFT_OUT: Final = ("demo", "report", "container", "__main__")  # seldom needed, or large
NUMBER: Final = struct.Struct("i")


class Copy(subprocess.Popen[Any]):
    """A `subprocess.Popen` of `[sys.executable, "-m", module, ...]`, or with `STRICT`, that is forked and not started.

    Python's own class does all the rest. The three methods are those by which it starts a process and asks for its end.
    """

    def _execute_child(self, args: Sequence[str], *more: Any) -> None:
        """Order a copy. Of `more`, which is as Python has it, these count: `cwd`, `env` and the six ends of pipes."""
        cwd, env, pipes = more[4], more[5], more[9:15]
        python, *options = args[: args.index("-m")]
        assert python == sys.executable
        assert tuple(options) in ((), STRICT)
        order = {
            "arguments": list(args[args.index("-m") + 1 :]),
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "is_strict": bool(options),
        }
        self._told, theirs = os.pipe()
        given = [end if end != -1 else number for number, end in enumerate((pipes[0], pipes[3], pipes[5]))]
        try:
            socket.send_fds(_original(), [json.dumps(order).encode()], [*given, theirs])
        finally:
            os.close(theirs)
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self._child_created = True
        (self.pid,) = NUMBER.unpack(os.read(self._told, NUMBER.size))

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        """As Python's: another thread that waits, or asks, will take what there is."""
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):  # type: ignore[attr-defined]
            try:
                status = self._try_wait(os.WNOHANG)[1]
                if status is not None:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int | None]:
        is_taken = self.returncode is not None  # by another thread, just before this one had the lock
        if is_taken or (wait_flags & os.WNOHANG and not select.select([self._told], [], [], 0)[0]):
            return 0, None
        told = os.read(self._told, NUMBER.size)
        os.close(self._told)
        return self.pid, NUMBER.unpack(told)[0] if told else signal.SIGKILL


def start(command: Sequence[str], **more: Any) -> subprocess.Popen[Any]:
    """Start a command as `Popen` does; only on Linux is a copy surely as good as a start."""
    return (Copy if sys.platform == "linux" else subprocess.Popen)(command, **more)


def run(
    command: Sequence[str], *, timeout: float, written: Any = None, **more: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end as `subprocess.run` does, with `written` on its standard input."""
    with start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more) as process:
        try:
            stdout, stderr = process.communicate(written, timeout)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


_lock = threading.Lock()


def _original() -> socket.socket:
    with _lock:
        return _started()


@functools.cache
def _started() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, *STRICT, "-m", __name__, str(theirs.fileno())]
        original = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
    atexit.register(_end, ours, original)
    return ours


def _end(ours: socket.socket, original: subprocess.Popen[bytes]) -> None:
    ours.close()
    original.wait()


def _serve(orders: socket.socket) -> dict[str, Any] | None:
    """Return each order in the copy that has to run it, and None in the process itself when pytest has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system removes each `_wait` that has ended
    while True:
        order, ends, *_ = socket.recv_fds(orders, LARGEST_ORDER_BYTES, 4)
        if not order:
            return None
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            orders.close()
            child = os.fork()
            if child:
                _wait(child, ends)
            for number, end in enumerate(ends):
                if number < len(ends) - 1:
                    os.dup2(end, number)
                os.close(end)
            return dict(json.loads(order))
        for end in ends:
            os.close(end)


def _wait(child: int, ends: list[int]) -> NoReturn:
    """Tell who has ordered the copy its number, and how it has ended."""
    *pipes, told = ends
    for end in pipes:
        os.close(end)
    os.write(told, NUMBER.pack(child))
    _, status = os.waitpid(child, 0)
    os.write(told, NUMBER.pack(status))
    os._exit(0)


def _run(order: dict[str, Any]) -> None:
    """Do what the interpreter does for `python -m`."""
    gc.enable()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    if not order["is_strict"]:
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
    # Any of the three may be a terminal now, and the present ones were made for none.
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115 - until the end
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    module, *arguments = order["arguments"]
    sys.argv = [module, *arguments]
    sys.modules.pop(module, None)
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    _end_at_once(code)


def _end_at_once(code: int) -> NoReturn:
    """Do what the interpreter does at its end, but leave to the system what modules hold.

    To let go of all of it, one by one, takes longer than most commands.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Import what commands import, and fork whenever it is asked for."""
    import evictstream as product  # noqa: PLC0415 - not in those who order

    for found in pkgutil.walk_packages(product.__path__, f"{product.__name__}."):
        if not set(found.name.split(".")).intersection(LEFT_OUT):
            importlib.import_module(found.name)
    importlib.import_module("typer.rich_utils")  # what shows help
    gc.freeze()  # else each copy walks through all of it, and has it for itself then
    gc.disable()
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        order = _serve(orders)
    if order is not None:
        _run(order)


if __name__ == "__main__":
    main()
