//! Which response goes first, as the client wants it (RFC 9218).

/// The urgency of a response, and whether its parts are of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// The client can use parts of the response, so that it may take turns with others.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// How many urgencies there are.
    pub const URGENCIES: usize = 8;

    /// Reads the value of the field `Priority`, or of the frame PRIORITY_UPDATE: a dictionary of RFC 8941, of which the
    /// members `u` and `i` matter. What is malformed, unknown or out of range has no effect (RFC 9218 section 4), of
    /// repeated members the last counts.
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_members_have_an_effect() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("i", 3, true),
            ("u=7, i", 7, true),
            (" i=?1 ,u=5;a=b", 5, true),
            ("u=1,u=2,i,i=?0", 2, false),
            ("u=8, i=1, U=0, u=-1, u=10, ui, =", 3, false),
            ("x=\"u=1\", u=6", 6, false),
        ] {
            let expected = Priority { urgency, incremental };
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value:?}");
        }
    }
}
