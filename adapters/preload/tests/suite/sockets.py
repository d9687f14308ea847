"""Unix sockets that have nothing to do with FastCGI."""

import array
import os
import select
import socket
import subprocess
import tempfile
import threading

folder = tempfile.mkdtemp()


def listen(name):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(folder, name))
    listener.listen()
    return listener


def connect(name):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(os.path.join(folder, name))
    return sock


# The accepting side writes first.
listener = listen("greeting")
client = connect("greeting")
server, _ = listener.accept()
server.sendall(b"\x01\x06 hello")
print(client.recv(100))
client.sendall(b"\x01\x01 looks like FastCGI, and is not")
print(server.recv(5), server.recv(100))
server.close()
print(client.recv(100))

# Descriptors travel with the second message, directly behind the first.
listener = listen("descriptors")
client = connect("descriptors")
with open(os.path.join(folder, "file"), "w+") as file:
    file.write("what is in the file")
    file.flush()
    for first in (b"QQQQ", b"\x05\x01\x00\x01"):
        server, _ = listener.accept() if first == b"QQQQ" else (server, None)
        client.sendall(first)
        client.sendmsg([b"fd"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
        print(os.read(server.fileno(), 4))
        message, control, _, _ = server.recvmsg(10, 100)
        passed = array.array("i", control[0][2])[0]
        print(message, os.pread(passed, 100, 0))
        os.close(passed)

# Bytes that begin like FastCGI, read by any call, echoed.
listener = listen("echo")
data = bytes(range(1, 255)) * 1000


def echo():
    while True:
        sock, _ = listener.accept()
        with sock:
            while True:
                select.select([sock], [], [])
                got = sock.recv(1000)
                if not got:
                    break
                sock.sendall(got)
            if got == b"" and sock.fileno() < 0:
                return


threading.Thread(target=echo, daemon=True).start()
for begin in (b"\x01\x01\x00\x01\x00\x08\x00\x00", b"\x01\x09", b"\x01", b"GET / HTTP/1.0", b"\x01\x01\x00\x00\xff\xff"):
    client = connect("echo")
    sent = begin + data
    threading.Thread(target=lambda: (client.sendall(sent), client.shutdown(socket.SHUT_WR))).start()
    received = b""
    while more := client.recv(4096):
        received += more
    print(received == sent, len(received))

# Not blocking.
listener = listen("nonblocking")
client = connect("nonblocking")
server, _ = listener.accept()
server.setblocking(False)
try:
    server.recv(1)
except BlockingIOError as error:
    print(error)
client.sendall(b"\x01\x01\x00\x01\x00\x08\x00\x00now")
poll = select.epoll()
poll.register(server, select.EPOLLIN)
print(len(poll.poll()), server.recv(3), len(poll.poll()), server.recv(100))

# Children, which close what they have not opened.
server.setblocking(True)
print(subprocess.check_output(["echo", "child"], close_fds=True))
client.sendall(b"after")
print(server.recv(100))
