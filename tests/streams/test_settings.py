from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from evictstream.streams.errors import SettingsError
from evictstream.streams.settings import Settings, load_settings
from evictstream.streams.settings.meanings import meanings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "evictstream.toml"


def test_defaults_need_nothing() -> None:
    loaded = load_settings()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_every_setting_says_what_it_is_for() -> None:
    said = meanings(Settings)
    assert [name for name in Settings.model_fields if not said.get(name)] == []


def test_connection_comes_first_and_logs_last() -> None:
    names = list(Settings.model_fields)
    assert names[0] == "bootstrap_servers"
    assert names[-1].startswith("log_")


def test_settings_never_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().partitions = 3  # type: ignore[misc] # the type checker knows too


def test_made_directly_it_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVICTSTREAM_PARTITIONS", "3")
    assert Settings().partitions == 8


class TestOrder:
    def test_environment_over_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVICTSTREAM_PARTITIONS", "3")
        loaded = load_settings()
        assert (loaded.settings.partitions, loaded.origins["partitions"]) == (3, "environment")

    def test_file_over_default(self, file: Path) -> None:
        file.write_text("partitions = 5")
        loaded = load_settings(config_file=file)
        assert (loaded.settings.partitions, loaded.origins["partitions"]) == (5, "file")

    def test_environment_over_file(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file.write_text("partitions = 5\nstate_version = 2")
        monkeypatch.setenv("EVICTSTREAM_PARTITIONS", "3")
        loaded = load_settings(config_file=file)
        assert (loaded.settings.partitions, loaded.origins["partitions"]) == (3, "environment")
        assert (loaded.settings.state_version, loaded.origins["state_version"]) == (2, "file")

    def test_flag_over_all(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file.write_text("partitions = 5")
        monkeypatch.setenv("EVICTSTREAM_PARTITIONS", "3")
        loaded = load_settings({"partitions": "7"}, file)
        assert (loaded.settings.partitions, loaded.origins["partitions"]) == (7, "flag")

    def test_a_flag_that_is_none_was_not_given(self) -> None:
        assert load_settings({"partitions": None}).origins["partitions"] == "default"

    def test_file_named_by_the_environment(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file.write_text("partitions = 5")
        monkeypatch.setenv("EVICTSTREAM_CONFIG", str(file))
        assert load_settings().settings.partitions == 5

    def test_empty_variables_were_not_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVICTSTREAM_PARTITIONS", "")
        assert load_settings().origins["partitions"] == "default"


class TestBootstrapServers:
    def test_kafkas_own_variable_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "theirs:9092")
        loaded = load_settings()
        assert loaded.settings.bootstrap_servers == "theirs:9092"
        assert loaded.origins["bootstrap_servers"] == "environment"

    def test_our_variable_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "theirs:9092")
        monkeypatch.setenv("EVICTSTREAM_BOOTSTRAP_SERVERS", "ours:9092")
        assert load_settings().settings.bootstrap_servers == "ours:9092"

    def test_without_any_it_says_what_to_set(self) -> None:
        with pytest.raises(SettingsError, match="set EVICTSTREAM_BOOTSTRAP_SERVERS"):
            Settings().required_bootstrap_servers()


class TestSecretFiles:
    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        path = tmp_path / "password"
        path.write_text("hunter2\n")
        return path

    @pytest.fixture(autouse=True)
    def sasl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_MECHANISM": "PLAIN", "SASL_USERNAME": "me"}.items():
            monkeypatch.setenv(f"EVICTSTREAM_{name}", value)

    @pytest.mark.parametrize("source", ["environment", "file", "flag"])
    def test_each_source_may_name_one(
        self, source: str, secret: Path, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if source == "environment":
            monkeypatch.setenv("EVICTSTREAM_SASL_PASSWORD_FILE", str(secret))
        if source == "file":
            file.write_text(f'sasl_password_file = "{secret}"')
        loaded = load_settings(
            {"sasl_password_file": str(secret)} if source == "flag" else {}, file if source == "file" else None
        )
        assert loaded.settings.sasl_password == SecretStr("hunter2")
        assert loaded.origins["sasl_password"] == source
        assert loaded.shown()["sasl_password"] == "********"

    def test_a_file_over_a_value_of_a_later_source(
        self, secret: Path, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.write_text('sasl_password = "other"')
        monkeypatch.setenv("EVICTSTREAM_SASL_PASSWORD_FILE", str(secret))
        assert load_settings(config_file=file).settings.sasl_password == SecretStr("hunter2")

    def test_both_in_one_source_is_an_error(self, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVICTSTREAM_SASL_PASSWORD", "other")
        monkeypatch.setenv("EVICTSTREAM_SASL_PASSWORD_FILE", str(secret))
        with pytest.raises(SettingsError, match="sasl_password and sasl_password_file are both set"):
            load_settings()

    def test_one_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"cannot read sasl_password_file /.*/none: No such file"):
            load_settings({"sasl_password_file": str(tmp_path / "none")})

    def test_only_secrets_have_them(self) -> None:
        with pytest.raises(SettingsError, match="unknown flag partitions_file"):
            load_settings({"partitions_file": "3"})


class TestUnknownNames:
    def test_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVICTSTREAM_PARTITION", "3")
        with pytest.raises(SettingsError) as caught:
            load_settings()
        assert str(caught.value) == (
            "unknown environment variable EVICTSTREAM_PARTITION; did you mean EVICTSTREAM_PARTITIONS?"
        )
        assert caught.value.names == ("partition",)

    def test_in_the_file(self, file: Path) -> None:
        file.write_text("sesion_timeout_seconds = 3")
        with pytest.raises(SettingsError, match=r"unknown key in .*; did you mean session_timeout_seconds\?"):
            load_settings(config_file=file)

    def test_in_flags(self) -> None:
        with pytest.raises(SettingsError, match=r"unknown flag zzz; .*config --explain"):
            load_settings({"zzz": "3"})

    @pytest.mark.parametrize(
        "name",
        [
            "EVICTSTREAM_SERVICE_HOST",
            "EVICTSTREAM_SERVICE_PORT_METRICS",
            "EVICTSTREAM_PORT",
            "EVICTSTREAM_PORT_8080_TCP_ADDR",
            "EVICTSTREAM_WORKER_SERVICE_PORT",
        ],
    )
    def test_what_kubernetes_sets_for_services_called_evictstream_is_not_ours(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(name, "10.0.0.1")
        with pytest.raises(SettingsError):
            load_settings()
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        load_settings()

    def test_a_setting_called_as_a_service_counts_as_not_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVICTSTREAM_HEALTH_PORT", "tcp://10.96.1.2:9464")
        with pytest.raises(SettingsError):
            load_settings()
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        found = load_settings()
        assert (found.settings.health_port, found.origins["health_port"]) == (0, "default")
        monkeypatch.setenv("EVICTSTREAM_HEALTH_PORT", "9464")
        assert load_settings().settings.health_port == 9464


class TestBadValues:
    def test_one_line_says_which_and_from_where(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EVICTSTREAM_PARTITIONS", "many")
        with pytest.raises(SettingsError, match=r"^partitions \(from environment\): .* integer, not 'many';"):
            load_settings()

    @pytest.mark.parametrize(
        ("name", "value", "advice"),
        [
            ("bootstrap_servers", "localhost", "write host:port, with commas between several, not 'localhost'"),
            ("bootstrap_servers", "kafka:65536", "write host:port, with commas between several, not 'kafka:65536'"),
            ("topic_prefix", "a/b", "use letters without accents, digits, dots, _ and -, not 'a/b'"),
            ("partitions", "0", "input should be greater than or equal to 1, not '0'"),
            ("log_level", "l" * 1_000, f"or 'error', not '{'l' * 100}'"),
        ],
        ids=["address", "port", "name", "range", "long"],
    )
    def test_a_wrong_value_is_shown_beside_what_fits(self, name: str, value: str, advice: str) -> None:
        with pytest.raises(SettingsError) as caught:
            load_settings({name: value})
        assert str(caught.value).endswith(f"{advice}; `evictstream config --explain` lists every setting")

    def test_all_are_named_at_once(self) -> None:
        with pytest.raises(SettingsError) as caught:
            load_settings({"partitions": "0", "log_level": "loud"})
        assert set(caught.value.names) == {"partitions", "log_level"}

    def test_a_secret_is_not_repeated(self) -> None:
        with pytest.raises(SettingsError) as caught:
            load_settings({"sasl_password": "hunter2", "sasl_username": "u"})
        assert "hunter2" not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="cannot read the settings file"):
            load_settings(config_file=tmp_path / "none.toml")

    @pytest.mark.parametrize("content", [b"partitions: 3", b"\xff\xfe"], ids=["yaml", "not-utf-8"])
    def test_a_file_that_is_not_toml(self, content: bytes, file: Path) -> None:
        file.write_bytes(content)
        with pytest.raises(SettingsError, match="is not TOML"):
            load_settings(config_file=file)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param({"security_protocol": "SASL_SSL"}, "needs sasl_mechanism", id="sasl-incomplete"),
        pytest.param(
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_username": "me"},
            "for OAUTHBEARER, sasl_oauth_token_file",
            id="name-for-token",
        ),
        pytest.param({"sasl_oauth_token_file": "t"}, "does not use it", id="token-unused"),
        pytest.param({"sasl_username": "me"}, "does not use it", id="sasl-unused"),
        pytest.param({"ssl_cafile": "ca.pem"}, "does not encrypt", id="tls-files-without-tls"),
        pytest.param(
            {"security_protocol": "SSL", "ssl_keyfile": "k"}, "need ssl_certfile", id="key-without-certificate"
        ),
        pytest.param({"heartbeat_interval_seconds": "6"}, "at most half of session_timeout", id="heartbeat-too-rare"),
        pytest.param({"lease_margin_seconds": "10"}, "lease_margin_seconds plus", id="lease-never-valid"),
        pytest.param({"commit_linger_seconds": "60"}, "less than transaction_timeout", id="linger-beyond-transaction"),
        pytest.param({"retry_base_seconds": "301"}, "not be more than retry_ceiling", id="retry-base-over-ceiling"),
        pytest.param({"min_insync_replicas": "2"}, "not be more than replication_factor", id="more-insync-than-copies"),
        pytest.param({"max_object_bytes": "2000000"}, "less than max_record_bytes", id="object-over-record"),
        pytest.param({"max_record_bytes": "2097152"}, "less than max_message_bytes", id="record-over-message"),
        pytest.param({"max_fetch_bytes": "2097151"}, "at least max_message_bytes", id="fetch-under-message"),
        pytest.param({"topic_prefix": "a/b"}, "topic_prefix", id="prefix-not-a-name"),
        pytest.param({"application_id": ""}, "application_id", id="empty-application"),
    ],
)
def test_contradictions_are_refused(flags: dict[str, object], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        load_settings(flags)


class TestNames:
    def test_of_topics(self) -> None:
        settings = Settings(topic_prefix="fleet.", application_id="east", state_version=3)
        assert settings.input_topics == ("fleet.nodes", "fleet.pods", "fleet.results")
        assert settings.commands_topic == "fleet.commands"
        assert settings.decisions_topic == "fleet.decisions"
        assert settings.dead_letters_topic == "fleet.dead-letters"
        assert settings.changelog_topic == "east-v3-state-changelog"
        assert settings.group_id == settings.faust_app_id == "east-v3"


def provider(read: Callable[[], str]) -> Callable[[], str]:
    """Stands for what a client's library makes of the function that reads a token."""
    return read


class TestSecurityArguments:
    def test_plain(self) -> None:
        assert Settings().security_arguments(provider) == {"security_protocol": "PLAINTEXT"}

    def test_sasl_over_tls(self) -> None:
        settings = Settings.model_validate(
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_username": "me",
                "sasl_password": "hunter2",
            }
        )
        arguments = settings.security_arguments(provider)
        assert arguments.pop("ssl_context").check_hostname is True
        assert arguments == {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "me",
            "sasl_plain_password": "hunter2",
        }
        assert "hunter2" not in repr(settings)

    def test_a_token_is_read_anew_for_each_connection(self, file: Path) -> None:
        file.write_text("first\n")
        settings = load_settings(
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauth_token_file": str(file),
            }
        ).settings
        read = settings.security_arguments(provider)["sasl_oauth_token_provider"]
        assert read() == "first"
        file.write_text("second")
        assert (read(), repr(read())) == ("second", "'********'")
        file.unlink()
        with pytest.raises(FileNotFoundError):
            settings.security_arguments(provider)


def test_secrets_are_masked_where_settings_are_shown() -> None:
    loaded = load_settings(
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_username": "me",
            "sasl_password": "hunter2",
        }
    )
    assert loaded.shown()["sasl_password"] == "********"
    assert loaded.shown()["ssl_password"] is None
    assert "hunter2" not in str(loaded)
