"""What every group of settings has in common."""

from __future__ import annotations

import re

from pydantic import AfterValidator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict


class SettingsGroup(BaseSettings):
    """Some settings that belong together; a field's docstring says what it is for (`meanings`).

    Made directly (`Settings(partitions=4)`) it reads nothing but its arguments, so tests get what they say.
    `load_settings` adds the environment and the file.
    """

    model_config = SettingsConfigDict(
        env_prefix="EVICTSTREAM_",
        env_ignore_empty=True,  # compose files write `NAME: ${NAME:-}` for what may be missing
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,  # an input may be a password
        validate_default=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments only: `load_settings` reads the other sources and remembers where each value came from."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def matching(pattern: str, otherwise: str) -> AfterValidator:
    """Allow only texts that match the whole pattern; the error says `otherwise`, since few read such a pattern."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise ValueError(otherwise)
        return text

    return AfterValidator(check)
