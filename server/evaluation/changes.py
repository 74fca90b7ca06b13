"""Settings changed by their dotted names, as one factor at a time is."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from config.loading import declared
from config.settings import Settings
from graph.errors import SettingsError


def changed(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """A copy with these values, checked as any setting is. Raises `SettingsError`."""
    for key, value in changes.items():
        section, _, name = key.rpartition(".")
        if key not in declared() or not section:
            raise SettingsError(f"“{key}” is not a setting that can be changed; `trivet config show` lists all.")
        before = getattr(settings, section)
        try:
            after = type(before).model_validate({**before.model_dump(), name: value})
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"].removeprefix("Input ")
            raise SettingsError(f"{key} = {value} {reason}.") from None
        settings = settings.model_copy(update={section: after})
    return settings


def value_of(settings: Settings, key: str) -> object:
    """The value of a dotted name."""
    section, _, name = key.rpartition(".")
    return getattr(getattr(settings, section), name)
