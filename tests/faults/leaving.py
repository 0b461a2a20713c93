"""A fake API server whose pods leave, and what is measured of them."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import FakeAnswer, FakeRequest

TAINTED: Final[dict[str, Any]] = {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}
PATIENCE_SECONDS: Final = 300.0


class Deleted(NamedTuple):
    """A delete that was accepted."""

    uid: str
    at: float


class LeavingApi(FakeApi):
    """A cluster whose pods all have to leave.

    Attributes:
        deleted: in order.
        put_at: when each pod was put, by UID.
        lasts: whether each pod that is deleted is replaced.
    """

    def __init__(self, nodes: int, *, spec: Mapping[str, Any] = TAINTED) -> None:
        """Put nodes of this spec, `n-0` and so on."""
        super().__init__()
        self.deleted: list[Deleted] = []
        self.put_at: dict[str, float] = {}
        self.lasts = False
        self._numbers = itertools.count()
        for number in range(nodes):
            self.put("Node", f"n-{number}", spec=dict(spec))

    def put_pod(self, node: str, *, metadata: Mapping[str, Any] = {}, **spec: object) -> None:
        """Put a running pod on a node."""
        name = f"p-{next(self._numbers)}"
        uid, spec = f"uid-{name}", {"nodeName": node, **spec}
        self.put("Pod", name, uid=uid, spec=spec, status={"phase": "Running"}, metadata=dict(metadata))
        self.put_at[uid] = time.time()

    @property
    def left(self) -> int:
        """How many pods there are."""
        with self._changed:
            return sum(1 for kind, _ in self.objects if kind == "Pod")

    @property
    def twice(self) -> int:
        """How many pods were deleted more than once."""
        return sum(count > 1 for count in Counter(one.uid for one in self.deleted).values())

    def delete_pod(self, request: FakeRequest, options: Any) -> tuple[FakeAnswer, str | None]:
        """Delete it, and note when."""
        with self._changed:
            pod: Any = self.objects.get(("Pod", request.name))
            answer, done_to = super().delete_pod(request, options)
            if done_to is not None:
                self.deleted.append(Deleted(done_to, time.time()))
                if self.lasts:
                    self.put_pod(pod["spec"]["nodeName"])
        return answer, done_to


def kubeconfig_of(apis: Mapping[str, FakeApi]) -> str:
    """Write a kubeconfig with a context for each cluster; the first is the current one."""
    made = {name: json.loads(api.kubeconfig()) for name, api in apis.items()}
    first = next(iter(made.values()))
    for part in ("clusters", "contexts"):
        first[part] = [{**made[name][part][0], "name": name} for name in made]
    for name, context in zip(made, first["contexts"], strict=True):
        context["context"] = {"cluster": name, "user": "somebody"}
    return json.dumps(first | {"current-context": next(iter(made))})


def share(values: Iterable[float], part: float) -> float:
    """Return the value that so many are not above; 0 of none."""
    found = sorted(values)
    return found[min(len(found) - 1, int(len(found) * part))] if found else 0.0


def wait_for(is_so: Callable[[], bool], what: str, *, fails: bool = True) -> None:
    """Wait until it is so, for `PATIENCE_SECONDS`.

    Raises:
        TimeoutError: it does not come to be, and `fails`.
    """
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > give_up_at:
            if fails:
                message = f"waited in vain for {what}"
                raise TimeoutError(message)
            return
        time.sleep(0.02)
