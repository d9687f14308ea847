"""Vectored sends: many buffers, one system call, nothing joined that is large."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from baton_fastcgi.records import Buffer

# Most buffers of one call (UIO_MAXIOV).
_BUFFERS_MAX = os.sysconf("SC_IOV_MAX")
# Copying pieces below this size together costs less than naming each to the kernel.
_SMALL_BYTES = 2048


def send_some(sock: socket.socket, buffers: Sequence[Buffer], flags: int = 0) -> int:
    """Sends what the socket takes without waiting, and returns how many bytes that were.

    Raises OSError when the peer is gone.
    """
    try:
        return sock.sendmsg(buffers[:_BUFFERS_MAX], [], flags | socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except (BlockingIOError, InterruptedError):
        return 0


def without_first(buffers: Sequence[Buffer], count: int) -> Sequence[Buffer]:
    """The rest of `buffers` after their first `count` bytes."""
    for index, buffer in enumerate(buffers):
        if count < len(buffer):
            return [memoryview(buffer)[count:], *buffers[index + 1 :]] if count else buffers[index:]
        count -= len(buffer)
    return []


def join_small(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The same bytes in fewer pieces: neighbours that are small become one."""
    out: list[Buffer] = []
    small: list[Buffer] = []
    for buffer in buffers:
        if len(buffer) < _SMALL_BYTES:
            small.append(buffer)
            continue
        if small:
            out.append(b"".join(small))
            small = []
        out.append(buffer)
    if small:
        out.append(b"".join(small))
    return out
