"""Front matter of Markdown pages: YAML, TOML or JSON before the text, and what of it means something to us."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

import yaml
from frontmatter.default_handlers import JSONHandler, YAMLHandler

from ingestion.sanitize import clean_title

MAX_FRONT_MATTER = 65_536
OPENING = re.compile(r"(-{3,}|\+{3,}|\{)[^\S\n]*\n")
SIMPLE_LINE = re.compile(r"^([A-Za-z][\w-]{0,40})[^\S\n]*[:=](.+)$", re.MULTILINE)
LANGUAGE = re.compile(r"[a-z]{2,3}")
NO = frozenset({"false", "no", "off", "0"})
YES = frozenset({"true", "yes", "on", "1"})
KNOWN = frozenset(
    {"title", "aliases", "alias", "tags", "published", "publish", "draft", "date", "categories", "editor"}
)
COMMENT = re.compile(r"<!--[^\S\n]*\n")
"""Wiki.js begins its HTML pages so."""
TOML_FENCE = re.compile(r"^\+{3,}\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """What a page says of itself before its text."""

    title: str = ""
    aliases: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    language: str = ""
    modified: str = ""
    published: bool = True
    editor: str = ""
    """Wiki.js's name of what the page was written with: "markdown", "ckeditor" (HTML), "code" (HTML)."""
    fault: str = ""
    """Why it could not be parsed; then only its plain `key: value` lines were read."""


def read_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Front matter and the text after it.

    Broken front matter is no reason to lose a page, nor to publish one that says `published: false`: its plain lines
    still count (`title: Notes: part 2` is not YAML, yet clear), and `fault` names what is wrong with it.
    """
    opening = OPENING.match(text)
    if not opening:
        return _in_comment(text) or (FrontMatter(), text)
    handler = JSONHandler() if opening[1] == "{" else YAMLHandler(TOML_FENCE if opening[1][0] == "+" else None)
    try:
        head, body = handler.split(text)
    except ValueError:
        return _never_closed(text[opening.end() :]) or (FrontMatter(), text)
    if len(head) > MAX_FRONT_MATTER:
        fault = f"front matter longer than {MAX_FRONT_MATTER} characters"
        return understood(_simple_lines(head[:MAX_FRONT_MATTER]), fault), body.lstrip("\n")
    try:
        found = tomllib.loads(head) if opening[1][0] == "+" else handler.load(head)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, json.JSONDecodeError, ValueError, RecursionError) as error:
        after = head.partition("\n\n")[2]
        if after.strip() and not SIMPLE_LINE.search(after) and (loose := _never_closed(text[opening.end() :])):
            return loose  # what closed it is a rule in the text
        reason = getattr(error, "problem", None) or str(error) or type(error).__name__
        fault = f"front matter cannot be read ({clean_title(reason)})"
        return understood(_simple_lines(head), fault), body.lstrip("\n")
    if isinstance(found, Mapping):
        return understood(found), body.lstrip("\n")
    return FrontMatter(), text if found else body.lstrip("\n")  # text between two rules, or nothing


def _simple_lines(head: str) -> dict[str, object]:
    return {match[1]: match[2].strip().strip("'\"") for match in SIMPLE_LINE.finditer(head)}


def _never_closed(text: str) -> tuple[FrontMatter, str] | None:
    """Front matter up to the first blank line, if a key of it is one we know; else the opening is a horizontal rule."""
    head, _, body = text.partition("\n\n")
    found = _simple_lines(head[:MAX_FRONT_MATTER])
    if not KNOWN.intersection(key.lower() for key in found):
        return None
    return understood(found, "front matter is never closed"), body.lstrip("\n")


def _in_comment(text: str) -> tuple[FrontMatter, str] | None:
    opening = COMMENT.match(text)
    end = text.find("\n-->", 0, MAX_FRONT_MATTER) if opening else -1
    if opening is None or end < 0:
        return None
    found = _simple_lines(text[opening.end() : end + 1])
    if not KNOWN.intersection(key.lower() for key in found):
        return None
    return understood(found), text[end + 4 :].lstrip("\n")


def understood(raw: Mapping[object, object] | Mapping[str, object], fault: str = "") -> FrontMatter:
    """What keys and values of front matter mean; what of them cannot be meant is left out."""
    found = {str(key).lower(): value for key, value in raw.items()}
    language = LANGUAGE.match(_word(found.get("lang") or found.get("language")).lower())
    dated = next((found[key] for key in ("updated", "lastmod", "modified", "date") if found.get(key)), None)
    shown = (_word(found.get(key, "")).strip().lower() for key in ("published", "publish", "public"))
    hidden = any(word in NO for word in shown) or _word(found.get("draft", "")).strip().lower() in YES
    return FrontMatter(
        title=clean_title(_word(found.get("title"))),
        aliases=_words(found.get("aliases") or found.get("alias")),
        categories=tuple(
            dict.fromkeys(name for key in ("categories", "category", "tags", "tag") for name in _words(found.get(key)))
        ),
        language=language[0] if language else "",
        modified=_moment(dated),
        published=not hidden,
        editor=_word(found.get("editor")).lower(),
        fault=fault,
    )


def _word(value: object) -> str:
    """A scalar as text; a list or a mapping, where none is expected, as nothing."""
    return str(value) if isinstance(value, str | int | float | datetime.date) else ""


def _words(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else re.split(r"[,\n]", _word(value).strip("[]"))
    cleaned = (clean_title(_word(item)).strip("'\"").lstrip("#") for item in listed)
    return tuple(dict.fromkeys(name for name in cleaned if name))


def _moment(value: object) -> str:
    """RFC 3339, UTC where no zone is given; "" for what is no date."""
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            return ""
    if not isinstance(value, datetime.date):
        return ""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    return value.isoformat().replace("+00:00", "Z")
