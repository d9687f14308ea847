#!/bin/sh
printf 'Status: 202 Accepted\r\nContent-Type: text/plain\r\n\r\n'
echo "query $QUERY_STRING"
echo 'a message' >&2
i=0; while [ $i -lt 2000 ]; do echo "line $i of many that a shell writes one by one"; i=$((i+1)); done
exec cat
