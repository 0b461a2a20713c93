"""What `kubectl taint` makes of the taints of a node (semantics.md 10).

Source: `staging/src/k8s.io/kubectl/pkg/cmd/taint/utils.go` and `updateTaints` in `taint.go` beside it.
"""

import enum
from collections.abc import Sequence

import msgspec

from evictstream.models.kubernetes.kubectl.errors import KubectlError, Refusal
from evictstream.models.kubernetes.kubectl.specs import TaintChanges
from evictstream.models.kubernetes.taints import Taint, is_same_taint, taint_text


class TaintWord(enum.StrEnum):
    """What kubectl reports behind the name of the node."""

    MODIFIED = "modified"
    TAINTED = "tainted"
    UNTAINTED = "untainted"


class Tainted(msgspec.Struct, frozen=True):
    """The outcome for one node.

    Attributes:
        word: what kubectl reports.
        taints: the taints that the node has now: added ones first, old ones behind them in their order.
        errors: what kubectl says of removals that found nothing; then it leaves the node as it is.
    """

    word: TaintWord
    taints: tuple[Taint, ...]
    errors: tuple[str, ...] = ()


def apply_changes(
    taints: Sequence[Taint], changes: TaintChanges, *, overwrite: bool = False, node_name: str = ""
) -> Tainted:
    """Do to a node what one command asks for.

    Args:
        taints: of the node, in node order.
        changes: what is asked for; see `check_conflicts` for what does not go together.
        overwrite: whether additions may replace taints with their key and effect.
        node_name: for the words of an error.

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

    The value does not count: adding what is there already is refused too.
    """
    return tuple(taint.key for taint in added for old in taints if is_same_taint(taint, old))


def reorganize(taints: Sequence[Taint], changes: TaintChanges, *, overwrite: bool = False) -> Tainted:
    """Put additions before the old taints, then take the removals out of the whole list.

    The word is `modified` with `overwrite`, or when the list grew and the last removal found something; `tainted` when
    it grew; else `untainted`. A list "grew" if it is not as long as before, whatever the removals then took out. Of
    several old taints with one identity, which the API server would not store, only the first stays.
    """
    joined = [*changes.add]
    for old in taints:
        if not any(is_same_taint(found, old) for found in joined):
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
    """Take out what has key and effect of a taint; the second value tells whether anything was."""
    left = tuple(taint for taint in taints if not is_same_taint(removed, taint))
    return left, len(left) != len(taints)


def remove_key(taints: Sequence[Taint], key: str) -> tuple[tuple[Taint, ...], bool]:
    """Take out every taint with a key, whatever its effect; the second value tells whether anything was."""
    left = tuple(taint for taint in taints if taint.key != key)
    return left, len(left) != len(taints)
