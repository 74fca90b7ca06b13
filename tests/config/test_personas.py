"""Persona files: what is shipped, what an owner may change, and how faults are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from config.loading import SettingsProblem
from config.personas import SHIPPED, Persona, load_personas, read_persona

GOOD = 'voice = "A pirate."\nlanguage_rule = "Speak as asked."\n[refusal]\nen = "Arr, I know not."\n'
SAMPLE = '# On the sea.\n[[voice_chunks]]\ntrigger = "sea"\ntext = "Salt."\n'


def write(folder: Path, text: str, name: str = "pirate.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_four_personas_are_shipped() -> None:
    personas = load_personas(None)
    assert sorted(personas) == ["archiviste", "expert", "neutral", "teacher"]
    for name, persona in personas.items():
        assert persona.name == name
        assert persona.voice
        assert persona.refusal.keys() == {"fr"} if persona.language else {"en", "fr", "zh"} <= persona.refusal.keys()


def test_the_expert_is_the_shortest_and_the_archivist_speaks_french_alone() -> None:
    personas = load_personas(None)
    assert personas["expert"].length == min(persona.length for persona in personas.values())
    archivist = personas["archiviste"]
    assert archivist.refusal_in("en") == archivist.refusal_in("zh") == archivist.refusal["fr"]
    assert (archivist.speaks("de"), personas["neutral"].speaks("de")) == ("fr", "de")


@pytest.mark.parametrize("name", ["expert", "archiviste"])
def test_shipped_samples_of_a_voice_have_a_trigger_each(name: str) -> None:
    chunks = load_personas(None)[name].voice_chunks
    assert len(chunks) >= 3
    assert len({chunk.trigger for chunk in chunks}) == len({chunk.text for chunk in chunks}) == len(chunks)


def test_samples_of_the_voice_keep_their_order(tmp_path: Path) -> None:
    samples = "".join(f'[[voice_chunks]]\ntrigger = "on {n}"\ntext = "Arr, {n}."\n' for n in range(3))
    persona = read_persona(write(tmp_path, GOOD + samples))
    assert [(chunk.trigger, chunk.text) for chunk in persona.voice_chunks] == [
        (f"on {n}", f"Arr, {n}.") for n in range(3)
    ]


def test_every_shipped_file_is_used_and_nothing_else_is_there() -> None:
    assert {path.stem for path in SHIPPED.iterdir()} == set(load_personas(None))


def test_an_owners_persona_is_added(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    personas = load_personas(tmp_path)
    assert sorted(personas) == ["archiviste", "expert", "neutral", "pirate", "teacher"]
    assert personas["pirate"].voice == "A pirate."
    assert (personas["pirate"].temperature, personas["pirate"].length) == (0.2, 700)


def test_an_owners_persona_replaces_a_shipped_one(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "neutral.toml")
    assert load_personas(tmp_path)["neutral"].voice == "A pirate."


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "pirate.toml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert "pirate" in load_personas(tmp_path)


def test_what_it_says_when_it_does_not_know_follows_the_language(tmp_path: Path) -> None:
    persona = read_persona(write(tmp_path, GOOD + 'fr = "Je ne sais."\n'))
    assert persona.refusal_in("fr") == "Je ne sais."
    assert persona.refusal_in("de") == persona.refusal_in("") == "Arr, I know not."
    only_french = read_persona(write(tmp_path, GOOD.replace("en =", "fr =")))
    assert only_french.refusal_in("de") == "Arr, I know not."


def test_a_persona_cannot_be_changed() -> None:
    persona: Persona = load_personas(None)["neutral"]
    with pytest.raises(ValidationError):
        persona.voice = "Another."  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (GOOD.replace('voice = "A pirate."\n', ""), 1, "'voice' is missing"),
        (GOOD.replace('"A pirate."', '"  "'), 1, "'voice'"),
        (GOOD.replace("[refusal]", 'colour = "red"\n[refusal]'), 3, "unknown key 'colour'; the keys are name, voice"),
        (GOOD + "[looks]\nhat = true\n", 5, "unknown key 'looks'"),
        (
            'voice = """\ncolour = 1\n"""\ncolour = 1\nlanguage_rule = "x"\n[refusal]\nen = "x"\n',
            4,
            "unknown key 'colour'",
        ),
        (GOOD + 'english = "No."\n', 5, "'refusal.english'"),
        (GOOD + 'fr = ""\n', 5, "'refusal.fr'"),
        (GOOD + "[source_weights]\nweb = 7\n", 6, "'source_weights.web'"),
        (GOOD + "[source_weights]\nradio = 1\n", 6, "'source_weights.radio'"),
        ('temperature = "hot"\n' + GOOD, 1, "'temperature'"),
        ("temperature = 9\n" + GOOD, 1, "'temperature'"),
        ("length = 0\n" + GOOD, 1, "'length'"),
        ("voice = 7\n" + GOOD.partition("\n")[2], 1, "'voice'"),
        ('name = "../etc"\n' + GOOD, 1, "'name'"),
        ('voice = "A."\nlanguage_rule = "x"\n', 1, "'refusal' is missing"),
        ('voice = "A."\nlanguage_rule = "x"\n[refusal]\n', 3, "'refusal'"),
        (GOOD + SAMPLE + '[[voice_chunks]]\ntrigger = "ships"\n', 9, "'voice_chunks.1.text' is missing"),
        (GOOD + SAMPLE + SAMPLE + "mood = 1\n", 13, "unknown key 'voice_chunks.1.mood'; the keys are trigger, text"),
        (GOOD + SAMPLE.replace('"sea"', '""'), 7, "'voice_chunks.0.trigger'"),
        (GOOD + SAMPLE.replace("Salt.", "x" * 2001), 8, "'voice_chunks.0.text'"),
        (GOOD + '[voice_chunks]\ntrigger = "sea"\n', 5, "'voice_chunks' is a list of tables"),
        ('voice = "A."\n\nrefusal = {en = ""}\nlanguage_rule = "x"\n', 3, "'refusal.en'"),
    ],
)
def test_a_fault_names_file_and_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SettingsProblem) as caught:
        load_personas(tmp_path)
    assert f"{path}:{line}: {said}" in str(caught.value)


def test_all_faults_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    write(tmp_path, 'colour = "red"\nlanguage_rule = "x"\n')
    with pytest.raises(SettingsProblem) as caught:
        load_personas(tmp_path)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"voice = \n", "is not TOML"),
        (b'voice = "a"\nvoice = "b"\n', "is not TOML"),
        (b'voice = "\xff"\n', "is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "pirate.toml"
    path.write_bytes(data)
    with pytest.raises(SettingsProblem, match=said) as caught:
        load_personas(tmp_path)
    assert str(path) in str(caught.value)


def test_two_files_with_one_name_are_a_fault(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, 'name = "pirate"\n' + GOOD, "other.toml")
    with pytest.raises(SettingsProblem, match="is taken by"):
        load_personas(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsProblem, match=r"answer\.persona_dir"):
        load_personas(tmp_path / "nowhere")
