<?php
// Reads the body of a request, and says how long it was.
header('Content-Type: text/plain');
echo strlen(file_get_contents('php://input')), "\n";
