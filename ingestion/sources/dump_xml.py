"""The pages of a MediaWiki dump as records, read event by event from hostile-proof XML.

mwxml was tried first: it parses with ElementTree, which expands entities, accepts a DTD, holds a text node of any size
and stops at the first unknown tag. defusedxml's expat reader refuses the DTD, and its events let a page be cut off at
its size limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl

from defusedxml.common import DefusedXmlException
from defusedxml.sax import make_parser

from graph.errors import SourceError

MAX_FIELD = 65_536
"""Characters of any element other than a page's text."""
MAX_DEPTH = 32
MAX_SILENCE = 2 * 2**20
"""Characters without an event: one giant tag, attribute or comment, which expat would hold and read again and again."""
FIELDS = frozenset(
    {("page", "title"), ("page", "ns"), ("page", "id"), ("revision", "id"), ("revision", "timestamp")}
    | {("revision", "model"), ("revision", "text")}
    | {("siteinfo", "sitename"), ("siteinfo", "base"), ("siteinfo", "case"), ("siteinfo", "dbname")}
    | {("namespaces", "namespace")}
)


@dataclass(slots=True)
class SiteInfo:
    """What the dump says of its wiki."""

    name: str = ""
    base: str = ""
    language: str = ""
    database: str = ""
    first_letter: bool = True
    """Whether titles start with a capital whatever is written."""
    namespaces: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Revision:
    """One version of a page. `text` is None where it was deleted; `size`, in bytes, is what the dump says of it."""

    id: int = 0
    timestamp: str = ""
    model: str = "wikitext"
    text: str | None = None
    size: int = 0
    too_long: bool = False

    @property
    def order(self) -> tuple[str, int]:
        return self.timestamp, self.id


@dataclass(slots=True)
class PageRecord:
    """A page with its latest revision; `namespace` is None in dumps too old to say."""

    title: str = ""
    namespace: int | None = None
    id: str = ""
    redirect: str = ""
    is_redirect: bool = False
    """Schemas 0.4 and 0.5 say so, and not where to."""
    latest: Revision | None = None


def read_dump(path: Path, text: Iterable[str], *, max_text: int) -> Iterator[SiteInfo | PageRecord]:
    """The site's own information, once and first, then every page. `max_text` is in characters.

    Raises `SourceError` for what is no dump, and after the pages of one that breaks off.
    """
    handler = _DumpHandler(max_text)
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(handler)
    silence = 0
    try:
        for piece in text:
            parser.feed(piece)
            silence = 0 if handler.events else silence + len(piece)
            handler.events = 0
            if silence > MAX_SILENCE:
                raise SourceError(f"{path} holds a tag or comment of over {MAX_SILENCE:,} characters; it is refused.")
            yield from handler.take()
        parser.close()
    except DefusedXmlException as error:
        raise SourceError(
            f"{path} has a document type declaration (DTD), which dumps never have and attacks do; it is refused."
        ) from error
    except _NotADumpError as error:
        raise SourceError(f"{path} is no MediaWiki dump: {error}.") from error
    except SAXParseException as error:
        yield from handler.take()
        if not handler.pages:
            raise SourceError(f"{path} is no readable XML ({_place(error)}); give a MediaWiki dump.") from error
        raise SourceError(
            f"{path} breaks off after {handler.pages:,} pages ({_place(error)}); get the whole dump again."
        ) from error
    yield from handler.take()


def _place(error: SAXParseException) -> str:
    return f"{error.getMessage()}, line {error.getLineNumber():,}"


class _NotADumpError(Exception):
    """Well-formed XML of another kind."""


class _DumpHandler(ContentHandler):
    """Collects records until they are taken. Elements that it does not know, of newer schemas, are passed over."""

    def __init__(self, max_text: int) -> None:
        super().__init__()
        self.max_text = max_text
        self.events = 0
        self.pages = 0
        self.path: list[str] = []
        self.ready: list[SiteInfo | PageRecord] = []
        self.site: SiteInfo | None = SiteInfo()
        self.page: PageRecord | None = None
        self.revision: Revision | None = None
        self.namespace = 0
        self.parts: list[str] | None = None
        """The words of the element that is being read, if they matter."""
        self.length = 0
        self.limit = MAX_FIELD

    def take(self) -> list[SiteInfo | PageRecord]:
        ready, self.ready = self.ready, []
        return ready

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - SAX's name
        self.events += 1
        parent = self.path[-1] if self.path else ""
        self.path.append(name)
        if len(self.path) > MAX_DEPTH:
            raise _NotADumpError(f"its elements are nested more than {MAX_DEPTH} deep")
        if not parent:
            if name != "mediawiki":
                raise _NotADumpError(f"its outermost element is <{name[:60]}>")
            if self.site:
                self.site.language = attrs.get("xml:lang", "")
        elif name == "page" and parent == "mediawiki":
            self._finish_site()
            self.page = PageRecord()
        elif name == "revision" and parent == "page":
            self.revision = Revision()
        elif name == "redirect" and self.page:
            self.page.redirect = attrs.get("title", "")
            self.page.is_redirect = True
        elif name == "namespace":
            self.namespace = _number(attrs.get("key", ""), 0)
        self.parts = [] if (parent, name) in FIELDS and "deleted" not in attrs else None
        self.length = 0
        self.limit = self.max_text if name == "text" else MAX_FIELD
        if name == "text" and self.revision and parent == "revision":
            self.revision.size = _number(attrs.get("bytes", ""), 0)

    def characters(self, content: str) -> None:
        self.events += 1
        if self.parts is None:
            return
        self.length += len(content)
        if self.length <= self.limit:
            self.parts.append(content)
        else:
            self.parts.clear()

    def endElement(self, name: str) -> None:  # noqa: N802 - SAX's name
        self.events += 1
        self.path.pop()
        parent = self.path[-1] if self.path else ""
        if self.parts is not None:
            self._field(parent, name, "".join(self.parts))
        self.parts = None
        if name == "revision" and parent == "page":
            self._finish_revision()
        elif name == "page" and self.page:
            self.ready.append(self.page)
            self.pages += 1
            self.page = None
        elif name == "mediawiki":
            self._finish_site()

    def _field(self, parent: str, name: str, value: str) -> None:
        if self.revision and parent == "revision":
            self._revision_field(name, value)
        elif self.page and parent == "page":
            if name == "title":
                self.page.title = value
            elif name == "ns":
                self.page.namespace = _number(value, 0)
            elif name == "id":
                self.page.id = value
        elif self.site:
            self._site_field(self.site, name, value)

    def _revision_field(self, name: str, value: str) -> None:
        assert self.revision
        if name == "text":
            self.revision.text = value
            self.revision.too_long = self.length > self.limit
        elif name == "id":
            self.revision.id = _number(value, 0)
        elif name == "timestamp":
            self.revision.timestamp = value.strip()
        elif name == "model":
            self.revision.model = value.strip()

    def _site_field(self, site: SiteInfo, name: str, value: str) -> None:
        match name:
            case "sitename":
                site.name = value
            case "base":
                site.base = value
            case "dbname":
                site.database = value
            case "case":
                site.first_letter = value.strip() != "case-sensitive"
            case "namespace":
                site.namespaces[self.namespace] = value

    def _finish_site(self) -> None:
        if self.site:
            self.ready.append(self.site)
            self.site = None

    def _finish_revision(self) -> None:
        if self.page and self.revision and (not self.page.latest or self.revision.order >= self.page.latest.order):
            self.page.latest = self.revision
        self.revision = None


def _number(text: str, default: int) -> int:
    try:
        return int(text)
    except ValueError:
        return default
