"""The listening socket: created from an address, or inherited."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from dataclasses import dataclass

from baton_fastcgi.settings import SettingsError

# The descriptor of a FastCGI application's listening socket (FastCGI specification, section 2.2).
FCGI_LISTENSOCK_FILENO = 0

# As many as the kernel allows (net.core.somaxconn): a busy application must not refuse connections.
_BACKLOG = 4096
_HOST_AND_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:\[\]]*)):([0-9]{1,5})").fullmatch


def listen(bind: str, mode: int | None = None) -> socket.socket:
    """Listens on `unix:PATH`, `HOST:PORT` or `[IPV6]:PORT`. `mode` is the permission of the socket's file.

    Raises `SettingsError` for an address that is none, OSError if it cannot be listened on.
    """
    if bind.startswith("unix:"):
        return _listen_unix(bind[len("unix:") :], mode)
    matched = _HOST_AND_PORT(bind)
    if matched is None or int(matched[3]) > 65_535:
        raise SettingsError(f"{bind!r} is no address: unix:PATH, HOST:PORT or [IPV6]:PORT is wanted")
    host = matched[1] or matched[2] or "127.0.0.1"
    family, kind, protocol, _, address = socket.getaddrinfo(host, int(matched[3]), type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited by accepted connections: records are sent whole, there is nothing to wait for.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind(address)
    listener.listen(_BACKLOG)
    return listener


def _listen_unix(path: str, mode: int | None) -> socket.socket:
    if not path:
        raise SettingsError("unix: needs a path")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _remove_stale(path)
    listener.bind(path)
    if mode is not None:
        os.chmod(path, mode)
    listener.listen(_BACKLOG)
    return listener


def _remove_stale(path: str) -> None:
    """Removes the file of a socket that has no listener."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:
                os.unlink(path)


@dataclass(frozen=True)
class SocketFile:
    """The file of a Unix socket that this process has bound."""

    path: str
    identity: tuple[int, int]
    pid: int

    @staticmethod
    def of(listener: socket.socket) -> SocketFile | None:
        """That of a socket which has just been bound; None if it has no file."""
        name = listener.getsockname()
        if listener.family != socket.AF_UNIX or not isinstance(name, str):
            return None
        # The application may change its working directory.
        path = os.path.abspath(name)
        return SocketFile(path, _identity(path), os.getpid())

    def remove(self) -> None:
        """Removes it, unless another file has replaced it, or this is a process that the application has forked."""
        try:
            if os.getpid() == self.pid and _identity(self.path) == self.identity:
                os.unlink(self.path)
        except OSError:
            # It is gone, or belongs to a folder that this user may not write to: it is stale, and will be replaced.
            pass


def _identity(path: str) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_dev, status.st_ino


def inherit(descriptor: int) -> socket.socket:
    """Takes a listening socket that was open when this process started. Raises `SettingsError` if it is none."""
    try:
        listener = socket.socket(fileno=os.dup(descriptor))
        if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return listener
    except OSError:
        pass
    raise SettingsError(f"descriptor {descriptor} is not a listening socket")
