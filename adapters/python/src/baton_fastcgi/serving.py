"""The functions that serve an application: address, processes, threads or event loop."""

from __future__ import annotations

import importlib
import socket
from typing import Any, Callable, cast

from baton_fastcgi import asgi, wsgi
from baton_fastcgi.control import Control
from baton_fastcgi.lifespan import StartUpError
from baton_fastcgi.listening import SocketFile, inherit, listen
from baton_fastcgi.looped import LoopedServer
from baton_fastcgi.master import LoadError, Master
from baton_fastcgi.settings import Settings, SettingsError
from baton_fastcgi.threaded import ThreadedServer


def serve_wsgi(
    application: wsgi.Application | str,
    *,
    bind: str | None = None,
    fd: int | None = None,
    mode: int | None = None,
    settings: Settings | None = None,
) -> int:
    """Serves a WSGI application until SIGTERM or SIGINT, and returns the exit status for the process.

    `application` is the callable, or `module:name`, which each process imports for itself, so that SIGHUP brings
    changed code. The address is either `bind` (`unix:PATH`, `HOST:PORT`, with `mode` as the permission of the path) or
    `fd`, a listening socket that is open. Has to be called in the main thread.

    Raises `SettingsError` for settings that make no sense, and OSError if the address cannot be listened on.
    """
    settings = (settings or Settings()).check()
    listener, file = _listener(bind, fd, mode)

    def serve(control: Control) -> None:
        loaded = cast(wsgi.Application, _load(application))
        ThreadedServer(loaded, listener, settings, control).run()

    return _serve(serve, settings, file)


def serve_asgi(
    application: asgi.Application | str,
    *,
    bind: str | None = None,
    fd: int | None = None,
    mode: int | None = None,
    settings: Settings | None = None,
) -> int:
    """Serves an ASGI application (version 3); like `serve_wsgi` in all else."""
    settings = (settings or Settings()).check()
    listener, file = _listener(bind, fd, mode)

    def serve(control: Control) -> None:
        loaded = cast(asgi.Application, _load(application))
        try:
            LoopedServer(loaded, listener, settings, control).run()
        except StartUpError as error:
            raise LoadError from error

    return _serve(serve, settings, file)


def _listener(bind: str | None, fd: int | None, mode: int | None) -> tuple[socket.socket, SocketFile | None]:
    """The listening socket, and its file if that is ours."""
    if bind is not None and fd is None:
        listener = listen(bind, mode)
        return listener, SocketFile.of(listener)
    if fd is not None and bind is None:
        return inherit(fd), None
    raise SettingsError("either bind or fd must be given")


def _serve(serve: Callable[[Control], None], settings: Settings, file: SocketFile | None) -> int:
    try:
        if settings.processes:
            return Master(serve, settings.processes, settings.graceful_s).run()
        serve(Control())
        return 0
    finally:
        if file is not None:
            file.remove()


def _load(application: Any) -> Any:
    if not isinstance(application, str):
        return application
    module_name, _, name = application.partition(":")
    try:
        loaded: Any = importlib.import_module(module_name)
        for part in (name or "application").split("."):
            loaded = getattr(loaded, part)
    except Exception as error:
        raise LoadError from error
    if not callable(loaded):
        raise LoadError from TypeError(f"{application!r} is not callable")
    return loaded
