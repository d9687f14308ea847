//! Which fields a head may have, without a walk over its lines.

use crate::fields::{field_parts, folded};

/// Which names the fields of a head may have: a bit for a first letter and a length. Nearly all fields that are looked for are not
/// there, and need no walk over the lines. Names [of one field](crate::is_same_field) have one bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(u64);

impl Names {
    /// Those of checked lines.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut names = Self::default();
        field_parts(text).for_each(|(name, _)| names.note(name));
        names
    }

    /// A head without fields.
    pub(crate) const fn none() -> Self {
        Self(0)
    }

    /// Adds a field.
    pub(crate) fn note(&mut self, name: &[u8]) {
        self.0 |= Self::bit(name);
    }

    /// Adds the fields of other lines.
    pub(crate) fn join(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// False: there is no such field.
    pub(crate) fn may_have(self, name: &[u8]) -> bool {
        self.0 & Self::bit(name) != 0
    }

    fn bit(name: &[u8]) -> u64 {
        1 << ((usize::from(folded(*name.first().unwrap_or(&0))) + 5 * name.len()) % 64)
    }
}

#[cfg(test)]
mod tests {
    use crate::{HeadLimits, RequestHead};

    /// Goal: no field is missed, however client and server spell it.
    #[test]
    fn a_field_that_is_there_is_found_however_it_is_written() {
        let names = ["Host", "x-Device_ID", "_", "A", "a-b", "Sec-Fetch-Mode", "z"];
        let lines: String = names.iter().map(|name| format!("{name}: {name}\r\n")).collect();
        let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
        let limits = HeadLimits { keeps_underscores: true, ..HeadLimits::default() };
        let kept = RequestHead::parse(text.as_bytes(), &limits).unwrap().keep();
        for name in names {
            for asked in [name.to_ascii_lowercase(), name.to_ascii_uppercase(), name.replace('_', "-")] {
                assert_eq!(kept.get().field(&asked), Some(name.as_bytes()), "{asked}");
            }
        }
        assert!(!kept.get().may_have("Upgrade"));
        assert_eq!(kept.get().field("Hose"), None, "a name with the same bit");
    }
}
