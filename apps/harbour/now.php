<?php
// The height of the water now, from the two largest constituents of the tide. `make demo` has it run by php-fpm.
header('Content-Type: application/json');
header('Cache-Control: public, max-age=5');
$hours = microtime(true) / 3600;
$metres = fn(float $at) => 2.4 + 1.3 * sin(2 * M_PI * $at / 12.4206) + 0.5 * sin(2 * M_PI * $at / 12);
echo json_encode([
    'at' => gmdate('Y-m-d\TH:i:s\Z'),
    'metres' => round($metres($hours), 2),
    'rising' => $metres($hours + 0.01) > $metres($hours),
    'asked_by' => $_SERVER['HTTP_X_FORWARDED_FOR'] ?? $_SERVER['REMOTE_ADDR'],
]), "\n";
