"""Starts the command `baton-fastcgi` for a test, as a supervisor would, and ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server_side import LIMIT_S, Application

HERE = Path(__file__).parent


class Served:
    """A running command; `path` is its socket, `log` its standard error."""

    def __init__(self, application: str, *options: str, bind: str | None = None, chdir: Path = HERE) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="baton-fastcgi-")
        self.path = f"{self.folder.name}/app.sock"
        self._log = open(f"{self.folder.name}/log", "w+b")  # noqa: SIM115 - closed in stop()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "baton_fastcgi", application, "--bind", bind or f"unix:{self.path}"),
                *("--chdir", str(chdir), *options),
            ],
            stderr=self._log,
        )

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def connect(self) -> Application:
        return Application(self.path)

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text()

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log, f"{text!r} in the log")

    def workers(self) -> list[int]:
        """The processes that the command has started."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in path.read_text().split()]

    def open_descriptors(self, pid: int) -> int:
        return len(os.listdir(f"/proc/{pid}/fd"))

    def stop(self) -> int:
        """Ends it as a supervisor does; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            for pid in [*self.workers(), self.process.pid]:
                os.kill(pid, signal.SIGKILL)
            raise
        finally:
            self._log.close()
            self.folder.cleanup()


def wait_until(condition: object, what: str) -> None:
    """Waits for a condition, with a generous limit."""
    assert callable(condition)
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)
