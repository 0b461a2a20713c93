"""One API server for all cases of admission; each module chooses the policy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.control_plane import ControlPlane
from tests.e2e.handover.admission import MORE, Admission


@pytest.fixture(scope="session")
def plane(built_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with all built-in controllers on."""
    with ControlPlane(tmp_path_factory.mktemp("handover"), taint_eviction=True, users=["nobody"]) as found:
        yield found


@pytest.fixture(scope="session")
def any_admission(plane: ControlPlane) -> Admission:
    """The policy, in whatever variant."""
    return Admission(plane.client())


@pytest.fixture(scope="session", params=[pytest.param(MORE, id="backstop"), pytest.param(None, id="handover")])
def more(request: pytest.FixtureRequest) -> int | None:
    """The variant: seconds, or none. Of the session, so that tests of a variant run together."""
    chosen: int | None = request.param
    return chosen


@pytest.fixture
def admission(any_admission: Admission, more: int | None) -> Admission:
    """The policy in the variant of the test."""
    any_admission.use(more)
    return any_admission
