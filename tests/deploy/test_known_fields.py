from __future__ import annotations

from tests.deploy.known_fields import FILE, text


def test_fields_are_those_of_the_installed_client() -> None:
    """Make them anew with `python -m tests.deploy.known_fields`."""
    assert FILE.read_text(encoding="utf-8") == text()
