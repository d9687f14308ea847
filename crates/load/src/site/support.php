<?php
// A page of a support site: downloads that match, and a file as long as the rest of the page.
$page = htmlspecialchars($_GET['page'] ?? '');
$bytes = (int) ($_GET['bytes'] ?? 0);
$text = "<h1>$page</h1><ol>\n";
for ($i = 0, $user = $_GET['user'] ?? ''; $i < 40; $i++) {
    $name = md5("$user:$i");
    if (preg_match('/^[0-7]/', $name)) {
        $text .= "<li><a href=\"/downloads/$name\">$name</a></li>\n";
    }
}
$text .= "</ol>\n";
header('Content-Type: text/html');
echo str_pad(substr($text, 0, 4096), 4096);
readfile(__DIR__ . '/padding/' . ($bytes - 4096));
