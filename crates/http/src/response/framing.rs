//! How a client of HTTP/1 learns where a response's body ends (RFC 9112 section 6.3).

/// What a response depends on, of the client and its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The minor version of HTTP/1 that it speaks: 0 or 1.
    pub minor: u8,
    /// Whether the server is willing to go on with the connection.
    pub keep: bool,
    /// Whether it asked with `HEAD`: no body is sent.
    pub head: bool,
}

/// What delimits the body of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body and no length.
    None,
    /// Its length in bytes. In a response to `HEAD` the length of the body that is not sent.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The end of the connection.
    Close,
}

impl Framing {
    /// `declared`: the length that the head declares. `body_len`: the length of the body in bytes, if all of it is known
    /// when the head is written.
    pub const fn of(status: u16, declared: Option<u64>, body_len: Option<u64>, client: Client) -> Self {
        if let Some(framing) = Self::without_body(status) {
            return framing;
        }
        match (declared, body_len) {
            (Some(length), _) => Self::Length(length),
            // The application may have omitted the body, so its length is unknown (RFC 9110 section 8.6).
            _ if client.head => Self::None,
            (None, Some(length)) => Self::Length(length),
            (None, None) if client.minor == 0 => Self::Close,
            (None, None) => Self::Chunked,
        }
    }

    /// The framing for a status without a body, even if the application writes one. `None`: it may have one.
    pub const fn without_body(status: u16) -> Option<Self> {
        match status {
            204 | 304 => Some(Self::None),
            // Clients expect a body here, so its zero length must be sent (RFC 9110 section 15.3.6).
            205 => Some(Self::Length(0)),
            _ => None,
        }
    }

    /// Whether the connection can go on after a response that is framed like this.
    pub const fn may_go_on(self, client: Client) -> bool {
        client.keep && !matches!(self, Self::Close)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_goes_on_where_the_body_has_an_end() {
        let client = Client { minor: 1, keep: true, head: false };
        for framing in [Framing::None, Framing::Length(5), Framing::Chunked] {
            assert!(framing.may_go_on(client));
            assert!(!framing.may_go_on(Client { keep: false, ..client }));
        }
        assert!(!Framing::Close.may_go_on(Client { minor: 0, ..client }));
    }
}
