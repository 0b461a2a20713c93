"""`kubectl cordon` and `kubectl uncordon`: `spec.unschedulable` of a node (semantics.md 10 and 5).

They touch no taint. The taint `node.kubernetes.io/unschedulable:NoSchedule` follows from the field: the node lifecycle
controller sets and removes it (semantics.md 7).

Sources: `staging/src/k8s.io/kubectl/pkg/cmd/drain/drain.go`, `RunCordonOrUncordon`, and
`staging/src/k8s.io/kubectl/pkg/drain/cordon.go`.
"""

import enum

import msgspec


class CordonWord(enum.StrEnum):
    """The word that kubectl prints after the name of the node."""

    CORDONED = "cordoned"
    ALREADY_CORDONED = "already cordoned"
    UNCORDONED = "uncordoned"
    ALREADY_UNCORDONED = "already uncordoned"


class Cordoned(msgspec.Struct, frozen=True):
    """The outcome for one node.

    Attributes:
        word: the word that kubectl prints.
        unschedulable: the new value of `spec.unschedulable`.
        is_changed: whether it had another value; kubectl sends a request only then.
    """

    word: CordonWord
    unschedulable: bool
    is_changed: bool


def cordon(*, unschedulable: bool) -> Cordoned:
    """Close a node for new pods.

    Args:
        unschedulable: the value of `spec.unschedulable`; absent counts as false.
    """
    word = CordonWord.ALREADY_CORDONED if unschedulable else CordonWord.CORDONED
    return Cordoned(word, unschedulable=True, is_changed=not unschedulable)


def uncordon(*, unschedulable: bool) -> Cordoned:
    """Open a node for new pods again.

    Args:
        unschedulable: the value of `spec.unschedulable`; absent counts as false.
    """
    word = CordonWord.UNCORDONED if unschedulable else CordonWord.ALREADY_UNCORDONED
    return Cordoned(word, unschedulable=False, is_changed=unschedulable)
