"""No pattern that meets outside text is slow on any of it."""

from __future__ import annotations

import re
import time

import pytest

from ingestion import (
    chunks,
    clean,
    front_matter,
    html_text,
    language,
    markdown,
    page_types,
    sanitize,
    wikitext,
    wikitext_lines,
    wikitext_marks,
    wikitext_templates,
)
from ingestion.sources import detect, dump_stream, folder_titles, mediawiki_xml

MODULES = [chunks, clean, front_matter, html_text, language, markdown, page_types, sanitize, wikitext, wikitext_lines]
MODULES += [wikitext_marks, wikitext_templates, detect, dump_stream, folder_titles, mediawiki_xml]
PATTERNS = {
    f"{module.__name__}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
}
MATCHED = {"ROW", "OPENING", "SETEXT_LINE", "PICTURE_OPTION", "URL", "DUMP_NAME", "DECLARATION", "SCHEME", "REDIRECT"}
"""Those that are only tried at the start of a text."""
LENGTH = 20_000
REPEATED = [*"a1 \n=-|!:;,.#*'`_<(){[/\\&%\x05量", "a ", "a: ", "=a", "a;", "[[", "{{", "<a ", "a\n", "|a", "a.", "( "]


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_quick_on_repetition(name: str) -> None:
    pattern = PATTERNS[name]
    find = pattern.match if name.rpartition(".")[2] in MATCHED else pattern.search
    started = time.process_time()
    for unit in REPEATED:
        find(f"({unit * (LENGTH // len(unit))}!")
        find(f"{unit * (LENGTH // len(unit))})")
    assert time.process_time() - started < 0.1 * 2 * len(REPEATED)
