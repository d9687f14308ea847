--TEST--
The extension says what it did, and steps aside where no server asks
--EXTENSIONS--
baton
--INI--
baton.roots={PWD}
baton.snapshot_dir={PWD}
baton.threshold=4095
--FILE--
<?php
require __DIR__ . '/fixture.inc';
foreach (settled_files([4096]) as $path) {
    var_dump(strlen(file_get_contents($path)));
    unlink($path);
}
var_dump(baton_status());
?>
--EXPECT--
int(4096)
array(13) {
  ["asked"]=>
  bool(false)
  ["mapped"]=>
  int(0)
  ["outside_roots"]=>
  int(0)
  ["not_world_readable"]=>
  int(0)
  ["file_system_unknown"]=>
  int(0)
  ["not_our_file"]=>
  int(0)
  ["too_large"]=>
  int(0)
  ["just_changed"]=>
  int(0)
  ["being_written"]=>
  int(0)
  ["no_room"]=>
  int(0)
  ["system_error"]=>
  int(0)
  ["named"]=>
  int(0)
  ["expanded"]=>
  int(0)
}
