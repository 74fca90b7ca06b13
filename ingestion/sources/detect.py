"""Which kind of wiki is at a path or URL: every kind is asked how well it fits, and the surest is taken."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import urlsplit

from graph.errors import SourceError
from graph.protocols import Source
from graph.registry import RegisteredSource
from ingestion.sanitize import printable_name
from ingestion.sources import (
    discourse,
    dokuwiki_folder,
    html_folder,
    markdown_folder,
    mediawiki_api,
    mediawiki_xml,
    office_folder,
    pdf_folder,
    site,
    text_folder,
)
from ingestion.sources.kinds import Place, SourceKind, SourceOptions

logger = logging.getLogger(__name__)

OURS: tuple[SourceKind, ...] = (
    mediawiki_xml.KIND,
    mediawiki_api.KIND,
    dokuwiki_folder.KIND,
    *markdown_folder.KINDS,
    discourse.KIND,
    html_folder.KIND,
    pdf_folder.KIND,
    office_folder.KIND,
    text_folder.KIND,
    site.KIND,
)
ENTRY_POINTS = "trivet.sources"
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
DUMP_NAME = re.compile(r"(.+?)-(?:latest|\d{8})-(?:pages|stub|abstract|all|flow)")
"""`enwiki-20260101-pages-articles.xml.bz2`: Wikimedia's names of dumps."""
UNSAFE = re.compile(r"[^\w.-]+")
PACKED = {b"PK\x03\x04": "Zip", b"\x28\xb5\x2f\xfd": "Zstandard", b"Rar!": "RAR"}
SNIFFED_BYTES = 4096
MAX_NAME = 64
MOST_NAMES = 2000


def kinds() -> dict[str, SourceKind]:
    """By name: ours, and those of other distributions, which never take the place of one of ours."""
    found = {kind.name: kind for kind in OURS}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            kind: SourceKind = point.load()
            found.setdefault(kind.name, kind)
        except Exception as error:  # noqa: BLE001 — somebody else's code must not stop ours
            logger.warning("the source kind %s cannot be loaded: %s", point.value, error)
    return found


def recognise(
    location: str | Path,
    *,
    name: str | None = None,
    kind: str | None = None,
    base_url: str | None = None,
    options: Mapping[str, str] | None = None,
) -> RegisteredSource:
    """What is at a path or URL, as it can be registered; raises `SourceError` where it is no wiki.

    `name` sets apart pages of different sources (by default made from the location), `kind` is one of `kinds()` (by
    default the one that fits best), `base_url` is what stands before a page's name in the wiki's own URLs.
    """
    known = kinds()
    if kind is not None and kind not in known:
        raise SourceError(f'"{printable_name(kind)}" is no kind of source; choose one of: {", ".join(sorted(known))}.')
    place = look_at(location)
    chosen = known[kind] if kind is not None else _surest(place, list(known.values()))
    found = RegisteredSource(
        name=source_name(place, name),
        kind=chosen.name,
        location=place.url or str(Path(location).absolute()),
        base_url=base_url or "",
        options=dict(options or {}),
    )
    chosen.open(place, _options(found))  # what it says of a place that is not its own is said now
    return found


def reopen(registered: RegisteredSource) -> Source:
    """The source that was registered. Raises `SourceError` where it is not there any more."""
    kind = kinds().get(registered.kind)
    if kind is None:
        raise SourceError(
            f"The source {registered.name!r} is of kind {registered.kind!r}, which is not installed here; install what "
            "it came with."
        )
    return kind.open(look_at(registered.location), _options(registered))


def open_source(
    location: str | Path,
    *,
    name: str | None = None,
    kind: str | None = None,
    base_url: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Source:
    """The source at a path or URL, without registering it."""
    return reopen(recognise(location, name=name, kind=kind, base_url=base_url, options=options))


def source_name(place: Place, name: str | None = None) -> str:
    """A name that is readable and safe in ids, file names and filters: "enwiki", "wiki_md_dnd_srd"."""
    base = name if name is not None else _name_at(place)
    safe = UNSAFE.sub("-", printable_name(base)).strip("-.")[:MAX_NAME]
    if not safe:
        if name is not None:
            raise SourceError(f'"{printable_name(name)}" cannot be a source\'s name; use letters, digits, "-" and "_".')
        return "wiki"
    return safe


def _name_at(place: Place) -> str:
    if place.path is None:
        return (urlsplit(place.url).hostname or "wiki").removeprefix("www.")
    base = place.path.resolve().name
    if place.path.is_file():
        match = DUMP_NAME.match(base)
        return match[1] if match else base.partition(".")[0]
    return base


def _options(source: RegisteredSource) -> SourceOptions:
    return SourceOptions(name=source.name, base_url=source.base_url, extra=source.options)


def look_at(location: str | Path) -> Place:
    """What is there at a glance. Raises `SourceError` where there is nothing that could be read."""
    shown = printable_name(str(location)[:300])
    if URL.match(str(location)):
        return _url(str(location), shown)
    path = Path(location)
    mode = _mode(path, shown)
    if stat.S_ISDIR(mode):
        return Place(shown=shown, path=path, names=_names(path, shown))
    if not stat.S_ISREG(mode):
        raise SourceError(f"{shown} is neither a file nor a folder; give the path of a dump or of a folder of pages.")
    return Place(shown=shown, path=path, head=_head(path, shown))


def _url(url: str, shown: str) -> Place:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SourceError(f"{shown} is not an address that can be read; it must begin with http:// or https://.")
    if "@" in parts.netloc:
        raise SourceError(
            f"{printable_name(parts.hostname or '')}: the address holds a user or password, which would be shown; "
            "leave them out and give them as --option user=… --option password=…."
        )
    return Place(shown=shown, url=url)


def _surest(place: Place, known: Sequence[SourceKind]) -> SourceKind:
    sure, _, best = max(((kind.fits(place), -n, kind) for n, kind in enumerate(known)), key=lambda entry: entry[:2])
    if sure > 0:
        return best
    raise SourceError(_nothing(place))


def _nothing(place: Place) -> str:
    """Why no kind fits, in one sentence."""
    listed = "`trivet ingest --help` lists the kinds that are read"
    if place.url:
        return f"{place.shown} answers, but with no wiki, forum or site that can be read; {listed}."
    if place.path is None or place.path.is_dir():
        what = "is empty" if not place.names else "holds no page: no file in it is of a kind that is read"
        return f"The folder {place.shown} {what}; {listed}."
    if not place.head:
        return f"{place.shown} is an empty file; give a MediaWiki dump (.xml, .xml.bz2, .xml.gz) or a folder."
    for magic, packer in PACKED.items():
        if place.head.startswith(magic):
            return f"{place.shown} is packed with {packer}, which is not read; unpack it."
    if place.path.suffix.lower() in markdown_folder.SUFFIXES:
        return f"{place.shown} is a single Markdown file; give the folder that holds it."
    return f"{place.shown} is of no known type; {listed}."


def _mode(path: Path, shown: str) -> int:
    try:
        return path.stat().st_mode
    except FileNotFoundError as error:
        raise SourceError(f"There is nothing at {shown}; check the path.") from error
    except PermissionError as error:
        raise SourceError(f"{shown} cannot be opened: permission denied; check who may read it.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{shown} is not a usable path ({reason}); check it.") from error


def _names(root: Path, shown: str) -> frozenset[str]:
    """Two levels of a folder, hidden ones included (`.obsidian/`), and the first page of each deeper one."""
    names: set[str] = set()
    try:
        entries = sorted(os.scandir(root), key=lambda entry: entry.name)
    except OSError as error:
        reason = error.strerror or error
        raise SourceError(f"The folder {shown} cannot be listed ({reason}); check its permissions.") from error
    for entry in entries:
        if len(names) >= MOST_NAMES:
            break
        if not entry.is_dir(follow_symlinks=False):
            names.add(entry.name)
            continue
        names.add(f"{entry.name}/")
        names.update(_names_below(root, entry.name, deeper=not entry.name.startswith(".")))
    return frozenset(names)


def _names_below(root: Path, folder: str, *, deeper: bool) -> list[str]:
    """One level, and a few of what is deeper: a wiki may keep all its pages there."""
    found: list[str] = []
    for place, folders, files in os.walk(root / folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        relative = Path(place).relative_to(root).as_posix()
        found += [f"{relative}/{name}/" for name in folders] + [f"{relative}/{name}" for name in sorted(files)]
        if not deeper or len(found) > MOST_NAMES // 10:
            break
    return found[: MOST_NAMES // 10]


def _head(path: Path, shown: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SNIFFED_BYTES)
    except OSError as error:
        reason = error.strerror or error
        raise SourceError(f"{shown} cannot be read ({reason}); check its permissions.") from error
