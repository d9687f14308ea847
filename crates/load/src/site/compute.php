<?php
// Adds, and sends a file: Suzumura's second micro-benchmark.
$sum = 0;
for ($i = 0, $n = (int) ($_GET['operations'] ?? 0); $i < $n; $i++) {
    $sum += $i;
}
header('Content-Type: text/html');
header('X-Sum: ' . $sum);
readfile(__DIR__ . '/padding/' . (int) ($_GET['bytes'] ?? 0));
