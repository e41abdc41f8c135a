"""Refuses what would leave this machine, connections and look-ups of names, and reports each address.

Standard library only. It sees what goes through Python's `socket`; a library with sockets of its own (Rust, C) it does
not see. `sitecustomize` beside it brings it into a process that has this folder on PYTHONPATH.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable

_INTERNET = (socket.AF_INET, socket.AF_INET6)


def install(report: Callable[[str], None]) -> None:
    """Guard this process until it ends."""
    connect, connect_ex, sendto = socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto

    def leaves(sock: socket.socket, address: object) -> bool:
        if sock.family not in _INTERNET or is_here(address[0]):
            return False
        report(f"{address[0]}:{address[1]}")
        return True

    def guarded_connect(sock: socket.socket, address: object) -> None:
        if leaves(sock, address):
            raise OSError(errno.ENETUNREACH, "refused by the tests' network guard")
        return connect(sock, address)

    def guarded_connect_ex(sock: socket.socket, address: object) -> int:
        return errno.ENETUNREACH if leaves(sock, address) else connect_ex(sock, address)

    def guarded_sendto(sock: socket.socket, data: bytes, *flags_and_address: object) -> int:
        if leaves(sock, flags_and_address[-1]):
            raise OSError(errno.ENETUNREACH, "refused by the tests' network guard")
        return sendto(sock, data, *flags_and_address)

    def guarded(look_up: Callable) -> Callable:
        def looked_up(host: object, *args: object, **kwargs: object) -> object:
            if not is_here(host):
                report(f"name {host!r}")
                raise socket.gaierror(socket.EAI_NONAME, "refused by the tests' network guard")
            return look_up(host, *args, **kwargs)

        return looked_up

    socket.socket.connect, socket.socket.connect_ex = guarded_connect, guarded_connect_ex
    socket.socket.sendto = guarded_sendto
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        setattr(socket, name, guarded(getattr(socket, name)))


def is_here(host: object) -> bool:
    """Whether `host` is this machine by a loopback address, or by a name that needs no look-up elsewhere."""
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified
