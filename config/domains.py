"""Domains of the web: how far each is trusted, and which are never fetched (mission.md §4.4, §6.6).

`config/domains.toml` is shipped; the owner's file (`web.domains_path`) adds to it or replaces its keys.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import httpx
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from config.settings import Section
from config.toml_file import TomlFile

SHIPPED = Path(__file__).with_name("domains.toml")
UNKNOWN, BLOCKED = "unknown", "blocked"
"""The category of what no rule is about, and what a blocked domain is shown as; neither can be taken for another."""
NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
"""Parsers disagree on what these do in a URL."""
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def host_of(url: str) -> str:
    """The host of a URL, or of one without its scheme: ASCII, lower case, without port and trailing dot.

    Names of other scripts become punycode (IDNA 2008), as the fetcher has them. Raises `ValueError` with the reason.
    """
    if not url or UNSAFE.search(url):
        raise ValueError("it is empty" if not url else "it has spaces, control characters or backslashes")
    try:
        parsed = httpx.URL(url if SCHEME.match(url) else f"https://{url}")
        host = parsed.raw_host.decode("ascii").lower().removesuffix(".")
        decodable = parsed.host  # raises where a label only looks like IDNA
    except (httpx.InvalidURL, UnicodeError, ValueError):
        raise ValueError("it cannot be parsed") from None
    if parsed.scheme not in {"http", "https"}:
        raise ValueError("only http and https are fetched")
    if not host or not decodable:
        raise ValueError("it has no host")
    if ":" not in host and not NAME.fullmatch(host):
        raise ValueError("its host is not a valid name")
    return host


def domain_name(text: str) -> str:
    """A domain as it stands in the file, in the form of `host_of`. Raises `ValueError`."""
    if re.search(r"[/:@?#*\s]", text) or text.startswith("."):
        raise ValueError("write the domain alone, like bbc.co.uk: its subdomains are meant anyway")
    try:
        name = host_of(text)
    except ValueError as error:
        raise ValueError(f"is no domain: {error}") from None
    if name.rpartition(".")[2].isdigit() and not is_address(name):
        raise ValueError("is no domain: it ends with a number")
    return name


def is_address(host: str) -> bool:
    """Whether a host is named by its number."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _category(name: str) -> str:
    if name == BLOCKED:
        raise ValueError("put the domain into [blocked], with the reason as its value")
    return name


Domain = Annotated[str, AfterValidator(domain_name)]
Category = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,29}$"), AfterValidator(_category)]
Boost = Annotated[float, Field(ge=0, le=1)]
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class DomainFile(Section):
    """A file of domains. Its tables are these fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    categories: dict[Category, Boost] = Field(default_factory=dict, description="Category → boost.")
    trusted: dict[Domain, Category] = Field(default_factory=dict, description="Domain → category.")
    blocked: dict[Domain, Reason] = Field(default_factory=dict, description="Domain → why.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a file says of a domain and its subdomains."""

    domain: str
    category: str
    """`BLOCKED` where it is never fetched."""
    reason: str = ""
    """Why it is blocked."""
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be thought of a URL."""

    host: str
    category: str
    boost: float
    """0 where it is blocked."""
    rule: Rule | None
    """None where no rule is about it."""

    @property
    def blocked(self) -> bool:
        return self.category == BLOCKED


@dataclass(frozen=True, slots=True, kw_only=True)
class Domains:
    """All rules, by domain, and each category's boost."""

    boosts: Mapping[str, float]
    rules: Mapping[str, Rule]

    def judge(self, url: str) -> Verdict:
        """By the longest rule that its host ends with, label by label. Raises `ValueError` for what is no URL."""
        host = host_of(url)
        rule = next((self.rules[name] for name in _suffixes(host) if name in self.rules), None)
        category = rule.category if rule else UNKNOWN
        return Verdict(host=host, category=category, boost=self.boosts.get(category, 0.0), rule=rule)

    def is_blocked(self, url: str) -> bool:
        return self.judge(url).blocked


def _suffixes(host: str) -> Iterator[str]:
    """www.bbc.co.uk, bbc.co.uk, co.uk, uk; an address alone, as what it ends with means nothing."""
    yield host
    if not is_address(host):
        while host := host.partition(".")[2]:
            yield host


def load_domains(file: Path | None) -> Domains:
    """The shipped list, and the owner's over it. Every fault is a `SettingsProblem` that names file and line."""
    shipped = shipped_domains()
    return shipped if file is None else _read(file, shipped)


@cache
def shipped_domains() -> Domains:
    return _read(SHIPPED, Domains(boosts={}, rules={}))


def _read(path: Path, base: Domains) -> Domains:
    """A rule replaces the one of the same domain in `base`, be it from trusted to blocked or back."""
    file = TomlFile.read(path)
    tables = {name: _flat(name, table) for name, table in file.tables.items()}
    found = file.checked(DomainFile, tables)
    boosts = {**base.boosts, **found.categories}
    written = [(table, name) for table in ("trusted", "blocked") for name in tables.get(table, {})]
    faults: list[tuple[str, str]] = []
    rules: dict[str, Rule] = {}
    for table, name in written:
        domain = domain_name(name)
        category = found.trusted[domain] if table == "trusted" else BLOCKED
        if domain in rules:
            faults.append((f"{table}.{name}", f"{domain} is in this file twice; keep one of them"))
        elif category != BLOCKED and category not in boosts:
            known = ", ".join(boosts)
            faults.append((f"{table}.{name}", f"there is no category {category!r}; the categories are {known}"))
        reason = found.blocked[domain] if table == "blocked" else ""
        rules[domain] = Rule(domain=domain, category=category, reason=reason, file=path)
    if faults:
        raise file.problem(faults)
    return Domains(boosts=boosts, rules={**base.rules, **rules})


def _flat(name: str, table: Any, prefix: str = "") -> Any:
    """Domains that were written without quotes (bbc.co.uk = "press") are tables in tables; here they are one key."""
    if name == "categories" or not isinstance(table, dict):
        return table
    flat: dict[str, Any] = {}
    for key, value in table.items():
        inner = _flat(name, value, f"{prefix}{key}.")
        flat.update(inner if isinstance(inner, dict) and inner else {f"{prefix}{key}": value})
    return flat
