//! How an answer of an application has travelled, for logs and figures.

use baton_fcgi::Declined;

macro_rules! transports {
    ($($(#[doc = $doc:literal])* $variant:ident = $word:literal,)*) => {
        /// How an answer has travelled from the application to the client.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AnswerTransport {
            $($(#[doc = $doc])* $variant,)*
        }

        impl AnswerTransport {
            /// All of them.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// The word in logs and metrics.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

transports! {
    /// Through the server, by a Unix socket.
    Unix = "unix",
    /// Through the server, by TCP.
    Inet = "inet",
    /// Through memory that the application shares with the server.
    Shm = "shm",
    /// On the client's own socket.
    PassFd = "passfd",
    /// The application has named files, which the server sends.
    File = "file",
    /// Through the server, which compresses it: the application has declined the client's socket.
    DeclinedCompression = "declined-compression",
    /// Through the server, which the head asks to act: the application has declined the client's socket.
    DeclinedInstruction = "declined-instruction",
    /// Through the server: the head is malformed, or too long for the library.
    DeclinedHead = "declined-head",
    /// Through the server: the application has declined the client's socket, and gave no reason that is known here.
    Declined = "declined",
}

impl From<Declined> for AnswerTransport {
    fn from(why: Declined) -> Self {
        match why {
            Declined::Coded => Self::DeclinedCompression,
            Declined::Instruction => Self::DeclinedInstruction,
            Declined::Head => Self::DeclinedHead,
            Declined::Other => Self::Declined,
        }
    }
}

/// Answers by transport.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportCounts([u64; AnswerTransport::ALL.len()]);

impl TransportCounts {
    pub(crate) fn add(&mut self, transport: AnswerTransport) {
        self.0[transport as usize] += 1;
    }

    /// The transports that were in use, with their answers.
    pub(crate) fn used(&self) -> impl Iterator<Item = (&'static str, u64)> {
        AnswerTransport::ALL
            .into_iter()
            .map(AnswerTransport::word)
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
    }
}
