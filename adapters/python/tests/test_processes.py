"""Processes and threads: start, stop, reload, recycling, death, and distribution of connections."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from running import HERE, Served, wait_until
from server_side import LIMIT_S, NO_BODY, Application, Client, begin, params_records, request_params
from wsgi_app import pattern

# Each process that has loaded it leaves a letter.
APPLICATION = """
VERSION = {version!r}
with open(VERSION + b".loaded", "a") as loaded:
    loaded.write("x")
def application(environ, start_response):
    start_response("200 OK", [])
    return [VERSION]
"""


def pid_of(app: Application) -> int:
    return int(app.plain("GET", "/pid").body)


def start(app: Application, target: str) -> None:
    app.send(begin() + params_records(request_params("GET", target, {}, b"")) + NO_BODY)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_sigterm_lets_requests_end(tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    options = ("--processes", "1", "--threads", "2")
    with Served("wsgi_app", *options) as served, served.connect() as app, served.connect() as idle:
        pid_of(idle)
        start(app, f"/waits_for_file?begun={begun}&go={go}")
        wait_until(begun.exists, "the request to begin")
        served.process.send_signal(signal.SIGTERM)
        # Idle connections are closed, the busy one is not.
        assert idle.next_record() is None
        go.touch()
        result = app.result()
        assert (result.body, result.is_complete) == (b"went", True)
        assert app.next_record() is None
        assert served.process.wait(LIMIT_S) == 0


def test_a_request_that_does_not_end_is_killed_in_the_end(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with Served("wsgi_app", "--processes", "1", "--graceful", "0.2") as served, served.connect() as app:
        start(app, f"/waits_for_file?begun={begun}&go=/nonexistent")
        wait_until(begun.exists, "the request to begin")
        served.process.send_signal(signal.SIGINT)
        assert not app.result().is_complete
        assert served.process.wait(LIMIT_S) == 0


def test_a_worker_that_is_killed_is_replaced() -> None:
    with Served("wsgi_app", "--processes", "1") as served:
        with served.connect() as app:
            first = pid_of(app)
            os.kill(first, signal.SIGKILL)
            assert app.next_record() is None
        with served.connect() as app:
            assert pid_of(app) != first
        assert "was killed by signal 9 (SIGKILL) after" in served.log


@pytest.mark.parametrize("query", ["", "?late=100000"])
@pytest.mark.parametrize("transport", ["plain", "shm", "passfd"])
def test_an_application_that_dies_in_an_answer_never_looks_complete(transport: str, query: str) -> None:
    with Served("wsgi_app", "--processes", "1") as served:
        with served.connect() as app:
            result = getattr(app, transport)("GET", f"/dies{query}")
            assert not result.is_complete
            assert result.answered is None
            assert not result.wire.endswith(b"0\r\n\r\n")
        with served.connect() as app:
            assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_exits_in_the_application_answer_the_client_first() -> None:
    with Served("wsgi_app", "--processes", "1") as served:
        with served.connect() as app:
            first = pid_of(app)
            assert app.plain("GET", "/exits").status == b"500 Internal Server Error"
        with served.connect() as app:
            assert pid_of(app) != first


def test_a_process_is_recycled_after_its_requests() -> None:
    with Served("wsgi_app", "--processes", "1", "--requests-max", "3") as served:
        pids = []
        for _ in range(4):
            with served.connect() as app:
                pids += [pid_of(app) for _ in range(3)]
                assert app.next_record() is None
        assert [len(set(pids[at : at + 3])) for at in (0, 3, 6, 9)] == [1, 1, 1, 1]
        assert len(set(pids)) == 4
        assert served.log == ""


def test_the_end_of_the_watching_process_ends_the_others() -> None:
    with Served("wsgi_app", "--processes", "2") as served:
        with served.connect() as app:
            pid_of(app)
        workers = served.workers()
        assert len(workers) == 2
        os.kill(served.process.pid, signal.SIGKILL)
        served.process.wait()
        # They are not our children: their new parent may leave them as zombies, which hold nothing.
        wait_until(lambda: all(is_gone(pid) or is_zombie(pid) for pid in workers), "the workers to end")


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_sighup_loads_the_application_anew(tmp_path: Path) -> None:
    module = tmp_path / "versioned.py"
    module.write_text(APPLICATION.format(version=b"one"))
    with Served("versioned", "--processes", "2", chdir=tmp_path) as served:

        def answer() -> bytes:
            with served.connect() as app:
                return app.plain("GET", "/", keep=False).body

        def all_have(version: str) -> bool:
            loaded = tmp_path / f"{version}.loaded"
            return loaded.exists() and loaded.read_text() == "xx"

        # A process that loads slowly must not see the next version.
        wait_until(lambda: all_have("one"), "both processes")
        assert answer() == b"one"
        module.write_text(APPLICATION.format(version=b"second"))
        served.process.send_signal(signal.SIGHUP)
        wait_until(lambda: answer() == b"second", "the new version")
        wait_until(lambda: all_have("second"), "both new processes")
        wait_until(lambda: len(served.workers()) == 2, "the old processes to end")
        # An application that cannot be loaded changes nothing.
        old = served.workers()
        module.write_text("raise SystemError('half-written')")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for_log("the old processes go on")
        assert answer() == b"second"
        assert set(served.workers()) & set(old)
        assert "half-written" in served.log


def test_no_request_is_lost_in_a_reload() -> None:
    with Served("wsgi_app", "--processes", "2") as served:
        with served.connect() as app:
            before = pid_of(app)
        stop = threading.Event()
        pids: set[int] = set()
        failures: list[str] = []

        def ask() -> None:
            while not stop.is_set():
                with served.connect() as app:
                    result = app.plain("GET", "/pid", keep=False)
                    if not result.is_complete:
                        failures.append(repr(result))
                    else:
                        pids.add(int(result.body))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        old = set(served.workers())
        served.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not old & set(served.workers()) and pids - old, "new processes only")
        stop.set()
        for thread in threads:
            thread.join()
        assert before in old
        assert failures == []


def test_an_application_that_cannot_be_loaded_is_told() -> None:
    for application in ("no_such_module", "wsgi_app:no_such_name", "wsgi_app:TEXT"):
        for processes in ("0", "1"):
            with Served(application, "--processes", processes) as served:
                assert served.process.wait(LIMIT_S) != 0
                assert "Error" in served.log


def test_misuse_is_told(tmp_path: Path) -> None:
    socket_path = tmp_path / "file"
    socket_path.write_text("in the way")
    for arguments, status in (
        (["wsgi_app"], 2),
        (["wsgi_app", "--bind", "nonsense"], 2),
        (["wsgi_app", "--bind", "localhost:99999"], 2),
        (["wsgi_app", "--fd", "0"], 2),
        (["wsgi_app", "--bind", "unix:/x", "--threads", "0"], 2),
        (["wsgi_app", "--bind", f"unix:{socket_path}"], 1),
        (["wsgi_app", "--bind", "unix:/nonexistent/socket"], 1),
    ):
        command = [sys.executable, "-m", "baton_fastcgi", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
        assert done.returncode == status, arguments
        assert b"baton-fastcgi: " in done.stderr
        assert b"Traceback" not in done.stderr


def test_idle_connections_hold_no_thread() -> None:
    """As many connections as a server may keep, one process, one thread: all are answered, in any order."""
    with Served("wsgi_app", "--processes", "1") as served, contextlib.ExitStack() as stack:
        apps = [stack.enter_context(served.connect()) for _ in range(20)]
        for app in [*apps, *reversed(apps)]:
            assert app.plain("GET", "/size?n=5").body == pattern(5)


def test_connections_spread_over_processes() -> None:
    """A process that has a connection for each of its threads leaves the next one to those that have not."""
    with Served("wsgi_app", "--processes", "4", "--threads", "1") as served, contextlib.ExitStack() as stack:
        wait_until(lambda: len(served.workers()) == 4 and all(map(is_waiting, served.workers())), "the processes")
        # The order of wake-ups depends on the machine. Without fairness, one process would take them all.
        pids = {pid_of(stack.enter_context(served.connect())) for _ in range(20)}
        assert len(pids) == 4


def is_waiting(pid: int) -> bool:
    """Whether a process has reached its epoll. Before, it opens and closes files, mainly modules."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if "eventpoll" in os.readlink(f"/proc/{pid}/fd/{name}"):
                return True
    return False


def test_threads_answer_at_once(tmp_path: Path) -> None:
    with Served("wsgi_app", "--processes", "1", "--threads", "3") as served, contextlib.ExitStack() as stack:
        apps = [stack.enter_context(served.connect()) for _ in range(3)]
        go = tmp_path / "go"
        for number, app in enumerate(apps):
            start(app, f"/waits_for_file?begun={tmp_path / str(number)}&go={go}")
            wait_until((tmp_path / str(number)).exists, "a request to begin")
        go.touch()
        assert [app.result().body for app in apps] == [b"went"] * 3


def test_threads_under_load_mix_nothing_up() -> None:
    with Served("wsgi_app", "--processes", "2", "--threads", "4") as served:
        failures: list[str] = []

        def ask(number: int) -> None:
            with served.connect() as app:
                for turn in range(25):
                    count = (number * 7919 + turn * 104_729) % 200_000
                    result = getattr(app, ("plain", "shm", "passfd")[turn % 3])("GET", f"/size?n={count}")
                    body = result.wire.partition(b"\r\n\r\n")[2] if result.wire else result.body
                    if body != pattern(count):
                        failures.append(f"{number} {turn} {count}")

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


def test_descriptor_0_is_the_listening_socket(tmp_path: Path) -> None:
    """As servers start FastCGI applications: one process, no other that watches."""
    path = str(tmp_path / "app.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        command = [sys.executable, "-m", "baton_fastcgi", "wsgi_app:application", "--fd", "0", "--chdir", str(HERE)]
        process = subprocess.Popen(command, stdin=listener.fileno())
    with Application(path) as app:
        assert pid_of(app) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0


def test_tcp_works_and_offers_no_descriptors() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with Served("wsgi_app", "--processes", "1", bind=f"127.0.0.1:{port}"), Application(("127.0.0.1", port)) as app:
        assert app.plain("GET", "/size?n=1000000").body == pattern(1_000_000)
        app.send(b"\x01\x09\x00\x00\x00\x12\x00\x00\x10\x00BATON_TRANSPORTS")
        assert app.next_record() == (10, 0, b"")
        assert app.plain("POST", "/ignores_body?n=9", body=b"b" * 3_000_000, keep=False).body == pattern(9)


def test_a_stale_socket_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = f"{tmp_path}/app.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    with Served("wsgi_app", "--processes", "1", "--mode", "600", bind=f"unix:{path}"):
        with Application(path) as app:
            assert app.plain("GET", "/size?n=5").body == pattern(5)
        assert os.stat(path).st_mode & 0o777 == 0o600
        with Served("wsgi_app", "--processes", "1", bind=f"unix:{path}") as second:
            assert second.process.wait(LIMIT_S) == 1


@pytest.mark.parametrize("processes", ["0", "1"])
def test_the_socket_goes_with_the_process_unless_it_is_anothers(tmp_path: Path, processes: str) -> None:
    path = f"{tmp_path}/app.sock"
    with Served("wsgi_app", "--processes", processes, bind=f"unix:{path}") as served:
        with Application(path) as app:
            assert app.plain("GET", "/size?n=5").body == pattern(5)
        assert served.stop() == 0
        assert not os.path.lexists(path)
    with Served("wsgi_app", "--processes", processes, bind=f"unix:{path}") as served:
        with Application(path) as app:
            assert app.plain("GET", "/size?n=5").body == pattern(5)
        # The first one's file is kept, so that its inode number is not reused.
        os.rename(path, f"{path}.old")
        with socket.socket(socket.AF_UNIX) as another:
            another.bind(path)
            assert served.stop() == 0
            assert os.path.lexists(path)


def test_the_function_serves_a_callable(tmp_path: Path) -> None:
    path = f"{tmp_path}/app.sock"
    script = tmp_path / "script.py"
    script.write_text(
        "from baton_fastcgi import Settings, serve_wsgi\n"
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [environ['SCRIPT_NAME'].encode() + b' ' + environ['PATH_INFO'].encode()]\n"
        f"raise SystemExit(serve_wsgi(app, bind='unix:{path}', settings=Settings(processes=1, root_path='/shop')))\n"
    )
    process = subprocess.Popen([sys.executable, str(script)])
    with Application(path) as app:
        assert app.plain("GET", "/shop/cart").body == b"/shop /cart"
        assert app.plain("GET", "/shop").body == b"/shop "
        assert app.plain("GET", "/shopping").body == b" /shopping"
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT_S) == 0


def test_a_client_that_is_served_survives_a_reload_on_its_socket(tmp_path: Path) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    with Served("wsgi_app", "--processes", "1") as served, served.connect() as app, Client() as client:
        app.offer_client(client, "GET", f"/waits_for_file?begun={begun}&go={go}")
        app.send(NO_BODY)
        wait_until(begun.exists, "the request to begin")
        served.process.send_signal(signal.SIGHUP)
        go.touch()
        report = app.result().answered
        assert report is not None
        assert report.flags == 3
        client.served.close()
        assert client.read_all().endswith(b"\r\n\r\nwent")
