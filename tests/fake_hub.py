"""A small Hugging Face hub on this machine, with the routes that the client uses for a model's files."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

MAIN, OLD = "a" * 40, "b" * 40


@dataclass
class FakeHub:
    """Repositories by name, each commit with its files. `gated` ones list but do not hand out, as on the real hub."""

    commits: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=lambda: {"main": MAIN, "old": OLD, MAIN: MAIN, OLD: OLD})
    gated: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    status: int = 200
    handed_out: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        if self.status != 200:
            return self.status, {}, b"{}"
        match = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", path)
        if match is None:
            match = re.fullmatch(r"/([^/]+/[^/]+)/(resolve)/([^/]+)/(.+)", path)
        if match is None:
            return 404, {}, b"{}"
        repo, kind, revision = match[1], match[2], unquote(match[3] or "main")
        if repo not in self.commits:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        commit = self.names.get(revision)
        files = self.commits[repo].get(commit)
        if files is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        if kind == "resolve":
            if repo in self.gated:
                return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
            if match[4] in self.broken:
                return 403, {}, b"{}"
            content = files[match[4]]
            return 200, {"ETag": f'"{_id(content)}"', "X-Repo-Commit": commit}, content
        if kind == "tree":
            listed = [{"type": "file", "path": n, "size": len(c), "oid": _id(c)} for n, c in files.items()]
            return 200, {}, json.dumps(listed).encode()
        siblings = [{"rfilename": n, "size": len(c), "blobId": _id(c)} for n, c in files.items()]
        return 200, {}, json.dumps({"id": repo, "sha": commit, "siblings": siblings}).encode()


def _id(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@contextmanager
def serve() -> Iterator[tuple[FakeHub, str]]:
    """A running FakeHub and its address."""
    fake = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            status, headers, content = fake.answer(path)
            if self.command == "GET" and "/resolve/" in path and status == 200:
                fake.handed_out.append(path.split("/", 5)[5])
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(content))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield fake, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
