"""Requests paths over HTTP/2 with the library h2, all at once on one connection, and prints what came.

    client.py PORT BODY PATH...

BODY is the length of a body that is sent with each request (POST), or 0 (GET). For each path, in order: the status, the
length of the body and its SHA-256.
"""

import hashlib
import socket
import sys

from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset, WindowUpdated


def main():
    port, length, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    client = H2Connection()
    client.initiate_connection()
    answers, unsent = {}, {}
    for path in paths:
        stream = client.get_next_available_stream_id()
        method = "POST" if length else "GET"
        head = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)]
        if length:
            head.append(("content-length", str(length)))
            unsent[stream] = b"b" * length
        client.send_headers(stream, head, end_stream=not length)
        answers[stream] = {"path": path, "body": hashlib.sha256(), "bytes": 0, "status": None}
    open_streams = set(answers)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(25)
        send(client, unsent)
        connection.sendall(client.data_to_send())
        while open_streams:
            data = connection.recv(65536)
            if not data:
                sys.exit("the connection ended before the streams")
            for event in client.receive_data(data):
                stream = getattr(event, "stream_id", None)
                if isinstance(event, ResponseReceived):
                    answers[stream]["status"] = dict(event.headers)[b":status"].decode()
                elif isinstance(event, DataReceived):
                    answers[stream]["body"].update(event.data)
                    answers[stream]["bytes"] += len(event.data)
                    client.acknowledge_received_data(event.flow_controlled_length, stream)
                elif isinstance(event, StreamEnded):
                    open_streams.discard(stream)
                elif isinstance(event, StreamReset):
                    sys.exit(f"stream {stream} was reset: {event.error_code}")
            send(client, unsent)
            connection.sendall(client.data_to_send())
        client.close_connection()
        connection.sendall(client.data_to_send())
    for answer in answers.values():
        print(answer["status"], answer["bytes"], answer["body"].hexdigest())


def send(client, unsent):
    """Sends of the bodies what the windows allow."""
    for stream in list(unsent):
        while unsent[stream]:
            count = min(client.local_flow_control_window(stream), client.max_outbound_frame_size)
            if count <= 0:
                break
            piece, unsent[stream] = unsent[stream][:count], unsent[stream][count:]
            client.send_data(stream, piece, end_stream=not unsent[stream])
        if not unsent[stream]:
            del unsent[stream]


main()
