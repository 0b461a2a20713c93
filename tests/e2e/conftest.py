"""What tests on a real control plane share."""

from __future__ import annotations

import pytest

from tests.e2e.binaries import CONTROL_PLANE
from tests.e2e.chart import HELM


@pytest.fixture(scope="session")
def built_binaries() -> None:
    """Skip without a control plane: building one takes minutes, which no test starts unasked."""
    if not CONTROL_PLANE.are_built():
        pytest.skip(CONTROL_PLANE.why_missing())


@pytest.fixture(scope="session")
def built_helm() -> None:
    """Skip without Helm, for the same reason."""
    if not HELM.are_built():
        pytest.skip(HELM.why_missing())
