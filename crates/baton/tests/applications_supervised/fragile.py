#!/usr/bin/python3
# A responder that knows requests and nothing else, as the FCGI module of Ruby is without its C extension: a connection
# that brings no request ends it, and so does FCGI_GET_VALUES. It writes down each start.
import os
import socket
import struct
import sys

BEGIN, PARAMS, STDIN, STDOUT, END = 1, 4, 5, 6, 3


def read(connection, count):
    data = b""
    while len(data) < count:
        some = connection.recv(count - len(data))
        if not some:
            sys.exit("no request")
        data += some
    return data


def serve(connection):
    while True:
        _, kind, number, length, padding, _ = struct.unpack(">BBHHBB", read(connection, 8))
        read(connection, length + padding)
        if kind not in (BEGIN, PARAMS, STDIN):
            sys.exit(f"no idea what a record of type {kind} is")
        if kind == STDIN and length == 0:
            break
    text = b"Content-Type: text/plain\r\n\r\npid=%d" % os.getpid()
    answer = struct.pack(">BBHHBB", 1, STDOUT, number, len(text), 0, 0) + text
    connection.sendall(answer + struct.pack(">BBHHBBQ", 1, END, number, 8, 0, 0, 0))


with open(sys.argv[1], "a") as starts:
    print(os.getpid(), file=starts)
listener = socket.socket(fileno=0)
while True:
    connection, _ = listener.accept()
    with connection:
        serve(connection)
