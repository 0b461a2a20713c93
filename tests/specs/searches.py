"""What is searched: the protocol with its guards, which has to hold, and with one guard taken away, which must not."""

from __future__ import annotations

from typing import NamedTuple

NO_MOVE = "MOVES=0"
ONE_FAULT, TWO_FAULTS, NO_FAULT = "FAULTS=1", "FAULTS=2", "FAULTS=0"
OMISSION, TWO_OMISSIONS, DEPOSED = "OMISSIONS=1", "OMISSIONS=2", "DEPOSED=1"


class Search(NamedTuple):
    """One search of all orders of the model's steps.

    Attributes:
        name: for people.
        switches: of the model; what they mean is said where they are used.
        breaks: the promise whose breach must be found, in one of the shortest orders; empty if all must hold.
        is_long: takes more than a minute, and gigabytes.
    """

    name: str
    switches: tuple[str, ...]
    breaks: str = ""
    is_long: bool = False


def _both(name: str, *switches: str, is_long: bool = False) -> tuple[Search, Search]:
    return (
        Search(name, switches, is_long=is_long),
        Search(f"{name}, KIP-890", (*switches, "KIP890"), is_long=is_long),
    )


HOLD = (
    *_both("one fault", ONE_FAULT),
    Search("one fault, EndTxn never asked again, KIP-890", (ONE_FAULT, "KIP890", "ENDTXN_ONCE")),
    *_both("two markers left out, a rebalance", NO_FAULT, TWO_OMISSIONS),
    *_both("two markers left out, a fault", ONE_FAULT, TWO_OMISSIONS, NO_MOVE),
    *_both("a deposed leader, a rebalance", NO_FAULT, DEPOSED),
    *_both("a deposed leader, a fault", ONE_FAULT, DEPOSED, NO_MOVE),
    Search("brokers before 3.6, which verify nothing", (ONE_FAULT, "NO_VERIFICATION")),
    Search("late markers, KIP-890", (ONE_FAULT, "LATE_MARKERS", "KIP890")),
    Search("batches of a failed transaction go out, KIP-890", (ONE_FAULT, "BREAK_WAITING_BATCHES", "KIP890")),
    *_both("two faults", TWO_FAULTS, is_long=True),
)
"""`LATE_MARKERS` and `BREAK_WAITING_BATCHES` are here since KIP-890 makes them harmless."""


def _without(guard: str, breaks: str, name: str, *switches: str) -> Search:
    return Search(name, (*(switches or (ONE_FAULT,)), guard), breaks)


def _both_without(guard: str, breaks: str, name: str, *switches: str) -> tuple[Search, Search]:
    switches = switches or (ONE_FAULT,)
    return (
        _without(guard, breaks, name, *switches),
        _without(guard, breaks, f"{name}, KIP-890", *switches, "KIP890"),
    )


TOGETHER, TWICE, FENCED = "together", "not_twice", "not_by_a_fenced_owner"
POSITIONS, OWNER, FORGOTTEN = "positions_with_rows", "one_owner", "nothing_forgotten"

BREAK = (
    *_both_without("BREAK_FENCING", TOGETHER, "InitProducerId does not fence"),
    _without("BREAK_FENCING", TWICE, "InitProducerId does not fence: repeats", ONE_FAULT, "PROMISE=not_twice"),
    *_both_without("BREAK_FENCING_FIRST", POSITIONS, "rows are read before the old owner is fenced"),
    *_both_without("BREAK_READ_COMMITTED", POSITIONS, "rows are read uncommitted"),
    *_both_without("BREAK_POSITIONS", POSITIONS, "positions are taken later than the outbox"),
    *_both_without("BREAK_REFUSED_BATCHES", TOGETHER, "a refused batch is committed"),
    _without(
        "BREAK_REFUSED_BATCHES",
        FORGOTTEN,
        "a refused batch is committed: losses",
        ONE_FAULT,
        "PROMISE=nothing_forgotten",
    ),
    _without("BREAK_WAITING_BATCHES", TOGETHER, "batches of a failed transaction go out"),
    _without("BREAK_ENDTXN_ONCE", TOGETHER, "EndTxn is asked again"),
    _without("BREAK_NEW_PRODUCER", TOGETHER, "after a lost EndTxn the writer goes on"),
    _without(
        "BREAK_NEW_PRODUCER",
        TOGETHER,
        "after a lost EndTxn the writer goes on, KIP-890",
        ONE_FAULT,
        "KIP890",
        "ENDTXN_ONCE",
    ),
    *_both_without("BREAK_CONFIRMATION", OWNER, "a repair does not ask the group"),
    *_both_without("BREAK_MARKERS", POSITIONS, "missing markers are accepted", ONE_FAULT, OMISSION, NO_MOVE),
    *_both_without("BREAK_MARKERS_ABORT_ALL", TOGETHER, "what has no marker is aborted", ONE_FAULT, OMISSION, NO_MOVE),
    *_both_without(
        "BREAK_MARKERS_COMMIT_ALL", TOGETHER, "what has no marker is committed", ONE_FAULT, OMISSION, NO_MOVE
    ),
    *_both_without("BREAK_LANDING", POSITIONS, "the first row may land anywhere", NO_FAULT, DEPOSED),
    _without("BREAK_KEEP_ALIVE", FORGOTTEN, "a quiet writer never writes", ONE_FAULT, OMISSION),
    *_both_without("NOTHING_EXCUSED", TOGETHER, "what is not promised", ONE_FAULT, OMISSION, NO_MOVE),
    _without("LATE_MARKERS", TOGETHER, "a broker repeats a marker late"),
    _without(
        "NO_VERIFICATION", FENCED, "a marker left out by brokers that verify nothing", ONE_FAULT, OMISSION, NO_MOVE
    ),
)

SEARCHES = (*HOLD, *BREAK)
