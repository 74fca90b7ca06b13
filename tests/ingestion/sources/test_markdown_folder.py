"""Markdown folders: titles, links, what is left out, and what is in the way."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from graph.feed import Checkpoint
from graph.model import FailedPage, Link, Page, PageType, SkippedPage, SourceItem
from ingestion.sources.markdown_folder import MAX_FILE_BYTES, MarkdownFolder


def write(root: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def pages_of(folder: MarkdownFolder) -> list[SourceItem]:
    """Without the checkpoint at the end."""
    *items, last = folder.read()
    assert isinstance(last, Checkpoint)
    return [item for item in items if isinstance(item, Page | SkippedPage | FailedPage)]


def read(root: Path, base_url: str = "") -> dict[str, SourceItem]:
    items = pages_of(MarkdownFolder(root=root, name="w", base_url=base_url))
    found = {item.key: item for item in items}
    assert len(found) == len(items)
    return found


def page(item: SourceItem) -> Page:
    assert isinstance(item, Page), item
    return item


@pytest.mark.parametrize(
    ("path", "content", "title", "aliases"),
    [
        ("Port Lyre.md", "text", "Port Lyre", ()),
        ("port-lyre.md", "# Port Lyre\n\ntext", "Port Lyre", ()),
        ("pl.md", "# Port Lyre\n\ntext", "Port Lyre", ("pl",)),
        ("pl.md", "---\ntitle: The Port\naliases: [Lyre]\n---\n# Port Lyre", "The Port", ("Lyre", "pl")),
        ("port-lyre.md", "## Food\n\n# Port Lyre", "port lyre", ()),
        ("auth/index.md", "text", "auth", ()),
        ("README.md", "text", "README", ()),
        ("Whiteboard___Object.md", "text", "Whiteboard/Object", ()),
        ("# Racial Traits.md", "# Racial Traits", "Racial Traits", ()),
    ],
)
def test_titles(tmp_path: Path, path: str, content: str, title: str, aliases: tuple[str, ...]) -> None:
    write(tmp_path, **{path: content})
    found = page(read(tmp_path)[path])
    assert (found.title, found.aliases, found.id) == (title, aliases, f"w:{path}")


def test_a_page(tmp_path: Path) -> None:
    head = "---\ntitle: Norvik\ntags: [west]\nlang: en\ndate: 2024-05-01\n---\n"
    write(tmp_path, **{"places/nv.md": f"{head}# Norvik\n\nA village.\n\n## Food\n\n[[Eel|eels]]"})
    found = page(read(tmp_path)["places/nv.md"])
    assert found.text == "A village.\n\n## Food\n\neels"
    assert (found.categories, found.language, found.modified) == (("west",), "en", "2024-05-01T00:00:00Z")
    assert (found.url, found.page_type, found.sections[0].anchor) == ("places/nv.md", PageType.STUB, "food")


def test_a_base_url_makes_urls_without_suffix(tmp_path: Path) -> None:
    write(tmp_path, **{"a/Port Lyre.md": "x"})
    found = page(read(tmp_path, "https://wiki.hollin/")["a/Port Lyre.md"])
    assert found.url == "https://wiki.hollin/a/Port%20Lyre"


@pytest.mark.parametrize(
    ("markup", "target"),
    [
        ("[[Norvik]]", "Norvik"),
        ("[[norvik]]", "Norvik"),
        ("[[nv]]", "Norvik"),
        ("[[Norvick]]", "Norvik"),
        ("[[places/nv]]", "Norvik"),
        ("[[nv.md#Food|food]]", "Norvik"),
        ("[[the village|nv]]", "Norvik"),
        ("[x](nv.md)", "Norvik"),
        ("[x](./nv.md#food)", "Norvik"),
        ("[x](../places/nv)", "Norvik"),
        ("[x](/places/nv.md)", "Norvik"),
        ("[x](../Port%20Lyre.md)", "Port Lyre"),
        ("[x](<../Port Lyre.md>)", "Port Lyre"),
        ("[x](/auth)", "auth"),
        ("[x](/auth/)", "auth"),
        ("[x](config.edn)", "config.edn"),
        ("[[Unknown Page]]", "Unknown Page"),
        ("[x](../missing-page.md)", "missing-page"),
        ("[x](../../../../etc/passwd)", "passwd"),
        ("[x](map.png)", ""),
        ("[x](https://example.org/nv.md)", ""),
        ("[x](//example.org/nv)", ""),
        ("[x](mailto:a@b.c)", ""),
        ("[x](#food)", ""),
    ],
)
def test_links_lead_to_titles(tmp_path: Path, markup: str, target: str) -> None:
    pages = {
        "places/nv.md": "---\naliases: Norvick\n---\n# Norvik",
        "Port Lyre.md": "x",
        "auth/index.md": "x",
        "config.edn.md": "# config.edn",
        "places/here.md": markup,
    }
    write(tmp_path, **pages)
    links = page(read(tmp_path)["places/here.md"]).links
    assert [link.target for link in links] == ([target] if target else [])


def test_of_several_pages_of_a_name_the_nearest_is_meant(tmp_path: Path) -> None:
    write(tmp_path, **{f"{place}/index.md": f"# {place} index\n\n[[notes]]" for place in ("a", "b", "c")})
    write(tmp_path, **{"a/notes.md": "# Notes of a", "b/notes.md": "# Notes of b"})
    found = read(tmp_path)
    assert page(found["b/index.md"]).links == (Link(target="Notes of b", shown="notes"),)
    assert page(found["c/index.md"]).links == (Link(target="Notes of a", shown="notes"),)


def test_a_link_to_itself_is_none(tmp_path: Path) -> None:
    write(tmp_path, **{"a.md": "[[a]] [[b]]"})
    assert [link.target for link in page(read(tmp_path)["a.md"]).links] == ["b"]


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [
        (b"", SkippedPage, "empty"),
        (b" \n\n", SkippedPage, "empty"),
        (b"---\npublished: false\n---\nx", SkippedPage, "its front matter says that it is not published"),
        (b"---\npublished: false\ntitle: [\n---\nx", SkippedPage, "its front matter says that it is not published"),
        ("a page in UTF-16 without its mark".encode("utf-16-le"), Page, ""),
        (b"\x89PNG\r\n\x1a\n\0\xff\xfe", FailedPage, "not valid UTF-8 at byte 0; save the file as UTF-8"),
        (b"x" * (MAX_FILE_BYTES + 1), FailedPage, "8,388,609 bytes; a page may have 8,388,608"),
    ],
)
def test_pages_that_are_left_out(tmp_path: Path, content: bytes, kind: type, reason: str) -> None:
    write(tmp_path, **{"a.md": content, "b.md": b"kept"})
    found = read(tmp_path)
    item = found["a.md"]
    assert isinstance(item, kind)
    assert isinstance(item, Page) or item.reason == reason
    assert page(found["b.md"]).text == "kept"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    write(tmp_path, **{"a.md": "# Café\n\nLe café où nous étions hier.".encode(encoding)})
    found = page(read(tmp_path)["a.md"])
    assert (found.title, found.text) == ("Café", "Le café où nous étions hier.")


def test_surrogates_and_zero_bytes_in_a_title(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{
            "a.md": "# caf\udc9a\n\nx".encode("utf-8", "surrogatepass"),
            "b.md": b"# a\0b\n\nx",
            "c.md": b"# " + b"x" * 10_000 + b"\n\ny",
        },
    )
    found = read(tmp_path)
    assert page(found["a.md"]).title == "caf\ufffd"
    assert page(found["b.md"]).title == "ab"
    assert len(page(found["c.md"]).title) == 512


def test_broken_front_matter_is_named_and_the_page_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, **{"a.md": "---\ntitle: Linux: USB\n---\ntext"})
    found = page(read(tmp_path)["a.md"])
    assert (found.title, found.text) == ("Linux: USB", "text")
    assert "a.md: front matter cannot be read" in caplog.text


def test_folders_that_are_no_pages(tmp_path: Path) -> None:
    hidden = [".git/a.md", ".obsidian/a.md", "node_modules/p/readme.md", ".hidden.md"]
    write(tmp_path, **dict.fromkeys(hidden, "x"), **{"a.md": "x", "b.MARKDOWN": "x", "c.txt": "x", "d.png": "x"})
    assert list(read(tmp_path)) == ["a.md", "b.MARKDOWN"]


def test_links_loops_pipes_and_devices(tmp_path: Path) -> None:
    root = tmp_path / "wiki"
    write(tmp_path, **{"outside/secret.md": "secret", "wiki/a.md": "x"})
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out.md").symlink_to(tmp_path / "outside/secret.md")
    (root / "loop").symlink_to(root)
    (root / "self.md").symlink_to("self.md")
    (root / "same.md").symlink_to("a.md")
    (root / "zero.md").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe.md")
    found = read(root)
    assert {key for key, item in found.items() if isinstance(item, Page)} == {"a.md"}
    assert all(isinstance(item, SkippedPage) for key, item in found.items() if key != "a.md")
    assert {"out", "out.md", "loop", "self.md", "same.md", "zero.md", "pipe.md"} < set(found)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("x")
    (tmp_path / "with\nnewline.md").write_text("y")
    found = read(tmp_path)
    failed = found["caf\\xe9.md"]
    assert isinstance(failed, FailedPage)
    assert failed.reason == "its name is not valid UTF-8; rename the file"
    (kept,) = (item for item in found.values() if isinstance(item, Page))
    assert "\n" not in kept.key
    assert "\n" not in kept.title


def test_a_folder_that_may_not_be_listed_fails_alone(tmp_path: Path) -> None:
    write(tmp_path, **{"a/x.md": "x", "b.md": "y"})
    deep = tmp_path
    for _ in range(70):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "c.md").write_text("z")
    found = read(tmp_path)
    assert sum(isinstance(item, FailedPage) for item in found.values()) == 1
    assert sum(isinstance(item, Page) for item in found.values()) == 2


def test_the_paths_of_the_vectors(tmp_path: Path, data_dir: Path) -> None:
    lines = (data_dir / "fuzz/own_vectors/ingest_paths.jsonl").read_text().splitlines()
    names = [json.loads(line)["path"] for line in lines]
    (tmp_path / "kept.md").write_text("x")
    for name in names:
        target = tmp_path / f"{name.replace('/', '∕')}.md"
        try:
            target.write_text("x")
        except (OSError, ValueError):
            continue  # no file can be called so
    (tmp_path / "links.md").write_text("\n\n".join(f"[x](<{name}>)" for name in names if "\n" not in name))
    found = read(tmp_path)
    assert all(isinstance(item, Page) for item in found.values())
    assert len(found) > len(names) / 2
    assert all("\n" not in item.key and "\0" not in item.key for item in found.values())


def test_the_rules_wiki(data_dir: Path) -> None:
    items = pages_of(MarkdownFolder(root=data_dir / "wikis/wiki_md_dnd_srd", name="dnd"))
    pages = [item for item in items if isinstance(item, Page)]
    assert len(pages) == len(items) >= 930
    names = {name.casefold() for found in pages for name in (found.title, *found.aliases)}
    targets = [link.target.casefold() for found in pages for link in found.links]
    resolved = sum(target in names for target in targets)
    assert len(targets) > 300
    assert resolved >= 0.95 * len(targets)
    assert sum(len(found.sections) for found in pages) > 2000


@pytest.mark.parametrize(
    ("folder", "count", "share"),
    [
        ("githubwiki_md_asahi", 93, 0.99),
        ("obsidian_style_foam", 86, 0.98),
        ("wikijs_md_export", 85, 0.95),
        ("bookstack_md_docs", 161, 0.8),
        ("logseq_md_docs", 239, 0.4),
    ],
)
def test_other_wikis(data_dir: Path, folder: str, count: int, share: float) -> None:
    pages = [page(item) for item in pages_of(MarkdownFolder(root=data_dir / "wikis" / folder, name="w"))]
    assert len(pages) == count
    names = Counter(name.casefold() for found in pages for name in (found.title, *found.aliases))
    targets = [link.target.casefold() for found in pages for link in found.links]
    assert sum(target in names for target in targets) >= share * len(targets)
    for found in pages:
        for section in found.sections:
            assert found.text.startswith(f"{'#' * section.level} {section.title}", section.start)
