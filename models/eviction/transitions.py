"""What an eviction may become, and the one place where a pod's eviction changes (semantics.md 12.6).

An eviction is never changed in place. A `Transition` holds it as it was and as it will be: `lifecycle` finds one
without changing anything, and `rendering` tells the difference.
"""

from typing import Final

import msgspec

from evictstream.models.eviction.state import Eviction, PodState
from evictstream.models.messages.vocabulary import Action, DecisionKind, EvictionState, Verdict

_SCHEDULED = EvictionState.SCHEDULED  # see `evictstream.models.eviction` for these constants
_ISSUED = EvictionState.ISSUED
_RETRYING = EvictionState.RETRYING
_DONE = EvictionState.DONE

OUTSTANDING: Final = (_ISSUED, _RETRYING)
"""States in which an attempt was made that nothing has taken back."""

TRANSITIONS: Final[dict[tuple[EvictionState | None, EvictionState | None], str]] = {
    (None, _SCHEDULED): "the pod is due, now or later",
    (_SCHEDULED, _SCHEDULED): "there is another deadline, or another reason for the same one",
    (_SCHEDULED, _ISSUED): "fire",
    (_SCHEDULED, None): "nothing is due any more, or the pod leaves",
    (_ISSUED, _ISSUED): "a result leaves the attempt open, or the next one is only needed if the pod stays",
    (_ISSUED, _RETRYING): "fire, or a result says that the attempt has failed",
    (_ISSUED, _SCHEDULED): "an event moves the deadline ahead",
    (_ISSUED, _DONE): "the pod leaves",
    (_ISSUED, None): "nothing is due any more",
    (_RETRYING, _RETRYING): "fire, or any result",
    (_RETRYING, _SCHEDULED): "an event moves the deadline ahead",
    (_RETRYING, _DONE): "the pod leaves",
    (_RETRYING, None): "nothing is due any more",
    (_DONE, None): "the pod runs again: etcd was restored to a time before it left",
}
"""From, to, and when. `None` stands for no eviction; what is done otherwise goes with its pod."""

# By the text of a state: the hash of a member of an enum is computed in Python.
_NEXT: Final = {
    None if begin is None else begin._value_: tuple(end for start, end in TRANSITIONS if start is begin)
    for begin, _ in TRANSITIONS
}


class TransitionError(RuntimeError):
    """An eviction was to become what it cannot become: a bug of evictstream, whatever the input was.

    Nothing has changed. The worker ends with exit code 70 and commits nothing of the step.
    """


class Transition(msgspec.Struct, frozen=True, gc=False):
    """One change of a pod's eviction, and what is to be told about it.

    Attributes:
        before: the eviction as it is, None to open one.
        after: the eviction as it will be, None to end it without a trace.
        decision: what the decision record says, None for no record.
        action: what the command says, None for no command.
        verdict: why it ends; None while it goes on, as the verdict of what is due says why then.
        outcome_reason: the executor's explanation, if a result is the cause.
    """

    before: Eviction | None
    after: Eviction | None
    decision: DecisionKind | None = None
    action: Action | None = None
    verdict: Verdict | None = None
    outcome_reason: str = ""


def move(pod: PodState, change: Transition) -> Eviction:
    """Change a pod's eviction.

    Returns:
        The eviction that the change is about: as it is now, or as it was if it has ended.

    Raises:
        TransitionError: the pod's eviction is another one, or may not become that.
    """
    before, after = change.before, change.after
    eviction, state = (before, None) if after is None else (after, after.state)
    is_allowed = before is pod.eviction and state in _NEXT[None if before is None else before.state._value_]
    if after is not None:
        # Whoever waits for another attempt has made one; and the eviction is the same one, and no older.
        is_allowed &= (after.next_attempt_us is not None) is (state in OUTSTANDING) and (
            after.ordinal == pod.opened
            if before is None
            else after.ordinal == before.ordinal
            and after.revision >= before.revision
            and after.attempt >= before.attempt
        )
    if eviction is None or not is_allowed:
        message = f"the eviction of pod {pod.uid} cannot become {after}: it is {pod.eviction}, was taken for {before}"
        raise TransitionError(message)
    if before is None:
        pod.opened += 1
    pod.eviction = after
    return eviction
