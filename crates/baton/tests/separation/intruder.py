#!/usr/bin/env python3
# Tries each act on the server that has started it, and says what came of it. `{key}`, `{control}` and `{logs}` are replaced by paths.
import ctypes, os, socket, struct, subprocess, tempfile

def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])

def words(pid):
    return open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")

master = os.getppid()
while words(master)[1:2] != [b"run"]:
    master = parent(master)
children = open(f"/proc/{master}/task/{master}/children").read().split()
# A worker is a copy of the master.
worker = next(int(one) for one in children if words(one)[1:2] == [b"run"])

def trace():
    if ctypes.CDLL(None).ptrace(16, master, 0, 0) != 0:
        raise OSError()

def command():
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect("{control}")
    client.sendall(b"status\n")
    if not client.recv(1):
        raise OSError()

def orphan():
    read, write = os.pipe()
    if os.fork() == 0:
        first = os.getpid()
        if os.fork() == 0:
            while os.getppid() == first: pass
            outcome = b"x"
            try:
                command()
            except OSError:
                outcome = b"-"
            os.write(write, outcome)
            os._exit(0)
        os._exit(0)
    os.wait()
    if os.read(read, 1) != b"x":
        raise OSError()

def load_bpf():
    # `exit`, behind a return value of 0, as a filter of sockets.
    code = ctypes.create_string_buffer(bytes.fromhex("b700000000000000" "9500000000000000"))
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack("=IIQQIIQ80x", 1, 2, ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(321 if os.uname().machine == "x86_64" else 280, 5, attributes, len(attributes)) < 0:
        raise OSError(ctypes.get_errno(), "bpf")

acts = {
    "read the key": lambda: open("{key}").read(),
    "look into the master": lambda: open(f"/proc/{master}/mem", "rb"),
    "look into a worker": lambda: open(f"/proc/{worker}/mem", "rb"),
    "trace the master": trace,
    "signal the master": lambda: os.kill(master, 0),
    "signal a worker": lambda: os.kill(worker, 0),
    "command the server": command,
    "command it from an orphan": orphan,
    "load a program into the kernel": load_bpf,
    "open a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "write to the folder of logs": lambda: open("{logs}/new", "w"),
    "run a program": lambda: subprocess.run(["true"], check=True),
    "write a temporary file": lambda: tempfile.TemporaryFile().write(b"x"),
}
print("Content-Type: text/plain\n", flush=True)
for name, act in acts.items():
    try:
        act()
        print(f"{name}: done")
    except OSError as error:
        print(f"{name}: {error}")
