"""Settings from the command's options and the functions' arguments."""

from __future__ import annotations

from dataclasses import dataclass


class SettingsError(ValueError):
    """An invalid setting; the message says which and why."""


@dataclass(frozen=True)
class Settings:
    """All settings but the application and the address. `check` reports errors."""

    # Processes that serve; 0: this process itself, without one that watches over it.
    processes: int = 1
    # WSGI: requests that one process answers at once.
    threads: int = 1
    # ASGI: connections that one process holds at most.
    connections: int = 512
    # Requests after which a process is replaced; 0: never.
    requests_max: int = 0
    # Where the application is mounted; None: as the server says.
    root_path: str | None = None
    # How long requests in flight may take after SIGTERM before their process is killed, in seconds.
    graceful_s: float = 30.0

    def check(self) -> Settings:
        """Returns the settings, or raises `SettingsError`."""
        for name, least in (("processes", 0), ("threads", 1), ("connections", 1), ("requests_max", 0)):
            value = getattr(self, name)
            if not least <= value <= 1_000_000:
                raise SettingsError(f"{name} is {value}, but must be {least} or more")
        if self.graceful_s < 0:
            raise SettingsError("graceful_s is less than nothing")
        if self.root_path is not None and self.root_path and not self.root_path.startswith("/"):
            raise SettingsError(f"root_path is {self.root_path!r}, but has to begin with '/'")
        return self

    @property
    def root_path_bytes(self) -> bytes | None:
        """`root_path` as it comes over FastCGI."""
        return None if self.root_path is None else self.root_path.encode("utf-8")
