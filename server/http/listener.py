"""The socket that is listened on."""

from __future__ import annotations

import errno
import ipaddress
import socket

from graph.errors import SettingsError

Address = tuple[str, int] | tuple[str, int, int, int]


def bind(host: str, port: int, *, has_key: bool) -> socket.socket:
    """A bound socket that does not listen yet, so that nobody waits on a server that never comes up."""
    family, address = _resolve(host, port)
    if not has_key and not _is_loopback(address[0]):
        raise SettingsError(
            f"server.host: {host} can be reached from other machines, so it needs a key: set server.api_key "
            "(TRIVET_SERVER__API_KEY), or listen on 127.0.0.1"
        )
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise SettingsError(_bind_fault(error, host, port)) from None
    return listener


def _resolve(host: str, port: int) -> tuple[int, Address]:
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)  # noqa: S104 - checked by `bind`
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"server.host: {host!r} is not an address of this machine: {error}") from None
    family, _, _, _, address = found[0]
    return family, address  # type: ignore[return-value]


def _is_loopback(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _bind_fault(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"server.port: {port} on {host} is in use already; choose another, or 0 for a free one"
    if error.errno == errno.EACCES:
        return f"server.port: {port} may only be used by root; choose one above 1023"
    return f"server.host: cannot listen on {host}:{port}: {error.strerror}"


def url_of(listener: socket.socket) -> str:
    """Where this machine reaches it."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
