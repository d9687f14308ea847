#!/bin/sh
echo 'Status: 202 Fine'
echo 'Content-Type: text/plain'
echo
cat
head -c $QUERY_STRING /dev/zero | tr '\0' x
echo told >&2
