"""Addresses of a site's pages: one form for each page, and which of them belong to a crawl."""

from __future__ import annotations

import re
from dataclasses import dataclass

import httpx

from ingestion.sanitize import clean_title
from ingestion.sources.folder_titles import NAMELESS, title_of_path

TRACKING = re.compile(
    r"utm_\w+|[gf]clid|gbraid|wbraid|dclid|msclkid|yclid|mc_[ce]id|_ga|_gl|_hs\w+|igshid|phpsessid|jsessionid|sid"
    r"|sessionid|session_id|ref_src|ref_url|pk_\w+|mtm_\w+|piwik_\w+|replytocom|share",
    re.IGNORECASE,
)
"""Parameters that say who asks or from where, not what for."""
ACTIONS = frozenset(
    {"action", "oldid", "diff", "printable", "veaction", "rev", "do", "print", "redlink", "curid", "mobileaction"}
    | {"returnto", "sectok", "ns", "idx", "tab_files", "tab_details", "image", "media"}
)
"""Parameters of wikis that lead to forms, old revisions and other views of a page."""
OTHER_FILE = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|avif|ico|bmp|tiff?|css|js|mjs|json|xml|rss|atom|txt|woff2?|ttf|eot|zip|gz|tgz|bz2|xz"
    r"|7z|rar|tar|exe|dmg|iso|deb|rpm|mp[34]|m4[av]|ogg|ogv|webm|wav|flac|avi|mov|mkv|docx?|xlsx?|pptx?|od[tsp]|epub"
    r"|csv|sql|jar|apk|bin)$",
    re.IGNORECASE,
)
PROGRAM = re.compile(r"\.(?:pdf|php\d?|aspx?|jspx?|cfm|cgi|pl|do)$", re.IGNORECASE)
SESSION_PATH = re.compile(r";jsessionid=[^/?#;]{0,200}", re.IGNORECASE)
LOGIN_PATH = re.compile(
    r"/(?:log-?in|sign-?in|signup|register|auth|sso|account/login|users/sign_in|wp-login\.php|session/new)(?:[/?]|$)"
    r"|special:(?:userlogin|createaccount)",
    re.IGNORECASE,
)
MAX_URL = 500
"""An address is its page's key, too."""


def canonical_url(url: str) -> str:
    """One form for each page: no fragment, no tracking, no default port, host in lower case; "" for no web address.

    httpx parses here as it does when the page is asked for, so both see the same host.
    """
    try:
        parsed = httpx.URL(url.strip())
        if parsed.scheme not in {"http", "https"} or not parsed.host or len(url) > MAX_URL:
            return ""
        path = SESSION_PATH.sub("", parsed.raw_path.decode("ascii").partition("?")[0]) or "/"
        query = parsed.query.decode("ascii")
        kept = "&".join(part for part in query.split("&") if part and not TRACKING.fullmatch(part.partition("=")[0]))
        whole = parsed.copy_with(userinfo=b"", fragment=None, raw_path=f"{path}{'?' if kept else ''}{kept}".encode())
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError):
        return ""
    return str(whole)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a crawl may read: pages of one host, below a path."""

    host: str
    """As in a URL, with the port where it is not the usual one."""
    path: str

    @classmethod
    def of(cls, start: str) -> Scope:
        parsed = httpx.URL(start)
        path = parsed.raw_path.decode("ascii").partition("?")[0]
        return cls(parsed.netloc.decode("ascii").lower(), path[: path.rfind("/") + 1] or "/")

    def same_host(self, url: str) -> bool:
        try:
            parsed = httpx.URL(url.strip())
        except (httpx.InvalidURL, UnicodeError, ValueError, TypeError):
            return False
        # Without `www.` or with it: the same site, but another host: a redirect would be needed to tell.
        return parsed.scheme in {"http", "https"} and parsed.netloc.decode("ascii", "replace").lower() == self.host

    def page(self, url: str) -> str:
        """The canonical address of a page in this scope, or ""."""
        canonical = canonical_url(url)
        if not canonical or not self.same_host(canonical):
            return ""
        path = httpx.URL(canonical).raw_path.decode("ascii").partition("?")[0]
        return canonical if path.startswith(self.path) or f"{path}/" == self.path else ""

    def worth_following(self, canonical: str) -> bool:
        """Whether a link may lead to a page: not to a picture, a form, or an old revision."""
        parsed = httpx.URL(canonical)
        if OTHER_FILE.search(parsed.path) or LOGIN_PATH.search(parsed.path):
            return False
        names = {part.partition("=")[0].lower() for part in parsed.query.decode("ascii").split("&")}
        return not names & ACTIONS


def name_in(url: str) -> str:
    """What the page is called in its address: a `title=` or the last part of the path; "" where that says nothing."""
    parsed = httpx.URL(url)
    for parameter in ("title", "page"):
        if given := parsed.params.get(parameter):
            return clean_title(given.replace("_", " "))
    path = parsed.path.strip("/")
    if not path or ("/" not in path and path.partition(".")[0].lower() in NAMELESS):
        return ""
    return title_of_path(PROGRAM.sub("", path))
