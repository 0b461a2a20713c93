"""Requests in versions that aiokafka 0.14.0 does not have, encoded by kafka-python.

kafka-python generates its messages from the files that describe them in Kafka's own source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import RequestStruct


class GeneratedRequest:
    """A message of kafka-python in one version, with what aiokafka's connections ask of a request.

    Attributes:
        MESSAGE: kafka-python's class of the message; subclasses say it.
        API_VERSION: the version; subclasses say it.
        RESPONSE_TYPE: what decodes the answer in that version; subclasses say it.
    """

    MESSAGE: Any
    API_VERSION: int
    RESPONSE_TYPE: Any
    API_KEY: int
    FLEXIBLE_VERSION: bool

    build_request_header = RequestStruct.build_request_header
    parse_response_header = RequestStruct.parse_response_header

    def __init_subclass__(cls) -> None:
        """Learn from the message what else aiokafka reads."""
        cls.API_KEY = cls.MESSAGE.API_KEY
        cls.FLEXIBLE_VERSION = cls.MESSAGE.flexible_version_q(cls.API_VERSION)

    def __init__(self, *fields: object) -> None:
        """`fields` are those of the message in this version, in its order; structures in them are tuples."""
        self.encode = self.MESSAGE(*fields, version=self.API_VERSION).encode

    def is_known(self, versions: Mapping[int, tuple[int, int]]) -> bool:
        """Tell whether a broker that supports these versions takes this request."""
        least, most = versions.get(self.API_KEY, (0, -1))
        return least <= self.API_VERSION <= most

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> GeneratedRequest:
        """Return what is sent to a broker that supports these versions.

        Raises:
            IncompatibleBrokerVersion: the broker does not know the version of this request.
        """
        if not self.is_known(versions):
            message = f"the broker does not know version {self.API_VERSION} of API {self.API_KEY}"
            raise IncompatibleBrokerVersion(message)
        return self
