"""Which faults count as done. Nothing here needs a Kafka."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tests.faults.plan import Fault, FaultKind
from tests.faults.real.means import Faults, Scene


def scene(worker: object) -> Scene:
    posts = [SimpleNamespace(is_wanted=True, worker=worker)]
    crew = SimpleNamespace(posts=posts, kill=lambda _post: None, terminate=lambda _post: None)
    return cast("Scene", SimpleNamespace(crew=crew))


def worker(code: int | None) -> object:
    process = SimpleNamespace(poll=lambda: code)
    return SimpleNamespace(process=process, freeze=lambda: None, thaw=lambda: None)


def done(hit: object, kind: FaultKind) -> list[str]:
    faults = Faults(scene(hit), (Fault(kind, 1.0, 0.5, 0.0),))
    faults.tick(2.0)
    assert faults.are_over
    return [text.split()[1] for text in faults.done]


@pytest.mark.parametrize("kind", [FaultKind.WORKER_KILL, FaultKind.WORKER_TERM, FaultKind.WORKER_STOP_CONT])
def test_only_a_worker_that_was_there_has_been_hit(kind: FaultKind) -> None:
    assert done(worker(None), kind) == [kind]
    assert done(worker(1), kind) == []
    assert done(None, kind) == []
