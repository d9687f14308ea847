"""A node that works on one prompt at a time, and remembers with which texts the last ones began: what costs a server of a
language model most is the beginning that it has not seen lately. It says no more than its first token.

    prefix-node.py HOST PORT PREFIXES MISS_MS HIT_MS
"""

import asyncio
import json
import signal
import sys
from collections import OrderedDict

HOST = sys.argv[1]
PORT, PREFIXES, MISS_MS, HIT_MS = map(int, sys.argv[2:])

known = OrderedDict()
processor = asyncio.Lock()


async def work(body):
    prefix = json.loads(body)["messages"][0]["content"] if body else ""
    async with processor:
        is_known = prefix in known
        known[prefix] = True
        known.move_to_end(prefix)
        if len(known) > PREFIXES:
            known.popitem(last=False)
        await asyncio.sleep((HIT_MS if is_known else MISS_MS) / 1000)


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = [line[15:] for line in head.split("\r\n") if line.startswith("content-length:")]
            await work(await reader.readexactly(int(length[0])) if length else b"")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntoken")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    async with await asyncio.start_server(serve, HOST, PORT) as server:
        await server.serve_forever()


# The lab blocks the signals that end it, and its children inherit that.
signal.pthread_sigmask(signal.SIG_SETMASK, [])
asyncio.run(main())
