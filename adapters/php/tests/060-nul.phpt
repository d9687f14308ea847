--TEST--
Behind the last byte of a file string there is a NUL of its own, also where the file ends with a page
--EXTENSIONS--
baton
--INI--
baton.roots={PWD}
baton.snapshot_dir={PWD}
baton.threshold=4095
--ENV--
BATON_ZEROCOPY=/
--FILE--
<?php
foreach ([0, 1, 2, 3] as $number) {
    $paths[$number] = __DIR__ . "/060-nul-$number.tmp";
    file_put_contents($paths[$number], str_pad('', 4093) . '123');
    chmod($paths[$number], 0644);
}
usleep(2100000);
foreach ($paths as $path) {
    // What is a number is decided by the byte behind it, too.
    $strings[] = $s = file_get_contents($path);
    echo var_export(is_numeric($s), true), ' ', $s + 0, ' ', (int) $s, "\n";
    unlink($path);
}
// Between the pages of two files there are always a page for the NUL of one and a page for the header of the other.
preg_match_all('#^([0-9a-f]+)-.*/u\d+/[0-9a-f]+-[0-9a-f]+-1000-#m', file_get_contents('/proc/self/maps'), $maps);
$starts = array_map('hexdec', $maps[1]);
sort($starts);
for ($i = 1; $i < count($starts); $i++) {
    var_dump($starts[$i] - $starts[$i - 1] >= 3 * 4096);
}
?>
--EXPECT--
true 123 123
true 123 123
true 123 123
true 123 123
bool(true)
bool(true)
bool(true)
