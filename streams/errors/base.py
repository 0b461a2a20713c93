"""The base of all errors, the exit codes, and errors that belong to no one part."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar


class ExitCode(enum.IntEnum):
    """What a command's exit status means; scripts may rely on these four, and on 130 and 143 after a signal."""

    DONE = 0
    FOUND_PROBLEM = 1
    WRONG_USE = 2
    INTERNAL_FAILURE = 70  # EX_SOFTWARE of sysexits.h


class EvictstreamError(Exception):
    """Base of all errors of evictstream.

    Attributes:
        problem: what is wrong, one line, without a full stop.
        next_step: what the reader can do now, one line; may be empty.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL_FAILURE

    def __init__(self, problem: str, *, next_step: str = "") -> None:
        self.problem = " ".join(problem.split())
        self.next_step = " ".join(next_step.split())
        super().__init__(self.problem)

    @property
    def fields(self) -> dict[str, object]:
        """What else the error says, by name: numbers, texts, and lists of texts."""
        return {name: value for name, value in vars(self).items() if name not in {"problem", "next_step"}}

    def __str__(self) -> str:
        """Both parts in one line, as a command prints it."""
        return f"{self.problem}; {self.next_step}" if self.next_step else self.problem


class WrongUseError(EvictstreamError):
    """The caller asked for something that cannot be; asking again the same way never helps."""

    exit_code = ExitCode.WRONG_USE


class ObjectFileError(WrongUseError):
    """The file `source` (`-`: standard input) holds no objects of Kubernetes that can be read, for `reason`."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"{'standard input' if source == '-' else source} cannot be read: {reason}")


class SettingsError(WrongUseError):
    """A setting is unknown, malformed or contradicts another. `names` are the settings concerned."""

    def __init__(self, problem: str, *, names: Sequence[str] = (), next_step: str = "") -> None:
        self.names = tuple(names)
        super().__init__(problem, next_step=next_step or "`evictstream config --explain` lists every setting")


class FoundProblemError(EvictstreamError):
    """What a command looked at or depends on is not as it must be; evictstream itself works."""

    exit_code = ExitCode.FOUND_PROBLEM


class AddressTakenError(FoundProblemError):
    """Health and metrics cannot be served at `host` and `port`, for `reason`."""

    def __init__(self, *, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(
            f"cannot listen for health and metrics on {host}:{port}: {reason}",
            next_step="set EVICTSTREAM_HEALTH_PORT to a free port, or to 0 for any free port",
        )


class RecordingError(FoundProblemError):
    """The recording `source` cannot be read beyond `line`, for `reason`; what stood before was taken in."""

    def __init__(self, source: str, *, line: int, reason: str) -> None:
        self.source = source
        self.line = line
        self.reason = reason
        super().__init__(f"{source} cannot be read beyond line {line}: {reason}")


class EndSilentError(FoundProblemError):
    """A feed or executor that is to be looked at has shown nothing for `seconds`; `ended` says how it has ended."""

    def __init__(self, *, seconds: float, ended: str) -> None:
        self.seconds = seconds
        self.ended = ended
        what = f"it exited ({ended})" if ended else f"nothing was received from it for {seconds:g} s"
        super().__init__(
            f"the feed or executor does nothing: {what}",
            next_step="it must use KUBECONFIG, the EVICTSTREAM_ settings and CONFORMANCE_CLUSTER from its environment",
        )


class InternalFailureError(EvictstreamError):
    """An invariant of evictstream was broken; please report it with the log."""
