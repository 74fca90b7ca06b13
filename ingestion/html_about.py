"""What a web page says of itself beside its text: title, language, address, categories, links. `tree` is lxml's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from ingestion.main_content import MAX_LINKS, HtmlContent
from ingestion.sanitize import clean_title

SUFFIX = re.compile(" (?:[-–—|·»:•]|::) ")
MODIFIED = (
    "string(//meta[@property='article:modified_time' or @property='og:updated_time'][1]/@content)",
    "string(//meta[@itemprop='dateModified'][1]/@content)",
    "string(//*[@itemprop='dateModified'][@datetime][1]/@datetime)",
    "string(//meta[translate(@name, 'LASTMODIFED', 'lastmodifed')='last-modified'][1]/@content)",
)


def about(tree: Any, base: str) -> HtmlContent:
    """All but the text. `base` is what its links are relative to."""
    return HtmlContent(
        title=title_of(tree),
        language=_language(tree),
        modified=_modified(tree),
        canonical=_canonical(tree, base),
        robots=" ".join(tree.xpath("//meta[@name='robots']/@content")).lower()[:200],
        categories=_categories(tree),
        addresses=tuple(dict.fromkeys(_addresses(tree, base)))[:MAX_LINKS],
        asks_password=bool(tree.xpath("boolean(//input[@type='password'])")),
    )


def title_of(tree: Any) -> str:
    """The title without the site's name: what `og:title` says, else the heading that `<title>` begins with, else
    `<title>` up to its last dash or bar, else the first heading."""
    site = clean_title(tree.xpath("string(//meta[@property='og:site_name'][1]/@content)"))
    shown = clean_title(tree.xpath("string(//head/title[1])") or tree.xpath("string(//title[1])"))
    if given := clean_title(tree.xpath("string(//meta[@property='og:title'][1]/@content)")):
        return _without_site(given, site)
    headings = [title for heading in tree.xpath("(//h1)[position() <= 5]") if (title := _heading_words(heading))]
    for heading in headings:
        if shown.casefold().startswith(heading.casefold()):
            return heading
    if shown:
        cut = _without_site(shown, site)
        return cut if cut != shown else SUFFIX.split(shown)[0] if SUFFIX.search(shown) else shown
    return headings[0] if headings else ""


def _heading_words(heading: Any) -> str:
    return clean_title("".join(heading.itertext())).strip("¶§# ")


def _without_site(title: str, site: str) -> str:
    for cut in reversed(list(SUFFIX.finditer(title))):
        if site and title[cut.end() :].casefold() == site.casefold() and title[: cut.start()].strip():
            return title[: cut.start()].strip()
    return title


def _language(tree: Any) -> str:
    code = str(tree.xpath("string(//html/@lang)") or tree.xpath("string(//html/@*[local-name()='lang'])"))
    code = code.strip().lower()[:2]
    return code if code.isascii() and code.isalpha() and len(code) == 2 else ""


def _modified(tree: Any) -> str:
    for path in MODIFIED:
        text = str(tree.xpath(path)).strip()
        try:
            when = datetime.fromisoformat(text) if text else None
        except ValueError:
            continue
        if when is not None:
            utc = (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
            return utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    return ""


def _categories(tree: Any) -> tuple[str, ...]:
    """MediaWiki's line of categories, and keywords that are marked as the article's tags."""
    names = tree.xpath("//*[@id='mw-normal-catlinks']//li//a//text() | //meta[@property='article:tag']/@content")
    return tuple(dict.fromkeys(name for text in names[:200] if (name := clean_title(str(text)))))


def base_of(tree: Any, address: str) -> str:
    href = str(tree.xpath("string(//base/@href)")).strip()
    return joined(address, href) or address


def _canonical(tree: Any, base: str) -> str:
    href = str(tree.xpath("string(//link[contains(concat(' ', @rel, ' '), ' canonical ')][1]/@href)")).strip()
    return joined(base, href) if href else ""


def _addresses(tree: Any, base: str) -> Iterator[str]:
    for anchor in tree.iter("a"):
        href = (anchor.get("href") or "").strip()
        follow = "nofollow" not in (anchor.get("rel") or "").lower().split()
        if href and follow and not href.startswith("#") and (whole := joined(base, href)):
            yield whole


def joined(base: str, href: str) -> str:
    """A whole address of a page, or "" for other schemes and for what is no address."""
    try:
        whole = urljoin(base, href)
        scheme = urlsplit(whole).scheme
    except ValueError:
        return ""
    return whole if scheme in {"http", "https", "file"} and len(whole) <= 2000 else ""
