"""extract-constants: the same output and behaviour, with the constants in files."""

import pathlib
import subprocess
import time
import unittest

from case import SiteCase
from pool import SETTLED_S

TOOL = pathlib.Path(__file__).parent.parent / "extract-constants"
TEXT = "".join(f"line {number} of text, with a \\' and a $ and a {{$}}\n" for number in range(150))
HTML = "".join(f"<p>paragraph {number}</p>\n" for number in range(300))

# Scripts, and how many constants they have of 4 KiB and more that are put out.
SCRIPTS = {
    "inline": (f"{HTML}<?php echo 1; ?>\n{HTML}<?= 2 ?>{HTML}", 3),
    "inline-only": (HTML, 1),
    "inline-in-control": (
        f"<?php foreach ([1, 2] as $i): ?>{HTML}"
        f"<?php if ($i > 1): ?>\n\n{HTML}<?php else: ?>x<?php endif; endforeach;",
        2,
    ),
    "inline-in-function": (f"<?php function f() {{ ?>{HTML}<?php return __LINE__; }} echo f(), __LINE__;", 1),
    "single-quoted": (f"<?php echo '{TEXT}';", 1),
    "double-quoted": ("<?php echo \"" + "a\\n\\x41\\u{e9}\\$" * 1000 + "\";", 1),
    "escapes-shrink-below": ("<?php echo \"" + "\\x41" * 1500 + "\";", 0),
    "with-variables": ("<?php $v = 1; echo \"$v " + "y" * 5000 + "\";", 0),
    "nowdoc": (f"<?php echo <<<'END'\n{TEXT}END;\necho __LINE__;", 1),
    "heredoc": ("<?php echo <<<END\n    " + "a\\tb\n    " * 1200 + "END;\necho __LINE__;", 1),
    "heredoc-with-variables": ("<?php $v = 1; echo <<<END\n" + "a\n" * 4000 + "$v\nEND;\n", 0),
    "operands": (f"<?php echo 'a', '{TEXT}', 'b', /* c */ '{TEXT}' , 'd';", 2),
    "operands-after-expressions": (f"<?php echo strlen('x'), '{TEXT}';", 0),
    "expressions": (f"<?php echo '{TEXT}' . 'x', '{TEXT}' ?: 1; echo '{TEXT}'[3]; echo ('{TEXT}');", 0),
    "coalesce": (f"<?php echo '{TEXT}' ?? 1;", 0),
    "print": (f"<?php $r = print '{TEXT}'; print('x'); echo $r;", 1),
    "short-echo": (f"a<?= '{TEXT}' ?>b<?= '{TEXT}', 'c' ?>", 2),
    "elsewhere": (
        f"<?php const C = '{TEXT}'; function f($x = '{TEXT}') {{ static $s = '{TEXT}'; return $x . $s; }}"
        f"$a = ['{TEXT}' => 1]; echo md5(f() . C . key($a));",
        0,
    ),
    "same-twice": (f"<?php echo '{TEXT}'; echo '{TEXT}';", 2),
    "line-numbers": (f"<?php echo '{TEXT}'; ?>{HTML}<?php echo __LINE__; throw new Exception('x');", 2),
    "strict-types": (
        "<?php declare(strict_types=1); namespace a\\b; function file_get_contents() { return 'no'; }" f"echo '{TEXT}';",
        1,
    ),
    "in-class": (f"<?php class A {{ static function f() {{ echo '{TEXT}'; ?>{HTML}<?php }} }} A::f();", 2),
    "after-halt": (
        f"<?php echo substr(file_get_contents(__FILE__), __COMPILER_HALT_OFFSET__, 20); __halt_compiler();{HTML}",
        0,
    ),
    "carriage-returns": ("<?php echo '" + "a\r\n" * 3000 + "'; echo __LINE__;", 1),
    "bytes": ("<?php echo '" + "\0\xff" * 3000 + "';", 1),
}


class Constants(SiteCase):
    pools = {"main": {"ini": {"display_errors": 1}}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, (source, _) in SCRIPTS.items():
            (cls.site.files / name).mkdir()
            cls.site.write(f"{name}/script.php", source.encode("latin-1"))
        cls.found = {name: cls.extract(cls.site.files / name / "script.php", name) for name in SCRIPTS}
        for path in cls.site.files.glob("out/**/*"):
            cls.site.give(path)
        time.sleep(SETTLED_S)

    @classmethod
    def extract(cls, script, name, *options):
        output = cls.site.files / "out" / name / "script.php"
        output.parent.mkdir(parents=True, exist_ok=True)
        run = subprocess.run(
            [TOOL, "--threshold", "4096", "--into", cls.site.files / "out/constants", *options, script, output],
            check=True, capture_output=True, text=True,
        )
        return int(run.stderr.split()[0])

    def test_finds_what_is_put_out(self):
        self.assertEqual({name: count for name, (_, count) in SCRIPTS.items()}, self.found)

    def test_output_is_identical(self):
        # Other than in the paths that PHP tells of itself.
        before, after = str(self.site.files / "x")[:-1], str(self.site.files / "out/x")[:-1]
        for name, (_, count) in SCRIPTS.items():
            with self.subTest(name=name):
                original = self.site.get(self.site.files / name / "script.php", zero_copy=False)
                expected = original.body.replace(before.encode(), after.encode())
                extracted = self.site.files / "out" / name / "script.php"
                self.assertEqual(expected, self.site.get(extracted, zero_copy=False).body)
                named = self.site.get(extracted)
                self.assertEqual(expected, named.expanded())
                self.assertEqual(bool(count), bool(named.names))

    def test_runs_again_without_touching_the_files(self):
        files = {path: path.stat().st_ctime_ns for path in self.site.files.glob("out/constants/*")}
        self.extract(self.site.files / "inline" / "script.php", "inline")
        self.assertEqual(files, {path: path.stat().st_ctime_ns for path in files})

    def test_a_script_for_the_command_line(self):
        script = self.site.write("tool.php", f"#!/usr/bin/env php\n{HTML}<?php echo __LINE__;")
        self.assertEqual(1, self.extract(script, "tool"))
        output = self.site.files / "out/tool/script.php"
        self.assertTrue(output.read_text().startswith("#!/usr/bin/env php\n<?php"))
        run = [subprocess.run(["php", path], capture_output=True, check=True).stdout for path in (script, output)]
        self.assertEqual(run[0], run[1])


if __name__ == "__main__":
    unittest.main()
