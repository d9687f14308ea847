"""The recipe for files that are deployed by another user, as it stands in docs/recipes."""

import pathlib
import re
import shutil
import tempfile
import time
import unittest

from case import content
from pool import AS_ROOT, SETTLED_S, Site

RECIPE = pathlib.Path(__file__).parents[3] / "docs/recipes/php-files.md"


@unittest.skipUnless(AS_ROOT, "needs root, to give a file to another user")
class Recipe(unittest.TestCase):
    def setUp(self):
        # Not where the temporary directory may be in memory.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="baton-php-deployed-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)

    def settings(self):
        lines = re.search(r"```ini\n(.*?)```", RECIPE.read_text(), re.DOTALL)[1]
        return dict(re.findall(r"php_admin_value\[(\S+)\] = (\S+)", lines))

    def test_files_of_another_user_that_php_cannot_write(self):
        settings = self.settings()
        self.assertEqual({"baton.roots", "baton.snapshot_dir", "baton.settle"}, set(settings))
        deployed, page = self.folder / "www", content(60 * 1024)
        deployed.mkdir()
        (deployed / "page.html").write_bytes(page)
        script = deployed / "index.php"
        script.write_text("<?= is_writable(__DIR__) ? 'ours' : 'deployed'; readfile(__DIR__ . '/page.html');")
        pool = {"roots": deployed}
        # A minute would make the test as long.
        settled = pool | {"ini": {"baton.settle": int(settings["baton.settle"]) // 60}}
        site = Site({"main": settled, "unsettled": pool}, parent=self.folder)
        self.addCleanup(site.stop)
        time.sleep(SETTLED_S)
        for name, names in [("unsettled", 0), ("main", 1)]:
            answer = site.get(script, pool=name)
            self.assertEqual((names, b"deployed" + page), (len(answer.names), answer.expanded()))


if __name__ == "__main__":
    unittest.main()
