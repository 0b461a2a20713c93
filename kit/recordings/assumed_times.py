"""Times for events without any: the latest instant in an object that must lie in the past.

kubectl writes no times. What is assumed is at most as late as what happened, unless a clock was ahead that wrote into
the object, and never before what stands before it in the file. What was true for long seems to have come then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec

from evictstream.kit.recordings.entries import Entry
from evictstream.models.instants import FIRST_INSTANT_US, SECOND_US
from evictstream.models.kubernetes.times import read_time
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import WrongUseError

_T = TypeVar("_T")

_OF_CONTROLLERS: Final = "node.kubernetes.io/"
"""Taints whose `timeAdded` is when they were added; in others people write what they like, such as a time ahead."""


class _Managed(msgspec.Struct, gc=False):
    time: str | None = None


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    managed_fields: list[_Managed] | None = None


class _Taint(msgspec.Struct, rename="camel", gc=False):
    key: str | None = None
    time_added: str | None = None


class _Spec(msgspec.Struct, gc=False):
    taints: list[_Taint] | None = None


class _Condition(msgspec.Struct, rename="camel", gc=False):
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class _Ran(msgspec.Struct, rename="camel", gc=False):
    started_at: str | None = None
    finished_at: str | None = None


class _ContainerState(msgspec.Struct, gc=False):
    running: _Ran | None = None
    terminated: _Ran | None = None


class _Container(msgspec.Struct, rename="camel", gc=False):
    state: _ContainerState | None = None
    last_state: _ContainerState | None = None


class _Status(msgspec.Struct, rename="camel", gc=False):
    start_time: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None


class _Timed(msgspec.Struct, gc=False):
    metadata: _Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_Timed)


def latest_instant_us(raw: msgspec.Raw) -> int | None:
    """Return the latest instant in an object that was over when it was read; None if there is none.

    `deletionTimestamp` lies ahead by the grace period, which is taken off.
    """
    try:
        timed = _decoder.decode(raw)
    except DECODE_ERRORS:
        return None  # the reader of the record says what is wrong with it
    instants = [at_us for text in _texts(timed) if text is not None and (at_us := read_time(text)) is not None]
    metadata = timed.metadata
    if metadata is not None and metadata.deletion_timestamp is not None:
        at_us = read_time(metadata.deletion_timestamp)
        if at_us is not None:
            instants.append(at_us - (metadata.deletion_grace_period_seconds or 0) * SECOND_US)
    return max(instants, default=None)


def _texts(timed: _Timed) -> Iterator[str | None]:
    if timed.metadata is not None:
        yield timed.metadata.creation_timestamp
        for managed in timed.metadata.managed_fields or ():
            yield managed.time
    if timed.spec is not None:
        for taint in timed.spec.taints or ():
            if (taint.key or "").startswith(_OF_CONTROLLERS):
                yield taint.time_added
    if timed.status is not None:
        yield from _texts_of_status(timed.status)


def _texts_of_status(status: _Status) -> Iterator[str | None]:
    yield status.start_time
    for condition in status.conditions or ():
        yield condition.last_heartbeat_time
        yield condition.last_transition_time
    for container in (*(status.container_statuses or ()), *(status.init_container_statuses or ())):
        for state in (container.state, container.last_state):
            for ran in () if state is None else (state.running, state.terminated):
                if ran is not None:
                    yield ran.started_at
                    yield ran.finished_at


class AssumedTimes:
    """Gives times to what has none, and counts it.

    Attributes:
        listed_at_us: time of all lists with which files begin, microseconds since 1970; None if there are none.
        listed: objects that got it.
        events: changes that got a time of their own.
    """

    def __init__(self, listed_at_us: int | None) -> None:
        self.listed_at_us = listed_at_us
        self.listed = 0
        self.events = 0

    def stamped(self, items: Iterable[_T]) -> Iterator[_T | Entry]:
        """Go through one file.

        Raises:
            WrongUseError: nothing in it tells a time.
        """
        latest_us, begins = FIRST_INSTANT_US, True
        for item in items:
            if not isinstance(item, Entry):
                yield item
                continue
            begins = begins and item.is_listed
            if item.observed_at_us is not None:
                latest_us = max(latest_us, item.observed_at_us)
                yield item
                continue
            at_us = self.listed_at_us if begins else latest_instant_us(item.object)
            latest_us = max(latest_us, FIRST_INSTANT_US if at_us is None else at_us)
            if latest_us == FIRST_INSTANT_US:
                problem = f"{item.source}, line {item.line}: no time was recorded, and the object has none"
                raise WrongUseError(problem, next_step="give whole objects; for lists give --at")
            self.listed += item.is_listed
            self.events += not item.is_listed
            yield msgspec.structs.replace(item, observed_at_us=latest_us)
