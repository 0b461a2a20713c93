"""Errors of kubectl: a kind for programs, and its own messages, because people search for those."""

import enum
from collections.abc import Sequence


class Refusal(enum.StrEnum):
    """Why kubectl refuses a change of taints."""

    INVALID_SPEC = "InvalidSpec"
    """The text is no taint: too many `:` or `=`, an illegal key or value, or no effect for an addition."""

    INVALID_EFFECT = "InvalidEffect"
    DUPLICATE = "Duplicate"
    """Two additions with one key and effect."""

    CONFLICT = "Conflict"
    """An addition and a removal of the same taint."""

    ALREADY_EXISTS = "AlreadyExists"
    """The node has the taint already, and the command lacks `--overwrite`."""

    NOT_FOUND = "NotFound"
    """A removal of a taint that the node does not have."""


class KubectlError(ValueError):
    """A command that kubectl refuses.

    Attributes:
        kind: why.
        messages: kubectl's own words, without the `error: ` before them; several only for taints that are not found.
    """

    def __init__(self, kind: Refusal, *messages: str) -> None:
        """Join several messages into one text as kubectl does."""
        super().__init__(joined(messages))
        self.kind = kind
        self.messages = messages


def joined(messages: Sequence[str]) -> str:
    """Join errors into one text: a single one as it is, several in brackets, each text once.

    Source: `staging/src/k8s.io/apimachinery/pkg/util/errors/errors.go`, `aggregate.Error`.
    """
    different = list(dict.fromkeys(messages))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"
