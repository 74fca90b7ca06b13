"""Which addresses and URLs may be fetched: every case of the vectors, and properties."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.web.addresses import AddressError, address_refusal, follow, parse_url, refusal

VECTORS = Path(__file__).parent / "vectors"


def vectors(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (VECTORS / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", vectors("ssrf_addresses.jsonl"), ids=lambda case: case["addr"])
def test_address_vectors(case: dict[str, str]) -> None:
    assert bool(address_refusal(case["addr"])) == (case["verdict"] == "block")
    host = f"[{case['addr']}]" if ":" in case["addr"] else case["addr"]
    assert bool(refusal(f"http://{host}/")) == (case["verdict"] == "block")


@pytest.mark.parametrize("case", vectors("ssrf_urls.jsonl"), ids=lambda case: case["why"])
def test_url_vectors(case: dict[str, str]) -> None:
    if case["verdict"] == "block":
        with pytest.raises(AddressError):
            parse_url(case["url"])
    else:
        assert parse_url(case["url"]).host == "ok.example"


@pytest.mark.parametrize(
    ("url", "host", "port", "target"),
    [
        ("https://en.wikipedia.org/wiki/Caf%C3%A9?x=1#top", "en.wikipedia.org", 443, "/wiki/Caf%C3%A9?x=1"),
        ("HTTP://Example.COM", "example.com", 80, "/"),
        ("http://münchen.example/ä", "xn--mnchen-3ya.example", 80, "/%C3%A4"),
        ("http://a_b.example:443/", "a_b.example", 443, "/"),
        ("http://[2606:4700:4700::1111]/x", "2606:4700:4700::1111", 80, "/x"),
        ("http://1.1.1.1.example/", "1.1.1.1.example", 80, "/"),
    ],
)
def test_ordinary_urls_are_parsed(url: str, host: str, port: int, target: str) -> None:
    address = parse_url(url)
    assert (address.host, address.port, address.target) == (host, port, target)


def test_the_owner_may_open_the_private_network_but_not_cloud_metadata() -> None:
    for address in ("127.0.0.1", "10.1.2.3", "::1", "fd12::1"):
        assert address_refusal(address)
        assert not address_refusal(address, allow_private=True)
    for address in ("169.254.169.254", "0.0.0.0", "224.0.0.1", "::ffff:127.0.0.1", "fe80::1", "168.63.129.16"):
        assert address_refusal(address, allow_private=True)
    assert parse_url("http://127.0.0.1:8080/", allow_private=True).port == 8080
    assert parse_url("http://localhost:8080/", allow_private=True).host == "localhost"
    assert refusal("http://localhost:99999/", allow_private=True)
    assert refusal("http://0x7f000001/", allow_private=True)


def test_a_redirect_is_resolved_and_checked_like_a_url() -> None:
    base = parse_url("https://ok.example/a/b?c")
    assert follow(base, "../d#e").url == "https://ok.example/d"
    assert follow(base, "//other.example/x").host == "other.example"
    for location in ("http://127.0.0.1/", "file:///etc/passwd", "//[::1]/", "http:\\\\127.0.0.1", "//[::1", "\t/x"):
        with pytest.raises(AddressError):
            follow(base, location)


@given(st.ip_addresses(v=4))
def test_an_address_that_is_not_global_is_never_let_through(address: ipaddress.IPv4Address) -> None:
    if not address.is_global or address.is_multicast:
        assert address_refusal(str(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_in_any_ipv6_clothes_is_refused(address: ipaddress.IPv4Address) -> None:
    for prefix in ("::", "::ffff:", "::ffff:0:", "64:ff9b::", "64:ff9b:1::"):
        assert address_refusal(f"{prefix}{address}", allow_private=address != ipaddress.IPv4Address(1))


@given(st.integers(0, 2**32 - 1))
def test_numbers_are_no_hosts(number: int) -> None:
    for host in (str(number), hex(number), f"0{number:o}", f"127.{number}", f"a.{number}"):
        assert refusal(f"http://{host}/") or host.count(".") == 3


@given(st.text(max_size=80))
def test_any_text_is_parsed_or_refused_and_what_is_parsed_stays_the_same(text: str) -> None:
    for url in (text, f"http://{text}/", f"https://ok.example/{text}"):
        if not refusal(url):
            once = parse_url(url)
            assert parse_url(once.url) == once
            assert once.host.isascii()
