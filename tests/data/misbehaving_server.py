"""An HTTP server on this machine that can be told to behave badly."""

import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Behaviour:
    """What the server sends, and how it goes wrong; `ranges` are the Range headers it was sent."""

    content: bytes
    cuts: list[int] = field(default_factory=list)  # how many bytes to send before cutting off, per request
    statuses: list[int] = field(default_factory=list)  # answers to give first
    honours_ranges: bool = True
    wrong_range: bool = False
    announces_length: bool = True
    resets: bool = False  # a cut is a reset of the connection
    ranges: list[str | None] = field(default_factory=list)
    url: str = ""


def handler_for(behaviour: Behaviour) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            behaviour.ranges.append(wanted)
            if behaviour.statuses:
                self.send_error(behaviour.statuses.pop(0))
                return
            start = self.start_of(wanted)
            body = behaviour.content[start:]
            self.send_response(206 if start else 200)
            if start:
                shown = 0 if behaviour.wrong_range else start
                total = len(behaviour.content)
                self.send_header("Content-Range", f"bytes {shown}-{total - 1}/{total}")
            if behaviour.announces_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut = behaviour.cuts.pop(0) if behaviour.cuts else len(body)
            self.wfile.write(body[:cut])
            if cut < len(body) and behaviour.resets:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

        def start_of(self, wanted: str | None) -> int:
            match = re.fullmatch(r"bytes=(\d+)-", wanted or "")
            return int(match[1]) if match and behaviour.honours_ranges else 0

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Handler


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Behaviour]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_for(behaviour)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        behaviour.url = f"http://127.0.0.1:{server.server_address[1]}/file.bin"
        try:
            yield behaviour
        finally:
            server.shutdown()
            thread.join()
