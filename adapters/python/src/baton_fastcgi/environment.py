"""From FastCGI parameters to the WSGI environ (PEP 3333), and where an application is mounted."""

from __future__ import annotations

from typing import Any

from baton_fastcgi.request import Request

_DEFAULTS = {
    "REQUEST_METHOD": "GET",
    "QUERY_STRING": "",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.0",
}
# A client's `Proxy` field must not become a setting of the HTTP libraries that the application uses (httpoxy).
_NEVER = "HTTP_PROXY"
_ABSENT_IF_EMPTY = ("CONTENT_TYPE", "CONTENT_LENGTH")


def wsgi_environ(request: Request, root_path: bytes | None) -> dict[str, Any]:
    """The environ without `wsgi.input`, `wsgi.errors`, `baton.body_views` and what depends on the process.

    Bytes of the request become characters of the same number (latin-1), as PEP 3333 wants it.
    """
    environ: dict[str, Any] = dict(_DEFAULTS)
    for name, value in request.params.items():
        environ[name.decode("latin-1")] = value.decode("latin-1")
    environ.pop(_NEVER, None)
    for key in _ABSENT_IF_EMPTY:
        if not environ.get(key, "-"):
            del environ[key]
    script_name, path_info = split_path(request, root_path)
    environ["SCRIPT_NAME"] = script_name.decode("latin-1")
    environ["PATH_INFO"] = path_info.decode("latin-1")
    environ["wsgi.version"] = (1, 0)
    environ["wsgi.url_scheme"] = url_scheme(request)
    environ["wsgi.run_once"] = False
    # Reading to the end needs no CONTENT_LENGTH: FastCGI marks the end of the body.
    environ["wsgi.input_terminated"] = True
    return environ


def split_path(request: Request, root_path: bytes | None) -> tuple[bytes, bytes]:
    """SCRIPT_NAME and PATH_INFO: where the application is mounted, and the path below.

    With `root_path` the application is mounted there. Else the server's division holds, and if it has sent no PATH_INFO
    (nginx's customary parameters), then all of the path is below.
    """
    script_name = request.param(b"SCRIPT_NAME")
    path_info = request.params.get(b"PATH_INFO")
    path = script_name + (path_info or b"")
    if root_path is not None:
        root = root_path.rstrip(b"/")
        if path == root or path.startswith(root + b"/"):
            return root, path[len(root) :]
        return b"", path
    if path_info is None:
        return b"", path
    return script_name.rstrip(b"/") if path_info.startswith(b"/") else script_name, path_info


def url_scheme(request: Request) -> str:
    """`http` or `https`."""
    is_secure = request.param(b"REQUEST_SCHEME") == b"https" or request.param(b"HTTPS").lower() in (
        b"on",
        b"1",
        b"https",
    )
    return "https" if is_secure else "http"
