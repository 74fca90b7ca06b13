"""The job that researches topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from graph.errors import StoreError
from graph.jobs import Job
from graph.timestamps import now
from server.jobs import Report
from server.library import Library
from server.research.plan import Plan, WhenThin

RESEARCH = "research"
BEGUN = "begun"
"""In a job's progress: when it was first taken up."""


def payload_of(plan: Plan) -> Mapping[str, Any]:
    return {
        "topics": list(plan.topics),
        "deep": plan.deep,
        "when_thin": plan.when_thin.value,
        "minutes": plan.minutes,
    }


def plan_of(job: Job, begun: str) -> Plan:
    return Plan(
        topics=tuple(job.payload.get("topics", ())),
        deep=bool(job.payload.get("deep")),
        when_thin=WhenThin(job.payload.get("when_thin", WhenThin.DEEPEN)),
        minutes=float(job.payload.get("minutes", 0.0)),
        since=begun,
    )


async def research(library: Library, job: Job, report: Report) -> Mapping[str, Any]:
    """One that was cut short and is done once more begins no topic anew that it had begun before."""
    begun = str(job.progress.get(BEGUN, ""))
    report({BEGUN: begun or now()})
    if library.desk is None:
        raise StoreError("This worker has no research store; start it with the settings of the server.")
    done = await library.desk.run(plan_of(job, begun), lambda progress: report(msgspec.to_builtins(progress)))
    result: dict[str, Any] = msgspec.to_builtins(done)
    return result
