"""What the tests have in common: one site for a class, its files made before and settled."""

import time
import unittest

from pool import SETTLED_S, Site


def content(size, seed="content"):
    """Bytes of which no two pages are equal, among them NULs and what looks like a name."""
    line = f"{seed} \0\xff /etc/passwd <b>{{}}</b>\n"
    text = "".join(line.format(number) for number in range(size // (len(line) - 1) + 1))
    return text.encode("latin-1")[:size]


class SiteCase(unittest.TestCase):
    """Subclasses say which pools, files (name: content) and settings of PHP as a whole they need."""

    pools = {"main": {}}
    files = {}
    php = ()

    @classmethod
    def setUpClass(cls):
        cls.site = Site(cls.pools, php=cls.php)
        cls.addClassCleanup(cls.site.stop)
        for name, data in cls.files.items():
            cls.site.write(name, data)
        time.sleep(SETTLED_S)

    def same(self, script, names, pool="main", **parameters):
        """The answer is the plain one, with that many files named in it (None: as many as may be)."""
        plain = self.site.get(script, zero_copy=False, pool=pool, **parameters)
        named = self.site.get(script, pool=pool, **parameters)
        self.assertIsNone(plain.header("x-zerocopy"))
        self.assertEqual(plain.body, named.expanded())
        ours = {"x-zerocopy", "content-length"}
        self.assertEqual(
            [header for header in plain.headers if header[0] not in ours],
            [header for header in named.headers if header[0] not in ours],
        )
        if names is not None:
            self.assertEqual(names, len(named.names), f"{named.body[:300]}… {self.site.status(pool)}")
        return named

    def logged(self, text):
        """Waits until a line of the error log has this text: php-fpm passes on what its workers say when it has time."""
        deadline = time.monotonic() + 25
        while text not in self.site.log.read_text():
            self.assertLess(time.monotonic(), deadline, self.site.log.read_text())
            time.sleep(0.05)
