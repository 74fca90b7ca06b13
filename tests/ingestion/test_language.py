"""The language of pages and questions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ingestion.language import detect_language

ENGLISH = "The lighthouse stands on a small island in the north, and the keepers have lived there since it was built."
FRENCH = "Le phare se dresse sur une petite île du nord, et les gardiens y vivent depuis sa construction."
LATVIAN = "Bāka atrodas mazā salā ziemeļos, un tās sargi tur dzīvo kopš uzcelšanas, gaidot kuģus no jūras un rietumiem."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (FRENCH, "fr"),
        (LATVIAN, "lv"),
        ("Der Leuchtturm steht auf einer kleinen Insel im Norden, und die Wärter leben dort.", "de"),
        ("Маяк стоит на небольшом острове на севере, и смотрители живут там с тех пор, как он построен.", "ru"),
        ("Фарът е на малък остров на север и пазачите живеят там, откакто е построен.", "bg"),
        ("灯塔矗立在北方的一个小岛上。", "zh"),
        ("灯台は北の小さな島に立っています。", "ja"),
        ("등대는 북쪽의 작은 섬에 서 있다.", "ko"),
        ("المنارة تقع على جزيرة صغيرة في الشمال ويعيش الحراس هناك منذ بنائها", "ar"),
        ("Who wrote Animal Farm?", "en"),
        ("Qui a écrit ce livre ?", "fr"),
        ("¿Quién fue el primer presidente?", "es"),
        ("量子纠缠是什么", "zh"),
    ],
)
def test_languages(text: str, language: str) -> None:
    assert detect_language(text) == language
    assert detect_language(text, default="en" if language != "en" else "fr") == language


@pytest.mark.parametrize("text", ["", "1984", "?!… 🙂", "```\nwhile true: pass\n```", "https://example.org/a/b"])
def test_text_without_words_is_in_the_wikis_language(text: str) -> None:
    assert detect_language(text, default="fr") == "fr"
    assert detect_language(text) == ""


def test_a_name_alone_is_in_the_wikis_language() -> None:
    assert detect_language("Petrel", default="fr") == "fr"
    assert detect_language("BRCA1", default="en") == "en"


def test_a_language_that_langdetect_does_not_know_stays() -> None:
    assert detect_language(LATVIAN, default="ltg") == "ltg"
    assert detect_language(ENGLISH, default="ltg") == "en"


def test_the_answer_is_always_the_same_also_in_threads() -> None:
    texts = [LATVIAN, ENGLISH, FRENCH] * 8
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(detect_language, texts))
    assert found == ["lv", "en", "fr"] * 8
