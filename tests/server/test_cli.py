"""The command line itself: exit codes, streams, errors; none of these opens a store."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from graph import errors
from graph.errors import TrivetError
from server.exit_codes import CODES, ExitCode, exit_code
from tests.server.cli_runner import ROOT, Cli, InProcessCli


def test_version(shell: Cli) -> None:
    ended = shell.process("--version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("trivet 0.")


def test_help_and_version_import_no_model_and_no_server() -> None:
    """What makes them fast. Seconds are for a quiet machine; modules can be counted anywhere."""
    heavy = "numpy|onnxruntime|spacy|litestar|pydantic|qdrant_edge|httpx|scipy|trafilatura"
    for option in ("--help", "--version"):
        program = (
            "import sys, re\nfrom server.cli import run\n"
            f"run([{option!r}])\nprint([m for m in sys.modules if re.fullmatch({heavy!r}, m)], file=sys.stderr)"
        )
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
        assert ended.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nonsense"], 2, "No such command"),
        (["config", "show", "--nonsense"], 2, "No such option"),
        (["config", "show", "--set", "x"], 2, "key=value"),
        (["config", "show", "--set", "search.vector_limt=1"], 3, "did you mean “search.vector_limit”?"),
        (["config", "show", "--set", "server.port=x"], 3, "--set server.port: server.port"),
        (["config", "show", "--config", "no.toml"], 3, "--config names no.toml"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_on_stderr(
    cli: InProcessCli, arguments: list[str], code: int, words: str
) -> None:
    ended = cli(*arguments)
    assert ended.code == code
    assert ended.out == ""
    assert words in ended.err
    assert "Traceback" not in ended.err


def test_errors_are_one_line(cli: InProcessCli) -> None:
    ended = cli("config", "show", environment={"TRIVET_SERVER__PORT": "x\x1b[31m\ny"})
    assert ended.code == 3
    assert ended.err.count("\n") == 1
    assert "\x1b" not in ended.err


def test_with_json_an_error_is_an_object_too(cli: InProcessCli) -> None:
    ended = cli("config", "show", "--json", "--set", "nonsense=1")
    assert ended.code == 3
    assert ended.json["error"]["kind"] == "settings"
    assert ended.json["error"]["message"] in ended.err
    assert cli("config", "show", "--json", "--nonsense").json["error"]["kind"] == "usage"


def test_debug_shows_the_traceback_and_keeps_the_exit_code(cli: InProcessCli) -> None:
    ended = cli("config", "show", "--debug", "--set", "nonsense=1")
    assert ended.code == 3
    assert "Traceback" in ended.err


def test_options_may_stand_before_or_after_the_command(cli: InProcessCli) -> None:
    for arguments in (["--json", "--home", "x", "config", "show"], ["config", "show", "--home", "x", "--json"]):
        home = cli(*arguments).json["settings"]["home"]
        assert home == {"value": str(cli.folder / "x"), "from": "--home"}


def test_settings_are_read_from_the_folder_and_the_environment(cli: InProcessCli) -> None:
    (cli.folder / "trivet.toml").write_text("[server]\nport = 1\n[search]\nrrf_k = 2\n", encoding="utf-8")
    shown = cli("config", "show", "--json", environment={"TRIVET_SERVER__PORT": "3"}).json
    assert shown["file"] == "trivet.toml"
    assert shown["settings"]["server.port"] == {"value": 3, "from": "TRIVET_SERVER__PORT"}
    assert shown["settings"]["search.rrf_k"] == {"value": 2, "from": "trivet.toml:4"}
    assert shown["settings"]["search.vector_limit"]["from"] == "default"


def test_the_reference_is_printed(cli: InProcessCli) -> None:
    assert cli("config", "docs").out == (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


def test_a_reader_that_goes_away_is_no_error(shell: Cli) -> None:
    with shell.start("config", "docs") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=60) == ExitCode.BROKEN_PIPE
        assert process.stderr.read() == ""


def test_output_that_cannot_be_encoded_is_replaced(shell: Cli) -> None:
    ended = shell.process("config", "show", environment={"PYTHONIOENCODING": "ascii", "TRIVET_LLM__MODEL": "modèle"})
    assert ended.code == 0
    assert "Traceback" not in ended.err


# --- exit codes -----------------------------------------------------------------------------------------------------


def every_error() -> list[type[TrivetError]]:
    found = [TrivetError]
    for kind in found:
        found += kind.__subclasses__()
    return [kind for kind in found if kind.__module__ == errors.__name__]


EXPECTED = {
    "TrivetError": 1,
    "SettingsError": 3,
    "InputError": 2,
    "QuestionError": 2,
    "SourceError": 2,
    "NotFoundError": 2,
    "ConflictError": 2,
    "StoreError": 1,
    "StoreBusyError": 4,
    "StoreVersionError": 3,
    "StoreCorruptError": 1,
    "StoreFullError": 1,
    "DependencyError": 4,
    "DependencyDownError": 4,
    "DependencyBusyError": 4,
    "DependencyFaultError": 4,
}


def test_every_error_has_the_exit_code_that_the_tree_promises() -> None:
    found = {kind.__name__: int(exit_code(kind.__new__(kind))) for kind in every_error()}
    assert found == EXPECTED


def test_special_cases_stand_before_general_ones() -> None:
    kinds = [kind for kind, _ in CODES]
    for earlier, kind in enumerate(kinds):
        assert not any(issubclass(later, kind) for later in kinds[earlier + 1 :])


def test_kinds_are_unique() -> None:
    kinds = [kind.kind for kind in every_error()]
    assert len(kinds) == len(set(kinds))


def test_usage_error_as_json_is_valid_json(cli: InProcessCli) -> None:
    assert set(json.loads(cli("--json", "nonsense").out)) == {"error"}
