"""The guard that every test and the served app run under."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.guard.network_guard import is_here

GUARD = Path(__file__).with_name("guard")
OUTSIDE = [
    ("192.0.2.1", 9),
    ("2001:db8::1", 9),
    ("::ffff:192.0.2.1", 9),
    ("10.0.0.1", 9),
]


def family(address: tuple[str, int]) -> int:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


@pytest.mark.parametrize("address", OUTSIDE, ids=lambda address: address[0])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_connections_to_elsewhere_are_refused_and_kept(refused_addresses, address, kind):
    with socket.socket(family(address), kind) as sock:
        with pytest.raises(OSError, match="network guard"):
            sock.connect(address)
        assert sock.connect_ex(address) == errno.ENETUNREACH
        with pytest.raises(OSError, match="network guard"):
            sock.sendto(b"x", address)
    assert refused_addresses == [f"{address[0]}:9"] * 3
    refused_addresses.clear()


@pytest.mark.parametrize(
    "look_up", [socket.gethostbyname, socket.gethostbyname_ex, lambda name: socket.getaddrinfo(name, 80)]
)
def test_names_of_elsewhere_are_refused_and_kept(refused_addresses, look_up):
    with pytest.raises(socket.gaierror, match="network guard"):
        look_up("host.invalid")
    assert refused_addresses == ["name 'host.invalid'"]
    refused_addresses.clear()


def test_a_library_that_swallows_the_error_is_seen_all_the_same(refused_addresses):
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen("http://192.0.2.1:9/", timeout=1)
    assert refused_addresses == ["name '192.0.2.1'"]
    refused_addresses.clear()


def test_a_connection_within_the_machine_is_left_alone(refused_addresses):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        for host in ("127.0.0.1", "localhost"):
            assert socket.getaddrinfo(host, server.getsockname()[1])
        socket.create_connection(server.getsockname()).close()
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"x")
    assert refused_addresses == []


def test_what_is_here_and_what_is_elsewhere():
    here = [None, "", "localhost", b"localhost", "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"]
    elsewhere = ["localhost.evil.example", "128.0.0.1", "fe80::1", "127.0.0.1.example", "::ffff:1.1.1.1", "x"]
    assert all(map(is_here, here)) and not any(map(is_here, elsewhere))


@pytest.mark.parametrize(("code", "lines"), [("pass", []), ("s.connect_ex(('192.0.2.1', 9))", ["192.0.2.1:9"])])
def test_a_process_of_its_own_writes_what_was_refused(tmp_path, code, lines):
    environment = {**os.environ, "PYTHONPATH": str(GUARD), "REFUSED_ADDRESSES": str(tmp_path / "refused")}
    command = [sys.executable, "-c", f"import socket; s = socket.socket(); {code}"]
    subprocess.run(command, env=environment, check=True, timeout=60)
    assert (tmp_path / "refused").read_text().splitlines() == lines


def test_a_test_that_reaches_out_fails(pytester_folder):
    """In a run of its own under this suite's conftest."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(pytester_folder)],
        cwd=GUARD.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 passed, 1 error" in done.stdout and "192.0.2.1:9" in done.stdout, done.stdout


@pytest.fixture
def pytester_folder(tmp_path) -> Path:
    (tmp_path / "conftest.py").write_text("from tests.conftest import refused_addresses\n")
    (tmp_path / "test_it.py").write_text(
        "import socket\n\n\ndef test_it():\n    socket.socket().connect_ex(('192.0.2.1', 9))\n"
    )
    return tmp_path
