"""A DokuWiki's own files as a wiki, followed by its log of changes."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from graph.errors import SourceError
from graph.feed import Checkpoint, FeedItem, GonePage
from graph.model import FailedPage, Page, PageType, SkippedPage
from graph.protocols import Source
from ingestion.dokuwiki import clean_dokuwiki, first_heading, redirect_of
from ingestion.page_types import type_of_article
from ingestion.sanitize import clean_key, clean_title
from ingestion.sources.file_folder import FileFolder, TextFileFolder, folder_of, hidden_too
from ingestion.sources.folder_titles import FolderTitles, Look, Mark, file_start, look_through
from ingestion.sources.kinds import Place, SourceOptions

START = "start"
AROUND = frozenset({"sidebar", "rightsidebar", "navbar", "topheader", "pageheader", "pagefooter"})
"""Names of pages that templates show around every page."""
TEMPLATES = frozenset({"_template", "__template", "c_template", "i_template"})
"""What a new page begins with."""
MAX_LOG_BYTES = 64 * 2**20
MAX_SETTINGS_BYTES = 2**20
SETTING = re.compile(
    r"\$conf\['(start|hidepages)'\]\s{0,9}=\s{0,9}(?:'([^'\n]{0,1000})'|\"([^\"\n]{0,1000})\")\s{0,9};"
)
LOG_LINE = re.compile(r"(\d{1,12})\t[^\t\n]*\t[A-Za-z]\t([^\t\n]+)\t")
NOT_IN_ID = re.compile(r"[^\w:.-]+")
RUN = re.compile(r"([_:.-])\1+")
HEADING_LINE = re.compile(r"^={2,6}[^=\n]{1,200}={2,6}", re.MULTILINE)
LOOKED_AT = 5


@dataclass(frozen=True, slots=True)
class DokuWikiFolder(TextFileFolder):
    """`root` is the folder `pages` of a DokuWiki's `data`; a page's key is its id, "ns:page".

    Where `data/meta/_dokuwiki.changes` lies beside it, changes are read from there: what was edited past DokuWiki is
    then only seen by a full read. Otherwise they are found by the files' times.
    """

    kind: str = "dokuwiki"
    start: str = START
    hidden: str = ""
    """`hidepages`: a pattern that is looked for in ":" and a page's id."""

    @property
    def log(self) -> Path:
        return self.root.parent / "meta" / "_dokuwiki.changes"

    def is_page(self, path: str) -> bool:
        return path.endswith(".txt")

    def key_of(self, path: str) -> str:
        return clean_key(_decoded(path.removesuffix(".txt")).replace("/", ":"))

    def left_out(self, path: str) -> str:
        name = path.rpartition("/")[2].removesuffix(".txt")
        if name in AROUND:
            return "navigation, not a page"
        if name in TEMPLATES:
            return "a template for new pages"
        hidden = self.hidden and re.search(self.hidden, f":{self.key_of(path)}", re.IGNORECASE)
        return "hidden by the wiki's settings (hidepages)" if hidden else ""

    def learn(self, path: str, head: str, titles: FolderTitles) -> None:
        key = self.key_of(path)
        titles.put(key, clean_title(first_heading(head)) or self._name_of(key))

    def page(self, path: str, text: str, titles: FolderTitles) -> Page | SkippedPage:
        key = self.key_of(path)
        links = IdLinks(titles, key, self.start)
        title = titles.title_of(key) or self._name_of(key)
        leads_to = links.page_link(target) if (target := redirect_of(text)) else ""
        if leads_to:
            return Page(
                source=self.name,
                key=key,
                title=title,
                url=self._url(key),
                page_type=PageType.REDIRECT,
                redirect_to=leads_to,
                modified=self._modified(path),
            )
        cleaned = clean_dokuwiki(text, links, title=title, name=key)
        if not cleaned.text.strip() and not cleaned.links:
            return SkippedPage(key=key, reason="empty")
        return Page(
            source=self.name,
            key=key,
            title=title,
            text=cleaned.text,
            url=self._url(key),
            page_type=type_of_article(title, cleaned),
            modified=self._modified(path),
            links=tuple(link for link in cleaned.links if link.target != title),
            categories=cleaned.categories,
            sections=cleaned.sections,
        )

    def changes(self, cursor: str) -> Iterator[FeedItem] | None:
        try:
            found = json.loads(cursor)
            position, digest = (int(found["log"][0]), int(found["log"][1])), str(found["titles"])
            ours = bool(found["as"] == self._settings())
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            return FileFolder.changes(self, cursor)
        lines = self._log_lines() if ours else None
        ids = _since(lines, position) if lines is not None else None
        return None if lines is None or ids is None else self._logged(ids, _end(lines), digest)

    def _logged(self, ids: list[str], end: tuple[int, int], digest: str) -> Iterator[FeedItem]:
        look = look_through(self.root, self) if ids or not self.root.is_dir() else Look()
        look.log = end
        if ids:
            if not look.files:
                raise self._vanished(len(ids))
            titles = self._titles(look)
            paths = {self.key_of(path): path for path in look.files}
            changed = titles.digest() != digest  # then a link on any page may lead elsewhere
            digest = titles.digest()
            for key in [*paths, *(key for key in ids if key not in paths)] if changed else ids:
                yield from self._now(key, paths, look, titles)
        yield Checkpoint(cursor=self._cursor(look, {}, digest))

    def _now(self, key: str, paths: Mapping[str, str], look: Look, titles: FolderTitles) -> Iterator[FeedItem]:
        """A page that the log speaks of, as it is."""
        if key in paths:
            yield from hidden_too(self._item(paths[key], titles))
        elif other := next((other for other in look.others if other.key == key), None):
            yield from hidden_too(other)
        elif any(key.startswith(self.key_of(folder)) for folder in look.unlisted):
            yield FailedPage(key=key, reason="its folder cannot be listed")
        else:
            yield GonePage(key=key)

    def _look(self) -> Look:
        lines = self._log_lines()
        look = look_through(self.root, self)
        look.log = _end(lines) if lines is not None else None
        return look

    def _cursor(self, look: Look, marks: Mapping[str, Mark], digest: str) -> str:
        if look.log is None:
            return FileFolder._cursor(self, look, marks, digest)
        return json.dumps({"as": self._settings(), "titles": digest, "log": look.log}, separators=(",", ":"))

    def _log_lines(self) -> list[tuple[int, str]] | None:
        """(time, id) of each change in the log; None where there is none."""
        try:
            data, size = file_start(self.log, MAX_LOG_BYTES)
        except (OSError, ValueError):
            return None
        if size > MAX_LOG_BYTES:
            return None
        whole = data[: data.rfind(b"\n") + 1].decode("utf-8", "replace")  # a line may be half written
        found = (LOG_LINE.match(line) for line in whole.split("\n"))
        return [(int(line[1]), clean_key(line[2].strip())) for line in found if line]

    def _name_of(self, key: str) -> str:
        namespace, _, name = key.rpartition(":")
        name = namespace.rpartition(":")[2] if name == self.start and namespace else name
        return clean_title(name.replace("_", " ")) or key

    def _url(self, key: str) -> str:
        if not self.base_url:
            return key
        base = self.base_url + "?id=" if self.base_url.endswith("doku.php") else self.base_url
        return f"{base if base.endswith(('=', '/')) else f'{base}/'}{quote(key, safe=':')}"

    def _modified(self, path: str) -> str:
        """The file's time, if DokuWiki keeps it: that of a copy is when it was copied."""
        if not self.log.is_file():
            return ""
        try:
            seconds = int((self.root / path).lstat().st_mtime)
            return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat().replace("+00:00", "Z")
        except (OSError, ValueError, OverflowError):
            return ""


@dataclass(frozen=True, slots=True)
class IdLinks:
    """What the links of the page `key` mean."""

    titles: FolderTitles
    key: str
    start: str = START

    def page_link(self, target: str) -> str:
        target = target.partition("#")[0].partition("?")[0].strip()
        if not target:
            return ""
        absolute = self._absolute(target.replace("/", ":").replace(";", ":"))
        last = absolute.rstrip(":").rpartition(":")[2]
        tried = [absolute.rstrip(":")] if not absolute.endswith(":") else []
        tried += [f"{absolute.rstrip(':')}:{name}" for name in (self.start, last)] + [absolute.rstrip(":")]
        found = next((title for key in tried if (title := self.titles.title_of(key))), "")
        return found or clean_title(last.replace("_", " "))

    def _absolute(self, target: str) -> str:
        """A cleaned id from the root on; ":" at its end where a namespace is meant."""
        namespace = self.key.rpartition(":")[0].split(":") if ":" in self.key else []
        if target.startswith("~"):
            namespace, target = self.key.split(":"), target[1:].lstrip(":")
        elif target.startswith("."):
            while target.startswith(".."):
                namespace, target = namespace[:-1], target[2:].lstrip(":")
            target = target.lstrip(".").lstrip(":") if target.startswith(".") else target
        elif ":" in target:
            namespace = []
        ends = ":" if target.endswith(":") or not target else ""
        parts = [*namespace, *(cleaned for part in target.split(":") if (cleaned := clean_id(part)))]
        return ":".join(parts) + ends


def clean_id(name: str) -> str:
    """DokuWiki's `cleanID`, for one part of an id."""
    return RUN.sub(r"\1", NOT_IN_ID.sub("_", name.strip().lower())).strip("_.-:")


def _decoded(path: str) -> str:
    """File names are percent-encoded in most DokuWikis (`fnencode`), and UTF-8 in others."""
    try:
        return unquote(path, errors="strict") if "%" in path else path
    except UnicodeDecodeError:
        return path


def _since(lines: list[tuple[int, str]], position: tuple[int, int]) -> list[str] | None:
    """Ids changed after a position, each once, in order; None where the log does not reach back to it."""
    moment, count = position
    if count and sum(time == moment for time, _ in lines) < count:
        return None
    passed = 0
    ids: dict[str, None] = {}
    for time, key in lines:
        if time == moment:
            passed += 1
        if time > moment or (time == moment and passed > count):
            ids[key] = None
    return list(ids)


def _end(lines: list[tuple[int, str]]) -> tuple[int, int]:
    latest = max((time for time, _ in lines), default=0)
    return latest, sum(time == latest for time, _ in lines)


def _pages_folder(root: Path) -> Path:
    """`pages` of a DokuWiki, of its `data`, or the folder itself."""
    return next((folder for folder in (root / "data" / "pages", root / "pages") if folder.is_dir()), root)


def _settings_of(pages: Path) -> dict[str, str]:
    """`start` and `hidepages` of the DokuWiki that the pages lie in, where they are set."""
    found: dict[str, str] = {}
    for name in ("dokuwiki.php", "local.php", "local.protected.php"):
        try:
            text = file_start(pages.parent.parent / "conf" / name, MAX_SETTINGS_BYTES)[0].decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        found.update({setting[1]: setting[2] or setting[3] or "" for setting in SETTING.finditer(text)})
    return found


@dataclass(frozen=True, slots=True)
class DokuWikiKind:
    name: str = "dokuwiki"
    about: str = "a DokuWiki's folder, its `data`, or the `pages` in it"

    def fits(self, place: Place) -> int:
        if place.path is None or not place.path.is_dir():
            return 0
        names = place.names
        if "data/pages/" in names or ("pages/" in names and names & {"meta/", "attic/", "media_meta/"}):
            return 95
        pages = _pages_folder(place.path)
        inside = (
            name for name in names if name.endswith(".txt") and (pages == place.path or name.startswith("pages/"))
        )
        for name in sorted(inside, key=lambda name: (name.count("/"), name))[:LOOKED_AT]:
            try:
                head = file_start(place.path / name, 4_096)[0].decode("utf-8", "replace")
            except (OSError, ValueError):
                continue
            if HEADING_LINE.search(head):
                return 80 if pages != place.path else 60
        return 0

    def open(self, place: Place, options: SourceOptions) -> Source:
        pages = _pages_folder(folder_of(place, "the pages of a DokuWiki"))
        settings = _settings_of(pages)
        hidden = options.extra.get("hidden", settings.get("hidepages", ""))
        try:
            re.compile(hidden)
        except re.error as error:
            raise SourceError(
                f"The pattern of hidden pages ({hidden}) of {place.shown} cannot be read: {error}; "
                "give another with --option hidden=PATTERN."
            ) from error
        return DokuWikiFolder(
            root=pages,
            name=options.name,
            base_url=options.base_url,
            start=clean_id(settings.get("start", START)) or START,
            hidden=hidden,
        )


KIND = DokuWikiKind()
