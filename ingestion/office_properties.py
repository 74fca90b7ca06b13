"""What Office files say of themselves: title, language and time of the last change."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ingestion.sanitize import clean_title

UNTITLED = re.compile(
    r"(?:microsoft )?(?:word|powerpoint|excel|office)(?: ?[-–] .*| presentation| document)?"
    r"|(?:presentation|document|slide|folie|diapositive) ?\d*|(?:untitled|unbenannt|sans (?:nom|titre)).*"
    r"|.*\.(?:docx?|pptx?|xlsx?|odt|dot)",
    re.IGNORECASE,
)
"""What programs write there by themselves."""
LANGUAGE = re.compile(r"([a-zA-Z]{2})(?:[-_].*)?")


def real_title(said: object) -> str:
    """A title that somebody gave; "" for what a program wrote."""
    title = clean_title(said if isinstance(said, str) else "")
    return "" if UNTITLED.fullmatch(title) else title


def language_of(said: object) -> str:
    match = LANGUAGE.fullmatch(said.strip()) if isinstance(said, str) else None
    return match[1].lower() if match else ""


def moment(said: object) -> str:
    """RFC 3339 in UTC; times without a zone are taken for it."""
    if isinstance(said, str):
        try:
            said = datetime.fromisoformat(said[:26])
        except ValueError:
            return ""
    if not isinstance(said, datetime) or said.year < 1990:
        return ""
    utc = (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%SZ")
