"""The process that watches over those that serve: starts them, and starts them anew when they end.

A process that ends by itself with status 0 has answered its share of requests and is replaced at once; one that fails
is replaced after a wait that doubles from failure to failure. SIGHUP starts a new generation, and each of its processes
that is ready replaces one of the old, which answers what it has begun. SIGTERM and SIGINT end all of them in this way.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from types import FrameType
from typing import Callable

from baton_fastcgi.control import Control

# The exit status of a process that could not load its application.
LOAD_FAILED = 3

_DELAY_FIRST_S = 0.1
_DELAY_MAX_S = 10.0
# A process that has served for as long has not failed at its start.
_SETTLED_S = 10.0

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

Serve = Callable[[Control], None]


class LoadError(Exception):
    """The application cannot be loaded; its cause is the exception's."""

    def print(self) -> None:
        """Writes the traceback of the cause to the standard error."""
        cause = self.__cause__ or self
        traceback.print_exception(type(cause), cause, cause.__traceback__)


@dataclass
class _Worker:
    pid: int
    generation: int
    # Becomes readable when the process is ready, or has ended.
    ready: int | None
    started: float
    is_ready: bool = False
    # When it is killed, if it has been asked to end.
    deadline: float | None = None

    def close_ready(self) -> None:
        if self.ready is not None:
            os.close(self.ready)
            self.ready = None


@dataclass
class Master:
    """Runs `serve` in `processes` processes."""

    serve: Serve
    processes: int
    graceful_s: float
    _workers: dict[int, _Worker] = field(default_factory=dict)
    _generation: int = 0
    _generations: int = 0
    _settled_generation: int | None = None
    _failures: int = 0
    _next_start: float = 0.0
    _is_stopping: bool = False
    _status: int = 0

    def run(self) -> int:
        """Returns the exit status, when all processes have ended after SIGTERM or SIGINT, or none could start."""
        self._signals, wakeup = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # The processes hold the other end of this pipe: its end of file tells them that this process has ended.
        self._lifeline, self._life = os.pipe2(os.O_CLOEXEC)
        for number in _SIGNALS:
            signal.signal(number, _note)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        while True:
            self._reap()
            if self._is_stopping and not self._workers:
                return self._status
            now = time.monotonic()
            self._start_missing(now)
            self._kill_late(now)
            self._wait(now)

    # ----- starting

    def _start_missing(self, now: float) -> None:
        if self._is_stopping or now < self._next_start:
            return
        current = sum(worker.generation == self._generation for worker in self._workers.values())
        for _ in range(self.processes - current):
            self._start(now)

    def _start(self, now: float) -> None:
        ready, say_ready = os.pipe2(os.O_CLOEXEC)
        sys.stdout.flush()
        sys.stderr.flush()
        # Until the new process has its own handlers, a signal to it would run ours.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            os.close(self._life)
            os._exit(self._be_worker(say_ready))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(say_ready)
        self._workers[pid] = _Worker(pid, self._generation, ready, now)

    def _be_worker(self, say_ready: int) -> int:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for worker in self._workers.values():
                worker.close_ready()
            control = Control(lifeline=self._lifeline, ready=say_ready)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            self.serve(control)
            status = 0
        except LoadError as error:
            error.print()
            status = LOAD_FAILED
        except BaseException:
            traceback.print_exc()
            status = 1
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            status = status or 1
        return status

    # ----- events

    def _wait(self, now: float) -> None:
        poll = select.poll()
        poll.register(self._signals, select.POLLIN)
        starting = {worker.ready: worker for worker in self._workers.values() if worker.ready is not None}
        for ready in starting:
            poll.register(ready, select.POLLIN)
        times = [worker.deadline for worker in self._workers.values() if worker.deadline is not None]
        if not self._is_stopping and self._next_start > now:
            times.append(self._next_start)
        timeout = max(0.0, min(times) - now) * 1000 + 1 if times else None
        for descriptor, _ in poll.poll(timeout):
            if descriptor == self._signals:
                self._handle_signals()
            else:
                self._handle_ready(descriptor, starting[descriptor])

    def _handle_signals(self) -> None:
        try:
            numbers = os.read(self._signals, 64)
        except BlockingIOError:
            return
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._stop(0)
        elif signal.SIGHUP in numbers and not self._is_stopping:
            self._generations += 1
            self._generation = self._generations
            self._failures = 0
            self._next_start = 0.0

    def _handle_ready(self, descriptor: int, worker: _Worker) -> None:
        said = os.read(descriptor, 1)
        worker.close_ready()
        if not said:
            return
        worker.is_ready = True
        if worker.generation != self._generation:
            return
        self._settled_generation = worker.generation
        old = [each for each in self._workers.values() if each.generation != self._generation and each.deadline is None]
        ready = sum(each.is_ready and each.generation == self._generation for each in self._workers.values())
        # The last one of the new generation ends all remaining old ones.
        for each in old if ready >= self.processes else old[:1]:
            self._end(each)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self._workers.pop(pid, None)
            if worker is not None:
                worker.close_ready()
                self._note_end(worker, status)

    def _note_end(self, worker: _Worker, wait_status: int) -> None:
        now = time.monotonic()
        if self._is_stopping or worker.deadline is not None or wait_status == 0:
            return
        if os.WIFEXITED(wait_status) and os.WEXITSTATUS(wait_status) == LOAD_FAILED and not worker.is_ready:
            self._note_load_failure(worker)
            return
        lived = now - worker.started
        self._failures = 1 if lived > _SETTLED_S else self._failures + 1
        delay = min(_DELAY_MAX_S, _DELAY_FIRST_S * 2 ** min(self._failures - 1, 10))
        self._next_start = now + delay
        _say(f"process {worker.pid} {_how(wait_status)} after {lived:.1f}s; the next one starts in {delay:.1f}s")

    def _note_load_failure(self, worker: _Worker) -> None:
        if worker.generation != self._generation:
            return
        if self._settled_generation is None:
            _say("the application cannot be loaded")
            self._stop(1)
        elif self._settled_generation == self._generation:
            # It could be loaded before: its files are just being changed, perhaps.
            self._next_start = time.monotonic() + _DELAY_MAX_S
        else:
            _say("the application cannot be reloaded; the old processes go on")
            self._generation = self._settled_generation

    # ----- ending

    def _stop(self, status: int) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._status = status
        for worker in self._workers.values():
            self._end(worker)

    def _end(self, worker: _Worker) -> None:
        os.kill(worker.pid, signal.SIGTERM)
        if worker.deadline is None:
            worker.deadline = time.monotonic() + self.graceful_s

    def _kill_late(self, now: float) -> None:
        for worker in self._workers.values():
            if worker.deadline is not None and now >= worker.deadline:
                _say(f"process {worker.pid} did not end in time and is killed")
                os.kill(worker.pid, signal.SIGKILL)
                worker.deadline = now + self.graceful_s + 1


def _how(wait_status: int) -> str:
    """How a process ended, in the words of `baton run`."""
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    return f"exited with status {os.WEXITSTATUS(wait_status)}"


def _say(text: str) -> None:
    sys.stderr.write(f"baton-fastcgi: {text}\n")


def _note(_number: int, _frame: FrameType | None) -> None:
    """The wake-up pipe carries the signal."""
