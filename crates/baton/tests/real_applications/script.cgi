#!/bin/sh
# A CGI script: what the path says, it does.
case "$PATH_INFO" in
/variables) printf 'Content-Type: text/plain\r\n\r\n'; env | sort ;;
# fcgiwrap reads no answer before the request is read.
/echo) body=$(mktemp); cat >"$body"; printf 'Content-Type: application/octet-stream\r\n\r\n'; cat "$body"; rm "$body" ;;
/bytes) printf 'Content-Type: application/octet-stream\r\n\r\n'; seq "$QUERY_STRING" | head -c "$QUERY_STRING" ;;
/once) printf 'Content-Type: text/plain\r\nContent-Length: %s\r\n\r\n' "$QUERY_STRING"; head -c "$QUERY_STRING" /dev/zero ;;
/cookies) printf 'Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\nX-Own: yes\r\nContent-Type: text/plain\r\n\r\nbaked\n' ;;
/elsewhere) printf 'Status: 303 See Other\r\nLocation: /variables\r\n\r\n' ;;
/nothing) printf 'Status: 204 No Content\r\n\r\n' ;;
# The process that speaks FastCGI is the one that has started this one.
/holds) printf 'Content-Type: text/plain\r\n\r\n'; ls -l "/proc/$PPID/fd"; cat "/proc/$PPID/maps" ;;
*) echo "no $PATH_INFO" >&2; printf 'Status: 404 Not Found\r\nContent-Type: text/plain\r\n\r\nno %s\n' "$PATH_INFO" ;;
esac
