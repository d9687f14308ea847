<?php
// The query selects the behaviour. Files in the folder of the script signal when to continue, and report events.
$there = fn($name) => __DIR__ . '/' . basename($name);
$die = fn() => posix_kill(getmypid(), 9);
$body = fn() => str_repeat(str_repeat('-', 63) . "\n", 2000);
parse_str($_SERVER['QUERY_STRING'], $query);
$wait = function () use ($there, &$query) {
    while (!file_exists($there($query['for']))) {
        usleep(2000);
        clearstatcache();
    }
};
switch ($query['do']) {
    case 'tell':
        echo getmypid();
        break;
    case 'die-before':
        $die();
        break;
    case 'die-amid':
        echo $body();
        flush();
        $wait();
        $die();
        break;
    case 'die-after':
        echo $body();
        fastcgi_finish_request();
        $die();
        break;
    case 'count':
        if ($_SERVER['REQUEST_METHOD'] === 'POST') {
            // One append needs no lock: signals of a reload interrupt waiting for one.
            file_put_contents($there('counted'), "{$query['id']}\n", FILE_APPEND);
        }
        echo $query['id'], ' ', file_get_contents('php://input'), str_repeat('.', (int) $query['bytes']);
        break;
    case 'answer-first':
        echo str_repeat('.', 3000000), file_get_contents('php://input');
        break;
    case 'wait':
        $wait();
        echo 'waited';
        break;
    case 'trickle':
        for ($i = 0; $i < 7; ++$i) {
            echo str_repeat('.', 9000);
            usleep(500000);
        }
        break;
    case 'endless':
        register_shutdown_function(fn() => file_put_contents($there($query['mark']), connection_status()));
        while (true) {
            echo $body();
            flush();
        }
}
