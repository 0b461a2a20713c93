"""Random policies: each clause of the language, in each scope, of some or all evictions."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from tests.faults.objects import NOT_READY
from tests.kit.replay.naive_policies import HOURS_AHEAD

_Strategy = st.SearchStrategy[dict[str, Any]]


def _some(**fields: st.SearchStrategy[Any]) -> _Strategy:
    return st.fixed_dictionaries({}, optional=fields)


_FIELDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "clusters": st.sampled_from([["lab"], ["s*"]]),
    "nodes": st.sampled_from([["n0", "n1"], ["n[12]"], ["n?"]]),
    "namespaces": st.sampled_from([["web"], ["b*"]]),
    "taints": st.sampled_from([["agent"], ["rack/*"], ["node.kubernetes.io/*"], [NOT_READY, "agent"]]),
    "zones": st.sampled_from([["a"], ["a", "b"], ["*"]]),
    "owners": st.sampled_from([["Job"], ["StatefulSet/db", "Job"], ["*/web"], ["*"]]),
    "nodeLabels": st.sampled_from([["rack=r1"], ["rack=*"]]),
    "priority": st.sampled_from([{"below": 100}, {"below": 101}]),
}


def _few(strategies: dict[str, st.SearchStrategy[Any]], most: int) -> _Strategy:
    """Draw one of these, or some more."""
    names = st.lists(st.sampled_from(sorted(strategies)), min_size=1, max_size=most, unique=True)
    return names.flatmap(lambda found: st.fixed_dictionaries({name: strategies[name] for name in found}))


_SELECTIONS: Final[_Strategy] = st.just({}) | _few(_FIELDS, 2)
_EXCEPTIONS: Final = _few(_FIELDS, 2)
_SCOPES: Final[_Strategy] = st.sampled_from(
    [
        {},
        {},
        *({"per": one} for one in ("zone", "namespace", "group", "owner", "node")),
        {"per": "label", "label": "rack"},
    ]
)


def _joined(*parts: _Strategy) -> _Strategy:
    return st.tuples(*parts).map(lambda found: {key: value for part in found for key, value in part.items()})


_LIMITS: Final = _joined(
    st.fixed_dictionaries(
        {"evictions": st.integers(1, 3), "inSeconds": st.sampled_from([1, 7, 60])},
        optional={"burst": st.integers(1, 4)},
    ),
    _SCOPES,
)
_COUNTS_SECONDS: Final = _some(countsSeconds=st.sampled_from([1, 20, 100]))
_IN_FLIGHT: Final = st.one_of(
    _joined(
        st.fixed_dictionaries({"count": st.integers(1, 3)}, optional={"of": st.sampled_from(["nodes", "groups"])}),
        _COUNTS_SECONDS,
        _SCOPES,
    ),
    _joined(
        st.fixed_dictionaries(
            {"sharePercent": st.sampled_from([10, 50, 100]), "of": st.just("nodes")},
            optional={"count": st.integers(1, 3), "per": st.just("zone")},
        ),
        _COUNTS_SECONDS,
    ),
)
_WINDOWS: Final = st.lists(
    st.tuples(st.sampled_from(sorted(HOURS_AHEAD)), st.integers(0, 9), st.integers(1, 5)).map(
        lambda one: _window(*one)
    ),
    min_size=1,
    max_size=3,
)


def _window(zone: str, later: int, minutes: int) -> dict[str, str]:
    """A window that begins some minutes after the incident, or just before; in each zone at its time."""
    begins = 8 * 60 + 52 + later + int(HOURS_AHEAD[zone] * 60)
    begin, end = (f"{at // 60:02}:{at % 60:02}" for at in (begins, begins + minutes))
    return {"begins": begin, "ends": end, "zone": zone}


_SPREAD: Final = _some(spreadSeconds=st.sampled_from([0, 5, 60]))
_OUTAGES: Final = st.just({"zones": "allFull"}) | st.fixed_dictionaries(
    {
        "zone": st.fixed_dictionaries(
            {"unhealthyPercent": st.sampled_from([1, 34, 50, 100])}, optional={"atLeast": st.integers(1, 2)}
        )
    }
)
_HOLDS: Final = st.one_of(
    _joined(
        st.fixed_dictionaries({"outsideOf": _WINDOWS}, optional={"atMostSeconds": st.sampled_from([30, 200])}),
        _SPREAD,
    ),
    _joined(
        st.fixed_dictionaries({"while": _OUTAGES, "atMostSeconds": st.sampled_from([5, 60, 600])}),
        _SPREAD,
    ),
)
_GUARDED: Final = _joined(
    st.fixed_dictionaries({"withinSeconds": st.sampled_from([1, 30, 600])}),
    _some(releaseAfterSeconds=st.just(30)),
)
_GUARDS: Final = st.one_of(
    _joined(
        _GUARDED,
        st.one_of(
            st.fixed_dictionaries({"count": st.integers(0, 3)}),
            st.fixed_dictionaries(
                {"sharePercent": st.sampled_from([0, 34, 60])}, optional={"count": st.integers(0, 3)}
            ),
        ),
        _some(by=st.just("zone")),
    ),
    _joined(
        _GUARDED,
        st.fixed_dictionaries({"count": st.integers(0, 3), "of": st.just("pods")}),
        _some(by=st.sampled_from(["zone", "node"])),
    ),
    _joined(_GUARDED, st.fixed_dictionaries({"count": st.integers(0, 2), "of": st.just("ownersLosingAll")})),
)
_CLAUSES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "settleSeconds": st.sampled_from([1, 7, 40]),
    "limit": _LIMITS,
    "inFlight": _IN_FLIGHT,
    "hold": _HOLDS,
    "guard": _GUARDS,
    "patienceSeconds": st.just(60),
}
SPECS: Final[_Strategy] = _joined(
    _few(_CLAUSES, 3),
    st.sampled_from([*[{}] * 9, {"observe": True}]),
    _some(**{"for": _SELECTIONS}),
    st.just({}) | st.fixed_dictionaries({"except": _EXCEPTIONS}),
)
