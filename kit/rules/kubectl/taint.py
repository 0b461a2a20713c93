"""How `kubectl taint` changes the taints of a node (semantics.md 10).

Source: `staging/src/k8s.io/kubectl/pkg/cmd/taint/utils.go` and `updateTaints` in `taint.go` in the same folder.
"""

import enum
from collections.abc import Sequence

import msgspec

from evictstream.kit.rules.kubectl.errors import KubectlError, Refusal
from evictstream.kit.rules.kubectl.specs import TaintChanges
from evictstream.models.kubernetes.taints import Taint, is_same_taint, taint_text


class TaintWord(enum.StrEnum):
    """The word that kubectl prints after the name of the node."""

    MODIFIED = "modified"
    TAINTED = "tainted"
    UNTAINTED = "untainted"


class Tainted(msgspec.Struct, frozen=True):
    """The outcome for one node.

    Attributes:
        word: the word that kubectl prints.
        taints: the new taints of the node: added ones first, then old ones in their order.
        errors: kubectl's messages about removals without a match; with one, it leaves the node unchanged.
    """

    word: TaintWord
    taints: tuple[Taint, ...]
    errors: tuple[str, ...] = ()


def apply_changes(
    taints: Sequence[Taint], changes: TaintChanges, *, overwrite: bool = False, node_name: str = ""
) -> Tainted:
    """Apply the changes of one command to a node.

    Args:
        taints: of the node, in node order.
        changes: of the command, without conflicts (see `check_conflicts`).
        overwrite: whether additions may replace taints with their key and effect.
        node_name: for error messages.

    Returns:
        The outcome, without errors.

    Raises:
        KubectlError: the node has a taint that shall be added, or lacks one that shall be removed; nothing is done.
    """
    if not overwrite and (existing := already_there(taints, changes.add)):
        raise KubectlError(
            Refusal.ALREADY_EXISTS,
            f"node {node_name} already has {','.join(existing)} taint(s) with same effect(s) and --overwrite is false",
        )
    outcome = reorganize(taints, changes, overwrite=overwrite)
    if outcome.errors:
        raise KubectlError(Refusal.NOT_FOUND, *outcome.errors)
    return outcome


def already_there(taints: Sequence[Taint], added: Sequence[Taint]) -> tuple[str, ...]:
    """List the keys of additions that are on the node with the same effect, in the order of the command.

    The value does not count: adding an equal taint is refused too.
    """
    return tuple(taint.key for taint in added for old in taints if is_same_taint(taint, old))


def reorganize(taints: Sequence[Taint], changes: TaintChanges, *, overwrite: bool = False) -> Tainted:
    """Put additions before the old taints, then apply the removals to the whole list.

    The word is `modified` with `overwrite`, or when the list grew and the last removal found something; `tainted` when
    it grew; else `untainted`. A list "grew" if it is not as long as before, whatever the removals then took out. Of
    several old taints with one identity, which the API server would not store, only the first stays.
    """
    joined = [*changes.add]
    for old in taints:
        if not any(is_same_taint(taint, old) for taint in joined):
            joined.append(old)
    grew = len(joined) != len(taints)
    left = tuple(joined)
    errors = []
    last_found = False
    for removed in changes.remove:
        left, last_found = remove_taint(left, removed) if removed.effect else remove_key(left, removed.key)
        if not last_found:
            errors.append(f'taint "{taint_text(removed)}" not found')
    if overwrite or (grew and last_found):
        word = TaintWord.MODIFIED
    else:
        word = TaintWord.TAINTED if grew else TaintWord.UNTAINTED
    return Tainted(word, left, tuple(errors))


def remove_taint(taints: Sequence[Taint], removed: Taint) -> tuple[tuple[Taint, ...], bool]:
    """Remove the taints with a key and effect; the second value says whether there was one."""
    left = tuple(taint for taint in taints if not is_same_taint(removed, taint))
    return left, len(left) != len(taints)


def remove_key(taints: Sequence[Taint], key: str) -> tuple[tuple[Taint, ...], bool]:
    """Remove the taints with a key, whatever the effect; the second value says whether there was one."""
    left = tuple(taint for taint in taints if taint.key != key)
    return left, len(left) != len(taints)
