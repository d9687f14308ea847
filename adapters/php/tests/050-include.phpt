--TEST--
Static text is included as a file string, code is run
--EXTENSIONS--
baton
--CGI--
--INI--
baton.roots={PWD}
baton.snapshot_dir={PWD}
baton.threshold=4095
--ENV--
BATON_ZEROCOPY=/
--FILE--
<?php
require __DIR__ . '/fixture.inc';
['5000' => $path] = settled_files([5000]);
$result = include $path;
echo "|$result|", basename(get_included_files()[2]), '|', baton_status()['mapped'];
unlink($path);
?>
--EXPECTREGEX--
\/\S+\/u\d+\/[0-9a-f]+-[0-9a-f]+-1388-[0-9a-f]+-[0-9a-f]+\|1\|050-include-5000.tmp\|1
