"""A worker takes as many files as it may: a connection to each broker for each partition, and 1,024 are usual."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from evictstream.streams.worker.app import allow_many_connections

FEW = 256


@pytest.fixture(autouse=True)
def limits() -> Iterator[tuple[int, int]]:
    """Begin with few; give back what the process had."""
    had = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, had[1]))
    yield had
    resource.setrlimit(resource.RLIMIT_NOFILE, had)


def test_a_worker_may_open_as_many_files_as_its_process(limits: tuple[int, int]) -> None:
    allow_many_connections()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limits[1], limits[1])


@pytest.mark.parametrize("refusal", [ValueError("above the maximum"), OSError(22, "invalid")], ids=["value", "system"])
def test_a_refused_limit_of_files_does_not_end_the_worker(monkeypatch: pytest.MonkeyPatch, refusal: Exception) -> None:
    """As macOS does where the limit is "none"."""

    def refuse(*_: object) -> None:
        raise refusal

    with monkeypatch.context() as patched:
        patched.setattr(resource, "setrlimit", refuse)
        allow_many_connections()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == FEW
