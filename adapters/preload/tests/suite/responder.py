"""A FastCGI responder that does everything in some other way, named by the request's SCRIPT_FILENAME. Each connection
has a thread, and signals interrupt whatever they do."""

import os
import select
import signal
import socket
import struct
import sys
import threading

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT, STDERR = range(1, 8)


def record(kind, content, request_id=1, padding=0):
    return struct.pack("!BBHHBx", 1, kind, request_id, len(content), padding) + content + bytes(padding)


class Connection:
    def __init__(self, sock):
        self.sock = sock
        self.habit = ""

    def receive(self, count):
        """Reads at most count bytes."""
        if self.habit == "select":
            readable, _, _ = select.select([self.sock], [], [], 30)
            assert readable, "select waits although there is something"
        elif self.habit == "poll":
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            assert poll.poll(30000), "poll waits although there is something"
        elif self.habit == "peek":
            seen = self.sock.recv(count, socket.MSG_PEEK)
            data = self.sock.recv(len(seen))
            assert data == seen
            return data
        elif self.habit == "bytes":
            return self.sock.recv(min(count, 13))
        elif self.habit == "vectors":
            parts = [bytearray(1), bytearray(max(count - 1, 0))]
            got = os.readv(self.sock.fileno(), parts[: 1 if count == 1 else 2])
            return bytes(b"".join(parts)[:got])
        elif self.habit == "messages":
            data, control, flags, address = self.sock.recvmsg(count, 64)
            assert not control and not flags and not address
            return data
        elif self.habit == "copy":
            copy = os.dup(self.sock.fileno())
            try:
                return os.read(copy, count)
            finally:
                os.close(copy)
        return self.sock.recv(count)

    def receive_all(self, count):
        data = b""
        while len(data) < count:
            more = self.receive(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def read_record(self):
        _, kind, request_id, length, padding = struct.unpack("!BBHHBx", self.receive_all(8))
        return kind, request_id, self.receive_all(length + padding)[:length]

    def send(self, data):
        if self.habit == "bytes":
            for at in range(0, len(data), 7919):
                self.sock.sendall(data[at : at + 7919])
        elif self.habit == "vectors":
            cut = len(data) // 3
            written = os.writev(self.sock.fileno(), [data[:cut], b"", data[cut : 2 * cut], data[2 * cut :]])
            self.sock.sendall(data[written:])
        elif self.habit == "messages":
            sent = self.sock.sendmsg([data[:5], data[5:]])
            self.sock.sendall(data[sent:])
        elif self.habit == "copy":
            copy = os.dup(self.sock.fileno())
            other = os.dup2(copy, 100 + copy)
            os.close(copy)
            while data:
                data = data[os.write(other, data) :]
            os.close(other)
        else:
            self.sock.sendall(data)

    def read_request(self):
        kind, request_id, _ = self.read_record()
        while kind == STDIN:
            kind, request_id, _ = self.read_record()
        assert kind == BEGIN
        block = b""
        while True:
            _, _, content = self.read_record()
            if not content:
                break
            block += content
        assert b"BATON_OFFER" not in block
        name = block.index(b"SCRIPT_FILENAME") + len(b"SCRIPT_FILENAME")
        self.habit = block[name : block.index(b"SCRIPT_NAME") - 2].decode()
        return request_id

    def read_body(self):
        body = b""
        while True:
            kind, _, content = self.read_record()
            assert kind == STDIN
            if not content:
                return body
            body += content

    def respond(self, request_id, body):
        head = b"X-Habit: " + self.habit.encode() + b"\r\n\r\n"
        padding = 7 if self.habit == "padding" else 0
        # The first record is not all of the head.
        pieces = [head[:5], head[5:]] + [body[at : at + 30000] for at in range(0, len(body), 30000)]
        data = b"".join(record(STDOUT, piece, request_id, padding) for piece in pieces)
        if self.habit == "others":
            # Records of an unknown request, and of none.
            data = record(STDOUT, b"nobody's", 77) + data + record(11, bytes(8), 0)
        data += record(STDOUT, b"", request_id, padding) + record(END, bytes(8), request_id, padding)
        self.send(data)

    def serve(self):
        while True:
            request_id = self.read_request()
            if self.habit == "refuse":
                self.read_body()
                self.send(record(END, bytes([0, 0, 0, 0, 2, 0, 0, 0]), request_id))
            elif self.habit == "garbage":
                self.read_body()
                self.send(b"This is not FastCGI at all.")
                return
            elif self.habit == "fork":
                body = self.read_body()
                child = os.fork()
                if child == 0:
                    self.respond(request_id, body)
                    os._exit(0)
                os.waitpid(child, 0)
            elif self.habit == "threads":
                # Writes the head while another thread waits for the body.
                got = []
                reader = threading.Thread(target=lambda: got.append(self.read_body()))
                reader.start()
                self.send(record(STDOUT, b"X-Habit: threads\r\n\r\n", request_id))
                reader.join()
                for at in range(0, len(got[0]), 30000):
                    self.send(record(STDOUT, got[0][at : at + 30000], request_id))
                self.send(record(END, bytes(8), request_id))
            else:
                self.respond(request_id, self.read_body())


def serve(accepted):
    with accepted:
        try:
            Connection(accepted).serve()
        except EOFError:
            pass


signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(64)
while True:
    accepted, _ = listener.accept()
    threading.Thread(target=serve, args=[accepted], daemon=True).start()
