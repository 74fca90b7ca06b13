"""What a person decides about proposed facts: keep, edit, reject, delete, undo; and the end of a topic's review."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from graph.errors import ConflictError, InputError, NotFoundError
from graph.research import Fact, FactState, ResearchPage, Topic, TopicState
from graph.research_rules import no_fact, no_topic
from graph.timestamps import now
from server.research.fact_check import FactCheck, NamesOf, no_names
from server.research.facts import all_facts
from server.research.review_steps import changed, expiry_of, name_of, restored, text_of
from server.research.shelf import Shelf

REMEMBERED = 1_000
"""Facts deleted by this process, so that it can say who deleted one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A fact in a person's words; `fact.support` is how well the quotation bears them, `reason` what is amiss."""

    fact: Fact
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The topic, how many passages were wiped, and how many facts nobody has decided about."""

    topic: Topic
    wiped: int
    undecided: int


class Review:
    """Each call is one decision, stored before it returns. `by` is the name of who decides.

    `version`: of the fact as it was looked at; None takes it as it is. Where somebody else has changed it since,
    `ConflictError` says who and when; where it is gone, `NotFoundError`.
    """

    def __init__(
        self, shelf: Shelf, *, names_of: NamesOf = no_names, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self._names_of = names_of
        self._clock = clock
        self._deleted: OrderedDict[str, str] = OrderedDict()

    async def keep(
        self,
        fact_id: str,
        *,
        by: str,
        version: int | None = None,
        evergreen: bool | None = None,
        expires: str | None = None,
    ) -> Fact:
        """Approve: from now on it answers questions. Doing so twice has one effect."""
        by = name_of(by)
        fact = await self._fact(fact_id)
        chosen = fact.evergreen if evergreen is None else evergreen
        until = expiry_of(fact.expires if expires is None else expires, self._clock())
        if fact.state is FactState.APPROVED and (fact.evergreen, fact.expires) == (chosen, until):
            if version not in (None, fact.version) and not _approved_next(fact, version):
                raise _changed_meanwhile(fact, version)
            return fact
        _check_version(fact, version)
        approved = changed(fact, replace(fact, state=FactState.APPROVED, evergreen=chosen, expires=until), by)
        try:
            return await self._put(approved, fact)
        except ConflictError:
            found = await self._fact(fact_id)
            same = (found.state, found.evergreen, found.expires) == (FactState.APPROVED, chosen, until)
            if same and _approved_next(found, fact.version):
                return found  # by somebody else at the same moment
            raise

    async def reject(self, fact_id: str, *, by: str, version: int | None = None) -> Fact:
        """It stays, so that it is not proposed again; if it was approved, it answers no more."""
        by = name_of(by)
        fact = await self._looked_at(fact_id, version)
        if fact.state is FactState.REJECTED:
            return fact
        return await self._put(changed(fact, replace(fact, state=FactState.REJECTED), by), fact)

    async def edit(
        self, fact_id: str, *, by: str, version: int | None = None, text: str | None = None, quote: str | None = None
    ) -> Edited:
        """In other words, or with another quotation, which must be in the page (once that is wiped: in the one before).

        The new words are stored even where the page does not bear them out: a person may know better, and is told.
        """
        by = name_of(by)
        if text is None and quote is None:
            raise InputError("An edit needs a new text or a new quote.")
        fact = await self._looked_at(fact_id, version)
        page = await asyncio.to_thread(self._page_of, fact)
        new_text = fact.text if text is None else text_of(text)
        edited, reason = await asyncio.to_thread(self._edited, fact, page, new_text, quote, by)
        if edited is fact:
            return Edited(fact=fact, reason=reason)
        return Edited(fact=await self._put(edited, fact), reason=reason)

    async def delete(self, fact_id: str, *, by: str, version: int | None = None) -> None:
        """For good. Unlike a rejected one it may be proposed again when its page is read again."""
        by = name_of(by)
        fact = await self._looked_at(fact_id, version)
        try:
            await self._shelf.delete_fact(fact.id, version=fact.version)
        except (ConflictError, NotFoundError):
            raise await self._why_not(fact) from None
        self._deleted[fact.id] = f"{by} deleted it at {now()}"
        while len(self._deleted) > REMEMBERED:
            self._deleted.popitem(last=False)

    async def undo(self, fact_id: str, *, by: str, version: int | None = None) -> Fact:
        """Take back the last change of a fact, of whoever made it. One step; a deletion cannot be taken back."""
        by = name_of(by)
        fact = await self._looked_at(fact_id, version)
        if not fact.undoes:
            raise ConflictError(
                f"There is nothing to undo in fact {fact.id!r}: it was not changed since the last undo."
            )
        return await self._put(restored(fact, by), fact)

    async def finish(self, slug: str, *, by: str, force: bool = False) -> Finished:
        """The review is over: the topic's research passages are wiped, its facts stay. Once more it does no harm.

        `force`: also while facts wait for a decision; they go on waiting, with nothing but their quotation.
        """
        by = name_of(by)
        topic = await asyncio.to_thread(self._store.topic, slug)
        if topic is None:
            raise no_topic(slug)
        if topic.state not in (TopicState.REVIEW, TopicState.DONE):
            raise ConflictError(f"Topic {slug!r} is {topic.state}, not in review; only a review can be finished.")
        facts = await asyncio.to_thread(lambda: all_facts(self._store, topic=slug))
        waiting = sum(fact.state is FactState.PROPOSED for fact in facts)
        if waiting and not force:
            raise ConflictError(
                f"Facts of topic {slug!r} wait for a decision ({waiting}): keep or reject them, or finish with force."
            )
        # In this order, so that what a crash leaves is still in review, and the next try ends it.
        wiped = await self._shelf.wipe(slug)
        if topic.state is TopicState.REVIEW:
            approved = sum(fact.state is FactState.APPROVED for fact in facts)
            note = f"{by} finished the review: {approved} of {len(facts)} facts approved"
            topic = await asyncio.to_thread(lambda: self._store.move_topic(slug, TopicState.DONE, note=note))
        return Finished(topic=topic, wiped=wiped, undecided=waiting)

    # --- one fact ---------------------------------------------------------------------------------------------------

    async def _fact(self, fact_id: str) -> Fact:
        fact = await asyncio.to_thread(self._store.fact, fact_id)
        if fact is None:
            raise self._gone(fact_id)
        return fact

    async def _looked_at(self, fact_id: str, version: int | None) -> Fact:
        fact = await self._fact(fact_id)
        _check_version(fact, version)
        return fact

    async def _put(self, fact: Fact, before: Fact) -> Fact:
        try:
            return await self._shelf.put_fact(fact, version=before.version)
        except (ConflictError, NotFoundError):
            raise await self._why_not(before) from None

    async def _why_not(self, looked_at: Fact) -> InputError:
        """Somebody was quicker."""
        found = await asyncio.to_thread(self._store.fact, looked_at.id)
        return self._gone(looked_at.id) if found is None else _changed_meanwhile(found, looked_at.version)

    def _gone(self, fact_id: str) -> NotFoundError:
        told = self._deleted.get(fact_id)
        return NotFoundError(f"There is no fact {fact_id!r} any more: {told}.") if told else no_fact(fact_id)

    def _page_of(self, fact: Fact) -> ResearchPage:
        """Its page; once that is wiped, what the quotation has kept of it. Blocking."""
        kept = ResearchPage(url=fact.url, title=fact.title, passages=(fact.quote,))
        return next((page for page in self._store.pages(fact.topic) if page.url == fact.url), kept)

    def _edited(self, fact: Fact, page: ResearchPage, text: str, quote: str | None, by: str) -> tuple[Fact, str]:
        """Blocking."""
        check = FactCheck(page, self._names_of)
        found = fact.quote if quote is None else check.quote(quote)
        if found is None:
            raise InputError(
                f"The quote is not in {fact.url} as far as that is kept, or has fewer than three words; copy it from "
                "there word for word."
            )
        support = check.support(text, found)
        if (text, found) == (fact.text, fact.quote):
            return fact, support.reason
        own = fact.extractive and text == found
        new = replace(fact, text=text, quote=found, support=support.share, extractive=own)
        return changed(fact, new, by), support.reason


def _approved_next(fact: Fact, version: int | None) -> bool:
    """Whether all that has happened since that version is the approval that is asked for once more."""
    return version == fact.version - 1 and fact.undoes.get("state", FactState.APPROVED) != FactState.APPROVED


def _check_version(fact: Fact, version: int | None) -> None:
    if version is not None and fact.version != version:
        raise _changed_meanwhile(fact, version)


def _changed_meanwhile(fact: Fact, version: int | None) -> ConflictError:
    who = f"{fact.changed_by or 'somebody'} changed fact {fact.id!r} at {fact.changed}"
    return ConflictError(
        f"{who}: it is {fact.state} now and version {fact.version}, not {version}; look at it again and decide anew."
    )
