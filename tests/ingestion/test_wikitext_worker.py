"""Wikitext cleaned in processes: order, budgets, deaths and what is left of them."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from graph.errors import SourceError
from graph.model import FailedPage, Page, PageType, SkippedPage, SourceItem
from ingestion import wikitext_worker
from ingestion.wiki_site import WikiSite
from ingestion.wikitext_worker import BATCH_CHARACTERS, WORTH_CHARACTERS, Draft, finish_pages, finished

SITE = WikiSite({14: "Kategorija"}, base="https://wiki.hollin/wiki/X", language="en")
HARD = "[[Eel|eels]] " * 600
"""A page with more marks than are read where they are met."""
COSTLY = "{| class=x\n" + "|-\n| a || b || c\n" * 1500 + "|}\n'''Norvik''' is a village."
"""Takes ten times as long with its table than by its marks alone."""


def draft(title: str, wikitext: str, page_type: PageType = PageType.ARTICLE) -> Draft:
    page = Page(source="hollin", key=title, title=title, page_type=page_type, revision="7")
    return Draft(page=page, name=title, wikitext=wikitext)


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "wikitext_worker" in " ".join(child.cmdline())]


def test_a_draft_becomes_a_page() -> None:
    page = finished(draft("Norvik", "[[Norvik]] has [[Eel|eels]].\n== Food ==\nMany.[[Kategorija:Towns]]"), SITE)
    assert (page.key, page.revision, page.page_type) == ("Norvik", "7", PageType.STUB)
    assert page.text == "Norvik has eels.\n\n## Food\n\nMany."
    assert [link.target for link in page.links] == ["Eel"]  # not to itself
    assert page.categories == ("Towns",)


def test_types_that_the_namespace_gives_stay() -> None:
    assert finished(draft("Talk:Norvik", "x", PageType.TALK), SITE).page_type is PageType.TALK


def test_order_is_kept_whatever_takes_long() -> None:
    items: list[Draft | SourceItem] = []
    for number in range(120):
        items.append(draft(f"Page {number}", (HARD if number % 7 == 0 else "") + f"text {number}"))
        if number % 5 == 0:
            items.append(SkippedPage(key=f"gone {number}", reason="empty"))
    expected = [finished(item, SITE) if isinstance(item, Draft) else item for item in items]
    assert list(finish_pages(items, SITE, processes=3)) == expected
    assert not children()


def test_a_small_wiki_starts_no_process() -> None:
    found = []
    for page in finish_pages((draft(f"Page {number}", "[[Eel]] " * 20) for number in range(50)), SITE):
        assert not children()
        found.append(page)
    assert len(found) == 50


def test_a_big_wiki_does() -> None:
    count = 3 * WORTH_CHARACTERS // 10_000
    pages = finish_pages((draft(f"Page {number}", "word " * 2_000) for number in range(count)), SITE, processes=2)
    started = 0
    for _ in pages:
        started = max(started, len(children()))
    assert started == 2
    assert not children()


def test_a_page_over_its_budget_is_read_by_its_marks(caplog: pytest.LogCaptureFixture) -> None:
    items = [draft("Eel", HARD), draft("Norvik", COSTLY), draft("Cape", HARD)]
    first, norvik, last = finish_pages(items, SITE, processes=1, budget=0.06)
    assert isinstance(norvik, Page)
    assert norvik.text.endswith("Norvik is a village.")
    assert "a; b; c" in norvik.text
    assert "Norvik: it takes too much time; read by its marks alone" in caplog.text
    assert (first, last) == (finished(items[0], SITE), finished(items[2], SITE))


def test_the_budget_is_cpu_time() -> None:
    """A process that is held up by others, here by a signal, loses nothing."""
    pages = finish_pages((draft(f"Page {number}", HARD) for number in range(30)), SITE, processes=1, budget=0.5)
    found = [next(pages)]
    (child,) = children()
    child.suspend()
    time.sleep(1.0)
    child.resume()
    found += pages
    assert all(isinstance(page, Page) and "eels eels" in page.text for page in found)


def test_a_process_that_dies_costs_no_page(caplog: pytest.LogCaptureFixture) -> None:
    count = 8 * BATCH_CHARACTERS // len(HARD)
    items = [draft(f"Page {number}", HARD) for number in range(count)]
    pages = finish_pages(items, SITE, processes=2)
    found = [next(pages)]
    for child in children():
        child.send_signal(signal.SIGKILL)
    found += pages
    assert [item.key for item in found if isinstance(item, Page)] == [item.page.key for item in items]
    assert caplog.text.count("its reader died (exit code -9); read by its marks alone") <= 2


def test_processes_that_cannot_start_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wikitext_worker, "START", "raise SystemExit(3)")
    with pytest.raises(SourceError, match=r"cannot be started \(exit code 3\)"):
        list(finish_pages([draft("Norvik", HARD)], SITE, processes=2))


def test_what_even_plain_reading_cannot_do_fails_alone() -> None:
    heavy = draft("Heavy", HARD)
    broken = draft("Broken", HARD)
    object.__setattr__(broken, "wikitext", _Unreadable(HARD))
    first, failed, last = finish_pages([heavy, broken, heavy], SITE, processes=1)
    assert isinstance(failed, FailedPage)
    assert failed.key == "Broken"
    assert failed.reason.startswith("its wikitext cannot be read (RuntimeError")
    assert isinstance(first, Page)
    assert first == last


class _Unreadable(str):
    def isascii(self) -> bool:
        raise RuntimeError("no text")


def test_what_the_source_raises_comes_after_the_pages_before_it() -> None:
    def breaking() -> Iterator[Draft]:
        for number in range(40):
            yield draft(f"Page {number}", HARD)
        raise SourceError("The dump breaks off.")

    found: list[SourceItem] = []
    with pytest.raises(SourceError, match="breaks off"):
        found.extend(finish_pages(breaking(), SITE, processes=2))
    assert not children()


def test_closing_early_leaves_no_process() -> None:
    pages = finish_pages((draft(f"Page {number}", HARD) for number in range(10_000)), SITE, processes=2)
    next(pages)
    assert children()
    pages.close()  # type: ignore[attr-defined]
    assert not children()


def test_pages_are_taken_no_further_ahead_than_memory_allows() -> None:
    asked = 0

    def drafts() -> Iterator[Draft]:
        nonlocal asked
        yield draft("First", HARD)
        for number in range(600):
            asked += 1
            yield draft(f"Page {number}", "text")

    pages = finish_pages(drafts(), SITE, processes=1)
    for taken, _ in enumerate(pages, 1):
        assert asked <= taken + 401


def test_notes_of_the_processes_are_logged_here(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    deep = "{{a|" * 500 + "deep" + "}}" * 500
    (page,) = finish_pages([draft("Deep", deep)], SITE, processes=1)
    assert isinstance(page, Page)
    assert "Deep: nested more than 30 deep" in caplog.text


PARENT = """
import sys, time
from tests.ingestion.test_wikitext_worker import HARD, SITE, draft, finish_pages
pages = finish_pages((draft(str(n), HARD) for n in range(10**6)), SITE, processes=2)
for page in pages:
    print("begun", flush=True)
    time.sleep(60)
"""


def test_processes_end_with_the_one_that_started_them() -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=root) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"begun\n"
        started = psutil.Process(parent.pid).children()
        assert len(started) == 2
        parent.kill()
    _, alive = psutil.wait_procs(started, timeout=10)
    assert not [child for child in alive if child.status() != psutil.STATUS_ZOMBIE]
