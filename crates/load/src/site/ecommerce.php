<?php
// A page of a shop: products by price, and a file as long as the rest of the page.
$page = htmlspecialchars($_GET['page'] ?? '');
$bytes = (int) ($_GET['bytes'] ?? 0);
$products = [];
for ($i = 0; $i < 30; $i++) {
    $products["Product $i"] = crc32($page . $i . ($_GET['user'] ?? '')) % 100000;
}
asort($products);
$text = "<h1>$page</h1><ul>\n";
foreach ($products as $name => $cents) {
    $text .= sprintf("<li>%s: %.2f</li>\n", $name, $cents / 100);
}
$text .= "</ul>\n";
header('Content-Type: text/html');
$text = str_pad(substr($text, 0, 4096), 4096);
$padding = __DIR__ . '/padding/' . ($bytes - 4096);
if (isset($_SERVER['RESULT_FOLDER'])) {
    // The server sends the page from a file. A page of this name is always the same; one that is being sent stays whole.
    $name = "$_SERVER[RESULT_FOLDER]/$page-" . (int) ($_GET['user'] ?? 0) . '.html';
    // The rest goes from file to file, not through a string.
    $file = fopen("$name." . getmypid(), 'w');
    fwrite($file, $text);
    stream_copy_to_stream(fopen($padding, 'r'), $file);
    fclose($file);
    rename("$name." . getmypid(), $name);
    header("X-Sendfile: $name");
    exit;
}
echo $text;
readfile($padding);
