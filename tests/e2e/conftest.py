"""What tests on a real control plane share."""

from __future__ import annotations

import pytest

from tests.e2e.binaries import CONTROL_PLANE


@pytest.fixture(scope="session")
def built_binaries() -> None:
    """Skip without a control plane: building one takes minutes, which no test starts unasked."""
    if not CONTROL_PLANE.are_built():
        pytest.skip(CONTROL_PLANE.why_missing())
