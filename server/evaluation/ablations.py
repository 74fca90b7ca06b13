"""One factor changed at a time: which there are, and what of the search must be done again for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from config.loading import declared
from config.settings import Settings
from graph.errors import SettingsError
from graph.model import Leg
from server.evaluation.changes import changed, value_of

FUSION_SECTIONS = frozenset({"search", "graph", "rerank"})
"""Settings of the others need an index or a model of their own, so they are two calls of `trivet eval`."""
AFTER_LEGS = frozenset(
    f"search.{name}"
    for name in (
        *("rrf_k", "graph_weight", "graph_limit", "dedup_cosine", "short_words", "level_spread"),
        *("neighbours", "evidence_limit", "page_share"),
    )
)
"""Settings that the vector leg does not read; of any other it is searched again, to be safe."""
AT_OPENING = ("graph.neo4j_", "rerank.provider", "rerank.name", "rerank.url", "rerank.api_key", "rerank.model_dir")
"""Starts of names that are read when the store is opened: changing them afterwards would change nothing."""
ONLY_OFF = frozenset({"rerank.enabled", "rerank.late_interaction"})
"""What is not opened cannot be switched on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """A change of the search, measured at its end."""

    name: str
    says: str
    changes: Mapping[str, object] = field(default_factory=dict)
    without: Leg | None = None

    @property
    def walks_again(self) -> bool:
        """Whether the graph leg gives something else; its keywords stay."""
        return any(key.startswith("graph.") for key in self.changes)

    @property
    def searches_again(self) -> bool:
        """Whether the vector leg may give something else."""
        return any(key.startswith("search.") and key not in AFTER_LEGS for key in self.changes)


ABLATIONS = (
    Ablation(name="no-graph", says="the vector leg alone goes on", without=Leg.GRAPH),
    Ablation(name="no-vector", says="the graph leg alone goes on", without=Leg.VECTOR),
    Ablation(name="no-rerank", says="the fused order is the last", changes={"rerank.enabled": False}),
    Ablation(
        name="rerank-alone",
        says="the cross-encoder's order is the last",
        changes={"rerank.weight": 1.0, "rerank.open_weight": 1.0},
    ),
    Ablation(name="plain-rrf", says="both rankings count the same", changes={"search.adaptive_weights": False}),
    Ablation(name="no-noise-control", says="every dense hit counts", changes={"search.vector_threshold": -1.0}),
    Ablation(name="no-short-rule", says="short passages weigh as any", changes={"search.short_words": 0}),
    Ablation(name="no-mould-rule", says="runs of one mould stay in front", changes={"search.level_spread": 0.0}),
    Ablation(name="no-late", says="no token vectors are compared", changes={"rerank.late_interaction": False}),
    Ablation(name="no-dedup", says="near-copies stay", changes={"search.dedup_cosine": 1.0}),
    Ablation(name="no-passage-seeds", says="the walk starts from names alone", changes={"graph.passage_seeds": 0}),
    Ablation(name="no-titles", says="a page about a thing pulls as any", changes={"graph.title_weight": 1.0}),
    Ablation(name="no-links", says="wiki links do not count", changes={"graph.link_weight": 0.0}),
)
"""What `--ablations` measures, as far as the settings know it."""


def available(settings: Settings, wanted: Iterable[Ablation] = ABLATIONS) -> list[Ablation]:
    """Those whose settings exist and are not as the ablation would have them already."""
    known = declared()
    return [
        ablation
        for ablation in wanted
        if ablation.changes.keys() <= known.keys()
        and (not ablation.changes or any(value_of(settings, key) != value for key, value in ablation.changes.items()))
    ]


def named(pair: str, settings: Settings) -> Ablation:
    """An ablation of one's own: `search.rrf_k=20`. Raises `SettingsError`."""
    key, equals, text = (part.strip() for part in pair.partition("="))
    if not equals or not key:
        raise SettingsError(f"“{pair}” is not KEY=VALUE, like search.rrf_k=20.")
    foreign = key.partition(".")[0] not in FUSION_SECTIONS or key.startswith(AT_OPENING)
    switched_on = key in ONLY_OFF and bool(value_of(changed(settings, {key: text}), key))
    if key in declared() and (foreign or switched_on):
        raise SettingsError(
            f"{key} cannot be changed over one index; run `trivet eval` twice, with --set {pair} and without, and "
            "compare with --save and --compare."
        )
    value = value_of(changed(settings, {key: text}), key)
    return Ablation(name=f"{key}={text}", says=f"{key} = {text}", changes={key: value})
