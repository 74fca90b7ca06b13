"""The titles of a wiki as a dictionary, and the entities that a text names (mission.md §2.2–2.3).

Pure: what a chunk mentions is a function of its words, the names found in it, its page's links and the
dictionary. So the order in which pages came does not matter, and `verify` can compute it again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from graph.graph_model import Entity
from graph.names import is_quantity, name_key, title_keys

LONGEST_TITLE = 8
"""Words of a title that are looked for in text."""
LONGEST_UNSPACED = 16
"""The same for scripts without spaces, where a token is one character."""
FUNCTION_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "also",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "before",
        "but",
        "by",
        "can",
        "did",
        "do",
        "does",
        "during",
        "each",
        "else",
        "every",
        "few",
        "first",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "hers",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "last",
        "like",
        "made",
        "make",
        "many",
        "may",
        "me",
        "more",
        "most",
        "much",
        "my",
        "name",
        "new",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "one",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "said",
        "same",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "two",
        "under",
        "until",
        "up",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "year",
        "yes",
        "you",
        "your",
        "au",
        "aux",
        "avec",
        "ce",
        "ces",
        "cette",
        "comment",
        "dans",
        "de",
        "des",
        "du",
        "elle",
        "en",
        "est",
        "et",
        "il",
        "ils",
        "je",
        "la",
        "le",
        "les",
        "leur",
        "lui",
        "mais",
        "ne",
        "nous",
        "on",
        "ou",
        "ou",
        "par",
        "pas",
        "plus",
        "pour",
        "quand",
        "que",
        "quel",
        "quelle",
        "quels",
        "quelles",
        "qui",
        "sa",
        "se",
        "ses",
        "son",
        "sont",
        "sur",
        "un",
        "une",
        "vous",
        "y",
        "an",
        "auf",
        "aus",
        "bei",
        "das",
        "dem",
        "den",
        "der",
        "die",
        "ein",
        "eine",
        "er",
        "es",
        "für",
        "im",
        "ist",
        "mit",
        "nach",
        "nicht",
        "oder",
        "sich",
        "sie",
        "und",
        "von",
        "was",
        "wer",
        "wie",
        "wo",
        "zu",
        "cual",
        "cuando",
        "del",
        "donde",
        "el",
        "en",
        "es",
        "la",
        "las",
        "los",
        "por",
        "que",
        "quien",
        "se",
        "su",
        "un",
        "una",
        "y",
        "con",
        "para",
        "como",
    ]
)
"""Words that name nothing by themselves; a title made of them alone ("It", "Us") is met by links and quotes only."""


def entity_id(title: str) -> str:
    """The id of the entity a title stands for: its full normalised name; "" for a title without letters or digits."""
    keys = title_keys(title)
    return keys[0] if keys else ""


def is_nameable(key: str) -> bool:
    """Whether a key may be looked for in running text."""
    tokens = key.split()
    return any(token not in FUNCTION_WORDS and (len(token) > 1 or not token.isascii()) for token in tokens)


@dataclass(frozen=True, slots=True)
class TitleDictionary:
    """Which entities a normalised name may mean."""

    entities: Mapping[str, Entity]
    exact: Mapping[str, tuple[str, ...]]
    """Key → entities that bear the whole name, by title or alias."""
    bare: Mapping[str, tuple[str, ...]]
    """Key → entities that bear it with a qualifier: "mercury" → planet and element."""
    starts: Mapping[str, int]
    """First word → words of the longest key that starts with it."""

    @classmethod
    def build(cls, titles: Iterable[tuple[str, str, str]]) -> TitleDictionary:
        """From `StateStore.titles()`: (page id, title or alias, the page's own title)."""
        exact: defaultdict[str, set[str]] = defaultdict(set)
        bare: defaultdict[str, set[str]] = defaultdict(set)
        names: dict[str, str] = {}
        keys: defaultdict[str, set[str]] = defaultdict(set)
        for _, title, own_title in titles:
            owner = entity_id(own_title)
            found = title_keys(title)
            if not owner or not found:
                continue
            names[owner] = min(names.get(owner, own_title), own_title)
            exact[found[0]].add(owner)
            for key in found[1:]:
                bare[key].add(owner)
            keys[owner].update(found)
        return cls(
            entities={
                owner: Entity(id=owner, name=names[owner], keys=tuple(sorted(keys[owner] | {owner})), titled=True)
                for owner in names
            },
            exact={key: tuple(sorted(owners)) for key, owners in exact.items()},
            bare={key: tuple(sorted(owners)) for key, owners in bare.items()},
            starts=key_starts([*exact, *bare]),
        )

    def owners(self, key: str) -> tuple[str, ...]:
        """Entities a name means: those that bear it whole, else those that bear it with a qualifier."""
        return self.exact.get(key) or self.bare.get(key) or ()

    def resolve(self, key: str, linked: Set[str] = frozenset()) -> tuple[str, ...]:
        """As `owners`; of several, those that the page links to, if any."""
        meant = {*self.exact.get(key, ()), *self.bare.get(key, ())} & linked
        return tuple(sorted(meant)) or self.owners(key)

    def link_target(self, title: str) -> str:
        """The entity a link leads to; a page that does not exist is an entity all the same."""
        owners = self.exact.get(entity_id(title), ())
        return owners[0] if owners else entity_id(title)


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What a page's links say of names in its text; made ready once for all its chunks: a list has thousands."""

    targets: Mapping[str, str]
    """Normalised words shown for a link → the entity it leads to, which settles what they mean on this page."""
    starts: Mapping[str, int]
    entities: frozenset[str]

    @classmethod
    def of(cls, targets: Mapping[str, str]) -> PageLinks:
        return cls(targets, key_starts(targets), frozenset(targets.values()))


def untitled(key: str) -> Entity:
    """An entity known from text alone."""
    return Entity(id=key, name=key, keys=(key,), titled=False)


def longest_matches(tokens: Sequence[str], titles: TitleDictionary, links: PageLinks) -> Iterator[str]:
    """Keys of titles and of a page's links found in the tokens, left to right, the longest at each place,
    never overlapping."""
    exact, bare, starts, shown, link_starts = titles.exact, titles.bare, titles.starts, links.targets, links.starts
    position, end = 0, len(tokens)
    while position < end:
        token = tokens[position]
        longest = min(max(starts.get(token, 0), link_starts.get(token, 0)), end - position)
        for length in range(longest, 0, -1):
            key = " ".join(tokens[position : position + length])
            if (key in exact or key in bare or key in shown) and is_nameable(key):
                yield key
                position += length
                break
        else:
            position += 1


def longest_from(token: str) -> int:
    """Tokens of the longest key that is looked for from this one on."""
    return LONGEST_UNSPACED if len(token) == 1 and not token.isascii() else LONGEST_TITLE


def key_starts(keys: Iterable[str]) -> dict[str, int]:
    """First token → length of its longest key, for `longest_matches`. Longer keys than are looked for are left out."""
    starts: dict[str, int] = {}
    for key in keys:
        tokens = key.split()
        if len(tokens) <= longest_from(tokens[0]):
            starts[tokens[0]] = max(starts.get(tokens[0], 0), len(tokens))
    return starts


def mentioned(tokens: Sequence[str], names: Iterable[str], links: PageLinks, titles: TitleDictionary) -> Counter[str]:
    """Entity id → how often a chunk names it; `names` are what the recogniser found."""
    found: Counter[str] = Counter()
    shown = links.targets
    for key in longest_matches(tokens, titles, links):
        for owner in (shown[key],) if key in shown else titles.resolve(key, links.entities):
            found[owner] += 1
    said = f" {' '.join(tokens)} "
    for key in name_keys(names):
        if f" {key} " not in said:
            continue  # cut within a word: the full-text index could not find it again when a title changes
        owners = (shown[key],) if key in shown else titles.resolve(key, links.entities) or (key,)
        for owner in owners:
            found[owner] = max(found[owner], 1)
    return found


def name_keys(names: Iterable[str]) -> Iterator[str]:
    """The keys of names found in text, without dates, numbers and what is too long to be a name."""
    for name in names:
        key = name_key(name)
        if key and is_nameable(key) and not is_quantity(key) and key.count(" ") < LONGEST_UNSPACED:
            yield key
