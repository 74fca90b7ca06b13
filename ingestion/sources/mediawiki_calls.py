"""A MediaWiki's api.php: asking it, and naming what comes back where an answer should."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec

from graph.breaker import retry_after
from graph.errors import SourceError
from ingestion.sanitize import printable_name
from ingestion.sources.polite_http import PageFault, PoliteClient, Reply

MAX_LAG = "5"
"""Seconds that the wiki's databases may lag behind before it sends us away: MediaWiki's own advice to bots."""
MAX_WAIT = 120.0
WAITS = {"maxlag": 5.0, "ratelimited": 30.0}
"""Error codes that pass, with the seconds to wait where the wiki does not say."""
LONGEST_URL = 1_500
"""Longer requests are sent as a form: 50 titles do not fit into what servers take as a URL."""
FORM = {"format": "json", "formatversion": "2"}
FIXED = {**FORM, "maxlag": MAX_LAG, "curtimestamp": "1"}
JSON_TYPES = frozenset({"application/json", "text/json"})
SWITCHED_OFF = "MediaWiki API is not enabled"
CAPTCHA = re.compile(r"captcha|are you (?:a )?(?:human|robot)|just a moment|attention required|cf-chl|verify you", re.I)
LOGIN = re.compile(r"""type\s*=\s*["']?password|"wgCanonicalSpecialPageName":"Userlogin""", re.I)
CODE = re.compile(r"[\w-]{1,60}")
Part = TypeVar("Part")
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class _Error(msgspec.Struct):
    code: str = ""


class Answer(msgspec.Struct, rename={"more": "continue"}):
    """What the API said, its parts still as JSON."""

    query: dict[str, msgspec.Raw] = {}
    login: dict[str, Any] = {}
    more: dict[str, Any] = {}
    """What to send along to get the rest."""
    error: _Error | None = None
    curtimestamp: Time | None = None

    @property
    def clock(self) -> datetime:
        """The wiki's own; `Api.call` saw to it that it is there."""
        assert self.curtimestamp is not None
        return self.curtimestamp

    def part(self, name: str, kind: type[Part]) -> Part:
        """Raises `PageFault` where it is not there, or of another form."""
        raw = self.query.get(name)
        if raw is None:
            raise PageFault(f"the wiki's answer has no {name}")
        try:
            return msgspec.json.decode(raw, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            raise PageFault(f"the wiki's {name} have a form that no MediaWiki gives them") from error


class Api:
    """One wiki's API, for as long as it is read. Used by one thread."""

    def __init__(
        self,
        url: str,
        *,
        user: str = "",
        password: str = "",
        delay: float = 0.0,
        seconds: float = 30.0,
        tries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        secret, at, host = parts.netloc.rpartition("@")
        self.url = urlunsplit((parts.scheme, host, parts.path, "", ""))
        # As a header, so that it outlives a redirect; the client sends it to this host only.
        headers = {"Authorization": "Basic " + base64.b64encode(secret.encode()).decode()} if at else {}
        self._user = user
        self._password = password
        self._logged_in = False
        self._sleep = sleep
        self._client = PoliteClient(
            delay=delay, seconds=seconds, tries=tries, headers=headers, keep_cookies=bool(user), sleep=sleep
        )

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @property
    def shown(self) -> str:
        return printable_name(self.url[:200])

    def call(self, params: Mapping[str, str]) -> Answer:
        """`PageFault`: this request failed. `SourceError`: the wiki does not talk to us at all."""
        if self._user and not self._logged_in:
            self._log_in()
        waited, renewed = 0.0, False
        while True:
            reply = self._send({**params, **({"assert": "user"} if self._logged_in else {}), **FIXED})
            answer = _decoded(reply, self.shown)
            if answer.error is None:
                if answer.curtimestamp is None:
                    raise PageFault(f"{self.shown} answers with JSON that is none, or not a MediaWiki's")
                return answer
            code = answer.error.code
            if code in WAITS:
                wait = max(1.0, retry_after(reply.headers, WAITS[code]))
                waited += wait
                if waited > MAX_WAIT:
                    raise SourceError(self._too_busy(code))
                self._sleep(wait)
            elif code == "assertuserfailed" and not renewed:
                renewed = True
                self._log_in()
            else:
                self._refuse(code)

    def listing(self, name: str, params: Mapping[str, str], kind: type[Part]) -> Iterator[tuple[list[Part], Answer]]:
        """The parts of a list, one request each. `answer.more` is empty with the last."""
        more: dict[str, str] = {}
        while True:
            try:
                answer = self.call({"action": "query", "list": name, **params, **more})
                part = answer.part(name, list[kind])  # type: ignore[valid-type] # mypy knows no type made of a variable
            except PageFault as fault:
                raise broken(self.shown, fault) from fault
            following = {key: str(value) for key, value in answer.more.items()}
            if following and following == more:
                raise SourceError(f"{self.shown} gives the same part of its {name} again and again; check the wiki.")
            yield part, answer
            if not following:
                return
            more = following

    def _send(self, params: Mapping[str, str], *, form: bool = False) -> Reply:
        if form or len(urlencode(params)) > LONGEST_URL:
            return self._client.post(self.url, data=params)
        reply = self._client.get(self.url, params=params)
        # From http to https once and for all: a form would be lost on the way. Not to a login page.
        if (moved := reply.url.partition("?")[0]).endswith("/api.php"):
            self.url = moved
        return reply

    def _log_in(self) -> None:
        """As bots do (action=login), with a bot password or a plain account's."""
        try:
            asked = {"action": "query", "meta": "tokens", "type": "login", **FORM}
            token = _decoded(self._send(asked), self.shown).part("tokens", dict[str, str]).get("logintoken", "")
            form = {"action": "login", "lgname": self._user, "lgpassword": self._password, "lgtoken": token}
            said = _decoded(self._send({**form, **FORM}, form=True), self.shown)
        except PageFault as fault:
            raise broken(self.shown, fault) from fault
        result = str(said.login.get("result", "")) or (said.error.code if said.error else "")
        if result != "Success":
            raise SourceError(
                f"{self.shown} does not take this user and password ({_code(result)}); make a bot password at the "
                "wiki's Special:BotPasswords and give both with --option."
            )
        self._logged_in = True

    def _too_busy(self, code: str) -> str:
        if code == "maxlag":
            return (
                f"{self.shown} is overloaded: its databases have lagged over {MAX_LAG} s behind for "
                f"{MAX_WAIT:.0f} s (maxlag); run it again later."
            )
        return (
            f"{self.shown} lets us ask no more for now ({_code(code)}); run it again later, with --option user=… of "
            "an account with higher limits, or with a longer delay."
        )

    def _refuse(self, code: str) -> None:
        if code in {"readapidenied", "permissiondenied", "assertuserfailed"}:
            raise SourceError(
                f"{self.shown} lets only its users read ({_code(code)}); give --option user=… and --option password=… "
                "of an account that may (a bot password of Special:BotPasswords)."
            )
        raise PageFault(f"{self.shown} answers with the error {_code(code)}")


def is_mediawiki(reply: Reply, shown: str) -> bool:
    """Whether it comes from an api.php, even one that refuses to say more. Raises `PageFault` for what is no JSON."""
    answer = _decoded(reply, shown)
    return "mediawiki-api-error" in reply.headers or b'"MediaWiki ' in bytes(answer.query.get("general", msgspec.Raw()))


def broken(shown: str, fault: PageFault) -> SourceError:
    """A fault in something that nothing can be read without."""
    if fault.status == 401:
        return SourceError(f"{shown} asks for a password (401); write it into the URL: https://user:password@….")
    if fault.status == 403:
        return SourceError(f"{shown} does not let us in (403); ask the wiki's owner, or check the URL.")
    if fault.status == 404:
        return SourceError(f"There is nothing at {shown} (404); give the URL of the wiki's api.php.")
    reason = fault.reason.replace(f"{shown} ", "it ", 1)
    return SourceError(f"{shown} cannot be read: {reason}; check the URL and the wiki, and run it again.")


def _decoded(reply: Reply, shown: str) -> Answer:
    if reply.content_type not in JSON_TYPES:
        raise PageFault(f"{shown} {_what_came(reply)}")
    try:
        return msgspec.json.decode(reply.body, type=Answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise PageFault(f"{shown} answers with JSON that is none, or not a MediaWiki's") from error


def _what_came(reply: Reply) -> str:
    text = reply.text[:50_000]
    if SWITCHED_OFF in text:
        return "has its API switched off ($wgEnableAPI)"
    if CAPTCHA.search(text):
        return "shows a captcha or a check for robots, not JSON"
    if LOGIN.search(text):
        return "shows a login page, not JSON"
    if "html" in reply.content_type:
        return "answers with a web page (HTML), not JSON"
    return f"answers as {printable_name(reply.content_type[:60]) or 'nothing known'}, not as JSON"


def _code(code: str) -> str:
    """A code of the wiki's, if it looks like one."""
    return code if CODE.fullmatch(code) else "unnamed"
