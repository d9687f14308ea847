//! Bodies whose every byte can be checked.

/// A script that writes `$_GET['bytes']` bytes of the pattern, `$_GET['step']` at a time.
pub(crate) const SCRIPT: &str = "<?php
$all = implode('', array_map('chr', range(0, 250)));
$all = substr(str_repeat($all, intdiv($_GET['bytes'], 251) + 1), 0, $_GET['bytes']);
if (isset($_GET['length'])) header('Content-Length: ' . $_GET['length']);
header('Content-Type: application/octet-stream');
for ($at = 0; $at < strlen($all); $at += $_GET['step']) echo substr($all, $at, $_GET['step']);
";

/// So many bytes of it.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    let once: Vec<u8> = (0..251).collect();
    let mut pattern = once.repeat(bytes.div_ceil(once.len()));
    pattern.truncate(bytes);
    pattern
}

/// Compares without printing megabytes.
pub(crate) fn assert_pattern(body: &[u8], bytes: usize) {
    let expected = pattern(bytes);
    if body == expected {
        return;
    }
    let wrong = body.iter().zip(expected).position(|(is, should_be)| *is != should_be);
    assert_eq!((body.len(), wrong), (bytes, None), "length, and position of the first wrong byte");
}
