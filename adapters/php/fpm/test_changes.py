"""The response has the bytes that the script read, even if the file changes meanwhile or afterwards."""

import hashlib
import mmap
import os
import pathlib
import threading
import time
import unittest

from case import SiteCase, content
from pool import AS_ROOT, SETTLED_S

PAGE = 4096
OLD = content(16 * PAGE, "old")
NEW = content(16 * PAGE, "new")


def truncate(path):
    os.truncate(path, 10)


def empty(path):
    path.write_bytes(b"")


def append(path):
    with open(path, "ab") as file:
        file.write(NEW)


def overwrite(path):
    with open(path, "r+b") as file:
        file.write(NEW)


def overwrite_and_hide_it(path):
    """The same size, and the same modification time as before."""
    before = path.stat()
    overwrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def store_to_mapping(path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[: len(NEW)] = NEW


def replace(path):
    other = path.with_suffix(".new")
    other.write_bytes(NEW)
    os.replace(other, path)


def remove(path):
    path.unlink()


def remove_and_make_again(path):
    path.unlink()
    path.write_bytes(NEW)


def replace_by_link(path):
    path.unlink()
    path.symlink_to("/etc/passwd")


def punch(path):
    os.truncate(path, 0)
    os.truncate(path, len(OLD))


CHANGES = [
    truncate,
    empty,
    append,
    overwrite,
    overwrite_and_hide_it,
    store_to_mapping,
    replace,
    remove,
    remove_and_make_again,
    replace_by_link,
    punch,
]
MOMENTS = ["before-output", "after-output", "after-the-script"]


class Changes(SiteCase):
    pools = {"main": {}, "two": {"workers": 2}}
    files = {f"{change.__name__}-{moment}": OLD for change in CHANGES for moment in MOMENTS + ["cached"]} | {
        "mapped-all-along": OLD,
        "open-for-writing": OLD,
        "seen-again": OLD,
        "both": OLD[:-1],
        "newer": NEW,
        "read-meanwhile": OLD,
        "rights": OLD,
        "linked-1": OLD,
        "linked-2": NEW,
    }

    def path(self, change, moment):
        return self.site.files / f"{change.__name__}-{moment}"

    def paused(self, path, before, after):
        """Starts a script that reads the file, and waits for a sign between `before` and `after`."""
        sign = pathlib.Path(f"{path}.sign")
        reached = pathlib.Path(f"{path}.reached")
        exchange = self.site.begin(
            f"<?php $s = file_get_contents('{path}'); {before} touch('{reached}');"
            f"while (!file_exists('{sign}')) {{ usleep(1000); clearstatcache(); }} {after}"
        )
        while not reached.exists():
            time.sleep(0.002)
        return exchange, sign

    def test_changed_between_reading_and_output(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                path = self.path(change, MOMENTS[0])
                exchange, sign = self.paused(path, "", "echo $s, strlen($s), '|', md5($s);")
                change(path)
                sign.touch()
                answer = exchange.finish()
                self.assertEqual(1, len(answer.names))
                self.assertTrue(answer.expanded().startswith(OLD + f"{len(OLD)}|".encode()))

    def test_both_versions_in_one_script(self):
        path = self.site.files / "both"
        answer = self.site.get(
            f"<?php $old = file_get_contents('{path}'); copy('newer', '{path}.new'); rename('{path}.new', '{path}');"
            f"$new = file_get_contents('{path}'); file_get_contents('{path}'); echo $old, '|', md5($new), '|', md5($old), $old;"
        )
        digests = "|".join(["", hashlib.md5(NEW).hexdigest(), hashlib.md5(OLD[:-1]).hexdigest()])
        self.assertEqual(OLD[:-1] + digests.encode() + OLD[:-1], answer.expanded())
        self.assertEqual(2, len(answer.names))

    def test_changed_between_output_and_end(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                path = self.path(change, MOMENTS[1])
                exchange, sign = self.paused(path, "echo $s;", "")
                change(path)
                sign.touch()
                answer = exchange.finish()
                self.assertEqual(1, len(answer.names))
                self.assertEqual(OLD, answer.expanded())

    def test_changed_before_the_server_opens_it(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                path = self.path(change, MOMENTS[2])
                answer = self.site.get(f"<?php readfile('{path}');")
                self.assertEqual(1, len(answer.names))
                change(path)
                self.assertEqual(OLD, answer.expanded())

    def test_the_next_request_sees_the_change_at_once(self):
        for change in CHANGES:
            with self.subTest(change=change.__name__):
                path = self.path(change, "cached")
                script = f"<?php echo @file_get_contents('{path}');"
                self.assertEqual(1, len(self.site.get(script).names))
                change(path)
                now = path.read_bytes() if path.exists() else b""
                self.assertEqual(now, self.site.get(script).expanded())

    def test_a_changed_file_is_named_again_once_it_is_settled(self):
        path = self.site.files / "seen-again"
        script = f"<?php readfile('{path}');"
        self.assertEqual(1, len(self.site.get(script).names))
        overwrite(path)
        self.assertEqual([], self.site.get(script).names)
        time.sleep(SETTLED_S)
        answer = self.site.get(script)
        self.assertEqual((1, NEW), (len(answer.names), answer.expanded()))

    def test_a_file_that_is_open_for_writing_is_not_named(self):
        path = self.site.files / "open-for-writing"
        script = f"<?php readfile('{path}'); echo json_encode(baton_status());"
        with open(path, "r+b"):
            answer = self.site.get(script)
            self.assertEqual([], answer.names)
            self.assertIn(b'"being_written":', answer.body)
        time.sleep(1.1)
        self.assertEqual(1, len(self.site.get(script).names))

    def test_a_file_that_is_mapped_for_writing_is_not_named(self):
        # Stores to a page that is dirty already leave no trace in the file's times.
        path = self.site.files / "mapped-all-along"
        with open(path, "r+b") as file:
            mapping = mmap.mmap(file.fileno(), 0)
        mapping[0:1] = b"x"
        time.sleep(SETTLED_S)
        script = f"<?php readfile('{path}');"
        for byte in b"yz":
            mapping[0] = byte
            answer = self.site.get(script)
            self.assertEqual([], answer.names)
            self.assertEqual(bytes([byte]) + OLD[1:], answer.body)
        mapping.close()

    def test_a_writer_that_waits_for_the_snapshot(self):
        """The kernel tells the holder of a lease by a signal that kills those who do not know it."""
        path = self.site.write("large", content(60 << 20))
        time.sleep(SETTLED_S)
        script = f"<?php header('X-Pid: ' . getmypid()); readfile('{path}');"
        stop = threading.Event()

        def come_and_go():
            while not stop.wait(0.001):
                os.close(os.open(path, os.O_RDWR))

        writer = threading.Thread(target=come_and_go)
        writer.start()
        try:
            answers = [self.site.get(script)]
            while not answers[-1].names and len(answers) < 10:
                time.sleep(1.05)
                answers.append(self.site.get(script))
        finally:
            stop.set()
            writer.join()
        self.assertEqual(1, len({answer.header("x-pid") for answer in answers}), "the worker lives")
        self.assertEqual(path.read_bytes(), answers[-1].expanded())

    def test_lost_rights(self):
        path = self.site.files / "rights"
        script = f"<?php echo @file_get_contents('{path}');"
        self.assertEqual(1, len(self.site.get(script).names))
        path.chmod(0o640)
        answer = self.site.get(script)
        self.assertEqual(([], OLD), (answer.names, answer.body))
        path.chmod(0)
        if AS_ROOT:
            self.assertEqual(b"", self.site.get(script).body)

    def test_a_link_that_is_turned(self):
        link = self.site.files / "link"
        link.symlink_to("linked-1")
        script = f"<?php echo @file_get_contents('{link}');"
        self.assertEqual((1, OLD), self.named_and_sent(script))
        link.unlink()
        link.symlink_to("linked-2")
        self.assertEqual((1, NEW), self.named_and_sent(script))
        link.unlink()
        link.symlink_to("/etc/services")
        self.assertEqual((0, pathlib.Path("/etc/services").read_bytes()), self.named_and_sent(script))

    def named_and_sent(self, script):
        answer = self.site.get(script)
        return len(answer.names), answer.expanded()

    def test_a_file_that_is_replaced_all_the_time(self):
        """Every answer is one of the contents as a whole, and none is older than the request."""
        path = self.site.files / "restless"
        stop = threading.Event()
        written = [0]

        def write():
            while not stop.is_set():
                number = written[0] + 1
                self.site.write("restless.new", b"%08d" % number * 2000)
                os.replace(self.site.files / "restless.new", path)
                written[0] = number
                # Now and then long enough for the version to settle.
                time.sleep(SETTLED_S + 0.3 if number % 20 == 0 else 0.003)

        self.site.write("restless", b"%08d" % 0 * 2000)
        writer = threading.Thread(target=write)
        writer.start()
        named = 0
        try:
            began = time.monotonic()
            # On a busy machine few requests meet a version that has settled.
            while time.monotonic() < began + (8 if named else 60):
                before = written[0]
                answer = self.site.get("<?php readfile('restless');", pool="two")
                named += len(answer.names)
                sent = answer.expanded()
                number = int(sent[:8])
                self.assertEqual(b"%08d" % number * 2000, sent)
                self.assertGreaterEqual(number, before)
        finally:
            stop.set()
            writer.join()
        self.assertGreater(named, 0)


if __name__ == "__main__":
    unittest.main()
