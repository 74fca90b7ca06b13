"""`trivet domains check | list`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import rich_click as click

from config.domains import BLOCKED, SHIPPED, Domains, Rule, Verdict, load_domains
from graph.errors import InputError, NotFoundError
from server.commands.options import Options, common_options, options_of
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json


@click.group()
@common_options
def command() -> None:
    """Say which web domains are trusted, and how far, and which are blocked."""


@command.command("check")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@common_options
@click.pass_context
def check(context: click.Context, urls: tuple[str, ...]) -> None:
    """Say what is thought of a URL or a domain, and which rule says so; nothing is fetched."""
    options = options_of(context)
    domains = _domains(options)
    verdicts = [_judged(url, domains) for url in urls]
    if options.json:
        print_json({"domains": [{"url": url, **_shown(verdict)} for url, verdict in zip(urls, verdicts, strict=True)]})
        return
    out = Printer()
    for url, verdict in zip(urls, verdicts, strict=True):
        out.line((url, "bold"))
        out.line(_said(verdict), indent=4)


@command.command("list")
@click.option("--category", metavar="NAME", help="Only these, like press; or blocked.")
@common_options
@click.pass_context
def list_command(context: click.Context, category: str | None) -> None:
    """Print all rules: the shipped ones, with those of web.domains_path over them."""
    options = options_of(context)
    domains = _domains(options)
    if category is not None and category not in (*domains.boosts, BLOCKED):
        known = ", ".join((*domains.boosts, BLOCKED))
        raise NotFoundError(f"There is no category {category!r}; there are {known}.")
    rules = [rule for rule in _in_order(domains) if category in (None, rule.category)]
    if options.json:
        listed = [{"domain": rule.domain, **_shown_rule(rule, domains)} for rule in rules]
        print_json({"categories": dict(domains.boosts), "domains": listed})
        return
    Printer().pairs((rule.domain, _line(rule, domains.boosts)) for rule in rules)


def _domains(options: Options) -> Domains:
    return load_domains(settings_of(options).web.domains_path)


def _judged(url: str, domains: Domains) -> Verdict:
    try:
        return domains.judge(url)
    except ValueError as error:
        raise InputError(f"{url[:200]!r} is no URL: {error}; give one like https://bbc.co.uk/news.") from None


def _in_order(domains: Domains) -> Sequence[Rule]:
    """By category as they are declared, the blocked last; in each by name."""
    place = {name: n for n, name in enumerate(domains.boosts)}
    return sorted(domains.rules.values(), key=lambda rule: (place.get(rule.category, len(place)), rule.domain))


def _said(verdict: Verdict) -> str:
    rule = verdict.rule
    if rule is None:
        return f"{verdict.category}, boost {verdict.boost:.2f}: no rule is about {verdict.host}"
    if verdict.blocked:
        return f"blocked: {rule.reason} (rule {rule.domain}, {_file(rule)})"
    return f"{verdict.category}, boost {verdict.boost:.2f} (rule {rule.domain}, {_file(rule)})"


def _line(rule: Rule, boosts: Mapping[str, float]) -> str:
    said = f"blocked: {rule.reason}" if rule.category == BLOCKED else f"{rule.category}, {boosts[rule.category]:.2f}"
    return said if rule.file == SHIPPED else f"{said} ({rule.file})"


def _shown(verdict: Verdict) -> dict[str, object]:
    rule = verdict.rule
    return {
        "host": verdict.host,
        "category": verdict.category,
        "boost": verdict.boost,
        "blocked": verdict.blocked,
        "reason": rule.reason if rule else "",
        "rule": rule.domain if rule else None,
        "file": _file(rule) if rule else None,
    }


def _shown_rule(rule: Rule, domains: Domains) -> dict[str, object]:
    return {
        "category": rule.category,
        "boost": domains.boosts.get(rule.category, 0.0),
        "reason": rule.reason,
        "file": _file(rule),
    }


def _file(rule: Rule) -> str:
    return "shipped" if rule.file == SHIPPED else str(rule.file)
