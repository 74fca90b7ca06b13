"""Requests made up from the server's own OpenAPI document: `python fuzzing.py URL COUNT SEED` prints one JSON object.

Each route gets its share of COUNT: half of them valid, half broken in a way that its schema forbids; a few less are
sent, as a route without parameters has only one. What came back stands in `faults` where it is a 5xx, or an error
without its envelope.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections import Counter
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis import Case, GenerationMode

SECONDS = 60
SHOWN = 20
"""Faults that are printed."""


def envelope_fault(path: str, response: requests.Response) -> str:
    """What is wrong with an answer; "" where nothing is."""
    status = response.status_code
    if status >= 500:
        return "a server error"
    if status < 400:
        return ""
    try:
        body = response.json()
    except ValueError:
        return "an error that is not JSON"
    if path.startswith("/v1"):
        error = body.get("error") if isinstance(body, dict) else None
        whole = isinstance(error, dict) and {"message", "type", "param", "code"} <= error.keys()
        return "" if whole else "no OpenAI envelope"
    whole = isinstance(body, dict) and {"type", "title", "status", "detail"} <= body.keys()
    kind = response.headers.get("content-type", "")
    if not whole or not kind.startswith("application/problem+json"):
        return "no problem details"
    return "" if body["status"] == status else "a status that is not its own"


def send(case: Case, url: str, session: requests.Session) -> requests.Response:
    """Streams are read to their end; a watched job may not end, so of those only the beginning is."""
    endless = case.operation.path.endswith("/events")
    return session.request(**case.as_transport_kwargs(base_url=url), timeout=SECONDS, stream=endless)


def fuzz(url: str, count: int, seed: int) -> dict[str, Any]:
    schema = schemathesis.openapi.from_url(f"{url}/schema/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    share = -(-count // (len(operations) * len(GenerationMode)))
    statuses: Counter[str] = Counter()
    faults: list[str] = []
    session = requests.Session()
    session.trust_env = False
    for operation in operations:
        for mode in GenerationMode:

            @hypothesis.seed(seed)
            @hypothesis.settings(
                max_examples=share,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
            def check(case: Case) -> None:
                response = send(case, url, session)
                statuses[str(response.status_code)] += 1
                if fault := envelope_fault(case.operation.path, response):
                    faults.append(f"{response.status_code} {fault}: {case.as_curl_command()[:2000]}")

            # Without a parameter there is nothing to break.
            with contextlib.suppress(hypothesis.errors.Unsatisfiable):
                check()
    return {"requests": sum(statuses.values()), "statuses": dict(statuses), "faults": faults[:SHOWN]}


warnings.simplefilter("ignore")
print(json.dumps(fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
