"""A connection to a Neo4j database that is Trivet's: driver, transactions, and Neo4j's errors as ours.

Nothing is connected to before the first use, so that a server that is down at start is simply tried again later.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from neo4j import READ_ACCESS, AsyncDriver, AsyncGraphDatabase, AsyncManagedTransaction, AsyncTransaction
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    ConnectionAcquisitionTimeoutError,
    DriverError,
    Forbidden,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
    UnsupportedServerProduct,
)

from graph import neo4j_queries as cypher
from graph.errors import DependencyDownError, DependencyError, DependencyFaultError, SettingsError, StoreVersionError

DEPENDENCY = "neo4j"
FORMAT = 1
OLDEST = (5, 0)
SCHEMES = frozenset({"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"})
REFUSED_SECONDS = 30.0
"""A refused password is not tried again for so long: Neo4j locks a user out."""
NO_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"
RATE_LIMIT = "Neo.ClientError.Security.AuthenticationRateLimit"

T = TypeVar("T")
Row = list[Any]
"""What a query returned, column by column: the JSON edge of this store."""


class Transaction:
    """A transaction as the store sees it."""

    def __init__(self, inner: AsyncManagedTransaction | AsyncTransaction) -> None:
        self._inner = inner

    async def rows(self, query: str, **values: object) -> list[Row]:
        """All rows of a query, which is one of neo4j_queries.py."""
        result = await self._inner.run(query, values)
        return [record.values() async for record in result]

    async def write(self, query: str, **values: object) -> int:
        """How many edges it made."""
        summary = await (await self._inner.run(query, values)).consume()
        return summary.counters.relationships_created


class Neo4jConnection:
    """One database. `read` and `write` run a function in a transaction, perhaps more than once."""

    def __init__(
        self,
        url: str,
        *,
        user: str,
        password: str,
        database: str = "neo4j",
        home: str = "",
        pool_size: int = 20,
        acquire_seconds: float = 10.0,
        connect_seconds: float = 5.0,
        retry_seconds: float = 5.0,
    ) -> None:
        self._url = checked_url(url)
        self._user = user
        self._password = password
        self._database = database
        self._home = home
        self._options: dict[str, Any] = {
            "max_connection_pool_size": pool_size,
            "connection_acquisition_timeout": acquire_seconds,
            "connection_timeout": connect_seconds,
            "max_transaction_retry_time": retry_seconds,
            "keep_alive": True,
            "notifications_min_severity": "OFF",
            "user_agent": "Trivet",
        }
        self._driver: AsyncDriver | None = None
        self._closed = False
        self._ours = False
        self._checking = asyncio.Lock()
        self._refused: DependencyError | None = None
        self._refused_until = 0.0

    @property
    def shown(self) -> str:
        """What is configured, for messages: no password."""
        return f"Neo4j at {self._url} (database {self._database!r})"

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Tried twice, since a pooled connection may be dead; a question cannot wait for a server to come back."""
        await self._make_ours()
        return await self._read(work)

    async def rows(self, query: str, **values: object) -> list[Row]:
        """One reading query, without a transaction around it: that is one way to the server instead of three."""
        await self._make_ours()
        return await self._rows(query, values)

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Tried again for `retry_seconds`: all writes are idempotent."""
        await self._make_ours()
        return await self._write(work)

    async def close(self) -> None:
        """For good: who is still reading must not open another driver."""
        self._closed = True
        if self._driver is not None:
            await self._driver.close()
            self._driver = None

    async def _read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        return await self._twice(lambda: self._read_once(work))

    async def _rows(self, query: str, values: Mapping[str, object]) -> list[Row]:
        return await self._twice(lambda: self._rows_once(query, values))

    async def _twice(self, read: Callable[[], Awaitable[T]]) -> T:
        async with self._errors():
            try:
                return await read()
            except (ServiceUnavailable, SessionExpired):
                return await read()

    async def _rows_once(self, query: str, values: Mapping[str, object]) -> list[Row]:
        async with self._open().session(database=self._database, default_access_mode=READ_ACCESS) as session:
            result = await session.run(query, values)  # type: ignore[arg-type]  # one of neo4j_queries.py
            return [record.values() async for record in result]

    async def _read_once(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async with (
            self._open().session(database=self._database, default_access_mode=READ_ACCESS) as session,
            await session.begin_transaction() as transaction,
        ):
            return await work(Transaction(transaction))

    async def _write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        async def inner(transaction: AsyncManagedTransaction) -> T:
            return await work(Transaction(transaction))

        async with self._errors(), self._open().session(database=self._database) as session:
            return await session.execute_write(inner)

    def _open(self) -> AsyncDriver:
        if self._closed:
            raise DependencyDownError(f"{self.shown} was closed.", dependency=DEPENDENCY)
        if self._driver is None:
            login = (self._user, self._password) if self._user else None
            self._driver = AsyncGraphDatabase.driver(self._url, auth=login, **self._options)
        return self._driver

    async def _make_ours(self) -> None:
        """Once: is the server new enough, is the database ours, are the indexes there."""
        if not self._ours:
            async with self._checking:
                await self._check()

    async def _check(self) -> None:
        if self._ours:
            return
        if self._refused is not None and time.monotonic() < self._refused_until:
            raise self._refused
        await self._check_version()
        ((found, store, _, home),) = await self._rows(cypher.MARKER, {})
        if found is None:
            await self._take()
        elif found > FORMAT:
            raise StoreVersionError(
                f"{self.shown} was written by a newer Trivet (its format is {found}, this one knows {FORMAT}); "
                "use that one, or another graph.neo4j_database."
            )
        elif self._home and home not in (self._home, "", None):
            raise StoreVersionError(
                f"{self.shown} holds the graph of another wiki's store (id {home}, this one's is {self._home}); set "
                "graph.neo4j_database or graph.neo4j_url to one of its own, or empty that one if its store is gone: "
                "MATCH (n) DETACH DELETE n"
            )
        elif self._home != home:
            await self._write(_writing(cypher.MARK, format=found, store=store, home=self._home or home))
        self._ours = True

    async def _check_version(self) -> None:
        async with self._errors():
            agent = (await self._open().get_server_info()).agent
        numbers = re.search(r"(\d+)\.(\d+)", agent)
        if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
            raise self._fault(f"is {agent}; Trivet needs Neo4j {OLDEST[0]}.{OLDEST[1]} or newer: update the server")

    async def _take(self) -> None:
        """Mark an empty database as ours. Somebody else's graph is never touched."""
        ((count, labels),) = await self._rows(cypher.FOREIGN, {})
        if count:
            raise self._fault(
                f"holds somebody else's graph ({count:,} nodes or more, labels {', '.join(labels) or 'none'}); "
                "set graph.neo4j_url or graph.neo4j_database to an empty database"
            )
        for statement in cypher.CONSTRAINTS:
            await self._write(_writing(statement))
        await self._write(_writing(cypher.MARK, format=FORMAT, store=uuid.uuid4().hex[:16], home=self._home))

    @asynccontextmanager
    async def _errors(self) -> AsyncIterator[None]:
        try:
            yield
        except (AuthError, Forbidden) as error:
            raise self._refuse(error) from error
        except UnsupportedServerProduct as error:
            raise self._fault("speaks a protocol that the driver does not know; update the server") from error
        except ConfigurationError as error:
            raise SettingsError(f"graph.neo4j_url {self._url!r} does not work: {error}.") from error
        except TransientError as error:
            raise DependencyDownError(f"{self.shown} is busy ({error.code}).", dependency=DEPENDENCY) from error
        except Neo4jError as error:
            if error.code == NO_DATABASE:
                raise self._fault("does not exist; create it, or set graph.neo4j_database") from error
            raise self._fault(f"refuses a query ({error.code})") from error
        except ConnectionAcquisitionTimeoutError as error:
            raise DependencyDownError(
                f"{self.shown} has all {self._options['max_connection_pool_size']} connections in use for "
                f"{self._options['connection_acquisition_timeout']:g} s; raise graph.neo4j_pool_size.",
                dependency=DEPENDENCY,
            ) from error
        except (DriverError, OSError) as error:
            raise DependencyDownError(
                f"{self.shown} cannot be reached ({type(error).__name__}); check that it runs and graph.neo4j_url.",
                dependency=DEPENDENCY,
            ) from error

    def _refuse(self, error: Neo4jError) -> DependencyFaultError:
        if error.code == RATE_LIMIT:
            refused = self._fault(f"locked user {self._user!r} out after wrong passwords; wait, then set the right one")
        else:
            refused = self._fault(f"refuses user {self._user!r}; check graph.neo4j_user and graph.neo4j_password")
        self._refused, self._refused_until = refused, time.monotonic() + REFUSED_SECONDS
        return refused

    def _fault(self, what: str) -> DependencyFaultError:
        return DependencyFaultError(f"{self.shown} {what}.", dependency=DEPENDENCY)


def checked_url(url: str) -> str:
    """The URL if the driver can use it. A user or password in it is refused, since the URL is shown in messages."""
    example = "graph.neo4j_url must look like bolt://127.0.0.1:7687 or neo4j+s://graph.example:7687"
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in SCHEMES and parts.hostname and parts.port != 0
    except ValueError:
        raise SettingsError(f"{example}, not {url!r}.") from None
    if "@" in parts.netloc:
        raise SettingsError(f"{example}; the user and password go into graph.neo4j_user and graph.neo4j_password.")
    if not usable:
        raise SettingsError(f"{example}, not {url!r}.")
    return url.strip()


def _writing(query: str, **values: object) -> Callable[[Transaction], Awaitable[int]]:
    return lambda transaction: transaction.write(query, **values)
