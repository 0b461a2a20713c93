"""An index that finds the toleration in use by key, for long lists (semantics.md 3.1 and 3.4).

A pod may carry thousands of tolerations and a node thousands of taints. Comparing each with each would let a user of
the cluster choose how much work that is. With the index, a taint costs a few look-ups, however long the list is.
"""

import bisect
from collections.abc import Sequence

from evictstream.models.kubernetes.integers import canonical_int64
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import EQUAL, EXISTS, GREATER_THAN, LESS_THAN, Toleration

_EVERY_KEY = ""


class TolerationIndex:
    """An index of one list of tolerations; it gives the same answers as `first_match`, for taints of one effect."""

    __slots__ = ("_bounds", "_equal", "_exists", "_first_comparing_value", "_tolerations")

    def __init__(self, tolerations: Sequence[Toleration], effect: str, *, comparison_operators: bool = False) -> None:
        """Build the index, with one step for each entry.

        Args:
            tolerations: of the pod, in pod order.
            effect: of all taints that will be looked up.
            comparison_operators: whether `Gt` and `Lt` compare.
        """
        self._tolerations = tolerations
        self._exists: dict[str, int] = {}
        self._equal: dict[tuple[str, str], int] = {}
        self._bounds: dict[tuple[str, str], _Bounds] = {}
        self._first_comparing_value: dict[str, int] = {}  # position, by key
        for position, toleration in enumerate(tolerations):
            if toleration.effect and toleration.effect != effect:
                continue
            operator, key = toleration.operator, toleration.key
            if operator == EXISTS:
                self._exists.setdefault(key, position)
            elif operator in ("", EQUAL):
                self._equal.setdefault((key, toleration.value), position)
                self._first_comparing_value.setdefault(key, position)
            elif comparison_operators and operator in (GREATER_THAN, LESS_THAN):
                self._first_comparing_value.setdefault(key, position)
                bound = canonical_int64(toleration.value)
                if bound is not None:
                    self._bounds.setdefault((key, operator), _Bounds()).add(bound, position, operator)

    def first_match(self, taint: Taint) -> Toleration | None:
        """Find the toleration in use: the first in pod order that matches."""
        position = self._position(taint)
        return self._tolerations[position] if position < len(self._tolerations) else None

    def looks_at_value(self, taint: Taint) -> bool:
        """Return whether the value of a taint plays a part in which toleration is in use, as `matching` has it."""
        none = len(self._tolerations)
        first = min(self._first_comparing_value.get(key, none) for key in (taint.key, _EVERY_KEY))
        return first <= self._position(taint) and first < none

    def _position(self, taint: Taint) -> int:
        first = len(self._tolerations)
        for key in (taint.key, _EVERY_KEY):
            first = min(first, self._exists.get(key, first), self._equal.get((key, taint.value), first))
            if self._bounds:
                first = min(first, self._first_comparing(key, taint.value, first))
        return first

    def _first_comparing(self, key: str, value: str, default: int) -> int:
        number = canonical_int64(value)
        if number is None:
            return default
        for operator in (GREATER_THAN, LESS_THAN):
            bounds = self._bounds.get((key, operator))
            if bounds is not None:
                default = min(default, bounds.first(number, operator, default))
        return default


class _Bounds:
    """The bounds of `Gt`, or of `Lt`, for one key; a bound that matches nothing beyond earlier ones is left out.

    The bounds that remain fall for `Gt` and rise for `Lt`, so bisection finds the first that matches a number. Bounds
    of `Gt` are stored with the opposite sign, so that both lists rise.
    """

    __slots__ = ("_positions", "_rising")

    def __init__(self) -> None:
        self._rising: list[int] = []
        self._positions: list[int] = []

    def add(self, bound: int, position: int, operator: str) -> None:
        turned = -bound if operator == GREATER_THAN else bound
        if not self._rising or turned > self._rising[-1]:
            self._rising.append(turned)
            self._positions.append(position)

    def first(self, number: int, operator: str, default: int) -> int:
        turned = -number if operator == GREATER_THAN else number
        place = bisect.bisect_right(self._rising, turned)  # neither `Gt` nor `Lt` matches the bound itself
        return self._positions[place] if place < len(self._positions) else default
