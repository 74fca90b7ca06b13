"""What an ingestion did, for people and for `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from graph.graph_model import GraphCounts
from graph.model import FailedPage, SkippedPage


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an ingestion is; sent after every batch and every stage."""

    stage: str
    """"reading", "linking", "pruning" or "optimising"."""
    pages: int
    chunks: int
    title: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """Counts of one run. `chunks` were written; `embedded` of them needed the embedder."""

    source: str
    added: int
    changed: int
    unchanged: int
    deleted: int
    redirects: int
    skipped: tuple[SkippedPage, ...]
    failed: tuple[FailedPage, ...]
    dangling_redirects: tuple[str, ...]
    chunks: int
    embedded: int
    whole: bool
    """Whether all of the source was read, and not only what has changed."""
    linked: int
    """Chunks whose mentions were computed, old ones touched by a new title included."""
    entities: int
    links: int
    seconds: float
    warnings: tuple[str, ...] = ()
    without_blurb: int = 0
    """Pages of which a chunk was embedded as with `title`, since the model gave no sentence for it."""

    @property
    def chunks_per_second(self) -> float:
        return self.embedded / self.seconds if self.seconds else 0.0

    @property
    def partial(self) -> bool:
        return bool(self.failed)


@dataclass(slots=True, kw_only=True)
class Tally:
    """The counts while they grow; one per run."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    redirects: int = 0
    chunks: int = 0
    embedded: int = 0
    linked: int = 0
    without_blurb: int = 0
    skipped: list[SkippedPage] = field(default_factory=list)
    failed: list[FailedPage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Ids of the pages that exist at the source, the failed ones included: none of them may be pruned."""

    @property
    def pages(self) -> int:
        return self.added + self.changed + self.unchanged + self.redirects + len(self.skipped) + len(self.failed)

    def report(
        self,
        source: str,
        *,
        whole: bool,
        linked: int,
        counts: GraphCounts,
        dangling: Sequence[str],
        seconds: float,
    ) -> IngestReport:
        """At the end of the run; `counts` and `dangling` are of the whole graph and source."""
        return IngestReport(
            source=source,
            added=self.added,
            changed=self.changed,
            unchanged=self.unchanged,
            deleted=self.deleted,
            redirects=self.redirects,
            skipped=tuple(self.skipped),
            failed=tuple(self.failed),
            dangling_redirects=tuple(dangling),
            chunks=self.chunks,
            embedded=self.embedded,
            whole=whole,
            linked=linked,
            entities=counts.entities,
            links=counts.links,
            seconds=seconds,
            warnings=tuple(self.warnings),
            without_blurb=self.without_blurb,
        )
