<?php
// A page, a stream, a form, an upload and a download: what applications in PHP do all day.
header('X-Own: yes');
switch ($_SERVER['REQUEST_METHOD'] . ' ' . $_GET['do']) {
    case 'HEAD page':
    case 'GET page':
        setcookie('seen', 'once');
        echo '<p>', htmlspecialchars($_GET['word']), str_repeat("<p>a paragraph\n", 20000);
        break;
    case 'GET stream':
        header('Content-Type: text/plain');
        for ($i = 0; $i < 20; ++$i) {
            echo str_repeat("piece $i ", 1000);
            flush();
        }
        break;
    case 'POST form':
        header('Content-Type: application/json');
        echo json_encode($_POST + ['cookies' => $_COOKIE]);
        break;
    case 'POST upload':
        $file = $_FILES['file'];
        header('Content-Type: application/json');
        echo json_encode([$_POST, $file['name'], $file['error'], $file['size'], md5_file($file['tmp_name'])]);
        break;
    case 'GET download':
        header('Content-Type: application/octet-stream');
        header('Content-Length: ' . filesize(__DIR__ . '/download.bin'));
        readfile(__DIR__ . '/download.bin');
        break;
    case 'GET elsewhere':
        header('Location: https://example.org/', true, 303);
        break;
    case 'GET holds':
        foreach (scandir('/proc/self/fd') as $fd) {
            echo @readlink("/proc/self/fd/$fd"), "\n";
        }
        readfile('/proc/self/maps');
}
