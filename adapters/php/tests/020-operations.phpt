--TEST--
Operations on a file string give the same as on a plain one
--EXTENSIONS--
baton
--INI--
baton.roots={PWD}
baton.snapshot_dir={PWD}
baton.threshold=4095
error_reporting=E_ALL & ~E_DEPRECATED
--ENV--
BATON_ZEROCOPY=/
--FILE--
<?php
require __DIR__ . '/fixture.inc';
require __DIR__ . '/operations.inc';
foreach (settled_files([4095, 4096, 4097, 61440]) as $size => $path) {
    $f = fopen($path, 'r');
    $plain = fread($f, $size);
    fclose($f);
    $before = baton_status()['mapped'];
    $different = 0;
    foreach (operations($plain) as $name => $result) {
        $expected[$name] = $result;
    }
    foreach (operations(file_get_contents($path)) as $name => $result) {
        if ($result !== $expected[$name]) {
            echo "$size, $name: ", var_export($result, true), ' instead of ', var_export($expected[$name], true), "\n";
            $different++;
        }
    }
    echo $size, ' mapped ', baton_status()['mapped'] - $before, ', different ', $different, ' of ', count($expected), "\n";
    unlink($path);
}
?>
--EXPECT--
4095 mapped 1, different 0 of 51
4096 mapped 1, different 0 of 51
4097 mapped 1, different 0 of 51
61440 mapped 1, different 0 of 51
