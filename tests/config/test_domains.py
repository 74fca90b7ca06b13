"""Trusted and blocked domains: what is shipped, which rule fits a URL, what an owner may change, and how faults are
named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.domains import BLOCKED, SHIPPED, UNKNOWN, Domains, domain_name, host_of, load_domains, shipped_domains
from config.loading import SettingsProblem
from server.web.addresses import AddressError, parse_url


def write(folder: Path, text: str) -> Path:
    path = folder / "domains.toml"
    path.write_text(text, encoding="utf-8")
    return path


def domains(folder: Path, text: str) -> Domains:
    return load_domains(write(folder, text))


# --- what is shipped --------------------------------------------------------------------------------------------------


def test_twelve_categories_with_boosts_and_one_for_the_rest() -> None:
    boosts = shipped_domains().boosts
    assert len(boosts) == 13
    assert all(0.5 <= boost <= 0.95 for boost in boosts.values())
    assert boosts[UNKNOWN] == 0.6
    assert boosts["standards"] == max(boosts.values())
    assert boosts["aggregator"] == min(boosts.values())


def test_about_three_hundred_trusted_and_fifty_blocked() -> None:
    counts = Counter(rule.category for rule in shipped_domains().rules.values())
    assert 290 <= sum(counts.values()) - counts[BLOCKED] <= 330
    assert counts[BLOCKED] >= 50
    assert all(counts[category] >= 15 for category in shipped_domains().boosts if category != UNKNOWN)
    assert all(rule.reason for rule in shipped_domains().rules.values() if rule.category == BLOCKED)


def test_shipped_domains_are_written_as_they_are_compared() -> None:
    text = SHIPPED.read_text(encoding="utf-8")
    assert all(f'"{name}" = ' in text for name in shipped_domains().rules)


# --- which rule fits --------------------------------------------------------------------------------------------------

RULES = """
[trusted]
"bbc.co.uk" = "press"
"co.uk" = "community"
"bücher.example" = "archives"
"docs.farm.example" = "documentation"
"203.0.113.7" = "official"
[blocked]
"farm.example" = "a farm"
"bad.bbc.co.uk" = "taken over"
"""


@pytest.mark.parametrize(
    ("url", "category", "rule"),
    [
        ("https://bbc.co.uk/news", "press", "bbc.co.uk"),
        ("https://www.bbc.co.uk/news", "press", "bbc.co.uk"),
        ("https://a.b.c.bbc.co.uk", "press", "bbc.co.uk"),
        ("https://evil-bbc.co.uk/", "community", "co.uk"),
        ("https://bbc.co.uk.evil.example/", UNKNOWN, None),
        ("https://evil.example/bbc.co.uk", UNKNOWN, None),
        ("https://evil.example/?u=https://bbc.co.uk", UNKNOWN, None),
        ("https://evil.example#@bbc.co.uk", UNKNOWN, None),
        ("https://bbc.co.uk@evil.example/", UNKNOWN, None),
        ("https://bbc.co.uk:443@evil.example/", UNKNOWN, None),
        ("HTTPS://WWW.BBC.CO.UK/NEWS", "press", "bbc.co.uk"),
        ("https://bbc.co.uk./", "press", "bbc.co.uk"),
        ("https://bbc.co.uk:8443/", "press", "bbc.co.uk"),
        ("https://bbc。co。uk/", "press", "bbc.co.uk"),
        ("bbc.co.uk", "press", "bbc.co.uk"),
        ("bbc.co.uk:80/news", "press", "bbc.co.uk"),
        ("https://x.bad.bbc.co.uk/", BLOCKED, "bad.bbc.co.uk"),
        ("https://farm.example", BLOCKED, "farm.example"),
        ("https://docs.farm.example", "documentation", "docs.farm.example"),
        ("https://BÜCHER.example/", "archives", "xn--bcher-kva.example"),
        ("https://www.xn--bcher-kva.example/", "archives", "xn--bcher-kva.example"),
        ("https://XN--BCHER-KVA.example./", "archives", "xn--bcher-kva.example"),
        ("https://bucher.example/", UNKNOWN, None),
        ("https://bbс.co.uk/", "community", "co.uk"),  # a Cyrillic с
        ("http://203.0.113.7/", "official", "203.0.113.7"),
        ("http://1.203.0.113.7.example/", UNKNOWN, None),
        ("http://[2001:db8::1]/", UNKNOWN, None),
        ("http://localhost/", UNKNOWN, None),
    ],
)
def test_the_longest_rule_of_whole_labels_fits(tmp_path: Path, url: str, category: str, rule: str | None) -> None:
    known = domains(tmp_path, RULES)
    verdict = known.judge(url)
    assert (verdict.category, verdict.rule and verdict.rule.domain) == (category, rule)
    assert verdict.boost == (0.0 if category == BLOCKED else known.boosts[category])
    assert known.is_blocked(url) is (category == BLOCKED)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "empty"),
        ("https://", "no host"),
        ("ftp://bbc.co.uk/", "only http and https"),
        ("file:///etc/passwd", "only http"),
        ("https://a b.example/", "spaces"),
        ("https://evil.example\\@bbc.co.uk/", "backslashes"),
        ("https://bbc.co.uk\n.evil.example", "control characters"),
        ("https://[::1", "parsed"),
        ("https://bbc..co.uk/", "valid name"),
        ("https://bbc.co.uk../", "valid name"),
        ("https://ｂｂｃ.co.uk/", "parsed"),
        ("https://xn--a/", "parsed"),
    ],
)
def test_what_is_no_url_is_said(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        shipped_domains().judge(url)


@given(st.one_of(st.text(max_size=60), st.from_regex(r"https?://[a-zA-Z0-9.:@/\[\]_äß。-]{0,40}", fullmatch=True)))
def test_what_the_fetcher_would_fetch_can_be_judged_and_has_the_same_host(url: str) -> None:
    try:
        address = parse_url(url, allow_private=True)
    except AddressError:
        return
    assert host_of(url) == address.host.removesuffix(".")
    assert shipped_domains().judge(url).host == host_of(url)


LABEL = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)


@given(st.lists(LABEL, min_size=1, max_size=4), LABEL)
def test_no_label_is_cut(before: list[str], glued: str) -> None:
    """Anything that only ends with the letters of a domain is another domain."""
    rule = shipped_domains().judge(f"https://{'.'.join(before)}{glued}lemonde.fr/").rule
    assert rule is None or rule.domain != "lemonde.fr"
    rule = shipped_domains().judge(f"https://{'.'.join(before)}.lemonde.fr/").rule
    assert rule is not None
    assert rule.domain == "lemonde.fr"


# --- what an owner may change -----------------------------------------------------------------------------------------


def test_an_owner_s_file_adds_and_replaces(tmp_path: Path) -> None:
    known = domains(
        tmp_path,
        '[categories]\npress = 0.9\nhouse = 1\nunknown = 0.1\n[trusted]\n"harbour.example" = "house"\n'
        '"bbc.com" = "house"\n"spiegel.ltd" = "unknown"\n[blocked]\n"reddit.com" = "Not here."\n',
    )
    assert known.judge("https://lemonde.fr").boost == 0.9
    assert known.judge("https://harbour.example").boost == known.judge("https://www.bbc.com").boost == 1.0
    assert known.judge("https://nobody.example").boost == 0.1
    assert not known.is_blocked("https://spiegel.ltd")
    assert known.judge("https://old.reddit.com").category == BLOCKED
    assert known.judge("https://old.reddit.com").rule.reason == "Not here."  # type: ignore[union-attr]
    assert len(known.rules) == len(shipped_domains().rules) + 1
    assert shipped_domains().judge("https://lemonde.fr").boost == 0.75, "the shipped list is as it was"


def test_domains_may_be_written_without_quotes_and_in_any_form(tmp_path: Path) -> None:
    known = domains(
        tmp_path,
        "[trusted]\nharbour.co.example = 'press'\nharbour.co.test = 'press'\n\"WWW.Ünder.Example.\" = 'press'\n",
    )
    for host in ("harbour.co.example", "harbour.co.test", "www.ünder.example"):
        assert known.judge(f"https://{host}").category == "press"
    assert domain_name("Bücher.Example.") == "xn--bcher-kva.example"


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert domains(tmp_path, "").rules == shipped_domains().rules


# --- how faults are named ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            '[trusted]\n"a.example" = "pres"\n',
            2,
            "'trusted.a.example': there is no category 'pres'; the categories are",
        ),
        ('[trusted]\na.b.example = "pres"\n', 2, "'trusted.a.b.example': there is no category"),
        ('[trusted]\n"a.example" = 0.7\n', 2, "'trusted.a.example'"),
        ('[trusted]\n"a.example" = "blocked"\n', 2, "'trusted.a.example': put the domain into [blocked]"),
        ('[trusted]\n"https://a.example/" = "press"\n', 2, "'trusted.https://a.example/': write the domain alone"),
        ('[trusted]\n"*.a.example" = "press"\n', 2, "'trusted.*.a.example': write the domain alone"),
        ('[trusted]\n".a.example" = "press"\n', 2, "'trusted..a.example': write the domain alone"),
        ('[trusted]\n"a.example:80" = "press"\n', 2, "'trusted.a.example:80': write the domain alone"),
        ('[trusted]\n"a..example" = "press"\n', 2, "'trusted.a..example': is no domain"),
        ('[trusted]\n"113.7" = "press"\n', 2, "'trusted.113.7': is no domain: it ends with a number"),
        ('[trusted]\n"" = "press"\n', 1, "'trusted.': is no domain: it is empty"),
        ('\n[blocked]\n"a.example" = ""\n', 3, "'blocked.a.example'"),
        ('[blocked]\n"a.example" = true\n', 2, "'blocked.a.example'"),
        (
            '[trusted]\n"a.example" = "press"\n[blocked]\n"A.example" = "x"\n',
            4,
            "'blocked.A.example': a.example is in this file twice; keep one of them",
        ),
        ("[categories]\npress = 1.1\n", 2, "'categories.press'"),
        ('[categories]\npress = "high"\n', 2, "'categories.press'"),
        ("[categories]\npress = nan\n", 2, "'categories.press'"),
        ("[categories]\nblocked = 0.5\n", 2, "'categories.blocked': put the domain into [blocked]"),
        ("[categories]\nPress = 0.5\n", 2, "'categories.Press'"),
        ('[trust]\n"a.example" = "press"\n', 1, "unknown key 'trust'; the keys are categories, trusted, blocked"),
        ("trusted = 7\n", 1, "'trusted'"),
    ],
)
def test_a_fault_names_file_and_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SettingsProblem) as caught:
        load_domains(path)
    assert f"{path}:{line}: {said}" in str(caught.value)


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsProblem) as caught:
        domains(tmp_path, '[trusted]\n"a.example" = "pres"\n"b.example" = "pres"\n')
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("data", "said"), [(b"[trusted\n", "is not TOML"), (b'[trusted]\n"a" = "\xff"\n', "is not UTF-8")]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "domains.toml"
    path.write_bytes(data)
    with pytest.raises(SettingsProblem, match=said):
        load_domains(path)
    with pytest.raises(SettingsProblem, match=r"nowhere\.toml: cannot be read"):
        load_domains(tmp_path / "nowhere.toml")
