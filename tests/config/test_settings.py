"""Settings: precedence, places, and sentences for what is wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from config.given import FIRST_VERSION_NAMES, find_settings_file
from config.loading import LoadedSettings, SettingsProblem, declared, load_settings, load_with_places
from config.rendering import docs, show, values
from config.settings import Settings

KEY = "search.vector_threshold"
VARIABLE = "TRIVET_SEARCH__VECTOR_THRESHOLD"
OLD_VARIABLE = "VECTOR_SIMILARITY_THRESHOLD"


def written(folder: Path, text: str) -> Path:
    path = folder / "trivet.toml"
    path.write_text(text, encoding="utf-8")
    return path


def load(
    *, flags: dict[str, object] | None = None, environment: dict[str, str] | None = None, file: Path | None = None
) -> LoadedSettings:
    return load_with_places(flags=flags or {}, environment=environment or {}, file=file)


def problem(**given: object) -> str:
    with pytest.raises(SettingsProblem) as raised:
        load(**given)  # type: ignore[arg-type]
    return str(raised.value)


def test_nothing_given_is_the_defaults() -> None:
    loaded = load()
    assert loaded.settings == Settings()
    assert loaded.places == {}


def test_flag_over_environment_over_first_version_over_file_over_default(tmp_path: Path) -> None:
    file = written(tmp_path, "[search]\nvector_threshold = 0.1\n")
    old, new, flag = {OLD_VARIABLE: "0.2"}, {VARIABLE: "0.3"}, {KEY: "0.4"}

    def threshold(loaded: LoadedSettings) -> tuple[float, str]:
        return loaded.settings.search.vector_threshold, loaded.places[KEY]

    assert threshold(load(file=file)) == (0.1, f"{file}:2")
    assert threshold(load(file=file, environment=old)) == (0.2, OLD_VARIABLE)
    assert threshold(load(file=file, environment=old | new)) == (0.3, VARIABLE)
    assert threshold(load(file=file, environment=old | new, flags=dict(flag))) == (0.4, f"--set {KEY}")


@pytest.mark.parametrize(("name", "key"), FIRST_VERSION_NAMES.items())
def test_names_of_the_first_version_are_read(name: str, key: str) -> None:
    loaded = load(environment={name: "0"} if "web" in key or "threshold" in key else {name: "7"})
    assert loaded.places == {key: name}


def test_flags_that_were_not_used_do_not_count() -> None:
    assert load(flags={"home": None}).places == {}


def test_every_setting_can_be_given_by_the_environment() -> None:
    shown = values(Settings())
    for key, value in shown.items():
        if value in (None, "set", "not set"):
            continue
        text = ",".join(value) if isinstance(value, list) else value if isinstance(value, str) else json.dumps(value)
        variable = "TRIVET_" + key.upper().replace(".", "__")
        assert values(load(environment={variable: text}).settings)[key] == value, key


def test_names_with_our_prefix_that_are_not_settings_are_left_alone() -> None:
    assert load(environment={"TRIVET_DATA": "/data", "TRIVET_CONFIG": "x.toml", "PATH": "/bin"}).places == {}


# --- wrong ----------------------------------------------------------------------------------------------------------


def test_unknown_key_in_the_file_names_key_line_and_the_nearest(tmp_path: Path) -> None:
    file = written(tmp_path, "# mine\n[search]\nvector_limit = 3\nvector_limt = 4\n")
    assert problem(file=file) == (
        f"{file}:4: “search.vector_limt” is not a setting; did you mean “search.vector_limit”?"
    )


def test_unknown_section_in_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "[lllm]\nurl = 'http://x'\n")
    assert problem(file=file) == f"{file}:2: “lllm.url” is not a setting; did you mean “llm.url”?"


def test_unknown_variable_names_the_nearest() -> None:
    assert problem(environment={"TRIVET_SEARXNG_URL": "http://x"}) == (
        "TRIVET_SEARXNG_URL: “searxng_url” is not a setting; did you mean “web.searxng_url”?"
    )


def test_unknown_key_like_nothing_says_where_to_look() -> None:
    assert problem(flags={"zzzzzz": "1"}).endswith("`trivet config show` lists all.")


def test_group_instead_of_a_setting() -> None:
    assert "is a group of settings" in problem(environment={"TRIVET_LLM": "x"})


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TRIVET_SEARCH__VECTOR_LIMIT": "many"}, ["TRIVET_SEARCH__VECTOR_LIMIT", "search.vector_limit", '"many"']),
        ({"TRIVET_SERVER__PORT": "65536"}, ["TRIVET_SERVER__PORT", "65535"]),
        ({"TRIVET_ANSWER__ABSTAIN_BELOW": "nan"}, ["answer.abstain_below", "finite"]),
        ({"TRIVET_LLM__URL": "ftp://x"}, ["llm.url", "http://"]),
        ({"TRIVET_LLM__PROVIDER": "clippy"}, ["llm.provider", "ollama"]),
        ({"HYBRID_RAG_VECTOR_LIMIT": "-1"}, ["HYBRID_RAG_VECTOR_LIMIT", "search.vector_limit"]),
    ],
)
def test_wrong_value_names_the_setting_and_where_it_was_given(environment: dict[str, str], words: list[str]) -> None:
    sentence = problem(environment=environment)
    assert all(word in sentence for word in words), sentence


def test_all_wrong_values_are_named_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, "[search]\nrrf_k = 0\n[server]\nport = 'x'\n")
    sentence = problem(file=file)
    assert f"{file}:2" in sentence
    assert f"{file}:4" in sentence


def test_table_where_a_value_belongs(tmp_path: Path) -> None:
    assert "“search.rrf_k.x” is not a setting" in problem(file=written(tmp_path, "[search.rrf_k]\nx = 1\n"))


def test_value_where_a_table_belongs(tmp_path: Path) -> None:
    assert "“search” is a group of settings" in problem(file=written(tmp_path, "search = 1\n"))


def test_model_is_needed_with_a_provider() -> None:
    assert "llm.model is not set" in problem(environment={"TRIVET_LLM__PROVIDER": "ollama"})
    load(environment={"TRIVET_LLM__PROVIDER": "ollama", "TRIVET_LLM__MODEL": "smollm2"})


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"a = = 1", "not valid TOML"), (b"a = '\xff'", "not UTF-8"), ("home = 'x'".encode("utf-16"), "not UTF-8")],
)
def test_file_that_is_no_toml(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "trivet.toml"
    path.write_bytes(content)
    assert words in problem(file=path)
    assert str(path) in problem(file=path)


# --- secrets --------------------------------------------------------------------------------------------------------


def test_secrets_are_never_shown() -> None:
    loaded = load(environment={"TRIVET_LLM__API_KEY": "hunter2", "TRIVET_WEB__SEARXNG_URL": "http://me:hunter2@h:8/"})
    assert "hunter2" not in show(loaded) + json.dumps(values(loaded.settings))
    assert "hunter2" not in repr(loaded.settings.llm)
    assert "# api_key is set" in show(loaded)
    assert "http://***@h:8" in show(loaded)


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    sentence = problem(file=written(tmp_path, "[llm]\napi_key = 31337\n"))
    assert "llm.api_key" in sentence
    assert "31337" not in sentence


def test_the_password_in_a_wrong_address_is_not_repeated() -> None:
    assert "hunter2" not in problem(environment={"TRIVET_LLM__URL": "ftp://me:hunter2@h"})


# --- places ---------------------------------------------------------------------------------------------------------


def test_paths_of_a_file_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = written(tmp_path, "home = 'store'\n[answer]\npersona_dir = '~/mine'\n")
    loaded = load(file=file, flags={"embedder.model_dir": "model"})
    assert loaded.settings.home == tmp_path / "store"
    assert loaded.settings.answer.persona_dir == Path.home() / "mine"
    assert loaded.settings.embedder.model_dir == tmp_path / "here" / "model"


def test_empty_path_is_unset() -> None:
    assert load(environment={"TRIVET_EMBEDDER__MODEL_DIR": ""}).settings.embedder.model_dir is None


def test_which_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, here, other = tmp_path / "home", tmp_path / "here", tmp_path / "other"
    for folder in (home, here, other):
        folder.mkdir()
    monkeypatch.chdir(here)
    assert find_settings_file({}, {}, home) is None
    in_home = written(home, "")
    assert find_settings_file({}, {}, home) == in_home
    assert find_settings_file({}, {"TRIVET_HOME": str(home)}, other) == in_home
    assert find_settings_file({"home": home}, {"TRIVET_HOME": str(other)}, other) == in_home
    written(here, "")
    assert find_settings_file({}, {}, home) == Path("trivet.toml")
    named = written(other, "")
    assert find_settings_file({}, {"TRIVET_CONFIG": str(named)}, home) == named
    assert find_settings_file({"config": in_home}, {"TRIVET_CONFIG": str(named)}, home) == in_home


def test_named_file_that_is_missing_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(SettingsProblem, match="TRIVET_CONFIG names"):
        find_settings_file({}, {"TRIVET_CONFIG": str(tmp_path / "no.toml")}, tmp_path)


# --- what is shown --------------------------------------------------------------------------------------------------


def test_what_is_shown_can_be_read_back(tmp_path: Path) -> None:
    loaded = load(environment={"TRIVET_HOME": str(tmp_path), "TRIVET_INGESTION__NER_LANGUAGES": "en, de"})
    text = show(loaded)
    assert tomllib.loads(text)["ingestion"]["ner_languages"] == ["en", "de"]
    assert load_settings(flags={}, environment={}, file=written(tmp_path, text)) == loaded.settings
    assert "# TRIVET_INGESTION__NER_LANGUAGES" in text


def test_every_setting_is_described() -> None:
    assert all(field.description for field in declared().values())


def test_the_reference_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "settings.md"
    assert path.read_text(encoding="utf-8") == docs(), "run: trivet config docs > docs/settings.md"
