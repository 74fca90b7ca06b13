"""Facts one after the other, with a person at the terminal who decides."""

from __future__ import annotations

from collections.abc import Sequence

from graph.errors import NotFoundError
from server.commands.reach_research import ReachedDesk
from server.commands.research_printing import print_fact
from server.commands.terminal import Printer
from server.commands.terminal_questions import ask, ask_line
from server.http.research_views import BulkChange, FactView, Outcome
from server.research.changes import Action

CHOICES = {
    "k": "keep",
    "v": "keep as evergreen",
    "e": "edit",
    "r": "reject",
    "d": "delete",
    "u": "undo the last",
    "s": "skip",
    "q": "quit",
}
SIMPLE = {"k": Action.KEEP, "v": Action.KEEP, "r": Action.REJECT, "d": Action.DELETE}


async def review_facts(desk: ReachedDesk, facts: Sequence[FactView], slug: str, by: str) -> int:
    """How many were decided about."""
    out = Printer(to_stderr=True)
    sitting = Sitting(desk, list(facts), by, out)
    while (fact := sitting.current) is not None:
        out.line()
        out.line((f"{sitting.at + 1} of {len(facts)}", "dim"))
        print_fact(fact, out)
        answer = ask(CHOICES)
        if answer == "q":
            break
        await sitting.take(answer, fact)
    else:
        out.line(f"no fact of {slug} is left; `trivet knowledge finish {slug}` ends the review")
    return len(sitting.decided)


class Sitting:
    """Where a review is. Each decision says which version was looked at: somebody else may be at it too."""

    def __init__(self, desk: ReachedDesk, facts: list[FactView], by: str, out: Printer) -> None:
        self._desk = desk
        self._facts = facts
        self._by = by
        self._out = out
        self.at = 0
        self.decided: list[int] = []
        """Places of the facts that were decided about, in order."""

    @property
    def current(self) -> FactView | None:
        return self._facts[self.at] if self.at < len(self._facts) else None

    async def take(self, answer: str, fact: FactView) -> None:
        if answer == "s":
            self.at += 1
        elif answer == "u":
            await self._undo()
        elif answer == "e":
            await self._edit(fact)
        else:
            evergreen = True if answer == "v" else None
            change = BulkChange(id=fact.id, action=SIMPLE[answer], version=fact.version, evergreen=evergreen)
            outcome = await self._make(change)
            if outcome.error is None:
                self.decided.append(self.at)
                self._store(outcome)
                self.at += 1
            else:
                await self._look_again(fact)

    async def _edit(self, fact: FactView) -> None:
        """It is shown again in its new words."""
        text = ask_line("text", fact.text)
        quote = ask_line("quote", fact.quote)
        if (text, quote) == (fact.text, fact.quote):
            return
        change = BulkChange(
            id=fact.id,
            action=Action.EDIT,
            version=fact.version,
            text=text if text != fact.text else None,
            quote=quote if quote != fact.quote else None,
        )
        outcome = await self._make(change)
        self._store(outcome)
        if outcome.error is not None and outcome.error.kind != "bad-input":
            await self._look_again(fact)

    async def _undo(self) -> None:
        """Back to the last fact that was decided about."""
        if not self.decided:
            self._out.line("nothing was decided yet")
            return
        place = self.decided[-1]
        fact = self._facts[place]
        outcome = await self._make(BulkChange(id=fact.id, action=Action.UNDO, version=fact.version))
        if outcome.error is None:
            self._facts[place] = outcome.fact or fact
            self.at = self.decided.pop()

    async def _look_again(self, fact: FactView) -> None:
        """Somebody else was quicker: it is shown as it is now, or left out where it is gone."""
        try:
            self._facts[self.at] = await self._desk.fact(fact.id)
        except NotFoundError:
            self.at += 1

    async def _make(self, change: BulkChange) -> Outcome:
        (outcome,) = await self._desk.change([change], self._by)
        if outcome.error is not None:
            self._out.line(("not done: ", "bold red"), outcome.error.message)
        if outcome.note:
            self._out.line(("beware: ", "bold yellow"), outcome.note)
        return outcome

    def _store(self, outcome: Outcome) -> None:
        if outcome.fact is not None:
            self._facts[self.at] = outcome.fact
