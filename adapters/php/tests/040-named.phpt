--TEST--
The body names the file instead of holding it
--EXTENSIONS--
baton
--CGI--
--INI--
baton.roots={PWD}
baton.snapshot_dir={PWD}
baton.threshold=4095
output_buffering=4096
--ENV--
BATON_ZEROCOPY=/
--FILE--
<?php
require __DIR__ . '/fixture.inc';
['5000' => $path] = settled_files([5000]);
header('Content-Length: 5007');
echo 'ab', file_get_contents($path), 'cd';
unlink($path);
?>
--EXPECTREGEX--
ab\/\S+\/u\d+\/[0-9a-f]+-[0-9a-f]+-1388-[0-9a-f]+-[0-9a-f]+cd
