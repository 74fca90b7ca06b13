"""What an ingestion did, as it is shown to people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from graph.model import FailedPage, SkippedPage
from ingestion.report import IngestReport
from server.commands.terminal import Printer

SHOWN = 10
"""Pages named for one reason; `--json` names all."""


def print_report(report: IngestReport, out: Printer) -> None:
    counts = (
        ("added", report.added),
        ("changed", report.changed),
        ("unchanged", report.unchanged),
        ("deleted", report.deleted),
        ("redirects", report.redirects),
        ("skipped", len(report.skipped)),
        ("failed", len(report.failed)),
    )
    pages = ", ".join(f"{count:,} {name}" for name, count in counts if count or name == "added")
    out.pairs(
        (
            ("wiki", report.source),
            ("pages", pages),
            ("chunks", f"{report.chunks:,} written, {report.embedded:,} of them embedded, {report.linked:,} linked"),
            ("graph", f"{report.entities:,} entities, {report.links:,} links"),
            ("time", f"{report.seconds:.1f} s, {report.chunks_per_second:,.0f} chunks/s"),
        )
    )
    _print_reasons("skipped", report.skipped, out)
    _print_reasons("failed", report.failed, out)
    if report.dangling_redirects:
        out.line("redirects that lead nowhere: ", _first(report.dangling_redirects))
    for warning in report.warnings:
        out.line(("warning: ", "yellow"), warning)


def _print_reasons(what: str, pages: Iterable[SkippedPage | FailedPage], out: Printer) -> None:
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for page in pages:
        by_reason[page.reason].append(page.key)
    for reason, keys in sorted(by_reason.items()):
        out.line((f"{what}, {reason}: ", "yellow" if what == "failed" else ""), _first(keys))


def _first(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - SHOWN:,} more" if len(keys) > SHOWN else ""
    return ", ".join(keys[:SHOWN]) + more
