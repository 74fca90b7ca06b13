"""Everything that can go wrong, as one tree.

TrivetError
├── SettingsError            a setting is unknown, missing or contradicts another      → exit 3
├── InputError               the caller gave something that cannot be used              → exit 2, HTTP 400
│   ├── QuestionError        empty, too long, only punctuation
│   ├── SourceError          a path or file that cannot be read as a wiki
│   ├── NotFoundError        an unknown page, persona, model or job                     → HTTP 404
│   └── ConflictError        it is there already, or was changed meanwhile              → HTTP 409
├── StoreError               the store on disk                                          → exit 1, HTTP 503
│   ├── StoreBusyError       another process holds it                                   → exit 4
│   ├── StoreVersionError    written by a newer Trivet, or with another embedding model → exit 3
│   ├── StoreCorruptError    it cannot be read
│   └── StoreFullError       no space left, or not writable
└── DependencyError          a service did not do its part                              → exit 4, HTTP 503
    ├── DependencyDownError  unreachable, refused, timed out
    ├── DependencyBusyError  asked us to wait (429)                                     → HTTP 503 + Retry-After
    └── DependencyFaultError answered, but not with what was asked for                  → HTTP 502

Every message is one sentence that says what, where and what to do.
"""

from __future__ import annotations


class TrivetError(Exception):
    """The root; `str(error)` is the sentence shown to the user."""

    kind = "error"
    """A stable slug: the last part of the problem-detail `type` and the `error.kind` of `--json`."""


class SettingsError(TrivetError):
    kind = "settings"


class InputError(TrivetError):
    kind = "bad-input"


class QuestionError(InputError):
    kind = "bad-question"


class SourceError(InputError):
    kind = "bad-source"


class NotFoundError(InputError):
    kind = "not-found"


class ConflictError(InputError):
    """What is asked for does not go with what is there now."""

    kind = "conflict"


class StoreError(TrivetError):
    kind = "store"


class StoreBusyError(StoreError):
    kind = "store-busy"


class StoreVersionError(StoreError):
    kind = "store-version"


class StoreCorruptError(StoreError):
    kind = "store-corrupt"


class StoreFullError(StoreError):
    kind = "store-full"


class DependencyError(TrivetError):
    """`dependency` names the service ("ollama", "searxng", …) so that a leg's status can say it."""

    kind = "dependency"

    def __init__(self, message: str, *, dependency: str) -> None:
        super().__init__(message)
        self.dependency = dependency


class DependencyDownError(DependencyError):
    kind = "dependency-down"


class DependencyBusyError(DependencyError):
    kind = "dependency-busy"

    def __init__(self, message: str, *, dependency: str, retry_after: float = 1.0) -> None:
        super().__init__(message, dependency=dependency)
        self.retry_after = retry_after


class DependencyFaultError(DependencyError):
    kind = "dependency-fault"
