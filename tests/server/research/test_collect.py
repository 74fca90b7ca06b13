"""From searches to kept pages: what is fetched, what is kept, what is left out and why."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.domains import Domains, Rule, shipped_domains
from config.settings import ResearchSettings
from graph.errors import DependencyBusyError, DependencyDownError, NotFoundError
from graph.model import WebResult
from graph.research import ResearchPage, Topic
from server.research.budget import Budget
from server.research.candidates import page_key
from server.research.collect import research
from server.research.copies import Copies, signature, similarity
from server.research.found import Found
from server.research.queries import core_keywords, topic_queries
from server.web.addresses import parse_url, refusal
from server.web.page_check import PageError
from server.web.registrable import registrable
from tests.server.research.fake_web import TOPIC, Bench, FakeWeb, bench

VOCABULARY = "lens beacon keeper tower wick oil lamp storm harbour rock glass brass prism light fog horn sea".split()


def prose(seed: int, count: int = 120) -> str:
    chosen = random.Random(seed)
    return " ".join(f"{chosen.choice(VOCABULARY)}{chosen.randrange(50)}" for _ in range(count)) + " Sallow Point."


def some_web(count: int = 12) -> FakeWeb:
    web = FakeWeb()
    for number in range(count):
        web.add(
            f"https://site{number}.example/beacon", f"The beacons of Sallow Point. {prose(number)}", f"Beacon {number}"
        )
    return web


async def found_in(made: Bench, *, pages: int = 40, seconds: float = 30.0) -> Found:
    return await research(TOPIC, made.tools, budget=Budget(seconds=seconds, pages=pages), report=made.report)


async def test_what_is_found_is_read_cut_and_put_on_the_shelf() -> None:
    made = bench(some_web())
    found = await found_in(made)
    assert (found.pages, found.fetched, found.copies) == (12, 12, 0)
    assert len(made.urls()) == 12
    page = made.shelf.store.pages(TOPIC.slug)[0]
    assert page.title.startswith("Beacon")
    assert (page.published, page.language) == ("2024-03-05", "en")
    assert page.query
    assert page.fetched.startswith("20")
    passages = made.shelf.store.passages_of(TOPIC.slug)
    assert len(passages) == found.chunks == made.reports[-1].chunks
    assert await made.vectors.ids("research_general") == {passage.id for passage in passages}
    assert {report.stage for report in made.reports} == {"researching"}


async def test_as_many_results_of_a_search_are_looked_at_as_the_settings_say() -> None:
    web = some_web(45)
    made = bench(web, settings=ResearchSettings(results_per_query=20, queries=1, language="fr", time_range="year"))
    await found_in(made)
    assert web.searched == [(TOPIC.title, 1), (TOPIC.title, 2)]
    assert web.asked[0] == {"language": "fr", "time_range": "year", "categories": ()}
    assert len(web.fetched) == 20


async def test_no_more_pages_and_no_more_seconds_than_the_budget_has() -> None:
    web = some_web(30)
    made = bench(web)
    found = await found_in(made, pages=7)
    assert len(web.fetched) == found.pages == 7
    assert any("were not looked at" in note for note in found.notes)
    slow = some_web(30)
    slow.page_seconds = 0.3
    made = bench(slow, settings=ResearchSettings(parallel=2, results_per_query=30))
    began = asyncio.get_running_loop().time()
    found = await found_in(made, seconds=0.8)
    assert asyncio.get_running_loop().time() - began < 3
    assert 0 < found.pages < 30
    assert len(made.urls()) == found.pages, "what was read by then is kept"
    assert found.counts["there was no time left for it"] == 30 - found.pages


async def test_what_is_stored_is_not_fetched_again_until_it_is_old() -> None:
    web = some_web(8)
    made = bench(web)
    await found_in(made, pages=3)
    first = list(web.fetched)
    web.fetched.clear()
    await found_in(made)
    assert len(web.fetched) == 5
    assert not set(first) & set(web.fetched)
    web.fetched.clear()
    await found_in(made)
    assert web.fetched == []
    old = (datetime.now(UTC) - timedelta(days=8)).isoformat()
    await made.shelf.put_page(TOPIC, ResearchPage(url=first[0], title="Old", passages=("Old.",), fetched=old))
    await found_in(made)
    assert web.fetched == [first[0]]
    assert "Old." not in {passage.text for passage in made.shelf.store.passages_of(TOPIC.slug)}


async def test_a_page_found_under_its_old_address_is_not_fetched_again() -> None:
    web = some_web(1)
    web.extra = [WebResult(url="http://old.example/x", title="Beacons of Sallow Point", snippet="")]
    web.moved = {"http://old.example/x": "https://site0.example/beacon"}
    made = bench(web)
    await found_in(made)
    await found_in(made)
    assert sorted(web.fetched) == ["http://old.example/x", "https://site0.example/beacon"]
    assert made.urls() == ["https://site0.example/beacon"]


async def test_of_near_copies_the_most_trusted_is_kept_and_names_the_others() -> None:
    web = some_web(3)
    text = f"The beacons of Sallow Point. {prose(77, 400)}"
    copies = {
        "https://aggregator.example/1": text.replace("storm", "gale"),
        "https://www.gov.uk/beacons": text,
        "https://mirror.example/": f"Copied from elsewhere. {text} Share this page.",
    }
    for url, copy in copies.items():
        web.add(url, copy, "Copy")
    made = bench(web, settings=ResearchSettings(parallel=1))
    found = await found_in(made)
    assert (found.pages, found.copies) == (4, 2)
    kept = {page.url: page for page in made.shelf.store.pages(TOPIC.slug)}["https://www.gov.uk/beacons"]
    assert set(kept.copies) == copies.keys() - {kept.url}
    assert await made.vectors.ids("research_general") == made.shelf.store.ids("research_general")
    web.fetched.clear()
    await found_in(made)
    assert web.fetched == [], "copies are known, too"


async def test_what_must_not_be_fetched_is_not_and_each_reason_is_told() -> None:
    web = some_web(2)
    domains = shipped_domains()
    rule = Rule(domain="spam.example", category="blocked", reason="spam", file=Path("x"))
    blocked = Domains(boosts=domains.boosts, rules={**domains.rules, "spam.example": rule})
    refused = [
        "http://127.0.0.1:6333/",
        "http://[::1]:7474/",
        "file:///etc/passwd",
        "http://169.254.169.254/x",
        "nonsense",
    ]
    spam = ["https://spam.example/a", "https://www.spam.example/b"]
    web.extra = [WebResult(url=url, title="Beacons of Sallow Point", snippet="") for url in (*refused, *spam)]
    web.faults = {
        "https://site0.example/beacon": PageError("site0.example", "it shows a login page"),
        "https://site1.example/beacon": DependencyBusyError("busy", dependency="web", retry_after=600),
    }
    made = bench(web, domains=blocked)
    found = await found_in(made)
    assert sorted(web.fetched) == sorted(web.faults)
    assert found.left_out["the domain is blocked"] == tuple(spam)
    assert found.left_out["it shows a login page"] == ("https://site0.example/beacon",)
    assert found.left_out["its host asked for a pause"] == ("https://site1.example/beacon",)
    assert {url for urls in found.left_out.values() for url in urls} >= set(refused)
    assert found.pages == 0


async def test_a_report_names_some_of_the_many_that_were_left_out() -> None:
    web = FakeWeb(extra=[WebResult(url=f"http://10.0.0.{n}/", title="", snippet="") for n in range(100)])
    found = await found_in(bench(web, settings=ResearchSettings(results_per_query=100)))
    (reason,) = found.left_out
    assert len(found.left_out[reason]) == 20
    assert found.counts[reason] == 100


async def test_nothing_found_names_the_engines_that_did_not_answer() -> None:
    found = await found_in(bench(FakeWeb(unresponsive=("bing: timeout",))))
    assert set(found.notes) == {"search engine bing: timeout", "the search found nothing"}


async def test_a_search_that_is_down_is_raised_and_one_that_fails_later_is_told() -> None:
    web = some_web(3)
    web.search_fault = DependencyDownError("SearXNG is down.", dependency="searxng")
    with pytest.raises(DependencyDownError):
        await found_in(bench(web))


async def test_a_topic_that_is_deleted_meanwhile_ends_research() -> None:
    made = bench(some_web(3))
    made.shelf.store.remove_topic(TOPIC.slug)
    with pytest.raises(NotFoundError):
        await found_in(made)


async def test_of_a_very_long_page_the_passages_that_fit_are_kept_in_order() -> None:
    web = FakeWeb()
    fillers = [f"Filler number {n} about the weather. " * 20 for n in range(100)]
    fillers[70] = "The lenses of the beacons of Sallow Point are cleaned with vinegar. " * 12
    web.add("https://long.example/", "\n".join(fillers), "Beacons of Sallow Point")
    made = bench(web, settings=ResearchSettings(page_passages=10))
    await found_in(made)
    texts = [passage.text for passage in made.shelf.store.passages_of(TOPIC.slug)]
    assert len(texts) == 10
    assert any("vinegar" in text for text in texts)


# --- what is searched for -----------------------------------------------------------------------------------------


def test_the_searches_are_the_title_with_the_focus_whole_and_in_pieces() -> None:
    topic = Topic(slug="x", title="Sallow Point", focus='who built it, and "Imre Toller" in Ansa Brekke\'s time')
    queries = topic_queries(topic, ["Sallow Point", "Ansa Brekke"], 6)
    assert queries[0] == "Sallow Point"
    assert queries[1] == "Sallow Point Imre Toller Ansa Brekke built time"
    assert queries[-1] == "Imre Toller Ansa Brekke built time"
    assert len(topic_queries(topic, [], 2)) == 2
    assert topic_queries(Topic(slug="x", title="Sallow Point"), [], 6) == ["Sallow Point"]
    coastal = topic_queries(Topic(slug="x", title="The Sallow", category="coast"), [], 6)
    assert coastal == ["The Sallow", "The Sallow coast"]
    assert topic_queries(Topic(slug="x", title="?!"), [], 6) == []


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_title_and_focus_make_few_searches(title: str, focus: str) -> None:
    assert len(topic_queries(Topic(slug="x", title=title, focus=focus), [], 6)) <= 6
    assert len(core_keywords(focus)) == len(set(core_keywords(focus)))


# --- copies, keys and domains -------------------------------------------------------------------------------------


def test_the_estimate_is_near_the_share_that_is_in_both() -> None:
    tokens = prose(1, 1000).split()
    for changed in (0, 100, 400, 1000):
        other = " ".join([*tokens[: 1000 - changed], *prose(2, changed).split()[:changed]])
        one = {tuple(tokens[at : at + 3]) for at in range(len(tokens) - 2)}
        two = {tuple(other.split()[at : at + 3]) for at in range(len(other.split()) - 2)}
        true = len(one & two) / len(one | two)
        assert abs(similarity(signature(" ".join(tokens)), signature(other)) - true) < 0.15


def test_copies_are_found_whatever_their_length() -> None:
    copies = Copies(0.7)
    for number in range(50):
        copies.add(f"https://{number}.example/", signature(prose(number)))
    assert copies.original(signature(prose(7))) == "https://7.example/"
    assert copies.original(signature(prose(99))) is None
    assert Copies(0.7).original(signature("")) is None
    short = Copies(0.7)
    short.add("u", signature("two words"))
    assert short.original(signature("Two words!")) == "u"


@given(st.text(max_size=200))
def test_any_text_has_a_signature_of_its_own(text: str) -> None:
    assert similarity(signature(text), signature(text)) == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.example/x", "http://www.a.example/x#part"),
        ("https://a.example/x?utm_source=y&id=1", "https://A.example/x?id=1"),
        ("https://a.example", "https://a.example/"),
    ],
)
def test_the_same_page_under_other_addresses(one: str, other: str) -> None:
    assert page_key(one) == page_key(other)
    assert page_key("https://a.example/x?id=1") != page_key("https://a.example/x?id=2")


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://news.bbc.co.uk/x", "bbc.co.uk"),
        ("https://en.wikipedia.org/", "wikipedia.org"),
        ("https://me.github.io/", "me.github.io"),
        ("https://a.b.gov.uk/", "b.gov.uk"),
        ("https://co.uk/", "co.uk"),
        ("https://t.co/x", "t.co"),
        ("https://www.t.co/x", "t.co"),
        ("http://192.0.2.1:80/x", "192.0.2.1"),
        ("http://[2001:db8::1]/", "2001:db8::1"),
        ("localhost", ""),
        ("http://[::1", ""),
    ],
)
def test_what_was_registered(url: str, domain: str) -> None:
    assert registrable(url) == domain


@given(st.text(max_size=60), st.text(max_size=20))
def test_what_may_be_fetched_can_be_judged_and_compared(host: str, path: str) -> None:
    for url in (f"http://{host}/{path}", host):
        page_key(url)
        registrable(url)
        if not refusal(url):
            shipped_domains().judge(parse_url(url).url)
