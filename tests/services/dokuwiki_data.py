"""A real DokuWiki from Debian's package, edited through its own command line; what Trivet reads is its data folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.services.processes import run

PACKAGED = Path("/usr/share/dokuwiki")
CONFIGURATION = Path("/etc/dokuwiki")
FOLDERS = (
    "pages", "attic", "media", "media_attic", "media_meta", "meta", "cache", "index", "locks", "tmp", "log",
)  # fmt: skip


def prepare() -> None:
    if not (PACKAGED / "bin" / "dwpage.php").exists():
        run("apt-get", "update", "-qq")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "dokuwiki", "php-cli", environment=quiet)


def start() -> tuple[list[tuple[int, float]], dict[str, str]]:
    """Nothing runs: each test makes a wiki of its own."""
    return [], {"DOKUWIKI_PACKAGE": str(PACKAGED)}


def answers(environment: dict[str, str]) -> bool:
    return Path(environment["DOKUWIKI_PACKAGE"]).is_dir()


class OwnDokuWiki:
    """A wiki in a folder; `data` is what its owner would point Trivet at."""

    def __init__(self, folder: Path) -> None:
        self.web, self.data = folder / "web", folder / "data"
        shutil.copytree(PACKAGED, self.web)  # following links
        shutil.copytree(CONFIGURATION, self.web / "conf")
        for name in FOLDERS:
            (self.data / name).mkdir(parents=True)
        (self.web / "inc" / "preload.php").write_text(f"<?php define('DOKU_CONF', '{self.web}/conf/');\n")
        settings = f"<?php $conf['title'] = 'Test'; $conf['savedir'] = '{self.data}'; $conf['useacl'] = 0;\n"
        (self.web / "conf" / "local.php").write_text(settings)

    def commit(self, page: str, text: str) -> None:
        """An edit; an empty text deletes the page, as in the editor."""
        file = self.web.parent / "edit.txt"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["php", "bin/dwpage.php", "commit", "-m", "a test", str(file), page],
            cwd=self.web,
            env={**os.environ, "HOME": str(self.web.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
