"""Texts that are too long for a service, and how many tokens a text has at most."""

from __future__ import annotations

import pytest

from graph.model_service import LENGTH_REFUSED, TooLongError, estimate_tokens, in_parts
from graph.onnx_models import bundled_model_dir, open_tokenizer


async def test_halves_keep_the_order() -> None:
    async def ask(texts: list[str]) -> list[str]:
        if sum(map(len, texts)) > 40:
            raise TooLongError("", dependency="x")
        return [text.upper() for text in texts]

    texts = [chr(97 + n) * (n + 1) for n in range(20)]
    assert await in_parts(texts, ask, max_tokens=512) == [text.upper() for text in texts]


def test_other_refusals_are_not_of_length() -> None:
    for body in (
        '{"error":"model not found"}',
        "invalid input type",
        "Incorrect API key provided",
        "no input provided",
    ):
        assert not LENGTH_REFUSED.search(body)


@pytest.mark.parametrize(
    "text",
    [
        "The keeper trims the lamp, 1945.",
        "Ein Leuchtturmwärter putzt Donaudampfschifffahrtsgesellschaftslampen.",
        "Смотритель маяка зажигает лампу.",
        "灯塔看守人点亮了灯。",
        "등대지기가 등불을 켠다.",
        "print(x[0])\n    return {'a': 1}",
        "",
    ],
)
def test_tokens_are_overestimated(text: str) -> None:
    counter = open_tokenizer(bundled_model_dir("bge_small_en"))
    true = len(counter.encode(text, add_special_tokens=False).ids)
    assert true <= estimate_tokens(text) <= 3 * true
