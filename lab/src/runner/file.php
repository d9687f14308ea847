<?php
// A file of the requested length, as a string, like a PHP program's page from its cache.
$content = file_get_contents(__DIR__ . '/' . (int) $_GET['kb'] . 'k.html');
header('Content-Type: text/html');
header('Content-Length: ' . strlen($content));
echo $content;
