"""The command `baton-fastcgi`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from baton_fastcgi.master import LOAD_FAILED, LoadError
from baton_fastcgi.serving import serve_asgi, serve_wsgi
from baton_fastcgi.settings import Settings, SettingsError
from baton_fastcgi.version import __version__

_DEFAULTS = Settings()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0, 1 if it failed, 2 if it was misused, 3 if there
    is no such application."""
    options = _parser().parse_args(arguments)
    sys.path.insert(0, os.path.abspath(options.chdir))
    try:
        os.chdir(options.chdir)
        settings = Settings(
            processes=_processes(options),
            threads=options.threads,
            connections=options.connections,
            requests_max=options.requests_max,
            root_path=options.root_path,
            graceful_s=options.graceful,
        )
        serve = serve_asgi if options.asgi else serve_wsgi
        return serve(options.application, bind=options.bind, fd=options.fd, mode=options.mode, settings=settings)
    except SettingsError as error:
        sys.stderr.write(f"baton-fastcgi: {error}\n")
        return 2
    except LoadError as error:
        error.print()
        return LOAD_FAILED
    except OSError as error:
        sys.stderr.write(f"baton-fastcgi: {options.bind or options.chdir}: {error.strerror or error}\n")
        return 1


def _processes(options: argparse.Namespace) -> int:
    if options.processes is not None:
        return int(options.processes)
    # A supervisor that passes a socket also supervises the process.
    return 0 if options.fd is not None else os.cpu_count() or 1


def _octal(text: str) -> int:
    mode = int(text, 8)
    if not 0 <= mode <= 0o777:
        raise ValueError
    return mode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="baton-fastcgi",
        description="Serves a WSGI or ASGI application over FastCGI.",
        epilog="SIGTERM, SIGINT: finish requests in flight, then end. SIGHUP: reload the application.",
    )
    parser.add_argument("application", help="module:name of the application; the name is 'application' if left out")
    address = parser.add_mutually_exclusive_group(required=True)
    address.add_argument("--bind", metavar="ADDRESS", help="unix:PATH, HOST:PORT or [IPV6]:PORT")
    address.add_argument("--fd", type=int, metavar="N", help="a listening socket that is open already; servers use 0")
    add = parser.add_argument
    add("--mode", type=_octal, metavar="OCTAL", help="permission of the unix socket (default: as umask says)")
    add("--asgi", action="store_true", help="the application is ASGI (default: WSGI)")
    add(
        "--processes",
        type=int,
        metavar="N",
        help="processes that serve; 0: this one alone, under another supervisor "
        "(default: one for each CPU, with --fd 0)",
    )
    add("--threads", type=int, default=_DEFAULTS.threads, metavar="N", help="WSGI: threads of a process (%(default)s)")
    add(
        "--connections",
        type=int,
        default=_DEFAULTS.connections,
        metavar="N",
        help="ASGI: connections of a process (%(default)s)",
    )
    add(
        "--requests-max",
        type=int,
        default=_DEFAULTS.requests_max,
        metavar="N",
        help="requests after which a process is replaced; 0: never (%(default)s)",
    )
    add("--root-path", metavar="PATH", help="where the application is mounted (default: as the server says)")
    add(
        "--graceful",
        type=float,
        default=_DEFAULTS.graceful_s,
        metavar="SECONDS",
        help="how long requests may take to end after SIGTERM (%(default)s)",
    )
    add("--chdir", default=".", metavar="DIR", help="where to work and to import from (default: here)")
    add("--version", action="version", version=f"%(prog)s {__version__}")
    return parser
