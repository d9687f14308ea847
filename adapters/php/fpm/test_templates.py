"""Template engines put files into pages: what is whole in a page is named, and clients get what PHP alone would have sent."""

import pathlib
import unittest

from case import SiteCase, content

SMARTY = pathlib.Path("/usr/share/php/smarty4/Smarty.class.php")
TWIG = pathlib.Path("/usr/share/php/Twig/autoload.php")


class Templates(SiteCase):
    pools = {"main": {"ini": {"output_buffering": 4096, "baton.threshold": 8192}}}
    files = {
        "article.html": content(60_000, "article"),
        "aside.html": content(20_000, "aside"),
        "page.tpl": '<html>{fetch file="$folder/article.html"}<hr>{fetch file="$folder/aside.html"}</html>',
        "page.twig": "<html>{{ source('article.html') }}<hr>{{ source('aside.html') }}</html>",
    }

    def by_names(self, script):
        answer = self.same(script, names=2)
        text = len(answer.body) - sum(length for _, length in answer.names)
        self.assertLess(text, len(answer.expanded()) / 100)

    def test_php(self):
        self.by_names(
            "<?php function part($name) { ob_start(); include __DIR__ . \"/$name\"; return ob_get_clean(); } "
            "echo '<html>' . part('article.html') . '<hr>' . part('aside.html') . '</html>';"
        )

    @unittest.skipUnless(SMARTY.exists(), "LEFT OUT of the tests of the PHP extension: Smarty (smarty4) is not installed")
    def test_smarty(self):
        self.by_names(
            f"<?php require '{SMARTY}'; $smarty = new Smarty; $smarty->setTemplateDir(__DIR__); "
            "$smarty->setCompileDir(__DIR__ . '/compiled'); $smarty->assign('folder', __DIR__); $smarty->display('page.tpl');"
        )

    @unittest.skipUnless(TWIG.exists(), "LEFT OUT of the tests of the PHP extension: Twig (php-twig) is not installed")
    def test_twig(self):
        self.by_names(
            f"<?php require '{TWIG}'; $twig = new Twig\\Environment(new Twig\\Loader\\FilesystemLoader(__DIR__)); "
            "echo $twig->render('page.twig');"
        )


if __name__ == "__main__":
    unittest.main()
