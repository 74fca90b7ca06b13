"""A static site behind a real nginx from Debian's package, each test its own."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.processes import free_port, run

PROGRAM = Path("/usr/sbin/nginx")
CONFIGURATION = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  types {{ text/html html; text/xml xml; text/plain txt; application/pdf pdf; }}
  access_log {folder}/access.log; gzip on; gzip_min_length 100; gzip_types text/html text/xml;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port}; root {root}; location /private/ {{ return 403; }} }}
}}
"""


def prepare() -> None:
    if not PROGRAM.exists():
        run("apt-get", "update", "-qq")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "nginx-light", environment=quiet)


def start() -> tuple[list[tuple[int, float]], dict[str, str]]:
    """Nothing runs: each test starts one over a folder of its own."""
    return [], {"NGINX": str(PROGRAM)}


def answers(environment: dict[str, str]) -> bool:
    return Path(environment["NGINX"]).exists()


@contextmanager
def serving_folder(root: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """(URL, access log) of an nginx that serves `root` and keeps its own files in `folder`."""
    port = free_port()
    folder.mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, root=root, port=port))
    process = subprocess.Popen(
        [PROGRAM, "-p", folder, "-c", folder / "nginx.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process)
        yield url, folder / "access.log"
    finally:
        process.terminate()
        process.wait(10)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(f"{url}/index.html", timeout=2).close()
        except OSError:
            assert process.poll() is None, "nginx ended"
            assert time.monotonic() < end, "nginx does not answer"
            time.sleep(0.1)
        else:
            return
