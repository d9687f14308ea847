<?php
// Reads the body of a request, or has PHP read the file of a form, and says how long it was; `of` says how long it must be.
header('Content-Type: text/plain');
$bytes = $_FILES['file']['size'] ?? strlen(file_get_contents('php://input'));
http_response_code($bytes === (int) $_GET['of'] ? 200 : 500);
echo $bytes, "\n";
