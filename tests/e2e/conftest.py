"""What tests on a real control plane share."""

from __future__ import annotations

import pytest

from tests.e2e.binaries import are_built, kubernetes_version


@pytest.fixture(scope="session")
def built_binaries() -> None:
    """Skip without a control plane: building one takes minutes, which no test starts unasked."""
    if not are_built():
        pytest.skip(f"Kubernetes {kubernetes_version()} is not built: run `make kubernetes` (needs Go)")
