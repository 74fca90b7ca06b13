"""What each tool that keeps Markdown does its own way."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Page, SkippedPage
from ingestion.sources import markdown_flavours
from ingestion.sources.kinds import Place, SourceOptions
from ingestion.sources.markdown_flavours import read_logseq, read_obsidian, read_plain, read_wikijs
from ingestion.sources.markdown_folder import KINDS, MarkdownFolder


def write(root: Path, **files: str) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def pages_of(root: Path, kind: str, base_url: str = "") -> dict[str, Page]:
    items = MarkdownFolder(root=root, name="w", kind=kind, base_url=base_url).read()
    return {item.key: item for item in items if isinstance(item, Page)}


def place_of(root: Path) -> Place:
    names = {f"{path.relative_to(root)}{'/' if path.is_dir() else ''}" for path in root.rglob("*")}
    return Place(shown=str(root), path=root, names=frozenset(name for name in names if name.count("/") <= 2))


def targets(page: Page) -> list[str]:
    return [link.target for link in page.links]


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ({".obsidian/app.json": "{}", "a.md": "x"}, "obsidian"),
        ({".obsidian/app.json": "{}", "a.md": "tags:: of Dataview", "Home.md": "x"}, "obsidian"),
        ({"logseq/config.edn": "{}", "pages/a.md": "- x", "journals/2023_01_05.md": "- x"}, "logseq"),
        ({"pages/a.md": "type:: [[Feature]]\n\n- x"}, "logseq"),
        ({"home.md": "---\ntitle: Home\npublished: true\neditor: markdown\n---\nx"}, "wikijs"),
        ({"home.md": "---\ntitle: Home\ndateCreated: 2019-01-01\n---\nx"}, "wikijs"),
        ({"bookstack_export_2024-01-01/book/page.md": "# Page"}, "bookstack"),
        ({"Home.md": "x", "Other-Page.md": "y"}, "github-wiki"),
        ({"_Sidebar.md": "x", "Other-Page.md": "y"}, "github-wiki"),
        ({"README.md": "x", "docs/a/b/c.md": "y"}, "markdown"),
        ({"a/b/c/d/e.md": "y"}, "markdown"),
        ({"a.txt": "y"}, ""),
    ],
)
def test_a_folders_names_tell_its_flavour(tmp_path: Path, names: dict[str, str], kind: str) -> None:
    write(tmp_path, **names)
    place = place_of(tmp_path)
    surest = max(KINDS, key=lambda each: each.fits(place))
    assert (surest.name if surest.fits(place) else "") == kind
    if kind:
        source = surest.open(place, SourceOptions(name="w"))
        assert (source.kind, source.name) == (kind, "w")


def test_every_kind_says_what_it_is() -> None:
    assert [kind.name for kind in KINDS] == ["markdown", "obsidian", "logseq", "wikijs", "bookstack", "github-wiki"]
    assert all(kind.about for kind in KINDS)
    assert not any(kind.fits(Place(shown="x", url="https://example.org/")) for kind in KINDS)


def test_obsidian(tmp_path: Path) -> None:
    note = (
        "---\naliases: [Nor, Norvick]\ntags: [place/village]\n---\n"
        "# A heading\n\n%%\nhidden\n\nstill hidden\n%%\n\nSee [[port-lyre#Food|the port]] and ![[eel]]. ^b1a2\n\n"
        "> [!tip]- Eels\n> Smoke them.\n\n- an item #fishing ^item-1\n\n`%%kept%%` and #123 are none %%gone%%.\n\n"
        "![[map.png|300]] [[eel#^b1a2]]\n"
    )
    write(tmp_path, **{"places/Norvik.md": note, "places/port-lyre.md": "# The Port", "eel.md": "x"})
    write(tmp_path, **{"food/eel.md": "y", ".trash/old.md": "z", ".obsidian/a.md": "z"})
    found = pages_of(tmp_path, "obsidian")
    norvik = found["places/Norvik.md"]
    assert (norvik.title, norvik.aliases) == ("Norvik", ("Nor", "Norvick"))
    assert norvik.categories == ("place/village", "fishing")
    assert norvik.text == (
        "# A heading\n\nSee the port and eel.\n\nTip: Eels\nSmoke them.\n\n- an item #fishing\n\n"
        "`%%kept%%` and #123 are none .\n\neel"
    )
    assert targets(norvik) == ["port-lyre", "eel"]
    assert set(found) == {"places/Norvik.md", "places/port-lyre.md", "eel.md", "food/eel.md"}


def test_of_two_notes_the_one_of_that_file_name_is_meant(tmp_path: Path) -> None:
    write(tmp_path, **{"a.md": "# Eel", "deep/er/eel.md": "# Something else", "b.md": "[[Eel]]"})
    assert targets(pages_of(tmp_path, "markdown")["b.md"]) == ["Something else"]


def test_logseq(tmp_path: Path) -> None:
    page = (
        "title:: Norvik\nalias:: Nor, [[Nordvik]]\ntags:: place, [[west coast]]\ntype:: [[Village]]\nid:: x\n\n"
        "- ## Food\n  collapsed:: true\n\t- Eels are [smoked](((60ab6f5b-a01f-44eb-8d4a-fb8ca1893dcf))) #cooking\n"
        "\t  id:: 60ab6f5b-a01f-44eb-8d4a-fb8ca1893dcf\n\t\t- in **smoke**, see [[Port Lyre]]\n"
        "\t\t- {{query (and [[a]] [[b]])}}\n- ((60ab6f5b-a01f-44eb-8d4a-fb8ca1893dcf)) {{embed [[Eel]]}}\n"
        "- year:: 1200\n- ```clojure\n  (x [[y]])\n  ```\n- #+BEGIN_QUERY\n  {:title [[z]]}\n  #+END_QUERY\n"
        "- #+BEGIN_TIP\n  Mind the eels.\n  #+END_TIP\n- :LOGBOOK:\n  CLOCK: [2023]\n  :END:\n- {{cloze hidden words}}"
    )
    write(tmp_path, **{"pages/nv.md": page, "pages/Sea___Port Lyre.md": "- x", "pages/Port%2FQuay%3F.md": "- y"})
    write(tmp_path, **{"journals/2023_01_05.md": "- wrote to [[Sea/Port Lyre]]", "logseq/bak/x.md": "z"})
    write(tmp_path, **{"pages/diary.md": "- on [[Jan 5th, 2023]]", "pages/old.org": "#+TITLE: Old\n\n* see [[Norvik]]"})
    found = pages_of(tmp_path, "logseq")
    norvik = found["pages/nv.md"]
    assert (norvik.title, norvik.aliases, norvik.categories) == (
        "Norvik",
        ("Nor", "Nordvik", "nv"),
        ("place", "west coast"),
    )
    assert norvik.text == (
        "type: Village\n\n## Food\n\nEels are smoked cooking\n\n- in smoke, see Port Lyre\n\nEel\n\nyear: 1200\n\n"
        "```clojure\n(x [[y]])\n```\n\nTip:\nMind the eels.\n\nhidden words"
    )
    assert targets(norvik) == ["Village", "cooking", "Port Lyre", "Eel"]
    assert found["pages/Sea___Port Lyre.md"].title == "Sea/Port Lyre"
    assert found["pages/Port%2FQuay%3F.md"].title == "Port/Quay?"
    day = found["journals/2023_01_05.md"]
    assert (day.title, day.aliases, targets(day)) == ("Jan 5th, 2023", ("2023-01-05", "2023_01_05"), ["Sea/Port Lyre"])
    assert targets(found["pages/diary.md"]) == ["Jan 5th, 2023"]
    assert found["pages/old.org"].title == "Old"
    assert "logseq/bak/x.md" not in found


def test_wikijs(tmp_path: Path) -> None:
    head = "---\ntitle: {}\npublished: {}\ndate: 2023-01-15T02:28:15.032Z\ntags: auth, module\neditor: markdown\n---\n"
    markup = "[Local](/en/auth/local) [also](/auth/local) ![a](/a.png =100x50) [x](https://wiki.hollin/auth/local#y)"
    hypertext = (
        "<!--\ntitle: Visual\npublished: true\neditor: code\n-->\n<h2>Food</h2>\n<p>See "
        '<a href="/auth/local">local</a></p>\n<ul><li>one</li><li>two</li></ul><pre><code class="language-py">a\n\n'
        "&lt;b</code></pre>"
    )
    secret = "<!--\ntitle: S\npublished: false\neditor: ckeditor\n-->\n<p>x</p>"
    write(tmp_path, **{"home.md": head.format("Home", "true") + markup + "\n\n- a\n- b\n{.links-list}"})
    write(
        tmp_path, **{"auth/local.md": head.format("Local login", "true"), "off.md": head.format("Off", "false") + "x"}
    )
    write(tmp_path, **{"visual.html": hypertext, "secret.html": secret})
    items = list(MarkdownFolder(root=tmp_path, name="w", kind="wikijs", base_url="https://wiki.hollin").read())
    found = {item.key: item for item in items if isinstance(item, Page)}
    assert [item.key for item in items if isinstance(item, SkippedPage)] == ["off.md", "secret.html"]
    home = found["home.md"]
    assert (home.title, home.categories, home.modified) == ("Home", ("auth", "module"), "2023-01-15T02:28:15.032000Z")
    assert home.text == "Local also a x\n\n- a\n- b"
    assert set(targets(home)) == {"Local login"}
    visual = found["visual.html"]
    assert (visual.title, visual.text) == ("Visual", "## Food\n\nSee local\n\n- one\n- two\n\n```py\na\n\n<b\n```")
    assert (targets(visual), visual.url) == (["Local login"], "https://wiki.hollin/visual")


def test_bookstack(tmp_path: Path) -> None:
    link = "[a](/books/sea/page/eels) {{@12}} {{<toc>}} [b](https://books.hollin/books/sea/page/eels)"
    write(tmp_path, **{"west-shelf/sea/fish/eels.md": "# Eels\n\nx", "west-shelf/sea/tides.md": f"# Tides\n\n{link}"})
    write(tmp_path, **{"west-shelf/sea/images/readme.md": "x"})
    found = pages_of(tmp_path, "bookstack", "https://books.hollin")
    assert found["west-shelf/sea/fish/eels.md"].categories == ("west shelf", "sea", "fish")
    tides = found["west-shelf/sea/tides.md"]
    assert (set(targets(tides)), tides.text) == ({"Eels"}, "a b")
    assert len(found) == 2


def test_git_wikis(tmp_path: Path) -> None:
    body = "# Welcome to the wiki\n\n[[the port|Port Lyre]] [[Port-Lyre]] [[Port Lyre|the port]] [[site|https://a.b]]"
    write(
        tmp_path, **{"Home.md": body, "Port-Lyre.md": "x", "_Sidebar.md": "x", "_Footer.md": "y", "a/_Header.md": "z"}
    )
    items = list(MarkdownFolder(root=tmp_path, name="w", kind="github-wiki").read())
    found = {item.key: item for item in items if isinstance(item, Page)}
    assert {item.key: item.reason for item in items if isinstance(item, SkippedPage)} == dict.fromkeys(
        ["_Footer.md", "_Sidebar.md", "a/_Header.md"], "navigation, not a page"
    )
    assert (found["Home.md"].title, found["Port-Lyre.md"].title) == ("Home", "Port Lyre")
    assert set(targets(found["Home.md"])) == {"Port Lyre"}
    assert "the port Port-Lyre Port Lyre site" in found["Home.md"].text


READERS = [read_plain, read_obsidian, read_logseq, read_wikijs]
UNITS = [
    "{{",
    "[[",
    "((",
    "%%\n",
    "%%",
    "`",
    "```\n",
    "- a\n",
    "\t- a\n  b\n",
    "a:: b\n",
    "#a ",
    "<pre>",
    '<a href="',
    "[",
]
UNITS += ["#+BEGIN_SRC\n", "#+BEGIN_QUERY\n", ":A:\n", "![a](b =", "{{{query ", "[:a", "---\n", "<!--\n", "{:a"]


@pytest.mark.parametrize("read", READERS)
def test_hostile_repetition_is_quick(read: object) -> None:
    started = time.process_time()
    for unit in UNITS:
        read(unit * (100_000 // len(unit)))  # type: ignore[operator]
    assert time.process_time() - started < len(UNITS)


@given(st.text(), st.lists(st.sampled_from([*UNITS, "\n", "  ", "x", "]]", "}}", "))"]), max_size=60).map("".join))
def test_any_text_can_be_read(text: str, markup: str) -> None:
    for read in READERS:
        read(text)
        assert "\x00" not in read(markup).body


MATCHED = {"FENCE", "PROPERTY", "BULLET", "ORG_BEGIN", "ORG_END", "DRAWER", "HOUSEKEEPING", "JOURNAL", "HEADING"}
PATTERNS = [name for name, value in vars(markdown_flavours).items() if isinstance(value, re.Pattern)]


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_quick_on_repetition(name: str) -> None:
    pattern = getattr(markdown_flavours, name)
    find = pattern.match if name in MATCHED else pattern.search
    started = time.process_time()
    for unit in UNITS:
        find(unit * (20_000 // len(unit)))
    assert time.process_time() - started < 2
