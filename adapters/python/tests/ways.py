"""Paths from a client to an application: each transport with the tests as the server, and nginx as the server."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from running import Served, wait_until
from server_side import FIELDS, LIMIT_S, Application, as_http, unchunk


@dataclass
class Answer:
    """An answer as a client sees it; names of fields in lower case, fields of the server left out."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes
    # The application's error stream, if the path shows it.
    stderr: bytes = b""
    is_complete: bool = True

    def field(self, name: str) -> str | None:
        return next((value for key, value in self.fields if key == name), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key == name]


class Way(Protocol):
    """Brings a request to the application and its answer back."""

    name: str

    def ask(self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer: ...

    def close(self) -> None: ...


_NOT_COMPARED = ("date", "server", "connection", "transfer-encoding", "keep-alive")


def _parse(wire: bytes, stderr: bytes, is_complete: bool) -> Answer:
    head, _, body = wire.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    pairs = [line.partition(": ")[::2] for line in lines]
    fields = [(name.lower(), value) for name, value in pairs if name.lower() not in _NOT_COMPARED]
    return Answer(int(status_line.split(" ")[1]), fields, body, stderr, is_complete)


class DirectWay:
    """The tests play the server, with one transport, on one connection to the application."""

    def __init__(self, served: Served, transport: str) -> None:
        self._served = served
        self.name = transport
        self._app: Application | None = None

    def ask(self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
        if self._app is None:
            self._app = self._served.connect()
        result = getattr(self._app, self.name)(method, target, headers, body)
        if not result.is_complete:
            self.close()
        if self.name == "passfd" and result.answered is not None:
            assert FIELDS in result.wire
            is_complete = bool(result.answered.flags & 1)
            return _parse(unchunk(result.wire) if is_complete else result.wire, result.stderr, is_complete)
        return _parse(as_http(result, method), result.stderr, result.is_complete)

    def close(self) -> None:
        if self._app is not None:
            self._app.close()
            self._app = None


_CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log info;
events {{ worker_connections 64; }}
http {{
    access_log off; client_max_body_size 100m; client_body_temp_path {folder}/body;
    fastcgi_temp_path {folder}/fastcgi; proxy_temp_path {folder}/proxy; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream app {{ server unix:{socket}; keepalive 2; }}
    server {{
        listen unix:{folder}/http;
        location / {{
            include /etc/nginx/fastcgi_params; fastcgi_pass {upstream}; fastcgi_keep_conn {keep};
            fastcgi_request_buffering {buffering};
        }}
    }}
}}
"""


class HttpWay:
    """A real server before the application, and a client of it."""

    def __init__(self, name: str, command: list[str], address: str | tuple[str, int], log: Path) -> None:
        self.name = name
        self._address = address
        self._log = log
        with open(log, "ab") as output:
            self._process = subprocess.Popen(command, stderr=output)

    def ask(self, method: str, target: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
        connection = http.client.HTTPConnection("shop.test", timeout=LIMIT_S)
        connection.sock = self._connect()
        try:
            connection.request(method, target, body or None, headers or {})
            response = connection.getresponse()
            fields = [(name.lower(), value) for name, value in response.getheaders()]
            kept = [(name, value) for name, value in fields if name not in _NOT_COMPARED]
            try:
                return Answer(response.status, kept, response.read())
            except http.client.IncompleteRead as cut:
                return Answer(response.status, kept, cut.partial, is_complete=False)
        finally:
            connection.close()

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + LIMIT_S
        while True:
            sock = socket.socket(socket.AF_UNIX if isinstance(self._address, str) else socket.AF_INET)
            sock.settimeout(LIMIT_S)
            try:
                sock.connect(self._address)
                return sock
            except OSError:
                sock.close()
                assert time.monotonic() < deadline, self.log
                time.sleep(0.02)

    @property
    def log(self) -> str:
        """The server's error log."""
        return self._log.read_text()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT_S)


_NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log info;
events {{ worker_connections 64; }}
http {{
    access_log off; client_max_body_size 100m; client_body_temp_path {folder}/body;
    fastcgi_temp_path {folder}/fastcgi; proxy_temp_path {folder}/proxy; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream app {{ server unix:{socket}; keepalive 2; }}
    server {{
        listen unix:{folder}/http;
        location / {{
            include /etc/nginx/fastcgi_params; fastcgi_pass {upstream}; fastcgi_keep_conn {keep};
            fastcgi_request_buffering {buffering};
        }}
    }}
}}
"""


class NginxWay(HttpWay):
    """nginx with its customary parameters; `nginx-kept` keeps its connections to the application."""

    def __init__(self, served: Served, name: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="baton-fastcgi-nginx-")
        folder = self._folder.name
        keep = name == "nginx-kept"
        configuration = _NGINX.format(
            folder=folder,
            socket=served.path,
            upstream="app" if keep else f"unix:{served.path}",
            keep="on" if keep else "off",
            buffering="on" if keep else "off",
        )
        Path(folder, "conf").write_text(configuration)
        nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin")
        assert nginx is not None, "nginx is missing: apt-get install nginx"
        # nginx does not wait for an application that has not started.
        served.connect().close()
        command = [nginx, "-c", f"{folder}/conf", "-e", f"{folder}/error.log"]
        super().__init__(name, command, f"{folder}/http", Path(folder, "error.log"))

    def close(self) -> None:
        super().close()
        self._folder.cleanup()


_BATON = """
[server]
user = "root"
[[site]]
listen = "127.0.0.1:0"
root = "{folder}"
[[site.route]]
path = "/"
fastcgi = {{ to = "unix:{socket}", transport = "{transport}", named_files = ["{named_files}"] }}
"""
# A built Baton to test with, if there is one.
BATON = os.environ.get("BATON")


class BatonWay(HttpWay):
    """Baton itself; the name ends with the transport to use."""

    def __init__(self, served: Served, name: str, named_files: Path = Path("/nonexistent")) -> None:
        assert BATON is not None
        self._folder = tempfile.TemporaryDirectory(prefix="baton-fastcgi-baton-")
        folder = Path(self._folder.name)
        (folder / "baton.toml").write_text(
            _BATON.format(
                folder=folder,
                socket=served.path,
                transport=name.partition("-")[2],
                named_files=named_files if named_files.exists() else folder,
            )
        )
        served.connect().close()
        command = [BATON, "run", "--config", str(folder / "baton.toml")]
        super().__init__(name, command, ("127.0.0.1", 0), folder / "log")
        # It has chosen a port, and prints it.
        serves = re.compile(r"http://127\.0\.0\.1:(\d+)/")
        wait_until(lambda: serves.search(self.log), "Baton serves")
        told = serves.search(self.log)
        assert told is not None
        self._address = ("127.0.0.1", int(told[1]))

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
