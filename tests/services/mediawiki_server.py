"""MediaWiki from Debian's packages on SQLite, served by PHP itself, and an editor that works it through its own API."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.services.processes import CACHE, free_port, run, spawn, wait_until

PACKAGES = ("mediawiki", "php-cli", "php-sqlite3", "php-xml", "php-mbstring", "php-intl")
HOME = CACHE / "mediawiki"
WEB = HOME / "web"
READY = HOME / "ready"
USER, PASSWORD = "Admin", "only-for-tests-7"
SETTINGS = """
$wgArticlePath = "/wiki/$1";
$wgJobRunRate = 0;
$wgPasswordAttemptThrottle = false;
"""
"""Jobs would run behind the tests' backs and hold SQLite's lock; a test logs in more often than a person does."""


@dataclass(frozen=True, slots=True)
class OwnWiki:
    """A wiki of a test's own, empty at first. `settings` may be changed while it runs."""

    url: str
    folder: Path
    php: subprocess.Popen[bytes]

    @property
    def settings(self) -> Path:
        return self.folder / "LocalSettings.php"

    def stop(self) -> None:
        """It may have been stopped already."""
        if self.php.poll() is None:
            os.killpg(self.php.pid, signal.SIGTERM)
            self.php.wait(15)


def prepare() -> None:
    """One copy of the program, shared by all instances: only settings and data are an instance's own."""
    if READY.exists():
        return
    if _version() is None:
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES, environment=quiet)
    shutil.rmtree(HOME, ignore_errors=True)
    WEB.mkdir(parents=True)
    # A link to settings that do not exist is left out; the other links are followed, as PHP's server would not.
    run("cp", "-rL", *[path for path in Path("/usr/share/mediawiki").iterdir() if path.exists()], WEB)
    READY.write_text(_version() or "")


def start() -> tuple[list[tuple[int, float]], dict[str, str]]:
    url, folder = _install("mediawiki")
    process = spawn("mediawiki", _command(url), cwd=WEB, environment=_environment(folder))
    wait_until(lambda: _answers(url), "mediawiki", 30, [process])
    return [process], {"MEDIAWIKI_URL": url, "MEDIAWIKI_USER": USER, "MEDIAWIKI_PASSWORD": PASSWORD}


def answers(environment: dict[str, str]) -> bool:
    return _answers(environment["MEDIAWIKI_URL"])


@contextmanager
def own_wiki(name: str, *, language: str = "en", settings: str = "") -> Iterator[OwnWiki]:
    """A fresh wiki, stopped and removed afterwards. `settings` are lines of PHP. Two tests at once must not take the
    same name."""
    prepare()
    url, folder = _install(f"mediawiki-{name}-{os.getpid()}", language=language, settings=settings)
    with (folder / "php.log").open("wb") as log:
        php = subprocess.Popen(
            _command(url), cwd=WEB, env={**os.environ, **_environment(folder)},
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    wiki = OwnWiki(url, folder, php)
    try:
        wait_until(lambda: _answers(url), name, 30, [(php.pid, psutil.Process(php.pid).create_time())])
        yield wiki
    finally:
        wiki.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _install(name: str, *, language: str = "en", settings: str = "") -> tuple[str, Path]:
    """URL and folder of a wiki. Whatever stood under this name is wiped."""
    folder = HOME / "instances" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    url = f"http://127.0.0.1:{free_port()}"
    run(
        *("php", "maintenance/install.php", "--dbtype", "sqlite", "--dbpath", folder, "--dbname", "wiki"),
        *("--scriptpath", "", "--server", url, "--lang", language, "--pass", PASSWORD, "--confpath", folder),
        *("Hollin", USER),
        cwd=WEB,
    )
    with (folder / "LocalSettings.php").open("a") as file:
        file.write(SETTINGS + settings)
    return url, folder


def _command(url: str) -> list[str]:
    return ["php", "-S", url.removeprefix("http://"), "-t", str(WEB)]


def _environment(folder: Path) -> dict[str, str]:
    return {"MW_CONFIG_FILE": str(folder / "LocalSettings.php"), "PHP_CLI_SERVER_WORKERS": "2"}


class Editor:
    """Somebody who works in a wiki. Every method raises what the wiki refuses."""

    def __init__(self, url: str, user: str = USER, password: str = PASSWORD) -> None:
        self._api = f"{url}/api.php"
        self._client = httpx.Client(trust_env=False, timeout=30)
        token = self._call(action="query", meta="tokens", type="login")["query"]["tokens"]["logintoken"]
        said = self._call(action="login", lgname=user, lgpassword=password, lgtoken=token)
        assert said["login"]["result"] == "Success", said
        self._token = self._call(action="query", meta="tokens")["query"]["tokens"]["csrftoken"]

    def edit(self, title: str, text: str) -> None:
        said = self._act(action="edit", title=title, text=text)
        assert said["edit"]["result"] == "Success", said

    def move(self, title: str, to: str, *, redirect: bool = True) -> None:
        self._act(action="move", **{"from": title}, to=to, **({} if redirect else {"noredirect": "1"}))

    def delete(self, title: str) -> None:
        self._act(action="delete", title=title)

    def undelete(self, title: str) -> None:
        self._act(action="undelete", title=title)

    def protect(self, title: str) -> None:
        self._act(action="protect", title=title, protections="edit=sysop")

    def import_xml(self, dump: bytes) -> int:
        """How many pages came with it."""
        form = {"action": "import", "interwikiprefix": "dump", "token": self._token, **_FORMAT}
        reply = self._client.post(self._api, data=form, files={"xml": ("dump.xml", dump, "text/xml")})
        said = reply.json()
        assert "import" in said, said
        return len(said["import"])

    def export_xml(self, *titles: str) -> bytes:
        form = {"action": "query", "titles": "|".join(titles), "export": "1", "exportnowrap": "1"}
        return self._client.post(self._api, data=form).content

    def close(self) -> None:
        self._client.close()

    def _act(self, **form: str) -> dict[str, Any]:
        return self._call(**form, token=self._token)

    def _call(self, **form: str) -> dict[str, Any]:
        said: dict[str, Any] = self._client.post(self._api, data={**form, **_FORMAT}).json()
        assert "error" not in said, said["error"]
        return said


_FORMAT = {"format": "json", "formatversion": "2"}


def _answers(url: str) -> bool:
    """Ready is when the API knows what is going on, or knows that it may not say so."""
    try:
        with urllib.request.urlopen(f"{url}/api.php?action=query&list=recentchanges&format=json", timeout=10) as reply:
            return not {"query", "error"}.isdisjoint(json.load(reply))
    except (OSError, ValueError):
        return False


def _version() -> str | None:
    """Of the installed package."""
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "mediawiki"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    status, _, version = shown.stdout.partition(" ")
    return version if status == "installed" else None
