"""What the extension says when files stay plain strings: once for each reason, whatever the number of workers."""

import os
import shutil
import time
import unittest

from case import SiteCase, content
from pool import AS_ROOT, SETTLED_S

READ = "<?php echo file_get_contents('{}');"


class Report(SiteCase):
    pools = {
        "main": {"workers": 3},
        "rootless": {"roots": ""},
        "elsewhere": {"snapshots": "/dev/shm"},
    }
    files = {"private": content(9000), "of-another": content(9000, "of-another"), "60k": content(60 * 1024)}

    def times(self, text):
        return self.site.log.read_text().count(text)

    def test_a_reason_is_logged_once_by_all_workers(self):
        self.site.give(shutil.copy(self.site.files / "private", self.site.root / "outside"))
        (self.site.files / "private").chmod(0o640)
        reasons = ["not_world_readable", "outside_roots"]
        if AS_ROOT:
            os.chown(self.site.files / "of-another", 0, 0)
            reasons.append("not_our_file")
        time.sleep(SETTLED_S)
        asked = [self.site.begin(READ.format(name) + "usleep(300000);") for name in ["private"] * 3]
        for exchange in asked:
            exchange.finish()
        for name in ["../outside", "of-another", "private"]:
            self.same(READ.format(name), names=0)
        for reason in reasons:
            self.logged(f"({reason}): ")
            self.assertEqual(1, self.times(f"({reason}): "), self.site.log.read_text())

    def test_what_passes_is_not_logged(self):
        self.site.write("new", content(9000, "new"))
        self.assertEqual(0, len(self.site.get(READ.format("new")).names))
        self.same("<?php ini_set('baton.enable', 0); echo file_get_contents('60k');", names=0)
        self.site.get(READ.format("60k"), pool="rootless")
        self.logged("set baton.roots")
        self.assertEqual(0, self.times("just_changed") + self.times("baton.enable"))

    def test_why_all_files_are_plain(self):
        for parameters, pool, said in [
            ({"zero_copy": False}, "main", "the server takes no names"),
            ({}, "elsewhere", "baton.snapshot_dir is in none of the folders"),
            ({}, "rootless", "set baton.roots"),
        ]:
            with self.subTest(pool=pool):
                for _ in range(3):
                    page = self.site.get("<?php phpinfo(INFO_MODULES);", pool=pool, **parameters).body.decode()
                self.assertIn(said, page)
                self.logged(said)
                self.assertEqual(1, self.times(said), self.site.log.read_text())
        page = self.site.get("<?php phpinfo(INFO_MODULES);").body.decode()
        self.assertIn('takes names </td><td class="v">yes ', page)
        self.assertNotIn("What is in the way", page)


if __name__ == "__main__":
    unittest.main()
