"""How well the claim check tells wrong sentences from faithful ones.

uv run python -m tests.benchmarks.claims DATA/benchmarks/squad_dev [--half held-out] [--language en] [--show]
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from graph.model import Evidence
from graph.recognizer import Recognizer
from server.answer.claim_grounds import grounds_of
from server.answer.claim_sentences import Marker, cited_sentences
from server.answer.claims import Checked, check_sentence
from tests.benchmarks.claim_cases import Case, faithful_cases, read_sections
from tests.benchmarks.claim_plants import SAME_EVIDENCE, planted_cases

SEED = 7


def half_of(title: str) -> str:
    return "held-out" if zlib.crc32(title.encode()) % 2 else "dev"


def checked(case: Case, recognizer: Recognizer, language: str) -> Checked:
    """The sentence with its marker, as an answer would have it."""
    text = f"{case.text[:-1]} [1]."
    at = len(case.text)
    (sentence,) = cited_sentences(text, [Marker(1, at, at + 3)])[-1:]
    evidence = Evidence(number=1, key="k", title=case.title, url="", text=case.passage, context=case.context)
    (names,) = recognizer.names([sentence.text], language)
    return check_sentence(sentence, grounds_of([evidence]), names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Shares of the cases; `groups`: count, unsupported and weak ones by kind of error or by rule."""

    count: int
    unsupported: float
    not_supported: float
    """Unsupported or weak."""
    milliseconds: float
    groups: dict[str, tuple[int, int, int]]


def measure(cases: Sequence[Case], recognizer: Recognizer, language: str, *, show: str = "") -> Measured:
    """`show`: a word for these cases; those judged wrongly are printed with it."""
    verdicts: list[str] = []
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    begun = time.perf_counter()
    for case in cases:
        found = checked(case, recognizer, language).claim
        verdicts.append(found.verdict)
        for group in (case.planted,) if case.planted else case.rules:
            groups[group][found.verdict] += 1
        if show and (found.verdict == "supported") == bool(case.planted):
            print(f"--- {show} {case.planted or ', '.join(case.rules)}: {found.verdict} {found.reason}")
            print(f"    {case.title} | {case.text}\n    was: {case.original}")
    count = max(1, len(cases))
    return Measured(
        count=len(cases),
        unsupported=round(verdicts.count("unsupported") / count, 3),
        not_supported=round(1 - verdicts.count("supported") / count, 3),
        milliseconds=round(1000 * (time.perf_counter() - begun) / count, 1),
        groups={name: (group.total(), group["unsupported"], group["weak"]) for name, group in sorted(groups.items())},
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=["dev", "held-out", "all"], default="held-out")
    parser.add_argument("--language", default="en")
    parser.add_argument("--passages", type=int, default=3000)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    sections = read_sections(
        options.folder, options.language, lambda title: options.half in ("all", half_of(title)), options.passages
    )
    recognizer = Recognizer((options.language,))
    sets = {
        "faithful": faithful_cases(sections, options.count, SEED),
        "planted": planted_cases(sections, options.count, SEED),
        "planted from the same evidence": planted_cases(sections, options.count // 4, SEED, SAME_EVIDENCE),
    }
    result = {
        name: asdict(measure(cases, recognizer, options.language, show=name if options.show else ""))
        for name, cases in sets.items()
    }
    print(json.dumps({"folder": options.folder.name, "half": options.half, **result}))


if __name__ == "__main__":
    main()
