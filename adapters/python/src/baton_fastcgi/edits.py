"""What an offer says before its ready-made fields (hand-over protocol, section 2): edits, and what the server codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

Field = tuple[bytes, bytes]

_EVENT_STREAM = b"text/event-stream"
_VARIES = (b"vary", b"Vary: Accept-Encoding")


class CodedFor(Enum):
    """Which clients get a response in a coding, which the server makes."""

    NONE = 1
    # The head says `Vary`.
    OTHERS = 2
    THIS_ONE = 3


@dataclass(frozen=True)
class CodingTerms:
    """Which responses are coded: from so many bytes on (None: none for this client), of these types."""

    min_bytes: int | None
    patterns: tuple[bytes, ...]

    @classmethod
    def parse(cls, line: bytes) -> CodingTerms:
        """Reads the line without its mark. What is no number leaves all bodies to the server."""
        least, *patterns = line.split(b" ")
        min_bytes = None if least == b"-" else int(least) if least.isdigit() else 0
        return cls(min_bytes, tuple(pattern.lower() for pattern in patterns if pattern))

    def judge(self, status: int, fields: Iterable[Field], length: int | None) -> CodedFor:
        """Judges a response; `length` is that of its body in bytes, if it is known."""
        values: dict[bytes, bytes] = {}
        for name, value in fields:
            lower = name.lower()
            values[lower] = values[lower] + b"," + value if lower == b"cache-control" and lower in values else value
        media_type = values.get(b"content-type")
        if status == 304 and media_type is None:
            return CodedFor.OTHERS
        is_whole = status not in (204, 205, 206, 304, 416)
        is_finished = b"content-encoding" in values or b"content-range" in values
        controls = values.get(b"cache-control", b"").lower().split(b",")
        if b"no-transform" in (control.strip() for control in controls):
            is_finished = True
        if media_type is None or not is_whole or is_finished or not self._covers(media_type):
            return CodedFor.NONE
        is_short = self.min_bytes is None or (length is not None and length < self.min_bytes)
        return CodedFor.OTHERS if is_short else CodedFor.THIS_ONE

    def _covers(self, media_type: bytes) -> bool:
        essence = media_type.partition(b";")[0].strip().lower()
        for pattern in self.patterns:
            before, star, after = pattern.partition(b"*")
            if not star:
                if pattern == essence:
                    return True
            elif (
                # A stream of events is meant by its own name alone.
                essence != _EVENT_STREAM
                and len(essence) >= len(before) + len(after)
                and essence.startswith(before)
                and essence.endswith(after)
            ):
                return True
        return False


@dataclass
class Edits:
    """Edits of the application's fields, and the fields of the offer behind them."""

    fields: bytes
    terms: CodingTerms | None = None
    _dropped: set[bytes] = field(default_factory=set)
    _defaults: list[bytes] = field(default_factory=list)
    # The name of a list in lower case, and the line that joins it.
    _joined: list[tuple[bytes, bytes]] = field(default_factory=list)

    @classmethod
    def parse(cls, offered: bytes) -> Edits:
        """Splits what an offer has behind its first line."""
        edits = cls(offered)
        while edits.fields[:1] in (b"/", b"?", b"+", b"~"):
            line, _, edits.fields = edits.fields.partition(b"\r\n")
            mark, line = line[:1], line[1:]
            if mark == b"/":
                edits._dropped.add(line.lower())
            elif mark == b"?":
                edits._defaults.append(line)
            elif mark == b"+":
                edits._joined.append((line.partition(b":")[0].lower(), line))
            else:
                edits.terms = CodingTerms.parse(line)
        return edits

    def say_varies(self) -> None:
        """Joins `Vary`: other clients get the response in a coding."""
        self._joined.insert(0, _VARIES)

    def apply(self, own: list[Field]) -> list[bytes]:
        """The application's fields as they are to be, in complete lines."""
        own = [each for each in own if each[0].lower() not in self._dropped]
        joined = dict.fromkeys(name for name, _ in self._joined)
        names = {name.lower() for name, _ in own}
        lines = [b"%s: %s\r\n" % each for each in own if each[0].lower() not in joined]
        lines += [self._list(name, own) for name in joined]
        lines += [line + b"\r\n" for line in self._defaults if line.partition(b":")[0].lower() not in names]
        return lines

    def _list(self, name: bytes, own: list[Field]) -> bytes:
        ours = [line.partition(b":") for lower, line in self._joined if lower == name]
        values = [value for each, value in own if each.lower() == name] + [value for _, _, value in ours]
        members: dict[bytes, bytes] = {}
        for member in b",".join(values).split(b","):
            if member.strip():
                members.setdefault(member.strip().lower(), member.strip())
        if b"*" in members:
            return b"%s: *\r\n" % ours[0][0]
        return b"%s: %s\r\n" % (ours[0][0], b", ".join(members.values()))
