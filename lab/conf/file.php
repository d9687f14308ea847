<?php
// A file of the length that is asked for, as a string: what a PHP program does with a page from its cache.
$content = file_get_contents(__DIR__ . '/' . (int) $_GET['kb'] . 'k.html');
header('Content-Type: text/html');
header('Content-Length: ' . strlen($content));
echo $content;
