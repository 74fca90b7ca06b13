"""Which addresses may be fetched: one URL parser and one table, so that no page leads into the owner's network."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin

import httpx

from graph.errors import DependencyFaultError

MAX_URL_CHARS = 8192
PUBLIC_PORTS = frozenset({80, 443})
HOST_NAME = re.compile(r"(?=.{1,253}\.?$)(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
"""Parsers disagree on what these do in a URL: strip, keep, or read a backslash as a slash."""

BLOCKED_DOMAIN = "the domain is blocked"

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

OWNERS = tuple(
    ipaddress.ip_network(network)
    for network in ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1", "fc00::/7")
)
"""The owner's own machines and network, which `web.allow_private` opens."""
NEVER = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "168.63.129.16",  # Azure's host, which hands out credentials from a public address
        "169.254.0.0/16",  # link-local: cloud metadata
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relay
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "2001::/23",  # Teredo and other protocol assignments
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",
    )
)
GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
"""All that is routed on the IPv6 internet; NAT64, mapped, compatible and site-local addresses are outside."""


class AddressError(DependencyFaultError):
    """A URL that must not be fetched, nor shown as a source."""

    kind = "address-refused"

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"{url[:200]!r} is not fetched: {why}.", dependency="web")
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """A parsed http(s) URL. `host` is ASCII and without brackets; `target` is path and query."""

    url: str
    scheme: str
    host: str
    port: int
    target: str


def nothing_blocked(_url: str) -> bool:
    """Where there is no list of blocked domains."""
    return False


def parse_url(text: str, *, allow_private: bool = False) -> WebAddress:
    """The one parser. Raises `AddressError`; what it lets through still has to be resolved and checked."""
    if len(text) > MAX_URL_CHARS:
        raise AddressError(text, f"it is longer than {MAX_URL_CHARS} characters")
    if UNSAFE.search(text):
        raise AddressError(text, "it has spaces, control characters or backslashes")
    try:
        url = httpx.URL(text)
        host = url.raw_host.decode("ascii").lower()
        decodable = url.host  # raises where a label only looks like IDNA
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise AddressError(text, "it cannot be parsed") from error
    if url.scheme not in {"http", "https"}:
        raise AddressError(text, "only http and https are")
    if url.userinfo:
        raise AddressError(text, "it has a user name in it")
    port = url.port or (443 if url.scheme == "https" else 80)
    if port not in PUBLIC_PORTS and not (allow_private and port < 65536):
        raise AddressError(text, f"port {port} is not 80 or 443")
    _check_host(text, host if decodable else "", allow_private=allow_private)
    plain = str(url.copy_with(fragment=None))
    return WebAddress(url=plain, scheme=url.scheme, host=host, port=port, target=url.raw_path.decode("ascii"))


def follow(base: WebAddress, location: str, *, allow_private: bool = False) -> WebAddress:
    """Where a redirect leads, checked like any other URL."""
    if UNSAFE.search(location):
        raise AddressError(location, "it has spaces, control characters or backslashes")
    try:
        joined = urljoin(base.url, location)
    except ValueError as error:
        raise AddressError(location, "it cannot be parsed") from error
    return parse_url(joined, allow_private=allow_private)


def refusal(text: str, *, allow_private: bool = False) -> str:
    """Why this URL must not be used, judged without asking the DNS; "" if nothing speaks against it."""
    try:
        parse_url(text, allow_private=allow_private)
    except AddressError as error:
        return error.why
    return ""


def address_refusal(address: str, *, allow_private: bool = False) -> str:
    """Why nothing may be fetched from this IP address; "" if it may."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "it is not an address"
    if any(ip in network for network in OWNERS):
        return "" if allow_private else "it is a private or loopback address"
    if any(ip in network for network in NEVER):
        return "it is a reserved address"
    if ip.version == 6 and ip not in GLOBAL_IPV6:
        return "it is a reserved address"
    return ""


def _check_host(text: str, host: str, *, allow_private: bool) -> None:
    if not host:
        raise AddressError(text, "it has no host")
    if ":" in host or _is_dotted_quad(host):
        if why := address_refusal(host, allow_private=allow_private):
            raise AddressError(text, why)
        return
    if not HOST_NAME.fullmatch(host):
        raise AddressError(text, "its host is not a valid name")
    labels = host.removesuffix(".").split(".")
    if NUMBER.fullmatch(labels[-1]):
        # 2130706433, 0x7f000001, 127.1: `ipaddress` refuses these and the resolver yet takes them for addresses.
        raise AddressError(text, "its host is a number in disguise")
    if labels[-1] == "localhost" and not allow_private:
        raise AddressError(text, "it is this machine")


def _is_dotted_quad(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True
