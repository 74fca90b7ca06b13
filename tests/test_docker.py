"""`docker/`: what it sets are settings, everything is pinned, checked and closed, and its scripts do what they say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.loading import declared, is_secret, load_settings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::-([^}]*))?\}")
PINNED = re.compile(r":v?\d+\.\d+(\.\d+)+([-.]\w+)*$")
RESERVED = {"COMPOSE_PROFILES"}
"""Read by compose itself."""
TRIVET_IN_IMAGE = "/opt/trivet/bin/trivet"


def example() -> dict[str, str]:
    """The variables of .env.example."""
    lines = (FOLDER / ".env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def filled_in(text: str, values: dict[str, str]) -> str:
    """As compose does it: the variable's value if it has one, else the default; `$$` is a dollar."""
    return VARIABLE.sub(lambda found: values.get(found[1]) or found[2] or "", text).replace("$$", "$")


def instructions(text: str = DOCKERFILE) -> list[tuple[str, str]]:
    """(instruction, rest) of a Dockerfile, continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


def last_stage() -> list[tuple[str, str]]:
    every = instructions()
    return every[max(index for index, (name, _) in enumerate(every) if name == "FROM") :]


def image_environment() -> dict[str, str]:
    rests = [rest for name, rest in last_stage() if name == "ENV"]
    return dict(part.split("=", 1) for rest in rests for part in shlex.split(rest))


def trivet_environment(values: dict[str, str]) -> dict[str, str]:
    """What Trivet's container sees, before its entrypoint."""
    given = {name: filled_in(value, values) for name, value in SERVICES["trivet"]["environment"].items()}
    return {name: value for name, value in (image_environment() | given).items() if name.startswith("TRIVET_")}


def from_files(environment: dict[str, str]) -> dict[str, str]:
    """What the entrypoint makes of it."""
    return {name.removesuffix("_FILE"): "secret" if name.endswith("_FILE") else v for name, v in environment.items()}


class TestSettings:
    def test_the_defaults_are_settings(self) -> None:
        settings = load_settings(flags={}, environment=from_files(trivet_environment({})), file=None)
        assert settings.graph.neo4j_url == "bolt://neo4j:7687"
        assert settings.vectors.qdrant_url == "http://qdrant:6333"
        assert settings.web.searxng_url == "http://searxng:8080"
        assert settings.server.api_key.get_secret_value() == "secret"
        assert settings.llm.provider == "none"

    def test_the_example_is_what_the_defaults_are(self) -> None:
        assert trivet_environment(example()) == trivet_environment({})

    def test_ollama_is_a_matter_of_the_env_file(self) -> None:
        values = example() | {"TRIVET_LLM__PROVIDER": "ollama", "TRIVET_LLM__MODEL": "qwen3:4b"}
        settings = load_settings(flags={}, environment=from_files(trivet_environment(values)), file=None)
        assert (settings.llm.url, settings.llm.model) == ("http://ollama:11434", "qwen3:4b")
        assert "ollama" in SERVICES["ollama"]["profiles"]

    def test_no_setting_ends_like_a_file_with_its_value(self) -> None:
        assert not [key for key in declared() if key.endswith("_file")]

    def test_every_variable_of_compose_is_in_the_example_and_the_other_way_round(self) -> None:
        used = VARIABLE.findall((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
        assert {name for name, _ in used} == set(example()) - RESERVED
        assert {name: default for name, default in used if default != example()[name]} == {}

    def test_addresses_name_services_on_a_shared_network(self) -> None:
        mine = set(SERVICES["trivet"]["networks"])
        for value in trivet_environment({}).values():
            if found := re.match(r"\w+://([\w.]+):\d+", value):
                assert mine & set(SERVICES[found[1]]["networks"]), value


class TestServices:
    @pytest.mark.parametrize("name", SERVICES)
    def test_pinned_restarted_checked_bounded(self, name: str) -> None:
        service = SERVICES[name]
        assert PINNED.search(service["image"]), service["image"]
        assert service["restart"] == "unless-stopped"
        assert "healthcheck" in service or ("build" in service and "HEALTHCHECK" in dict(last_stage()))
        assert "memory" in service["deploy"]["resources"]["limits"]
        assert service["security_opt"] == ["no-new-privileges:true"]

    def test_the_image_has_the_projects_version(self) -> None:
        assert SERVICES["trivet"]["image"] == f"trivet:{PROJECT['project']['version']}"

    def test_only_trivet_is_published_and_only_here(self) -> None:
        published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
        assert {name: [filled_in(port, {}) for port in ports] for name, ports in published.items()} == {
            "trivet": ["127.0.0.1:8642:8642"]
        }
        assert all("network_mode" not in service for service in SERVICES.values())

    def test_stores_have_no_way_out(self) -> None:
        assert COMPOSE["networks"]["stores"] == {"internal": True}
        assert [SERVICES[name]["networks"] for name in ("neo4j", "qdrant")] == [["stores"], ["stores"]]

    def test_trivet_waits_until_the_others_work(self) -> None:
        waits = SERVICES["trivet"]["depends_on"]
        assert set(waits) == set(SERVICES) - {"trivet"}
        assert {condition["condition"] for condition in waits.values()} == {"service_healthy"}
        optional = {name for name, condition in waits.items() if not condition.get("required", True)}
        assert optional == {name for name, service in SERVICES.items() if "profiles" in service}

    def test_every_volume_is_declared_and_used(self) -> None:
        mounts = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", ())]
        assert {mount for mount in mounts if not mount.startswith(".")} == set(COMPOSE["volumes"])
        assert all((FOLDER / mount).is_file() for mount in mounts if mount.startswith("."))

    def test_searxng_answers_in_json_and_turns_nobody_away(self) -> None:
        settings = yaml.safe_load((FOLDER / "searxng" / "settings.yml").read_text(encoding="utf-8"))
        assert "json" in settings["search"]["formats"]
        assert settings["server"]["limiter"] is False
        assert "secret_key" not in settings["server"]


class TestSecrets:
    def test_they_are_files_that_git_and_images_do_not_get(self) -> None:
        assert {secret["file"].rpartition("/")[0] for secret in COMPOSE["secrets"].values()} == {"./secrets"}
        assert {"secrets/", ".env"} <= set((FOLDER / ".gitignore").read_text(encoding="utf-8").split())

    def test_each_is_declared_given_and_read(self) -> None:
        given = {name: set(service.get("secrets", ())) for name, service in SERVICES.items()}
        assert set().union(*given.values()) == set(COMPOSE["secrets"])
        for name, service in SERVICES.items():
            read = set(re.findall(r"/run/secrets/(\w+)", str(service)))
            assert read == given[name], name

    def test_no_secret_is_a_plain_value(self) -> None:
        secret = {f"TRIVET_{key.replace('.', '__').upper()}" for key, field in declared().items() if is_secret(field)}
        assert not secret & set(SERVICES["trivet"]["environment"])
        assert not secret & set(example())
        plain = [str(service.get("environment", {})) for service in SERVICES.values()]
        assert not re.search(r"(PASSWORD|SECRET|_KEY|AUTH)'", " ".join(plain))

    def test_they_are_made_once(self, tmp_path: Path) -> None:
        for name in ("make_secrets.sh", ".env.example"):
            shutil.copy(FOLDER / name, tmp_path / name)
        for _ in range(2):
            subprocess.run(["/bin/sh", tmp_path / "make_secrets.sh"], check=True, capture_output=True)
            made = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "secrets").iterdir()}
            assert set(made) == set(COMPOSE["secrets"])
            assert all(re.fullmatch(r"[0-9a-f]{48}", value) for value in made.values())
            if _ == 0:
                first = made
        assert made == first
        assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").iterdir()} == {0o644}
        assert (tmp_path / ".env").read_text(encoding="utf-8") == (tmp_path / ".env.example").read_text("utf-8")


class TestImage:
    def test_bases_are_pinned_and_alike(self) -> None:
        bases = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
        assert all(PINNED.search(base) for base in bases), bases
        assert len(set(bases)) == 1  # the environment's Python is a link to the stage's own

    def test_uv_is_the_locked_one(self) -> None:
        lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
        (version,) = (package["version"] for package in lock["package"] if package["name"] == "uv")
        assert f"uv=={version}" in DOCKERFILE

    def test_the_last_stage_has_a_user_and_no_build_tools(self) -> None:
        user = next(rest for name, rest in last_stage() if name == "USER")
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
        ran = " ".join(rest for name, rest in last_stage() if name == "RUN")
        assert not re.search(r"apt|pip |uv |gcc|build-essential|curl|wget", ran)
        assert f"--uid {user.split(':')[0]} " in ran

    def test_it_says_where_it_listens_and_keeps_its_data(self) -> None:
        stage = dict(last_stage())
        environment = image_environment()
        assert stage["VOLUME"] == environment["TRIVET_HOME"]
        assert SERVICES["trivet"]["volumes"] == [f"trivet_home:{stage['VOLUME']}"]
        assert stage["EXPOSE"] == "8642"
        # Beyond loopback the server starts only with a key.
        assert environment["TRIVET_SERVER__HOST"] == "0.0.0.0"

    def test_what_it_copies_is_there_and_not_ignored(self) -> None:
        copied = [part for name, rest in instructions() if name == "COPY" and "--from" not in rest
                  for part in rest.split()[:-1] if not part.startswith("--")]  # fmt: skip
        lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        assert lines[1] == "*"
        assert all((ROOT / path).exists() for path in copied)
        assert {line[1:] for line in lines if line.startswith("!")} == set(copied)
        wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        assert {*wheel, PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]} <= set(copied)

    def test_the_folder_is_no_package(self) -> None:
        assert not (FOLDER / "__init__.py").exists()  # it would shadow the library `docker`

    def test_the_readme_uses_what_is_there(self) -> None:
        readme = (FOLDER / "README.md").read_text(encoding="utf-8")
        volumes = set(re.findall(r"`trivet_(\w+)`", readme))
        assert volumes == set(COMPOSE["volumes"])
        assert set(re.findall(r"docker compose exec (\w+)", readme)) <= set(SERVICES)
        assert set(re.findall(r"\b([A-Z][A-Z_]+)=", readme)) <= {*example(), "TRIVET_SERVER__API_KEY"}


class TestEntrypoint:
    """Run by /bin/sh, in front of the Trivet of this environment."""

    def run(self, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = folder / "trivet"
        trivet = Path(sys.executable).with_name("trivet")
        text = (FOLDER / "entrypoint.sh").read_text(encoding="utf-8")
        assert TRIVET_IN_IMAGE in text
        script.write_text(text.replace(TRIVET_IN_IMAGE, str(trivet)), encoding="utf-8")
        given = {"PATH": os.environ["PATH"], "TRIVET_HOME": str(folder / "home"), **environment}
        command = ["/bin/sh", str(script), *arguments]
        return subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, check=False)

    def test_a_setting_comes_from_its_file(self, tmp_path: Path) -> None:
        url = tmp_path / "url"
        url.write_text("http://qdrant:6333\n", encoding="utf-8")
        key = tmp_path / "key"
        key.write_text("a key; with $HOME `and` 'quotes'\n", encoding="utf-8")
        ended = self.run(tmp_path, "config", "show", "--json",
                         TRIVET_VECTORS__QDRANT_URL_FILE=str(url), TRIVET_SERVER__API_KEY_FILE=str(key))  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        assert "http://qdrant:6333" in ended.stdout
        assert "TRIVET_SERVER__API_KEY" in ended.stdout
        assert "quotes" not in ended.stdout

    def test_the_value_is_passed_on_as_it_is(self, tmp_path: Path) -> None:
        key = tmp_path / "key"
        key.write_text("a key; with $HOME `and` 'quotes'\nand a second line\n", encoding="utf-8")
        script = tmp_path / "show"
        text = (FOLDER / "entrypoint.sh").read_text(encoding="utf-8").replace(TRIVET_IN_IMAGE, "env -0")
        script.write_text(text, encoding="utf-8")
        given = {"PATH": os.environ["PATH"], "TRIVET_SERVER__API_KEY_FILE": str(key), "OTHER_FILE": "left"}
        shown = subprocess.run(["/bin/sh", script], env=given, capture_output=True, text=True, check=True).stdout
        seen = dict(line.split("=", 1) for line in shown.split("\0") if line)
        assert seen["TRIVET_SERVER__API_KEY"] == "a key; with $HOME `and` 'quotes'\nand a second line"
        assert "TRIVET_SERVER__API_KEY_FILE" not in seen
        assert seen["OTHER_FILE"] == "left"

    def test_arguments_and_exit_codes_are_trivets(self, tmp_path: Path) -> None:
        assert self.run(tmp_path, "config", "show", "a wrong one").returncode == 2

    @pytest.mark.parametrize(("content", "said"), [(None, "is not a file"), ("", "is empty"), ("x", "are both set")])
    def test_what_cannot_be_read_is_said(self, tmp_path: Path, content: str | None, said: str) -> None:
        key = tmp_path / "key"
        if content is not None:
            key.write_text(content, encoding="utf-8")
        both = {"TRIVET_SERVER__API_KEY": "y"} if content == "x" else {}
        ended = self.run(tmp_path, "config", "show", TRIVET_SERVER__API_KEY_FILE=str(key), **both)
        assert ended.returncode == 3
        assert ended.stderr.count("\n") == 1
        assert "TRIVET_SERVER__API_KEY_FILE" in ended.stderr
        assert said in ended.stderr


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server that gives every request this status; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the base class's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@contextmanager
def silent() -> Iterator[int]:
    """A port where nothing is."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


class TestHealthChecks:
    """Run as the engine would, against a server that is well, one that is ill, and none."""

    def ends(self, command: list[str], port: int) -> int:
        command = [part.replace("6333", str(port)).replace("8642", str(port)) for part in command]
        proxied = {**os.environ, "http_proxy": "http://127.0.0.1:9"}
        return subprocess.run(command, env=proxied, capture_output=True, check=False, timeout=20).returncode

    def check(self, command: list[str]) -> None:
        with answering(200) as port:
            assert self.ends(command, port) == 0
        with answering(503) as port:
            assert self.ends(command, port) != 0
        with silent() as port:
            assert self.ends(command, port) != 0

    def test_trivet(self) -> None:
        checks = dict(last_stage())["HEALTHCHECK"]
        command = yaml.safe_load(checks[checks.index("[") :])
        assert command[0] == "/opt/trivet/bin/python"
        self.check([sys.executable, *command[1:]])

    @pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
    def test_qdrant(self) -> None:
        kind, *command = (filled_in(part, {}) for part in SERVICES["qdrant"]["healthcheck"]["test"])
        assert kind == "CMD"
        self.check(command)


class TestTools:
    """What the tools themselves say, where they are installed."""

    @pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
    def test_hadolint(self) -> None:
        done = subprocess.run(["hadolint", FOLDER / "Dockerfile"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout

    def test_compose(self) -> None:
        if (
            shutil.which("docker") is None
            or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
        ):
            pytest.skip("docker compose is not installed")
        files = ["-f", str(FOLDER / "compose.yaml"), "--env-file", str(FOLDER / ".env.example")]
        command = ["docker", "compose", *files, "--profile", "ollama", "config"]
        done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("name", ["entrypoint.sh", "make_secrets.sh"])
    def test_the_scripts_are_posix(self, name: str) -> None:
        assert os.access(FOLDER / name, os.X_OK)
        subprocess.run(["/bin/sh", "-n", FOLDER / name], check=True)
