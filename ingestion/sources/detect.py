"""Which kind of wiki a path holds."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from graph.errors import SourceError
from graph.protocols import Source
from ingestion.sanitize import printable_name
from ingestion.sources.markdown_folder import SUFFIXES, MarkdownFolder
from ingestion.sources.mediawiki_xml import MediaWikiXml

KINDS = ("mediawiki-xml", "markdown")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
DUMP_NAME = re.compile(r"(.+?)-(?:latest|\d{8})-(?:pages|stub|abstract|all|flow)")
"""`enwiki-20260101-pages-articles.xml.bz2`: Wikimedia's names of dumps."""
UNSAFE = re.compile(r"[^\w.-]+")
PACKED = {b"7z\xbc\xaf\x27\x1c": "7-Zip", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "Zip", b"\x28\xb5\x2f\xfd": "Zstandard"}
SNIFFED_BYTES = 1024
MAX_NAME = 64


def open_source(
    path_or_url: str | Path, *, name: str | None = None, kind: str | None = None, base_url: str | None = None
) -> Source:
    """The source at a path; raises `SourceError` where there is none. Nothing of it is read yet but its first bytes.

    `name` sets apart pages of different sources (by default made from the path), `kind` is one of `KINDS` (by default
    found from the content), `base_url` is what stands before a page's name in the wiki's own URLs.
    """
    shown = printable_name(str(path_or_url)[:300])
    if URL.match(str(path_or_url)):
        raise SourceError(f"{shown} is a URL, which cannot be read yet; give the path of a dump or of a folder.")
    if kind is not None and kind not in KINDS:
        raise SourceError(f'"{printable_name(kind)}" is no kind of source; choose one of: {", ".join(KINDS)}.')
    path = Path(path_or_url)
    mode = _mode(path, shown)
    if stat.S_ISDIR(mode):
        if kind == "mediawiki-xml":
            raise SourceError(f"{shown} is a folder; a MediaWiki dump is a file (.xml, .xml.bz2 or .xml.gz).")
        _must_hold_pages(path, shown)
        return MarkdownFolder(root=path, name=source_name(path, name), base_url=base_url or "")
    if not stat.S_ISREG(mode):
        raise SourceError(f"{shown} is neither a file nor a folder; give the path of a dump or of a folder of pages.")
    if kind == "markdown":
        raise SourceError(f"{shown} is a file; Markdown is read from a folder: give the folder that holds it.")
    _must_be_dump(path, shown)
    return MediaWikiXml(path=path, name=source_name(path, name), base_url=base_url or "")


def source_name(path: Path, name: str | None = None) -> str:
    """A name that is readable and safe in ids, file names and filters: "enwiki", "wiki_md_dnd_srd"."""
    base = name if name is not None else path.resolve().name
    if name is None and path.is_file():
        match = DUMP_NAME.match(base)
        base = match[1] if match else base.partition(".")[0]
    safe = UNSAFE.sub("-", printable_name(base)).strip("-.")[:MAX_NAME]
    if not safe:
        if name is not None:
            raise SourceError(f'"{printable_name(name)}" cannot be a source\'s name; use letters, digits, "-" and "_".')
        return "wiki"
    return safe


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


def _must_hold_pages(root: Path, shown: str) -> None:
    try:
        empty = not any(root.iterdir())
    except OSError as error:
        reason = error.strerror or error
        raise SourceError(f"The folder {shown} cannot be listed ({reason}); check its permissions.") from error
    for _, folders, files in os.walk(root):
        folders[:] = [folder for folder in folders if not folder.startswith(".")]
        if any(Path(file).suffix.lower() in SUFFIXES for file in files):
            return
    what = "is empty" if empty else f"holds no page: no file in it ends in {', '.join(sorted(SUFFIXES))}"
    raise SourceError(f"The folder {shown} {what}; give a folder of Markdown files, or a MediaWiki dump.")


def _must_be_dump(path: Path, shown: str) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(SNIFFED_BYTES)
    except OSError as error:
        reason = error.strerror or error
        raise SourceError(f"{shown} cannot be read ({reason}); check its permissions.") from error
    if not start:
        raise SourceError(f"{shown} is an empty file; give a MediaWiki dump (.xml, .xml.bz2, .xml.gz) or a folder.")
    for magic, packer in PACKED.items():
        if start.startswith(magic):
            raise SourceError(f"{shown} is packed with {packer}, which is not read; unpack it, or pack it as .bz2.")
    if path.suffix.lower() in SUFFIXES:
        raise SourceError(f"{shown} is a single Markdown file; give the folder that holds it.")
    # Without its zero bytes, UTF-16 looks like ASCII here.
    looks_like_xml = start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").startswith(b"<")
    if not start.startswith((b"BZh", b"\x1f\x8b")) and not looks_like_xml:
        raise SourceError(f"{shown} is of no known type; give a MediaWiki dump (.xml, .bz2, .gz) or a Markdown folder.")
