"""A site behind a real nginx: crawled by its sitemap, followed by its validators."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graph.feed import Checkpoint, UnchangedPage
from graph.protocols import ChangingSource
from ingestion.ingest import ingest
from ingestion.sources.detect import open_source, recognise
from ingestion.verify import verify
from tests.ingestion.small_wiki import SETTINGS, fake_knowledge
from tests.services.environment import service
from tests.services.nginx_site import serving_folder

pytestmark = pytest.mark.services
PAGES = ("index", "rock", "vale", "ferry")
TEXT = "<p>{name} stands on the coast of Hollin, and many ships have passed it by day and by night since 1871.</p>"


def write(root: Path, name: str, more: str = "") -> None:
    links = "".join(f'<a href="/{other}.html">{other}</a> ' for other in PAGES)
    body = f"<h1>{name.title()}</h1>{TEXT.format(name=name.title()) * 3}{more}"
    # The first page is there under two addresses, and says which one it means.
    head = f'<title>{name.title()} - Hollin</title><link rel="canonical" href="/{name}.html">'
    html = f"<html><head>{head}</head><body><nav>{links}</nav><main>{body}</main></body></html>"
    (root / f"{name}.html").write_text(html, encoding="utf-8")


def write_sitemap(root: Path, url: str, names: tuple[str, ...]) -> None:
    places = "".join(f"<url><loc>{url}/{name}.html</loc></url>" for name in names)
    elsewhere = "<url><loc>http://other.example/secret.html</loc></url><url><loc>{0}/private/x.html</loc></url>"
    (root / "sitemap.xml").write_text(
        f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}'
        f"{elsewhere.format(url)}</urlset>"
    )
    (root / "robots.txt").write_text(f"User-agent: *\nDisallow: /private/\nSitemap: {url}/sitemap.xml\n")


async def test_it_is_read_once_and_then_only_asked_what_is_new(tmp_path: Path) -> None:
    service("NGINX")
    root = tmp_path / "site"
    root.mkdir()
    for name in PAGES:
        write(root, name)
    with serving_folder(root, tmp_path / "nginx") as (url, log):
        write_sitemap(root, url, PAGES)
        assert recognise(f"{url}/").kind == "site"
        source = open_source(f"{url}/", name="w", options={"delay": "0"})
        assert isinstance(source, ChangingSource)
        knowledge = fake_knowledge()
        items = list(source.read())
        last = items[-1]
        assert isinstance(last, Checkpoint)
        report = await ingest(source, knowledge, SETTINGS)
        assert (report.added, report.failed) == (len(PAGES), ())
        assert "/private/" not in log.read_text()
        assert {m.title for m in knowledge.state.all_manifests()} == {name.title() for name in PAGES}

        before = len(log.read_text().splitlines())
        quiet = list(source.changes(last.cursor) or ())
        assert sum(isinstance(item, UnchangedPage) for item in quiet) == len(PAGES)
        asked = log.read_text().splitlines()[before:]
        # All but the first page, which is asked for by its other address, for which there are no validators.
        assert sum('" 304 ' in line for line in asked) == len(PAGES) - 1

        write(root, "rock", "<p>A lighthouse was built on it in the year 1901, and it still burns every night.</p>")
        os.utime(root / "rock.html", (1_900_000_000, 1_900_000_000))
        (root / "vale.html").unlink()
        write_sitemap(root, url, ("index", "rock", "ferry"))
        then = await ingest(source, knowledge, SETTINGS, since=last.cursor)
        assert (then.whole, then.changed, then.deleted, then.unchanged) == (False, 1, 1, 2)
        assert (await verify(knowledge)).clean
