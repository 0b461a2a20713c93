"""`kubectl cordon` and `kubectl uncordon`: `spec.unschedulable` of a node (semantics.md 10 and 5).

They touch no taint. The taint `node.kubernetes.io/unschedulable:NoSchedule` follows from the field: the node lifecycle
controller sets and removes it (semantics.md 7).

Sources: `staging/src/k8s.io/kubectl/pkg/cmd/drain/drain.go`, `RunCordonOrUncordon`, and
`staging/src/k8s.io/kubectl/pkg/drain/cordon.go`.
"""

import enum

import msgspec


class CordonWord(enum.StrEnum):
    """What kubectl reports behind the name of the node."""

    CORDONED = "cordoned"
    ALREADY_CORDONED = "already cordoned"
    UNCORDONED = "uncordoned"
    ALREADY_UNCORDONED = "already uncordoned"


class Cordoned(msgspec.Struct, frozen=True):
    """The outcome for one node.

    Attributes:
        word: what kubectl reports.
        unschedulable: what `spec.unschedulable` is now.
        is_changed: whether it was something else; only then kubectl sends anything.
    """

    word: CordonWord
    unschedulable: bool
    is_changed: bool


def cordon(*, unschedulable: bool) -> Cordoned:
    """Close a node for new pods.

    Args:
        unschedulable: what `spec.unschedulable` is; absent counts as false.
    """
    word = CordonWord.ALREADY_CORDONED if unschedulable else CordonWord.CORDONED
    return Cordoned(word, unschedulable=True, is_changed=not unschedulable)


def uncordon(*, unschedulable: bool) -> Cordoned:
    """Open a node for new pods again.

    Args:
        unschedulable: what `spec.unschedulable` is; absent counts as false.
    """
    word = CordonWord.UNCORDONED if unschedulable else CordonWord.ALREADY_UNCORDONED
    return Cordoned(word, unschedulable=False, is_changed=unschedulable)
