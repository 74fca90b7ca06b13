"""Pages of a MediaWiki by title, through its API: as the dump source would give them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from graph.errors import SourceError
from graph.model import SourceItem
from ingestion.sources.dump_xml import PageRecord, Revision
from ingestion.sources.mediawiki_calls import Answer, Api, broken
from ingestion.sources.mediawiki_xml import MAX_PAGE_CHARACTERS, MediaWikiXml
from ingestion.sources.polite_http import BusyFault, PageFault
from ingestion.wiki_site import WikiSite
from ingestion.wikitext_worker import Draft

BATCH = 50
"""Titles that MediaWiki takes at once."""
MAX_FAULTS = 3
"""Pages in a row that fail each on its own: then it may be the wiki."""
UNSENDABLE = re.compile("[|\x1f\n]")
"""What MediaWiki takes for the end of a title."""
LINK = re.compile(r"\[\[\s*(?P<target>[^\[\]|{}<>\n]{1,300})(?:\|[^\[\]]*)?\]\]")
FIRST_VERSION = (1, 25)
"""Of MediaWiki, that answers with `formatversion=2`."""
GENERATOR = re.compile(r"MediaWiki (\d{1,3})\.(\d{1,3})")


class _Slot(msgspec.Struct):
    contentmodel: str = "wikitext"
    content: str | None = None


class _Revision(msgspec.Struct):
    revid: int = 0
    timestamp: str = ""
    slots: dict[str, _Slot] = {}
    contentmodel: str = "wikitext"
    content: str | None = None
    """Before MediaWiki 1.32, which has slots."""


class FoundPage(msgspec.Struct):
    """A page as the wiki has it now, or that there is none of that title."""

    title: str = ""
    ns: int = 0
    pageid: int = 0
    missing: bool = False
    invalid: bool = False
    redirect: bool = False
    revisions: list[_Revision] = []

    @property
    def revision(self) -> int:
        return self.revisions[0].revid if self.revisions else 0


class _Renamed(msgspec.Struct, rename={"written": "from"}):
    """A title as it was asked for, and as it is."""

    written: str
    to: str


class _General(msgspec.Struct):
    generator: str = ""
    base: str = ""
    server: str = ""
    articlepath: str = ""
    lang: str = ""
    case: str = ""


class _Namespace(msgspec.Struct):
    id: int
    name: str = ""
    content: bool = False


class _Listed(msgspec.Struct):
    title: str


class ApiSite(WikiSite):
    """A wiki that says itself how its pages' addresses are made."""

    article_path = ""

    def url(self, title: str) -> str:
        if "$1" not in self.article_path:
            return super().url(title)
        return self.article_path.replace("$1", quote(title.replace(" ", "_"), safe="/:@!$*(),;~'"))


@dataclass(slots=True)
class PageReader:
    """One wiki's pages, read in batches; a batch that fails is halved until the page is found that fails alone."""

    api: Api
    site: WikiSite
    content_namespaces: tuple[int, ...]
    name: str
    _faults: int = 0
    _good: str = ""
    """The last title that could be read."""

    def draft(self, page: FoundPage) -> Draft | SourceItem:
        """What the dump source makes of the same page, so that a wiki may be switched from dump to API."""
        latest = None
        if page.revisions:
            newest = page.revisions[0]
            slot = newest.slots.get("main") or _Slot(newest.contentmodel, newest.content)
            too_long = len(slot.content or "") > MAX_PAGE_CHARACTERS
            latest = Revision(
                id=newest.revid,
                timestamp=newest.timestamp,
                model=slot.contentmodel,
                text=slot.content,
                too_long=too_long,
            )
        target = _target(latest.text or "") if page.redirect and latest else ""
        record = PageRecord(
            title=page.title, namespace=page.ns, id=str(page.pageid), redirect=target, is_redirect=page.redirect,
            latest=latest,
        )  # fmt: skip
        return MediaWikiXml(path=Path(), name=self.name).draft(record, self.site)

    def titles(self, namespace: int) -> Iterator[list[str]]:
        """All of them, redirects too."""
        asked = {"apnamespace": str(namespace), "aplimit": "max"}
        for listed, _ in self.api.listing("allpages", asked, _Listed):
            yield [page.title for page in listed]

    def fetch(self, titles: Sequence[str]) -> Iterator[tuple[str, FoundPage | PageFault]]:
        """For each title, as it was asked for: the page, or why it could not be read."""
        sendable = [title for title in titles if title and not UNSENDABLE.search(title)]
        for title in set(titles).difference(sendable):
            yield title, PageFault("its title is none in any wiki")
        batches = deque(sendable[start : start + BATCH] for start in range(0, len(sendable), BATCH))
        while batches:
            batch = batches.popleft()
            try:
                found = self._batch(batch)
            except BusyFault as fault:
                raise broken(self.api.shown, fault) from fault
            except PageFault as fault:
                if len(batch) > 1:
                    middle = len(batch) // 2
                    batches.extendleft((batch[middle:], batch[:middle]))
                    continue
                self._faults += 1
                if self._faults >= MAX_FAULTS and not self._still_works():
                    raise broken(self.api.shown, fault) from fault
                yield batch[0], fault
                continue
            self._faults, self._good = 0, batch[-1]
            for title in batch:
                yield title, found.get(title) or PageFault("the wiki does not say anything of this title")

    def _still_works(self) -> bool:
        """Whether a page that could be read can still be: then it is the others."""
        try:
            works = bool(self._good and self._batch([self._good]))
        except PageFault:
            return False
        self._faults = 0
        return works

    def _batch(self, titles: Sequence[str]) -> dict[str, FoundPage | PageFault]:
        """By the titles as they were asked for."""
        asked = {
            "action": "query", "titles": "|".join(titles), "prop": "info|revisions",
            "rvprop": "ids|timestamp|content|contentmodel", "rvslots": "main",
        }  # fmt: skip
        found: dict[str, FoundPage] = {}
        renamed: dict[str, str] = {}
        more: dict[str, str] = {}
        # What does not fit into an answer comes with the next one: at least one page each time.
        for _ in range(len(titles) + 1):
            answer = self.api.call({**asked, **more})
            renamed |= _renamed(answer)
            for page in [] if _elsewhere(answer) else answer.part("pages", list[FoundPage]):
                if page.revisions or page.title not in found:
                    found[page.title] = page
            more = {key: str(value) for key, value in answer.more.items()}
            if not more:
                break
        pages = {title: found.get(renamed.get(title, title)) for title in titles}
        return {title: _checked(page) for title, page in pages.items() if page is not None}


def open_reader(api: Api, name: str, base_url: str = "") -> PageReader:
    """Raises `SourceError` where no MediaWiki, or too old a one, answers."""
    try:
        asked = {"action": "query", "meta": "siteinfo"}
        general = api.call({**asked, "siprop": "general"}).part("general", _General)
        _must_be_new_enough(general.generator, api.shown)
        known = api.call({**asked, "siprop": "namespaces"}).part("namespaces", dict[str, _Namespace])
    except PageFault as fault:
        raise broken(api.shown, fault) from fault
    site = ApiSite(
        {namespace.id: namespace.name for namespace in known.values()},
        base=base_url or general.base,
        language=general.lang.partition("-")[0].lower(),
        first_letter=general.case != "case-sensitive",
    )
    if not base_url and general.server:
        scheme = urlsplit(api.url).scheme
        server = f"{scheme}:{general.server}" if general.server.startswith("//") else general.server
        site.article_path = server + general.articlepath
    content = tuple(sorted(namespace.id for namespace in known.values() if namespace.content)) or (0,)
    return PageReader(api, site, content, name)


def _must_be_new_enough(generator: str, shown: str) -> None:
    match = GENERATOR.match(generator)
    if match is None:
        raise SourceError(f"{shown} does not say that it is a MediaWiki; give the URL of the wiki's api.php.")
    if (int(match[1]), int(match[2])) < FIRST_VERSION:
        needed = ".".join(map(str, FIRST_VERSION))
        raise SourceError(
            f"{shown} is MediaWiki {match[1]}.{match[2]}, which is too old (at least {needed}); give a dump of it "
            "(maintenance/dumpBackup.php)."
        )


def _elsewhere(answer: Answer) -> bool:
    """Whether it tells of other wikis' pages only: of titles with a prefix."""
    return "interwiki" in answer.query and "pages" not in answer.query


def _renamed(answer: Answer) -> dict[str, str]:
    if "normalized" not in answer.query:
        return {}
    return {title.written: title.to for title in answer.part("normalized", list[_Renamed])}


def _checked(page: FoundPage) -> FoundPage | PageFault:
    if page.invalid:
        return PageFault("its title is none in this wiki")
    if not page.missing and not page.revisions:
        return PageFault("the wiki gives no text of it")
    return page


def _target(text: str) -> str:
    """Where a redirect leads: the wiki says that it is one, so no word of whatever language must be known."""
    match = LINK.search(text[:1000])
    return match["target"] if match else ""
