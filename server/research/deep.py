"""Deep research: questions about what is missing, and pages that answer them (mission.md §6.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from graph.errors import DependencyError
from graph.protocols import ChatModel
from graph.research import KeptPassage, Topic
from graph.web_page import WebPage
from server.answer.fence import Fence
from server.answer.prompt import fitting
from server.answer.streams import closing
from server.answer.thinking import ThinkFilter
from server.research.budget import Budget
from server.research.candidates import prescored
from server.research.collect import Collector
from server.research.found import Found, ResearchTools
from server.research.gate import best_for
from server.research.plan import Report
from server.research.questions import (
    GapQuestion,
    digest_of,
    gap_prompt,
    matches,
    question_keywords,
    read_questions,
    rule_questions,
)

ANSWER_TOKENS = 500
READ_TOKENS = 2_500
LEAST_TOKENS = 300
"""Of the window or the budget: with less there is no use in asking."""
MODEL_SECONDS = 120.0
READ_PASSAGES = 40
FEW_MATCHES = "it has fewer than {least} of the question's keywords"


async def deepen(topic: Topic, tools: ResearchTools, *, budget: Budget, report: Report, round_number: int = 1) -> Found:
    """One round. Raises `DependencyError` where the search is down and nothing was searched."""
    collector = Collector(topic, tools, budget, report, stage="deepening")
    await collector.begin()
    passages = await asyncio.to_thread(tools.shelf.store.passages_of, topic.slug)
    questions = await _questions(topic, passages, tools, collector, budget, round_number)
    for number, question in enumerate(questions):
        if budget.spent:
            collector.note(f"{len(questions) - number} questions were not looked into: {budget.spent}")
            break
        collector.note(f"asked: {question.text}")
        found = await collector.search(question.query)
        best = prescored(found, question.keywords)
        # Each of the questions that are left gets its share of the pages.
        share = max(1, -(-budget.pages // (len(questions) - number)))
        least = min(tools.settings.keyword_matches, len(question.keywords))
        await collector.take(best[:share], partial(_why_not, keywords=question.keywords, least=least))
    collector.check_search()
    return collector.found()


def _why_not(page: WebPage, *, keywords: Sequence[str], least: int) -> str:
    enough = matches(f"{page.title}\n{page.text}", keywords) >= least
    return "" if enough else FEW_MATCHES.format(least=least)


async def _questions(
    topic: Topic,
    passages: Sequence[KeptPassage],
    tools: ResearchTools,
    collector: Collector,
    budget: Budget,
    round_number: int,
) -> list[GapQuestion]:
    """The model's; where there is none, or too few of its questions are usable, by rule, and that is said."""
    count = tools.settings.questions
    made: list[GapQuestion] = []
    if tools.chat is not None:
        asked, problem = await _ask(topic, passages, tools.chat, count, budget)
        for text in asked[:count]:
            keywords = question_keywords(text, topic, names=await collector.names(text))
            made.append(GapQuestion(text=text, keywords=keywords))
        if problem:
            collector.note(f"questions about what is missing were made by rule: {problem}")
        elif len(made) < count:
            collector.note(f"{tools.chat.model} asked {len(made)} usable questions; the others were made by rule")
    if len(made) < count:
        more = rule_questions(topic, passages, count, language=collector.language, round_number=round_number)
        known = {frozenset(question.keywords) for question in made}
        made += [question for question in more if frozenset(question.keywords) not in known]
    return made[:count]


async def _ask(
    topic: Topic, passages: Sequence[KeptPassage], chat: ChatModel, count: int, budget: Budget
) -> tuple[list[str], str]:
    """The model's questions, or why there are none."""
    digest = digest_of(await asyncio.to_thread(best_for, topic, passages, READ_PASSAGES))
    fence = Fence.over((topic.title, topic.focus, *digest))
    fixed = sum(chat.count_tokens(message.content) for message in gap_prompt(topic, "", count, fence))
    room = min(chat.context_tokens - fixed - ANSWER_TOKENS, budget.tokens - fixed - ANSWER_TOKENS, READ_TOKENS)
    if room < LEAST_TOKENS:
        return [], f"too few tokens are left for {chat.model}"
    messages = gap_prompt(topic, "\n".join(fitting(digest, chat.count_tokens, room)), count, fence)
    budget.take_tokens(sum(chat.count_tokens(message.content) for message in messages))
    parts: list[str] = []
    thoughts = ThinkFilter()
    try:
        async with (
            asyncio.timeout(min(MODEL_SECONDS, budget.seconds)),
            closing(chat.stream(messages, temperature=0.3, max_tokens=ANSWER_TOKENS)) as pieces,
        ):
            async for piece in pieces:
                parts.append(thoughts.feed(piece.text))
        parts.append(thoughts.close())
    except DependencyError as error:
        return [], str(error)
    except TimeoutError:
        return [], f"{chat.model} did not answer in time"
    finally:
        budget.take_tokens(chat.count_tokens("".join(parts)))
    asked = read_questions("".join(parts))
    return asked, "" if asked else f"what {chat.model} wrote holds no usable question"
