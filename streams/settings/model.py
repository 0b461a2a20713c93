"""All settings in one frozen object, and what must hold between them."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from evictstream.streams.settings.connection import ConnectionSettings
from evictstream.streams.settings.engine import EngineSettings
from evictstream.streams.settings.evictions import EvictionSettings
from evictstream.streams.settings.feeds import FeedSettings
from evictstream.streams.settings.gates import GateSettings
from evictstream.streams.settings.health import HealthSettings
from evictstream.streams.settings.logging import LoggingSettings
from evictstream.streams.settings.topics import TopicSettings
from evictstream.streams.settings.trial import TrialSettings


class Settings(
    # pydantic lists the fields of the last base first.
    LoggingSettings,
    TrialSettings,
    HealthSettings,
    FeedSettings,
    EvictionSettings,
    GateSettings,
    EngineSettings,
    TopicSettings,
    ConnectionSettings,
):
    """Every setting of evictstream. Unknown names are errors; a made object never changes."""

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> Self:
        login, token = [self.sasl_username, self.sasl_password], [self.sasl_oauth_token_file]
        if not self.uses_sasl:
            if any(value is not None for value in (self.sasl_mechanism, *login, *token)):
                message = f"sasl_* is set, but security_protocol {self.security_protocol} does not use it"
                raise ValueError(message)
            return self
        by_token = self.sasl_mechanism == "OAUTHBEARER"
        needed, other = (token, login) if by_token else (login, token)
        if None in (self.sasl_mechanism, *needed) or any(value is not None for value in other):
            message = (
                f"security_protocol {self.security_protocol} needs sasl_mechanism, and with it either sasl_username and"
                " sasl_password or, for OAUTHBEARER, sasl_oauth_token_file"
            )
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _tls_is_used_if_set(self) -> Self:
        # Silence here would mean a connection in the clear that its operator believes to be encrypted.
        given = [self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile, self.ssl_password]
        if not self.uses_tls and any(value is not None for value in given):
            message = f"ssl_* is set, but security_protocol {self.security_protocol} does not encrypt"
            raise ValueError(message)
        if self.ssl_certfile is None and (self.ssl_keyfile is not None or self.ssl_password is not None):
            message = "ssl_keyfile and ssl_password need ssl_certfile"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        own_patience = self.transaction_timeout_seconds + self.takeover_timeout_seconds
        rules = [
            (
                self.heartbeat_interval_seconds * 2 <= self.session_timeout_seconds,
                "heartbeat_interval_seconds must be at most half of session_timeout_seconds",
            ),
            (
                self.lease_margin_seconds < self.session_timeout_seconds - self.heartbeat_interval_seconds,
                "lease_margin_seconds plus heartbeat_interval_seconds must be less than session_timeout_seconds",
            ),
            (
                self.commit_linger_seconds < self.transaction_timeout_seconds,
                "commit_linger_seconds must be less than transaction_timeout_seconds",
            ),
            (
                self.retry_base_seconds <= self.retry_ceiling_seconds,
                "retry_base_seconds must not be more than retry_ceiling_seconds",
            ),
            (
                self.transaction_timeout_seconds < self.write_limit_seconds,
                "write_limit_seconds must be more than transaction_timeout_seconds",
            ),
            (
                own_patience < self.broker_silence_limit_seconds,
                "broker_silence_limit_seconds must be more than transaction_ and takeover_timeout_seconds together",
            ),
        ]
        return self._all_hold(rules)

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        rules = [
            (
                self.min_insync_replicas <= self.replication_factor,
                "min_insync_replicas must not be more than replication_factor",
            ),
            (self.max_object_bytes < self.max_record_bytes, "max_object_bytes must be less than max_record_bytes"),
            (self.max_record_bytes < self.max_message_bytes, "max_record_bytes must be less than max_message_bytes"),
            (self.max_batch_bytes <= self.max_message_bytes, "max_batch_bytes must not be more than max_message_bytes"),
            (self.max_message_bytes <= self.max_fetch_bytes, "max_fetch_bytes must be at least max_message_bytes"),
        ]
        return self._all_hold(rules)

    def _all_hold(self, rules: list[tuple[bool, str]]) -> Self:
        broken = [sentence for holds, sentence in rules if not holds]
        if broken:
            raise ValueError("; ".join(broken))
        return self
