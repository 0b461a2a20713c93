"""The step for a wake-up: decides again with the newest facts, and is the only one that issues (semantics.md 12.7)."""

import itertools

from evictstream.models.eviction.changes import UNCHANGED, Changes
from evictstream.models.eviction.lifecycle import issue, reconcile
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.slices import GONE_IN_SLICE
from evictstream.models.eviction.state import NodeAggregate
from evictstream.models.eviction.step import Step
from evictstream.models.eviction.wakeups import eviction_wakeup_us, purge_wakeup_us
from evictstream.models.messages.vocabulary import CauseKind, EvictionState, Verdict

_TIMER = CauseKind.TIMER
_DONE = EvictionState.DONE
_TOLERATION_EXPIRES = Verdict.TOLERATION_EXPIRES


def fire(aggregate: NodeAggregate, pod_uid: str, now_us: int, rules: Rules) -> Changes:
    """Answer a wake-up: issue what is owed to this pod now.

    Call it only while the gates are open. Stale, early, late and repeated calls are harmless: it issues only what is
    owed at `now_us`, each attempt once, and what is not due yet asks for another wake-up.

    Args:
        aggregate: of the node; changed in place.
        pod_uid: as the wake-up said; empty for the node itself, which is `expire`.
        now_us: now, microseconds since 1970.
        rules: the numbers.

    Returns:
        The changes: an `Evict`; or a `Cancel` or a moved deadline, if the rules have changed; or only a wake-up, with
        the note `unchanged`; or `UNCHANGED`.
    """
    if not pod_uid:
        return expire(aggregate, now_us, rules)
    pod = aggregate.pods.get(pod_uid)
    if pod is None or pod.eviction is None or pod.eviction.state is _DONE:
        return UNCHANGED
    step = Step(aggregate, rules, now_us, _TIMER, None)
    due = reconcile(step, pod)
    eviction = pod.eviction
    if due is not None and eviction is not None:
        owed_us = eviction_wakeup_us(eviction)
        if owed_us is not None and due.verdict is _TOLERATION_EXPIRES:
            owed_us = max(owed_us, due.deadline_us)  # of a repeat, too: our clock may be behind what moved the deadline
        if owed_us is not None and owed_us <= now_us:
            issue(step, pod, eviction, due)
        elif owed_us is not None and not step.wakeups:
            step.wake(owed_us, pod_uid)
    return step.finish()


def expire(aggregate: NodeAggregate, now_us: int, rules: Rules) -> Changes:
    """Forget the deleted UIDs whose time has passed, and ask for a wake-up when the next one's has.

    Pods are forgotten in the order in which they are remembered, one look for each: of two whose events came out of
    order, which is at most the longest delay of a feed, the earlier one waits for the later one. With very many, the
    rest waits for another wake-up, which is due at once.

    Args:
        aggregate: of the node; may be empty afterwards.
        now_us: now, microseconds since 1970.
        rules: the numbers; what is remembered keeps the time that it was given.
    """
    step = Step(aggregate, rules, now_us, _TIMER, None)
    over = itertools.takewhile(lambda known: known[1].until_us <= now_us, aggregate.gone.items())
    for uid, _ in list(itertools.islice(over, GONE_IN_SLICE)):
        del aggregate.gone[uid]
        step.write_gone(uid, None)
    departed = {uid: gone for uid, gone in aggregate.departed.items() if gone.until_us > now_us}
    if len(departed) != len(aggregate.departed):
        aggregate.departed = departed
        step.write_node()
    aggregate.purge_at_us = purge_wakeup_us(aggregate)
    if aggregate.purge_at_us is not None:
        step.wake(aggregate.purge_at_us, "")
    return step.finish()
