"""How `evictstream get` reads a service, prints what it finds, and goes on with what changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Final, Generic, NamedTuple, TypeVar

import msgspec
import typer

from evictstream.streams.cli.lists import ListFormat, ListKind, ListPrinter, changes
from evictstream.streams.cli.output import warn
from evictstream.streams.cli.progress import ProgressLine
from evictstream.streams.cli.stop_signals import StopSignals
from evictstream.streams.errors import ExitCode
from evictstream.streams.feed.cluster_names import check_cluster_name

if TYPE_CHECKING:
    from evictstream.kit.see.evictions import Silences
    from evictstream.kit.see.reading import ReadState
    from evictstream.kit.see.stored_state import StoredState
    from evictstream.streams.settings import Settings

COMPARE_SECONDS: Final = 0.5
"""Between two looks of a watch: each compares all items, which takes a tenth of a second with 100,000 pods."""

ClusterOption = Annotated[
    str | None, typer.Option(help="Only this cluster. Default: all.", metavar="NAME", parser=check_cluster_name)
]
"""Declare it as `cluster: ClusterOption = None`."""

_T = TypeVar("_T", bound=msgspec.Struct)


class View(NamedTuple, Generic[_T]):
    """What is shown of a service's state.

    Attributes:
        kind: how it is printed.
        plural: its name for people.
        items: those that there are, as of an instant in microseconds since 1970.
        key: tells items apart.
        same: what of an item counts for a watch; what only time changes does not.
        ended: an item that is not there any more, as a watch shows it.
        before: items that do not come from the state, and are printed first.
    """

    kind: ListKind[_T]
    plural: str
    items: Callable[[StoredState, int, Silences], Iterable[_T]]
    key: Callable[[_T], str]
    same: Callable[[_T], object]
    ended: Callable[[_T], _T]
    before: Iterable[_T] = ()


def present_us() -> int:
    """Return the time of this machine, microseconds since 1970."""
    return time.time_ns() // 1_000


def see(
    settings: Settings,
    cluster: str | None,
    view_of: Callable[[StoredState], View[_T]],
    *,
    output: ListFormat,
    is_watched: bool,
) -> ExitCode:
    """Read the state, print what a view finds in it, and with a watch what changes, until a signal comes.

    Args:
        settings: which Kafka, and which service.
        cluster: of this one alone.
        view_of: makes the view of the state that was read.
        output: the format.
        is_watched: whether to go on.

    Raises:
        BrokerError: the topics cannot be read.
        FoundProblemError: another version wrote the rows, or a name is not known.
    """
    from evictstream.kit.see.reading import follow_state, silences_of

    silences = silences_of(settings)
    with StopSignals() as stop_signals:
        read = read_known_cluster(settings, cluster)
        view = view_of(read.state)
        printer = ListPrinter(view.kind, output)
        known = {view.key(item): item for item in view.items(read.state, present_us(), silences)}
        first = [*view.before, *known.values()]
        if not first and not is_watched and output in (ListFormat.TABLE, ListFormat.WIDE):
            warn(f"no {view.plural}")
            return ExitCode.DONE
        if not is_watched:
            printer.whole(first)
            return ExitCode.DONE
        printer.begin_watch(first)
        next_look_at = time.monotonic()
        for _ in follow_state(settings, read, stop_signals.is_stopped):
            if time.monotonic() < next_look_at:
                continue
            seen = {view.key(item): item for item in view.items(read.state, present_us(), silences)}
            for what, item in changes(known, seen, view.same):
                printer.change(what, view.ended(item) if what == "DELETED" else item)
            known, next_look_at = seen, time.monotonic() + COMPARE_SECONDS
    return ExitCode.DONE


def read_known_cluster(settings: Settings, cluster: str | None) -> ReadState:
    """Read the state; a terminal shows how many rows so far, and stderr what may be out of date.

    Raises:
        BrokerError: the topics cannot be read.
        FoundProblemError: another version wrote the rows, or the cluster is not known.
    """
    from evictstream.kit.see.names import check_known
    from evictstream.kit.see.reading import STALE_SECONDS, read_stored_state

    with ProgressLine("reading the state") as line:
        read = read_stored_state(settings, cluster=cluster, progress=lambda count: line.show(count, "rows"))
    if read.stale:
        numbers = ", ".join(map(str, read.stale))
        warn(
            f"no worker has read the newest input of partition {numbers} for {STALE_SECONDS:g} s: what is shown may be"
            " out of date"
        )
    if cluster is not None and cluster not in (names := read.state.cluster_names()):
        # Only its own partition was read, and names like it may live in others.
        check_known("cluster", cluster, {*names, *read_stored_state(settings).state.cluster_names()})
    return read
