"""How fast evictions may go that a policy limits: one bucket for each scope, and an order among those that wait.

A bucket gets a token each time the rate allows one more eviction, and keeps as many as `burst`. Whatever is issued
takes a token of each bucket that it falls under, at that instant. So between any two instants no more is issued than
rate * span + burst, whatever comes, and whoever owns the partition: a bucket begins empty with a new owner.

An eviction waits in the buckets from the narrowest scope to the widest, and of one scope from the slowest to the
fastest. It asks for a token of a wide scope only when the narrower ones let it go, so a namespace that has to wait
keeps none of the cluster's tokens from others. While it waits it keeps what it has got of slower buckets, and gives
back what it has got of faster ones: else a slow limit of some would hold up all that share a fast one with them. A
slot comes when a pod has gone, which may take longer than any token. What is kept is always slower than what is waited
for, so none waits for a token that waits for another one.
In one bucket the eviction goes first that has been due longest; of several the one with the highest priority.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.traits import NO_TRAITS
from evictstream.models.messages.policy_clauses import LimitScope, PolicyInFlight, PolicyLimit
from evictstream.models.steering.holds import Subject
from evictstream.models.steering.in_flight import PodPlace, Slots, rank_of

SCOPES: Final = (
    LimitScope.NODE,
    LimitScope.OWNER,
    LimitScope.GROUP,
    LimitScope.NAMESPACE,
    LimitScope.LABEL,
    LimitScope.ZONE,
    LimitScope.CLUSTER,
)
"""From the narrowest to the widest, as a rule: the order in which evictions wait."""

_Rank = tuple[int, int]  # of `rank_of`

_LEAST_SWEPT: Final = 1_000
"""Buckets, and places in a line, that are kept without looking whether anything needs them."""


class LimitedBy(NamedTuple):
    """A limit that an eviction falls under.

    Attributes:
        order: of the bucket among those that one eviction falls under.
        name: of the bucket: policy, cluster, and what the scope is of.
        limit: the clause.
        by: as in `Hold`.
        since_us: when the clause was written; a bucket is empty then.
        of: returns the same for another eviction of the cluster; None for one that the policy does not select.
    """

    order: tuple[int, int, str]
    name: tuple[str, str, PolicyLimit | PolicyInFlight, str]
    limit: PolicyLimit | PolicyInFlight
    by: str
    since_us: int
    of: Callable[[Subject], "LimitedBy | None"] = lambda _: None


def order_of(limit: PolicyLimit | PolicyInFlight, policy: str) -> tuple[int, int, str]:
    """Return `LimitedBy.order`: narrow scopes first, then slow rates; slots last, as tokens of others wait for none."""
    slowness = 0 if isinstance(limit, PolicyInFlight) else -_period_us(limit)
    return SCOPES.index(limit.per), slowness, policy


def _period_us(limit: PolicyLimit) -> int:
    """Return how long a token takes, rounded up, so that no rate is exceeded."""
    return -(-limit.in_seconds * SECOND_US // limit.evictions)


def scope_value(limit: PolicyLimit | PolicyInFlight, subject: Subject) -> str:
    """Return which one of its scope an eviction is of. Those that have none, or of which it is not known, share one."""
    traits = subject.traits or NO_TRAITS
    match limit.per:
        case LimitScope.NODE:
            return subject.node
        case LimitScope.OWNER:
            return f"{subject.namespace}/{traits.owner}"
        case LimitScope.GROUP:
            return f"{subject.namespace}/{traits.group}"
        case LimitScope.NAMESPACE:
            return subject.namespace
        case LimitScope.LABEL:
            return next((value for key, value in subject.node_labels or () if key == limit.label), "")
        case LimitScope.ZONE:
            return subject.zone or ""
        case LimitScope.CLUSTER:
            return ""


class _Bucket:
    """Tokens of one scope, and those that wait for them.

    Attributes:
        called: those that have got a token and have not taken it yet.
        look_at_us: when `Limits` looks at it next; None while it has no reason to.
        number: it is the n-th that was made.
        period_us: how long a token takes.
    """

    __slots__ = ("_burst", "_empty_us", "_line", "_waiting", "called", "look_at_us", "number", "period_us")

    def __init__(self, limit: PolicyLimit, empty_us: int, number: int) -> None:
        self.period_us = _period_us(limit)
        self._burst = limit.burst
        self._empty_us = empty_us  # a bucket with n tokens was empty n periods ago
        self._line: list[tuple[_Rank, PodPlace]] = []
        self._waiting: dict[PodPlace, _Rank] = {}
        self.called: set[PodPlace] = set()
        self.look_at_us: int | None = None
        self.number = number

    def _free(self, now_us: int) -> int:
        """Count the tokens that no eviction has got."""
        return min(self._burst, (now_us - self._empty_us) // self.period_us) - len(self.called)

    def get(self, place: PodPlace, _subject: Subject, now_us: int) -> bool:
        """Whether it has got a token, now or before."""
        if place in self.called:
            return True
        if self._waiting or self._free(now_us) <= 0:
            return False
        self.called.add(place)
        return True

    def wait(self, place: PodPlace, subject: Subject) -> None:
        """Wait for a token, behind those that have been due for longer."""
        rank = rank_of(subject)
        if self._waiting.get(place) != rank:
            self._waiting[place] = rank
            heapq.heappush(self._line, (rank, place))
            if len(self._line) > _LEAST_SWEPT + 2 * len(self._waiting):  # most of it has left
                self._line = [(rank, place) for place, rank in self._waiting.items()]
                heapq.heapify(self._line)

    def take(self, place: PodPlace, _subject: Subject, now_us: int) -> None:
        """Take the token that it has got."""
        self.called.remove(place)
        self._empty_us = max(self._empty_us, now_us - self._burst * self.period_us) + self.period_us

    def leave(self, place: PodPlace) -> None:
        """Wait no longer, and give back what it has got."""
        self.called.discard(place)
        self._waiting.pop(place, None)

    def call(self, now_us: int, most: int) -> Iterator[PodPlace]:
        """Give the free tokens to those that have waited longest, to no more than so many; yields them."""
        for _ in range(min(self._free(now_us), most)):
            while self._line:
                rank, place = heapq.heappop(self._line)
                if self._waiting.get(place) == rank:  # else it has left, or waits with another one
                    del self._waiting[place]
                    self.called.add(place)
                    yield place
                    break

    def next_us(self) -> int | None:
        """When the next one may get a token; None if none waits, or while all tokens are given."""
        if not self._waiting or len(self.called) >= self._burst:
            return None
        return self._empty_us + (len(self.called) + 1) * self.period_us

    def is_as_new(self, now_us: int) -> bool:
        """Whether it is full and nothing waits, so that one made later does the same."""
        return not (self._waiting or self.called) and now_us - self._empty_us >= self._burst * self.period_us


class Limits:
    """The buckets of one partition, and the slots. In memory only: a new owner begins with empty buckets.

    What is in flight it finds in its rows, cluster by cluster, when a policy asks for it first.

    Attributes:
        flying: where what is in flight counts, by node and pod; empty without such a policy.

    Instants are of the owner's clock, microseconds UTC. If it goes back, buckets give nothing until it has come to
    where it was.
    """

    __slots__ = ("_buckets", "_counted", "_flying_in", "_looks", "_made", "_of", "_since_us", "_swept", "flying")

    def __init__(self, flying_in: Callable[[str], Iterable[tuple[PodPlace, Subject]]] = lambda _: ()) -> None:
        """`flying_in` gives what is in flight in a cluster."""
        self._since_us: int | None = None
        self._buckets: dict[tuple[str, str, PolicyLimit | PolicyInFlight, str], _Bucket | Slots] = {}
        self._of: dict[PodPlace, list[_Bucket | Slots]] = {}  # where each one waits, or has got a token
        self._looks: list[tuple[int, int, _Bucket | Slots]] = []
        self._flying_in = flying_in
        self._counted: set[tuple[str, str, PolicyLimit | PolicyInFlight]] = set()  # whose slots know what is in flight
        self.flying: dict[bytes, dict[str, list[Slots]]] = {}
        self._made = 0
        self._swept = _LEAST_SWEPT

    def begin(self, now_us: int) -> None:
        """Note that the owner may issue from now on: it begins with empty buckets."""
        if self._since_us is None:
            self._since_us = now_us

    def ask(self, place: PodPlace, subject: Subject, limits: Sequence[LimitedBy], now_us: int) -> str | None:
        """Take a token of each bucket, for an eviction that is issued now; else wait for the first that has none.

        An eviction that waits is called when it has got a token, and has to ask again then.

        Returns:
            None if it may go; else `LimitedBy.by` of the limit for which it waits.
        """
        self._sweep(now_us)
        wanted = [self._bucket(each, subject, now_us) for each in limits]
        before = self._of.pop(place, ())
        for bucket in before:
            if bucket not in wanted:
                self._leave(bucket, place)
        for each, bucket in zip(limits, wanted, strict=True):
            if not bucket.get(place, subject, now_us):
                bucket.wait(place, subject)
                self._of[place] = wanted
                self._look(bucket)
                for other in wanted:
                    if other.period_us < bucket.period_us:
                        self._leave(other, place)
                return each.by
        for bucket in wanted:
            bucket.take(place, subject, now_us)
            self._look(bucket)
            self._note_flying(bucket, place)
        return None

    def leave(self, place: PodPlace) -> None:
        """Forget an eviction that has ended, or that has to wait for something else."""
        for bucket in self._of.pop(place, ()):
            self._leave(bucket, place)

    def landed(self, key: bytes, is_flying: Callable[[str], bool]) -> None:
        """Count those pods of a node no longer that are not in flight any more; nearly always there is none."""
        here = self.flying.get(key)
        for uid in [uid for uid in here or () if not is_flying(uid)]:
            for slots in self.flying[key].pop(uid):
                slots.land((key, uid))
                self._look(slots)
        if here is not None and not here:
            del self.flying[key]

    def count_anew(self) -> list[PodPlace]:
        """Forget what is in flight, as policies have changed; returns those that wait for a slot: each has to ask."""
        slots = {name: one for name, one in self._buckets.items() if isinstance(one, Slots)}
        waiting = [place for one in slots.values() for place in one.here()]
        for place in waiting:
            self.leave(place)
        for name, one in slots.items():
            one.look_at_us = None
            del self._buckets[name]
        self._counted.clear()
        self.flying.clear()
        return waiting

    def _note_flying(self, bucket: _Bucket | Slots, place: PodPlace) -> None:
        if isinstance(bucket, Slots):
            here = self.flying.setdefault(place[0], {}).setdefault(place[1], [])
            if bucket not in here:
                here.append(bucket)

    def _leave(self, bucket: _Bucket | Slots, place: PodPlace) -> None:
        bucket.leave(place)
        self._look(bucket)

    def call(self, now_us: int, most: int) -> Iterator[PodPlace]:
        """Give the tokens that have come to those that wait, to some `most`, and yield them: each has to ask again."""
        while most > 0 and self._looks and self._looks[0][0] <= now_us:
            at_us, _, bucket = heapq.heappop(self._looks)
            if bucket.look_at_us != at_us:
                continue
            bucket.look_at_us = None
            for place in bucket.call(now_us, most):
                most -= 1
                yield place
            self._look(bucket)

    def next_at_us(self) -> int | None:
        """When the next one that waits may get a token, or sooner; None if none does."""
        return self._looks[0][0] if self._looks else None

    def _look(self, bucket: _Bucket | Slots) -> None:
        """Look at a bucket when its next token comes. A look that is too early does no harm."""
        next_us = bucket.next_us()
        if next_us is not None and (bucket.look_at_us is None or next_us < bucket.look_at_us):
            bucket.look_at_us = next_us
            heapq.heappush(self._looks, (next_us, bucket.number, bucket))

    def _sweep(self, now_us: int) -> None:
        """Drop buckets that are as new; not while an eviction has some of them in hand, and takes their tokens."""
        if len(self._buckets) >= self._swept:
            self._buckets = {name: one for name, one in self._buckets.items() if not one.is_as_new(now_us)}
            self._swept = max(_LEAST_SWEPT, 2 * len(self._buckets))

    def _bucket(self, limited: LimitedBy, subject: Subject, now_us: int) -> _Bucket | Slots:
        limit = limited.limit
        if isinstance(limit, PolicyInFlight):
            self._count_flying(limited, now_us)
        bucket = self._buckets.get(limited.name)
        if bucket is not None:
            if isinstance(bucket, Slots):
                bucket.know(subject.known)
            return bucket
        self._made += 1
        if isinstance(limit, PolicyInFlight):
            made: _Bucket | Slots = Slots(limit, limited.name[-1], subject.known, self._made)
        else:
            since_us = now_us if self._since_us is None else self._since_us
            made = _Bucket(limit, max(since_us, limited.since_us), self._made)
        self._buckets[limited.name] = made
        return made

    def _count_flying(self, limited: LimitedBy, now_us: int) -> None:
        """Let the slots of a policy know what is in flight in a cluster, whatever let it go."""
        policy, cluster, limit, _ = limited.name
        if (policy, cluster, limit) in self._counted:
            return
        self._counted.add((policy, cluster, limit))
        for place, subject in self._flying_in(cluster):
            of = limited.of(subject)
            if of is not None:
                slots = self._bucket(of, subject, now_us)
                slots.take(place, subject, now_us)
                self._note_flying(slots, place)
