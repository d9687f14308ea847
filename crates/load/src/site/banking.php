<?php
// A page of a bank: the entries of an account, their sum, and a file as long as the rest of the page.
$page = htmlspecialchars($_GET['page'] ?? '');
$bytes = (int) ($_GET['bytes'] ?? 0);
$account = 1000 + (int) ($_GET['user'] ?? 0);
$sum = 0;
$rows = '';
for ($i = 0; $i < 20; $i++) {
    $cents = crc32($account . ':' . $i) % 100000 - 50000;
    $sum += $cents;
    $rows .= sprintf("<tr><td>%04d-%02d</td><td>%.2f</td></tr>\n", $account, $i, $cents / 100);
}
$text = sprintf("<h1>%s</h1><table>\n%s</table><p>Balance %.2f</p>\n", $page, $rows, $sum / 100);
header('Content-Type: text/html');
echo str_pad(substr($text, 0, 4096), 4096);
readfile(__DIR__ . '/padding/' . ($bytes - 4096));
