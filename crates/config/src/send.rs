//! `[send]`: how connections are accepted and responses leave.

use baton_response::send_way::SendWay;

use super::duration::Seconds;
use super::kind::{Bytes, Flag, Integer, Or};
use super::setting::settings;
use super::words::{Word, words};

words! {
    /// Whether a `sendfile` call returns when the socket's buffer is full, or when the client has taken all.
    Sendfile {
        /// returns at once; the rest goes when the socket is writable again
        NonBlocking = "non-blocking",
        /// waits until the client has taken everything: the thread that sends serves no other client meanwhile
        Blocking = "blocking",
        /// blocking for files of at least `blocking_bytes_min`, non-blocking for the others
        BySize = "by-size",
    }
}

words! {
    for SendWay {
        /// the cheaper path, measured continuously for each size class
        Measured = "measured",
        /// from the server's memory, head and body with one `send`
        Memory = "memory",
        /// from the page cache, with `sendfile`
        File = "sendfile",
    }
}

settings! {
    /// How connections are accepted and how responses leave. Needs a restart.
    Send in "send" {
        /// How to send files of 4 KiB and more that are kept in memory (see `[cache]`). The status shows measurements
        /// and choice.
        way: SendWay = SendWay::Measured, Word::<SendWay>::new();
        /// Whether `sendfile` waits for the client. Refused where one slow client would block others (`auto`, `sped`,
        /// `amped`, `n-copy`), and for `threads-cache`, which sends nothing by `sendfile`. `threads` gives the calls that
        /// wait to its helpers, `pipeline` to all of its writers but one: `helpers_max` and `writers` bound the clients
        /// waited for.
        sendfile: Sendfile = Sendfile::NonBlocking, Word::<Sendfile>::new();
        /// Files of at least this size are sent blocking under `sendfile = "by-size"`.
        blocking_bytes_min: u64 = 256 << 10, Bytes(0, 1 << 50);
        /// Bytes sent to one client before others get their turn. Long turns cost fewer system calls, short ones
        /// less waiting.
        quantum_bytes: u64 = 2 << 20, Bytes(4 << 10, 1 << 30);
        /// Helpers for blocking work (opening files, reading the disk) per process, where the architecture has them.
        /// When all are busy, further work waits in a queue.
        helpers_max: u64 = 16, Integer(1, 1_024);
        /// Writer threads of the `pipeline` architecture. All but one may wait at a time, for the disk or for a client.
        writers: u64 = 16, Integer(1, 1_024);
        /// Connections accepted per wake-up of a listener; the others stay in its queue until the next.
        accepts_per_wake: u64 = 64, Integer(1, 65_536);
        /// Send buffer of a connection. `auto`: the kernel's choice, which grows with the need.
        socket_buffer_bytes: Option<u64> = None, Or("auto", Bytes(4 << 10, 1 << 30));
        /// Connections that may wait to be accepted; the kernel caps it at `net.core.somaxconn`. Beyond it clients
        /// retry.
        backlog: u64 = 4_096, Integer(1, 65_535);
        /// Seconds for which the kernel keeps a connection that has sent nothing from the server; 0: not at all.
        defer_accept_s: u64 = 5, Seconds(0, 600);
        /// Sends connections to the worker on the CPU on which they arrive, where the network card spreads them well. It needs
        /// workers with a listener and a CPU each (`auto`, `n-copy`, `pipeline`), and no more of them than CPUs; else a
        /// warning says why it has no effect.
        listener_per_cpu: bool = false, Flag;
    }
}
