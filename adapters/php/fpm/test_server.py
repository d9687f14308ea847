"""The extension behind Baton itself: what a client gets is what PHP alone would have sent. Needs BATON, the server."""

import os
import random
import re
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

from case import SiteCase, content
from pool import SETTLED_S

BATON = os.environ.get("BATON")
KIB_60 = content(60 * 1024)
SCRIPTS = {
    "echo": (
        "<?php echo 'a', file_get_contents('60k'), 'b', file_get_contents('1m'), 'c';",
        b"a" + KIB_60 + b"b" + content(1 << 20) + b"c",
    ),
    "readfile": ("<?php header('Content-Length: 61440'); header('X-A: b'); readfile('60k');", KIB_60),
    "include": ("<?php for ($i = 0; $i < 100; $i++) { echo \"[$i]\"; include 'text.html'; }", None),
    "status": ("<?php http_response_code(404); readfile('60k');", KIB_60),
    "flush": ("<?php echo file_get_contents('60k'); flush(); echo 'end';", KIB_60 + b"end"),
    "plain": ("<?php echo strrev(file_get_contents('60k'));", KIB_60[::-1]),
}


@unittest.skipUnless(BATON, "needs BATON, the path of the server")
class Server(SiteCase):
    pools = {"main": {"workers": 2, "ini": {"output_buffering": 4096}}}
    files = {"60k": KIB_60, "1m": content(1 << 20), "text.html": content(5000, "text"), "changing": content(40_000)} | {
        f"{name}.php": source for name, (source, _) in SCRIPTS.items()
    } | {
        "changing.php": "<?php readfile('changing');",
        "counts.php": "<?php echo baton_status()['named'];",
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        configuration = cls.site.root / "baton.toml"
        configuration.write_text(f"""
            [[site]]
            listen = ["127.0.0.1:0"]
            root = "{cls.site.files}"
            [[site.route]]
            path = "/"
            [site.route.fastcgi]
            to = "unix:{cls.site.root}/main.sock"
            scripts = [".php"]
            named_files = ["{cls.site.snapshots.resolve()}"]
        """)
        server = subprocess.Popen([BATON, "run", "--config", configuration], stderr=subprocess.PIPE, text=True)
        cls.addClassCleanup(lambda: (server.terminate(), server.wait(), server.stderr.close()))
        # It has chosen a port, and tells which.
        said = []
        for line in server.stderr:
            said.append(line)
            if told := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
                cls.address = ("127.0.0.1", int(told[1]))
                break
        else:
            raise AssertionError("".join(said))

    def fetch(self, path, method="GET"):
        request = urllib.request.Request("http://%s:%d/" % self.address + path, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=20)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, dict(answer.headers), answer.read()

    def test_what_clients_get(self):
        for name, (_, expected) in SCRIPTS.items():
            with self.subTest(name=name):
                plain = self.site.get(self.site.files / f"{name}.php", zero_copy=False)
                for _ in range(3):
                    status, headers, body = self.fetch(f"{name}.php")
                    self.assertEqual(404 if name == "status" else 200, status)
                    self.assertEqual(plain.body, body)
                    self.assertIn(expected, [None, body])
                    self.assertNotIn("X-ZeroCopy", headers)
                    self.assertEqual(plain.header("x-a"), headers.get("X-A"))

    def test_files_were_named(self):
        self.fetch("readfile.php")
        self.fetch("readfile.php")
        self.assertGreater(sum(int(self.fetch("counts.php")[2]) for _ in range(4)), 0)

    def test_head(self):
        status, headers, body = self.fetch("readfile.php", method="HEAD")
        self.assertEqual((200, b""), (status, body))
        self.assertEqual("b", headers["X-A"])

    def test_a_file_that_changes_under_load(self):
        """No answer mixes two versions, and none is older than its request."""
        path = self.site.files / "changing"
        stop, written = threading.Event(), [0]

        def write():
            while not stop.wait(random.choice([0.01, 0.1, SETTLED_S + 0.5])):
                text = b"%08d" % (written[0] + 1) * 5000
                self.site.write("changing.new", text)
                os.replace(self.site.files / "changing.new", path)
                written[0] += 1

        self.site.write("changing", b"%08d" % 0 * 5000)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            deadline = time.monotonic() + 8
            while time.monotonic() < deadline:
                before = written[0]
                status, _, body = self.fetch("changing.php")
                self.assertEqual(200, status)
                self.assertEqual(body[:8] * 5000, body)
                self.assertGreaterEqual(int(body[:8]), before)
        finally:
            stop.set()
            writer.join()


if __name__ == "__main__":
    unittest.main()
