"""Ways to put files out: what the client gets is what PHP alone would have sent."""

import gzip
import unittest

from case import SiteCase, content

SIZES = [0, 1, 4094, 4095, 4096, 4097, 8192, 60 * 1024, 1024 * 1024]
KIB_60 = content(60 * 1024, "sixty")


class Output(SiteCase):
    pools = {
        "main": {},
        "production": {"ini": {"output_buffering": 4096}},
        "no_opcache": {"ini": {"opcache.enable": 0}},
        "small": {"ini": {"baton.buffer": 20000}},
        "framed": {"ini": {"auto_prepend_file": "text.html", "auto_append_file": "text.html"}},
    }
    files = {f"size-{size}": content(size) for size in SIZES} | {
        "a.htm": content(5000, "a"),
        "b.htm": content(9000, "b"),
        "60k": KIB_60,
        "code.htm": "<b><?= 6 * 7 ?></b>" + "x" * 5000,
        "text.html": content(6000, "text"),
        "inner": content(9000, "inner"),
        "outer": b"outer" + content(9000, "inner") + b"outer",
        "zeros": bytes(20000),
        "in.php": "<?php return include __DIR__ . '/text.html';",
        "archive.gz": gzip.compress(KIB_60, 0),
    }

    def test_the_pools_are_what_they_are_called(self):
        level = "<?php echo ob_get_level();"
        self.assertEqual([b"0", b"1"], [self.site.get(level, pool=pool).body for pool in ["main", "production"]])

    def test_every_size(self):
        for size in SIZES:
            with self.subTest(size=size):
                self.same(f"<?php echo file_get_contents('size-{size}');", names=int(size >= 4095))

    def test_the_example_of_the_paper(self):
        script = "<?php echo 'hello', file_get_contents('a.htm'), 'world', file_get_contents('b.htm'), 'bye';"
        answer = self.same(script, names=2)
        (first, first_length), (second, second_length) = answer.names
        self.assertEqual(5, first)
        self.assertEqual(5 + first_length + 5, second)
        self.assertEqual(len(answer.body), second + second_length + 3)

    def test_the_content_is_not_in_the_output(self):
        answer = self.site.get("<?php echo file_get_contents('60k');")
        self.assertLess(len(answer.body), 1000)
        self.assertEqual(KIB_60, answer.expanded())

    def test_ways_of_reading(self):
        for script in [
            "<?php $n = readfile('60k'); header_remove(); echo \"|$n\";",
            "<?php $f = fopen('60k', 'rb'); $n = fpassthru($f); echo '|', $n, feof($f), ftell($f), fread($f, 9);",
            "<?php $f = fopen('60k', 'rb'); fgets($f); rewind($f); fpassthru($f);",
            "<?php print file_get_contents(__DIR__ . '/60k');",
            "<?php echo file_get_contents(filename: '60k', use_include_path: false);",
            "<?php echo file_get_contents('60k', false, null, 0);",
            "<?php $r = include 'text.html'; echo $r;",
            "<?php require_once 'text.html'; echo count(get_included_files()); var_dump(require_once 'text.html');",
            "<?php (function () { include __DIR__ . '/text.html'; })();",
            "<?php echo include 'in.php'; print_r(get_included_files());",
            "<?= file_get_contents('60k') ?>",
            "<?php class C { public $s; } $c = new C; $c->s = file_get_contents('60k'); echo $c->s;",
            "<?php set_include_path(__DIR__); chdir('/'); include 'text.html';",
        ]:
            for pool in ["main", "production", "no_opcache"]:
                with self.subTest(script=script, pool=pool):
                    self.same(script, names=1, pool=pool)

    def test_included_twice_and_in_a_loop(self):
        self.same("<?php include 'text.html'; include 'text.html';", names=2)
        self.same("<?php for ($i = 0; $i < 300; $i++) { echo $i; include 'text.html'; }", names=None)

    def test_no_more_names_than_a_header_holds(self):
        script = "<?php for ($i = 0; $i < 260; $i++) { echo file_get_contents('a.htm'); }"
        answer = self.same(script, names=256)
        self.assertLess(len(answer.header("x-zerocopy")), 8000)

    def test_what_php_ini_puts_around_scripts(self):
        answer = self.same("<?php echo 'x'; print_r(get_included_files());", names=None, pool="framed")
        self.assertEqual(2, len(answer.names))

    def test_include_of_code_runs_it(self):
        self.same("<?php include 'code.htm';", names=0)

    def test_parts_of_files(self):
        for script in [
            "<?php echo file_get_contents('60k', false, null, 5);",
            "<?php echo file_get_contents('60k', length: 5000);",
            "<?php echo file_get_contents('60k', offset: 100, length: 50000);",
            "<?php $f = fopen('60k', 'rb'); fread($f, 10); fpassthru($f);",
            "<?php $f = fopen('60k', 'r+'); fpassthru($f);",
            "<?php $f = fopen('60k', 'rb'); stream_filter_append($f, 'string.rot13'); fpassthru($f);",
            "<?php echo substr(file_get_contents('60k'), 1);",
            "<?php echo file_get_contents('php://memory'), file_get_contents('data:,x'), @file_get_contents('no');",
            "<?php echo file_get_contents('file://' . __DIR__ . '/60k');",
        ]:
            with self.subTest(script=script):
                self.same(script, names=0)

    def test_errors_are_those_of_php(self):
        for script in [
            "<?php echo file_get_contents('missing');",
            "<?php readfile('missing'); fpassthru(fopen('php://memory', 'r'));",
            "<?php try { file_get_contents(\"6\\00k\"); } catch (ValueError $e) { echo $e->getMessage(); }",
            "<?php try { readfile('60k', false, null, 0); } catch (Error $e) { echo $e->getMessage(); }",
            "<?php try { file_get_contents('60k', length: -1); } catch (Error $e) { echo $e->getMessage(); }",
            "<?php try { file_get_contents(); } catch (Error $e) { echo $e->getMessage(); }",
            "<?php try { fpassthru(1); } catch (Error $e) { echo $e->getMessage(); }",
            "<?php $f = fopen('60k', 'r'); fclose($f); try { fpassthru($f); } catch (Error $e) { echo $e->getMessage(); }",
            "<?php include 'missing.html';",
        ]:
            with self.subTest(script=script):
                self.same("<?php ini_set('display_errors', 1); ?>" + script, names=0)

    def test_a_replaced_file_wrapper_is_asked(self):
        self.same(
            """<?php
            class W {
                public $context;
                function stream_open() { return true; }
                function stream_read($n) { $this->done = isset($this->done); return $this->done ? '' : 'mine'; }
                function stream_eof() { return isset($this->done); }
                function stream_stat() { return []; }
                function url_stat() { return []; }
                public $done = null;
            }
            stream_wrapper_unregister('file'); stream_wrapper_register('file', 'W');
            echo file_get_contents('/etc/hostname'), file_get_contents('60k');""",
            names=0,
        )

    def test_output_buffers_that_look(self):
        for script in [
            "<?php ob_start('strtoupper'); echo file_get_contents('60k');",
            "<?php ob_start(fn($s) => strlen($s) . md5($s), 4096); echo 'a', file_get_contents('60k'), 'b';",
            "<?php ob_start(); echo file_get_contents('60k'); $s = ob_get_clean(); echo strrev($s);",
            "<?php ob_start(); readfile('60k'); echo md5(ob_get_clean());",
            "<?php ob_start(); include 'text.html'; echo md5(ob_get_clean());",
            "<?php ob_start(); fpassthru(fopen('60k', 'r')); echo ob_get_length(); ob_end_clean(); echo 'x';",
            "<?php ob_start(); echo file_get_contents('60k'); ob_clean(); echo 'only this';",
        ]:
            for pool in ["main", "production"]:
                with self.subTest(script=script, pool=pool):
                    self.same(script, names=0, pool=pool)

    def test_contents_are_found_in_what_buffers_and_strings_have_become(self):
        for script, names in [
            ("<?php ob_start(); echo 'a', file_get_contents('60k'), 'b';", 1),
            ("<?php ob_start(); ob_start(); echo file_get_contents('60k'); ob_end_flush(); echo ob_get_length();", 1),
            ("<?php ob_start(); include 'text.html'; $s = ob_get_clean(); echo \"<p>$s</p>$s\";", 2),
            ("<?php ob_start(fn($s) => 'x' . $s); readfile('60k');", 1),
            ("<?php echo 'head' . file_get_contents('60k') . 'between' . file_get_contents('a.htm') . 'foot';", 2),
            ("<?php $s = ''; foreach (['a.htm', 'b.htm', 'a.htm', '60k'] as $f) $s .= file_get_contents($f); echo $s;", 4),
            ("<?php echo strtr('<b>{}</b>', ['{}' => file_get_contents('60k')]);", 1),
            ("<?php printf('%s|%s', file_get_contents('b.htm'), substr(file_get_contents('a.htm'), 1));", 1),
            # Every place where it could begin, and none where it is whole.
            ("<?php $s = file_get_contents('60k'); echo str_repeat(substr($s, 0, 5000), 30), $s;", 1),
            # The one that begins first, with the other in it; then the other alone.
            ("<?php $s = file_get_contents('outer'); $t = file_get_contents('inner'); echo 'x' . $s . $t;", 2),
            ("<?php $s = file_get_contents('zeros'); echo 'x' . $s . $s . substr($s, 1);", 2),
            ("<?php $s = file_get_contents('60k'); $s[60000] = '#'; echo 'x' . $s;", 0),
        ]:
            for pool in ["main", "production"]:
                with self.subTest(script=script, pool=pool):
                    self.same(script, names=names, pool=pool)

    def test_output_that_does_not_fit_is_sent_once(self):
        # The name of the first file is held when there is no room for what is behind it.
        script = "<?php echo 'x'; echo file_get_contents('60k') . str_repeat('0123456789', 2000) . 'end';"
        self.same(script, names=0, pool="small")

    def test_the_buffer_of_php_ini_is_led_around_in_order(self):
        for script in [
            "<?php echo 'before'; echo file_get_contents('60k'); echo 'after'; print_r(array_diff_key(ob_get_status(), "
            "['buffer_size' => 0]));",
            "<?php echo str_repeat('x', 5000), file_get_contents('60k'), str_repeat('y', 5000), file_get_contents('60k');",
            "<?php echo 'x'; ob_clean(); echo file_get_contents('60k'); ob_clean();",
            "<?php echo file_get_contents('60k'); echo 'lost'; ob_clean();",
            "<?php echo file_get_contents('size-4095'); ob_clean(); echo 'only this';",
            "<?php ob_end_clean(); echo file_get_contents('60k');",
            "<?php echo file_get_contents('60k'); print_r(ob_get_level()); echo ob_get_contents();",
        ]:
            with self.subTest(script=script):
                self.same(script, names=None, pool="production")
        self.same("<?php echo 'x', file_get_contents('60k'), 'y', file_get_contents('a.htm');", names=2, pool="production")

    def test_compression(self):
        for script in [
            "<?php ini_set('zlib.output_compression', 1); echo file_get_contents('60k');",
            "<?php ob_start('ob_gzhandler'); echo file_get_contents('60k'), 'end';",
        ]:
            with self.subTest(script=script):
                answer = self.same(script, names=0, HTTP_ACCEPT_ENCODING="gzip")
                self.assertEqual("gzip", answer.header("content-encoding"))
                self.assertTrue(gzip.decompress(answer.body).startswith(KIB_60))

    def test_a_file_that_is_compressed_already(self):
        answer = self.same("<?php header('Content-Encoding: gzip'); readfile('archive.gz');", names=1)
        self.assertEqual(KIB_60, gzip.decompress(answer.expanded()))

    def test_flush_sends_what_there_is(self):
        for script, seen in [
            ("<?php echo 'one'; flush(); usleep(300000); echo file_get_contents('60k');", b"one"),
            ("<?php echo file_get_contents('60k'), 'two'; flush(); usleep(300000); echo 'end';", b"two"),
        ]:
            with self.subTest(script=script):
                exchange = self.site.begin(script)
                exchange.read_until(seen)
                answer = exchange.finish()
                self.assertEqual([], answer.names)
                self.assertEqual(self.site.get(script, zero_copy=False).body, answer.body)

    def test_slow_output_is_not_held_back(self):
        # It goes on when its output has been seen.
        script = (
            "<?php echo str_repeat('x', 9000); usleep(1100000); echo str_repeat('y', 9000); "
            "while (!file_exists('seen')) { clearstatcache(); usleep(1000); } echo file_get_contents('60k');"
        )
        exchange = self.site.begin(script)
        exchange.read_until(b"x")
        self.site.write("seen", b"")
        answer = exchange.finish()
        self.assertEqual([], answer.names)
        self.assertEqual(b"x" * 9000 + b"y" * 9000 + KIB_60, answer.body)

    def test_flush_before_output_changes_nothing(self):
        # As in the manual's example for readfile().
        self.same("<?php header('Content-Type: a/b'); flush(); readfile('60k');", names=1)

    def test_text_beyond_the_bound(self):
        long = "str_repeat('0123456789', 2000)"
        for script, names in [
            (f"<?php echo {long}, 'x', file_get_contents('60k');", 0),
            (f"<?php echo file_get_contents('60k'), {long}, {long}, 'x';", 0),
            (f"<?php echo file_get_contents('60k'), file_get_contents('a.htm'), {long}, file_get_contents('b.htm');", 0),
            ("<?php echo file_get_contents('60k'), str_repeat('x', 19000);", 1),
        ]:
            with self.subTest(script=script):
                self.same(script, names=names, pool="small")

    def test_heads(self):
        for script, names in [
            ("<?php header('Content-Length: ' . filesize('60k')); header('X-A: b'); readfile('60k');", 1),
            ("<?php http_response_code(404); header('Status: 404'); readfile('60k');", 1),
            ("<?php setcookie('a', 'b'); setcookie('c', 'd'); readfile('60k');", 1),
            ("<?php header_register_callback(fn() => header('X-Late: 1')); readfile('60k');", 1),
            ("<?php header('X-ZeroCopy-Not: 1'); readfile('60k');", 1),
            ("<?php header('Location: /elsewhere');", 0),
            ("<?php http_response_code(204);", 0),
            ("<?php readfile('60k'); var_dump(headers_sent($f, $l)); echo basename($f), $l; @header('X-No: 1');", 1),
            ("<?php ini_set('display_errors', 1); readfile('60k'); header('X-No: 1'); http_response_code(500);", 1),
        ]:
            with self.subTest(script=script):
                answer = self.same(script, names=names)
                if names:
                    self.assertIsNone(answer.header("content-length"))

    def test_content_length_stays_without_names(self):
        answer = self.same("<?php header('Content-Length: 5'); echo 'hello';", names=0)
        self.assertEqual("5", answer.header("content-length"))

    def test_head_requests(self):
        answer = self.same("<?php header('X-A: b'); readfile('60k'); echo 'x';", names=0, REQUEST_METHOD="HEAD")
        self.assertEqual(b"", answer.body)

    def test_scripts_that_name_files_themselves(self):
        for header in ["X-ZeroCopy: 0/5", "x-sendfile: /tmp/a", "X-Accel-Redirect: /a"]:
            with self.subTest(header=header):
                script = f"<?php header('{header}'); echo 'hello', file_get_contents('60k');"
                plain, answer = self.site.get(script, zero_copy=False), self.site.get(script)
                self.assertEqual(plain, answer)

    def test_ends_of_scripts(self):
        for script, names in [
            ("<?php readfile('60k'); exit;", 1),
            ("<?php readfile('60k'); exit('message');", 1),
            ("<?php readfile('60k'); undefined_function();", 1),
            ("<?php register_shutdown_function(function () { readfile(__DIR__ . '/60k'); echo 'bye'; }); echo 'hi';", 1),
            ("<?php class D { function __destruct() { readfile(__DIR__ . '/60k'); } } $d = new D; echo 'x';", 1),
            ("<?php readfile('60k'); set_time_limit(1); while (true);", 1),
            ("<?php session_id('abc'); session_start(); $_SESSION['x'] = file_get_contents('60k'); readfile('60k');", 1),
            ("<?php session_id('abc'); session_start(); echo md5($_SESSION['x'] ?? '');", 0),
        ]:
            with self.subTest(script=script):
                self.same(script, names=names)

    def test_answers_of_php_fpm_itself(self):
        self.same(self.site.files / "missing.php", names=0)
        answer = self.site.get(self.site.files / "status", SCRIPT_NAME="/status")
        self.assertIn(b"process manager:", answer.body)

    def test_posts(self):
        script = self.site.write("post.php", "<?php echo file_get_contents('php://input'), $_POST['a']; readfile('60k');")
        body = "a=" + "b" * 20000
        parameters = {
            "REQUEST_METHOD": "POST",
            "CONTENT_LENGTH": len(body),
            "CONTENT_TYPE": "application/x-www-form-urlencoded",
        }
        exchange = self.site.begin(script, content=body.encode(), **parameters)
        self.assertEqual((body + "b" * 20000).encode() + KIB_60, exchange.finish().expanded())

    def test_fastcgi_finish_request(self):
        marker = self.site.files / "finished"
        marker.unlink(missing_ok=True)
        script = "<?php readfile('60k'); echo 'x'; fastcgi_finish_request(); echo 'lost'; touch('finished');"
        self.same(script, names=1)
        self.same("<?php ob_start(); echo 'x'; fastcgi_finish_request(); echo 'lost';", names=0)
        self.same("<?php fastcgi_finish_request(); readfile('60k');", names=0)
        self.assertTrue(marker.exists())

    def test_a_server_that_goes_away_leaves_the_worker_well(self):
        for _ in range(3):
            exchange = self.site.begin("<?php usleep(100000); readfile('60k'); flush(); echo str_repeat('x', 1 << 20);")
            exchange.connection.close()
        self.same("<?php echo file_get_contents('60k');", names=1)


if __name__ == "__main__":
    unittest.main()
