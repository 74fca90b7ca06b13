"""The bodies of `/api/topics`, `/api/facts` and `/api/research`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from graph.research import Fact, FactState, ResearchPage, Topic, TopicChange, TopicState
from server.research import changes
from server.research.changes import MOST_CHANGES, Action, FactChange
from server.research.desk import TopicFile
from server.research.plan import Plan, WhenThin
from server.research.review import Finished
from server.research.topics import Kind, new_topic

Slug = Annotated[str, Meta(min_length=1, max_length=100)]
Who = Annotated[str, Meta(max_length=100, description="Who does this; the next reader of the fact is told.")]
Version = Annotated[
    int, Meta(ge=1, le=2**53, description="Of the fact that was looked at; null: whatever it is by now.")
]
Minutes = Annotated[float, Meta(ge=0, le=10_000, description="For all of it; 0: the configured number.")]


class TopicRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to be researched."""

    title: Annotated[str, Meta(description="Up to 300 characters.", examples=["Lighthouses of Brittany"])]
    category: Annotated[str, Meta(description="Whose facts stand together; up to 200 characters.")] = "general"
    focus: Annotated[str, Meta(description="What of it matters, in a sentence; up to 2,000 characters.")] = ""
    kind: Kind = "research"
    slug: Annotated[str, Meta(max_length=100, description="What to call it; by default it is made from the title.")] = (
        ""
    )

    def to_model(self) -> Topic:
        """Raises `InputError` where it cannot be used."""
        return new_topic(self.title, category=self.category, focus=self.focus, kind=self.kind, slug=self.slug)


class ResearchRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to research."""

    when_thin: Annotated[
        WhenThin, Meta(description="Where too little is found: deep research, a stop, or take what there is.")
    ] = WhenThin.DEEPEN
    minutes: Minutes = 0.0

    def to_plan_of(self, slug: str, *, deep: bool = False) -> Plan:
        return Plan(topics=(slug,), deep=deep, when_thin=self.when_thin, minutes=self.minutes)


class RunRequest(ResearchRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which topics to research, and how."""

    topics: Annotated[Sequence[Slug], Meta(max_length=1_000, description="Slugs; none means the queue.")] = ()
    deep: bool = False

    def to_plan(self) -> Plan:
        return Plan(topics=tuple(self.topics), deep=self.deep, when_thin=self.when_thin, minutes=self.minutes)


class TopicView(Struct, frozen=True, kw_only=True):
    """A topic; `reasons` say why it was judged so, or why it failed."""

    slug: str
    title: str
    category: str
    focus: str
    kind: Kind
    state: TopicState
    reasons: tuple[str, ...]
    deepened: int
    created: str
    changed: str


class ChangeView(Struct, frozen=True, kw_only=True):
    """One line of a topic's history; `before` is "" for its beginning."""

    before: str
    after: str
    note: str
    at: str


class PageView(Struct, frozen=True, kw_only=True):
    """A page that research has read; `copies` are near-copies that were left out for it."""

    url: str
    title: str
    passages: int
    author: str
    published: str
    language: str
    query: str
    fetched: str
    copies: tuple[str, ...]


class TopicFileView(Struct, frozen=True, kw_only=True):
    """A topic with all that is known of it; `facts` counts them by state."""

    topic: TopicView
    history: tuple[ChangeView, ...]
    pages: tuple[PageView, ...]
    facts: dict[FactState, int]


class KeepRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Approve a fact."""

    version: Version | None = None
    by: Who = ""
    evergreen: Annotated[bool, Meta(description="It helps with other topics too.")] | None = None
    expires: Annotated[str, Meta(max_length=40, examples=["2027-01-31"])] | None = None


class DecisionRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Reject a fact, or undo what was last done with it."""

    version: Version | None = None
    by: Who = ""


class EditRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another text or quote; the quote must be in the page word for word."""

    version: Version | None = None
    by: Who = ""
    text: Annotated[str, Meta(max_length=10_000)] | None = None
    quote: Annotated[str, Meta(max_length=10_000)] | None = None


class BulkChange(EditRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change of many."""

    id: Annotated[str, Meta(min_length=1, max_length=100)]
    action: Action
    evergreen: bool | None = None
    expires: Annotated[str, Meta(max_length=40)] | None = None

    def to_model(self, by: str) -> FactChange:
        return FactChange(
            id=self.id,
            action=self.action,
            version=self.version,
            by=self.by or by,
            evergreen=self.evergreen,
            expires=self.expires,
            text=self.text,
            quote=self.quote,
        )


class BulkRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes, each done or refused by itself."""

    changes: Annotated[Sequence[BulkChange], Meta(min_length=1, max_length=MOST_CHANGES)]
    by: Who = ""


class FactView(Struct, frozen=True, kw_only=True):
    """One statement, the words of the page that support it, and who last changed it."""

    id: str
    topic: str
    category: str
    text: str
    quote: str
    url: str
    title: str
    published: str
    state: FactState
    evergreen: bool
    extractive: bool
    support: float
    expires: str
    version: int
    created: str
    changed: str
    changed_by: str
    undoable: bool


class FactPage(Struct, frozen=True, kw_only=True):
    """`next` is the `cursor` of the page after this one, null on the last."""

    facts: tuple[FactView, ...]
    next: str | None


class Refusal(Struct, frozen=True, kw_only=True):
    """Why one change was not made; `kind` as in a problem's `type`."""

    kind: str
    message: str


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one change: the fact as it is now, null where it was deleted or the change was refused."""

    id: str
    fact: FactView | None = None
    note: str = ""
    """Of an edit: what of the new text the quote does not bear out."""
    error: Refusal | None = None


class BulkResponse(Struct, frozen=True, kw_only=True):
    """In the order of the changes."""

    outcomes: tuple[Outcome, ...]


class FinishRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`force` ends a review also while facts wait for a decision; they go on waiting."""

    by: Who = ""
    force: bool = False


class FinishedView(Struct, frozen=True, kw_only=True):
    """The topic, how many of its research passages were removed, and how many facts nobody has decided about."""

    topic: TopicView
    wiped: int
    undecided: int


def view_topic(topic: Topic) -> TopicView:
    return TopicView(
        slug=topic.slug,
        title=topic.title,
        category=topic.category,
        focus=topic.focus,
        kind=topic.kind,
        state=topic.state,
        reasons=topic.reasons,
        deepened=topic.deepened,
        created=topic.created,
        changed=topic.changed,
    )


def view_topic_file(file: TopicFile) -> TopicFileView:
    return TopicFileView(
        topic=view_topic(file.topic),
        history=tuple(view_change(change) for change in file.history),
        pages=tuple(view_page(page) for page in file.pages),
        facts=dict(file.facts),
    )


def view_finished(finished: Finished) -> FinishedView:
    return FinishedView(topic=view_topic(finished.topic), wiped=finished.wiped, undecided=finished.undecided)


def view_change(change: TopicChange) -> ChangeView:
    return ChangeView(before=change.before, after=change.after, note=change.note, at=change.at)


def view_page(page: ResearchPage) -> PageView:
    return PageView(
        url=page.url,
        title=page.title,
        passages=len(page.passages),
        author=page.author,
        published=page.published,
        language=page.language,
        query=page.query,
        fetched=page.fetched,
        copies=tuple(url for url in page.copies),
    )


def view_fact(fact: Fact) -> FactView:
    return FactView(
        id=fact.id,
        topic=fact.topic,
        category=fact.category,
        text=fact.text,
        quote=fact.quote,
        url=fact.url,
        title=fact.title,
        published=fact.published,
        state=fact.state,
        evergreen=fact.evergreen,
        extractive=fact.extractive,
        support=fact.support,
        expires=fact.expires,
        version=fact.version,
        created=fact.created,
        changed=fact.changed,
        changed_by=fact.changed_by,
        undoable=bool(fact.undoes),
    )


def view_outcome(outcome: changes.Outcome) -> Outcome:
    refusal = Refusal(kind=outcome.error.kind, message=str(outcome.error)) if outcome.error else None
    fact = view_fact(outcome.fact) if outcome.fact else None
    return Outcome(id=outcome.id, fact=fact, note=outcome.note, error=refusal)
