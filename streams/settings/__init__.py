"""What can be set, in groups, and where it is read from.

Each field's text says what it is, its unit, and why the default is what it is; `evictstream config --explain` prints
them.
"""

from evictstream.streams.settings.loading import LoadedSettings, SettingSource, environment_with, load_settings
from evictstream.streams.settings.model import Settings

__all__ = ["LoadedSettings", "SettingSource", "Settings", "environment_with", "load_settings"]
