--TEST--
File strings live as long as references to them, and through the end of the script
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
require __DIR__ . '/fixture.inc';
['4096' => $path] = settled_files([4096]);

class AtTheEnd
{
    public function __construct(private string $s) {}
    public function __destruct() { echo 'destructor ', md5($this->s) === $GLOBALS['digest'] ? 'right' : 'wrong', "\n"; }
}

function keep($s) { static $kept = []; $kept[] = $s; $kept[$s] = $s; return $kept; }

$s = file_get_contents($path);
$digest = md5($s);
$t = file_get_contents($path);
unset($s);
$cycle = new stdClass;
$cycle->self = $cycle;
$cycle->text = $t;
unset($cycle);
gc_collect_cycles();
keep($t);
keep(file_get_contents($path));
define('KEPT', $t);
$GLOBALS['object'] = new AtTheEnd($t);
register_shutdown_function(fn() => print('shutdown ' . (md5($t) === $digest ? 'right' : 'wrong') . "\n"));
for ($i = 0; $i < 1000; $i++) {
    file_get_contents($path);
    $list[] = file_get_contents($path);
}
unlink($path);
unset($list);
var_dump(md5($t) === $digest, md5(KEPT) === $digest, baton_status()['mapped']);
?>
--EXPECT--
bool(true)
bool(true)
int(2003)
shutdown right
destructor right
