"""An API server that gives the answers that a test has written down."""

from __future__ import annotations

import http.server
import json
from typing import Any, Final

Answer = tuple[int, dict[str, str], dict[str, Any]]
KUBE_SYSTEM: Final = {"kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}}


class Scripted(http.server.ThreadingHTTPServer):
    """Gives the answers that stand in `answers`, in their order; the last one again and again. A 0 closes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[Answer] = []
        self.asked: list[str] = []
        self.bodies: list[Any] = []


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Scripted

    def _answer(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/api/v1/namespaces/kube-system":
            status, headers, body = 200, dict[str, str](), KUBE_SYSTEM
        else:
            self.server.asked.append(f"{self.command} {self.path}")
            self.server.bodies.append(json.loads(sent) if sent else None)
            answers = self.server.answers
            status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
        if not status:
            self.close_connection = True
            return
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - the library calls them so

    def log_message(self, *_: object) -> None:
        pass
