<?php
// A file of the requested length, as a string, like a PHP program's page from its cache, or as something of another type.
$content = file_get_contents(__DIR__ . '/' . (int) $_GET['kb'] . 'k.html');
header('Content-Type: ' . ($_GET['type'] ?? 'text/html'));
header('Content-Length: ' . strlen($content));
echo $content;
