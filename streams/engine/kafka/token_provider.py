"""What aiokafka's clients ask for tokens, where brokers want OAUTHBEARER."""

from __future__ import annotations

from collections.abc import Callable

from aiokafka.abc import AbstractTokenProvider


class AiokafkaTokens(AbstractTokenProvider):  # type: ignore[misc] # the library has no types
    """Gives each connection a token; `read` reads it, from a file so small that the event loop may wait for it."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read

    async def token(self) -> str:
        """Return the present token."""
        return self._read()
