"""From the command line's options to settings."""

from __future__ import annotations

import os

from config.given import find_settings_file
from config.loading import LoadedSettings, SettingsProblem, load_with_places
from config.settings import Settings, default_home
from graph.errors import SettingsError
from server.commands.options import Options


def load(options: Options) -> LoadedSettings:
    """The one place where the command line reads the environment and the settings file."""
    flags: dict[str, object] = {**options.sets, "home": options.home or options.sets.get("home")}
    try:
        file = find_settings_file({"config": options.config, "home": flags["home"]}, os.environ, default_home())
        return load_with_places(flags=flags, environment=os.environ, file=file)
    except SettingsProblem as problem:
        raise SettingsError(str(problem)) from None


def settings_of(options: Options) -> Settings:
    return load(options).settings
