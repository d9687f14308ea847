"""A worker that answers many requests: strings that outlive one, what it keeps, and OPcache with and without JIT."""

import pathlib
import threading
import time
import unittest

from case import SiteCase, content
from pool import SETTLED_S

OPERATIONS = pathlib.Path(__file__).parent.parent / "tests" / "operations.inc"
SIZES = [4095, 4096, 4097, 60 * 1024]


class Worker(SiteCase):
    pools = {"main": {}, "leak": {}}
    files = {f"size-{size}": content(size) for size in SIZES} | {
        "operations.php": OPERATIONS.read_bytes(),
        "changing": content(40 * 1024),
        "unseen": content(40_000),
        "text.html": content(40 * 1024, "text"),
    }

    def test_operations(self):
        for size in SIZES:
            with self.subTest(size=size):
                script = f"""<?php
                    error_reporting(E_ALL & ~E_DEPRECATED);
                    require 'operations.php';
                    foreach (operations(file_get_contents('size-{size}')) as $name => $result) {{
                        echo $name, ' ', md5(serialize($result)), "\\n";
                    }}"""
                for _ in range(3):
                    self.same(script, names=0)

    def test_nothing_is_read_until_somebody_looks(self):
        def resident_kb(operation):
            """How much of the file a script has looked at by the end of an operation on its string."""
            answer = self.site.get(
                "<?php function kb($n) { preg_match(\"#/u\\d+/\\S+-$n-\\S+\\n(?:.*\\n)*?Rss: +(\\d+)#\","
                "file_get_contents('/proc/self/smaps'), $m); return $m[1]; }"
                f"$s = file_get_contents('unseen'); {operation}; header('X-Kb: ' . kb('9c40'));"
            )
            return int(answer.header("x-kb"))

        self.assertEqual(0, resident_kb("strlen($s)"))
        self.assertEqual(0, resident_kb("ob_start(); echo strlen($s); ob_end_clean(); $t = [$s]; $u = (fn($x) => $x)($s)"))
        self.assertEqual(0, resident_kb("register_shutdown_function(fn() => print($s))"))
        self.assertEqual(0, resident_kb("header('X-A: b')"), "nor by the output of the request before")
        # Of another length, or the same string: PHP compares no byte.
        equal = "$GLOBALS['seen'] = [$s === 'x', $s !== '', $s === file_get_contents(__DIR__ . '/unseen')]"
        self.assertEqual(0, resident_kb(equal))
        self.assertGreater(resident_kb("md5($s)"), 0)

    def test_a_hash_belongs_to_a_version(self):
        """PHP keeps the hash of a string in its head, and this string outlives the request."""
        script = (
            "<?php $s = file_get_contents('hashed'); $a = [$s => 'old']; $t = fopen('hashed', 'r'); $b = [fread($t, 50000) => 1]; "
            "header('X-Key: ' . md5(key($a)) . crc32($s)); echo isset($b[$s]), $a[key($b)], $s === key($b), $s;"
        )
        seen = set()
        for version in range(3):
            self.site.write("hashed", content(40_000, f"version {version}"))
            time.sleep(SETTLED_S)
            for _ in range(2):
                seen.add(self.same(script, names=1).header("x-key"))
        self.assertEqual(3, len(seen))

    def test_strings_kept_beyond_the_request(self):
        for kept, given_back in [
            ("apcu_store('kept', file_get_contents('{}'));", "md5(apcu_fetch('kept'))"),
            ("apcu_store('kept', ['x' => [file_get_contents('{}')]]);", "md5(apcu_fetch('kept')['x'][0])"),
            ("apcu_store(file_get_contents('{}'), 1);", "apcu_fetch(file_get_contents('{}'))"),
            ("session_id('s'); session_start(); $_SESSION['k'] = file_get_contents('{}');",
             "(session_id('s') . session_start() . md5($_SESSION['k']))"),
            ("function f($s) {{ static $a = []; $a[] = $s; }} f(file_get_contents('{}'));", "1"),
            ("setlocale(LC_ALL, 'C'); ini_set('user_agent', file_get_contents('{}'));", "md5(ini_get('user_agent'))"),
            ("preg_match('/x' . file_get_contents('{}') . '/', 'x');", "1"),
            ("$s = @preg_match(file_get_contents('{}'), 'x');", "1"),
            ("exit(file_get_contents('{}') === 1);", "1"),
            ("$GLOBALS[file_get_contents('{}')] = 1;", "count(array_filter(array_keys($GLOBALS), fn($k) => strlen($k) > 99))"),
            ("class A {{ public static $s; }} A::$s = file_get_contents('{}');", "(int) class_exists('A')"),
            ("$f = fopen('php://temp', 'w+'); stream_context_set_option($f, 'a', 'b', file_get_contents('{}'));", "1"),
            ("header_register_callback(function () {{ static $s; }}); $s = file_get_contents('{}');", "1"),
            ("set_error_handler(function () {{ return file_get_contents('{}'); }}); trigger_error('x');", "1"),
            ("define('K', file_get_contents('{}'));", "(int) defined('K')"),
        ]:
            for size in SIZES:
                keep = "<?php error_reporting(0); echo 'kept'; " + kept.format(f"size-{size}")
                use = "<?php error_reporting(0); echo " + given_back.replace("{}", f"size-{size}") + ";"
                with self.subTest(keep=keep):
                    plain_kept = self.site.get(keep, zero_copy=False)
                    plain_use = self.site.get(use, zero_copy=False)
                    for _ in range(2):
                        self.assertEqual(plain_kept.body, self.site.get(keep).expanded())
                        self.assertEqual(plain_use.body, self.site.get(use).expanded())

    def test_two_thousand_requests_leave_nothing_behind(self):
        script = """<?php
            echo 'x', file_get_contents('size-61440'), file_get_contents('changing');
            $s = file_get_contents('size-4096'); $s .= 'x'; $kept[$s] = file_get_contents('size-4097');
            readfile('size-4095'); include 'text.html'; fpassthru(fopen('size-61440', 'r'));
            echo getmypid();"""
        path = self.site.files / "changing"
        pid, before, stop = None, None, threading.Event()

        def change():
            # A new version every few seconds: old strings must go.
            for number in range(1000):
                if stop.wait(SETTLED_S + 0.2):
                    return
                path.write_bytes(content(40 * 1024, f"version {number}"))

        changing = threading.Thread(target=change)
        changing.start()
        try:
            names = set()
            deadline = time.monotonic() + 8
            count = 0
            while count < 2000 or time.monotonic() < deadline:
                answer = self.site.get(script, pool="leak")
                names |= {answer.body[offset : offset + length] for offset, length in answer.names}
                if count == 200:
                    pid = int(answer.body[answer.names[-1][0] + answer.names[-1][1] :])
                    before = self.kept(pid)
                count += 1
        finally:
            stop.set()
            changing.join()
        self.assertGreater(len(names), 5, "several versions were named")
        after = self.kept(pid)
        self.assertEqual(before["descriptors"], after["descriptors"])
        self.assertLessEqual(after["mappings"], before["mappings"] + 6, "a string or two that are about to go")
        self.assertLessEqual(after["anonymous_kb"], before["anonymous_kb"] + 256)

    def kept(self, pid):
        time.sleep(0.1)  # The worker closes the connection after it has answered.
        process = pathlib.Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        return {
            "descriptors": len(list((process / "fd").iterdir())),
            "mappings": len((process / "maps").read_text().splitlines()),
            "anonymous_kb": int(status["RssAnon"].split()[0]),
        }

    def test_more_files_than_a_worker_keeps(self):
        directory = self.site.files / "many"
        directory.mkdir()
        for number in range(1100):
            self.site.write(f"many/{number}", b"%04d" % number * 1100)
        self.site.give(directory)
        time.sleep(SETTLED_S)
        for _ in range(2):
            for first in range(0, 1100, 100):
                loop = f"for ($i = {first}; $i < {first} + 100; $i++)"
                read = f"$all = ''; {loop} {{ $s = file_get_contents(\"many/$i\"); $all .= $s; }}"
                # All output at the end: what is put out a second after the first byte is named no longer.
                self.same(f"<?php {read} header('X-All: ' . md5($all)); echo $s;", names=1)
        all_at_once = "<?php for ($i = 0; $i < 1100; $i++) { $a[] = file_get_contents(\"many/$i\"); } echo md5(implode($a));"
        for _ in range(2):
            self.same(all_at_once, names=0)


class Jit(Worker):
    """The same with the JIT, which has ways of its own to put strings out."""

    php = ("opcache.jit=tracing", "opcache.jit_buffer_size=32M")

    def test_hot_loop(self):
        self.assertEqual(b"1", self.site.get("<?php echo opcache_get_status()['jit']['on'];").body)
        for _ in range(3):
            loop = "for ($i = 0; $i < 5000; $i++) { $s = file_get_contents('size-61440'); $n = strlen($s); }"
            self.same(f"<?php {loop} echo $s;", names=1)


if __name__ == "__main__":
    unittest.main()
