"""The over-estimate of tokens."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer

from graph.onnx_models import bundled_model_dir
from graph.token_estimate import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("the cat", 2),
        ("houses", 3),
        ("1945", 4),
        ("a, b.", 4),
        ("one\n\ntwo", 4),
        ("        x", 3),
        ("é", 2),
        ("я", 2),
        ("яя", 3),
        ("量子纠缠", 10),
        ("東京です。", 13),
        ("한국", 6),
        ("🙂", 4),
    ],
)
def test_the_formula(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "The Treaty of Versailles was signed on 28 June 1919, exactly five years after the assassination.",
        "乔治·奥威尔是英国作家，他在1945年写了《动物庄园》。量子纠缠是什么？",
        "東京は日本の首都であり、世界最大の都市圏の一つである。",
        "대한민국은 동아시아의 한반도 남부에 자리한 국가이다.",
        "Les élèves français étudient à l'école jusqu'à dix-huit ans.",
        "https://en.wikipedia.org/wiki/Special:Search?search=foo%20bar",
    ],
)
def test_it_is_never_less_than_a_real_tokenizers_count(text: str) -> None:
    tokenizer = Tokenizer.from_file(str(bundled_model_dir("bge_small_en") / "tokenizer.json"))
    tokenizer.no_truncation()
    assert estimate_tokens(text) >= len(tokenizer.encode(text, add_special_tokens=False).ids)


def test_joining_texts_adds_their_counts() -> None:
    # The prompt builder counts its parts apart.
    parts = ["Some words here.\n", "量子纠缠\n", "42\n"]
    assert estimate_tokens("".join(parts)) <= sum(map(estimate_tokens, parts))
