"""What stands in place of a page: logins, cookie banners, error pages that say 200. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from graph.errors import DependencyFaultError
from server.web.reader import Readable

LEAST_CHARS = 35
"""Shorter texts are no page (mission.md §1.9 draws the same line for posts)."""
SHORT_CHARS = 1000
"""A page that says no more than this may be a login page, a banner or an error."""
ERROR_CHARS = 400
"""An error says no more than this."""
SHORT_LINE = 120
WALL = re.compile(
    r"just a moment|attention required|access denied|are you (?:a )?(?:human|robot)|captcha|verify you are human"
    r"|(?:log|sign) ?in\b|enable javascript|403 forbidden"
    r"|subscribe to (?:continue|read)|anmelden\b|connectez-vous|iniciar sesión",
    re.IGNORECASE,
)
"""Titles of what stands in place of a page; believed only where there is little text."""
MISSING = re.compile(
    r"\b404\b|(?:page|site|content|document) (?:was |is |could )?(?:not|no longer) (?:be )?(?:found|available|exists?)"
    r"|page (?:does not|doesn['’]t) exist|nothing (?:was )?found|page introuvable|seite nicht gefunden"
    r"|nicht gefunden|página no encontrada|pagina non trovata",
    re.IGNORECASE,
)
CONSENT = re.compile(
    r"cookie|consent|zustimm|einwillig|consentement|accept(?:er)? all|privacy|datenschutz", re.IGNORECASE
)
LOGIN_PATH = re.compile(
    r"/(?:log-?in|sign-?in|auth|sso|account/login|wp-login\.php|anmelden|connexion)(?:[/.]|$)", re.I
)
FRONT = frozenset({"", "/", "/index.html", "/index.php", "/home"})


class PageError(DependencyFaultError):
    """A page that is not used. `why` is a part of a sentence, without the host's name."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"The page of {host} was left out: {why}.", dependency="web")
        self.why = why


def why_no_page(page: Readable, *, asked: str, url: str) -> str:
    """Why this is not the page that was asked for; "" if it seems to be. `url` is where it was found in the end."""
    short = len(page.text) < SHORT_CHARS
    if short and (page.asks_password or (asked != url and LOGIN_PATH.search(urlsplit(url).path))):
        return "it shows a login page"
    first = page.text.partition("\n")[0][:SHORT_LINE]
    if short and (WALL.search(page.title) or (len(page.text) < SHORT_LINE and WALL.search(first))):
        return f"it shows {page.title[:60] or first[:60]!r} instead of a page"
    if short and (MISSING.search(page.title) or (len(page.text) < ERROR_CHARS and MISSING.search(page.text))):
        return "it says that there is no such page, though its status is 200"
    if short and _is_banner(page.text):
        return "it shows a cookie banner instead of a page"
    if len(page.text) < LEAST_CHARS:
        return "there is nothing to read on it"
    return ""


def leads_to_front(asked: str, url: str) -> bool:
    """Whether a host led from a page of its own to its front page, as many do with a page that is gone."""
    before, after = urlsplit(asked), urlsplit(url)
    return (
        _name(before.netloc) == _name(after.netloc)
        and after.path in FRONT
        and not after.query
        and before.path.rstrip("/") not in FRONT
        and before.path not in FRONT
    )


def _name(netloc: str) -> str:
    return netloc.lower().removeprefix("www.")


def _is_banner(text: str) -> bool:
    """Whether most of it is about cookies: of its lines, or of the one line's sentences."""
    parts = [part for part in re.split(r"[\n.!?]", text) if part.strip()]
    about = [part for part in parts if CONSENT.search(part)]
    return len(about) >= 2 and 2 * sum(map(len, about)) > sum(map(len, parts))
