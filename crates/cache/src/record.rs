//! A stored response and a purge, as the store's journal has them.
//!
//! Each begins with the fingerprint of the secret that hashes were made with: under another secret it is of no use.

use baton_http::Status;
use baton_http::origin::ResponseHead;
use baton_segment::policy::{CachePolicy, PolicyChoice};
use baton_segment::rules::{Key, Label, Purge, Purged, Times, VariantKey};

/// The kinds of records in the store.
pub(crate) mod kind {
    /// A response.
    pub(crate) const RESPONSE: u8 = 1;
    /// A purge.
    pub(crate) const PURGE: u8 = 2;
}

/// A stored response, but for its blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseRecord {
    /// Which process has stored it.
    pub(crate) process: u64,
    pub(crate) key: Key,
    pub(crate) partition: String,
    /// The last purge that did not concern it.
    pub(crate) generation: u64,
    pub(crate) times: Times,
    /// Which of its segments are kept.
    pub(crate) policy: CachePolicy,
    /// Bytes of the content; `None`: it had not come as a whole when this was written.
    pub(crate) length: Option<u64>,
    pub(crate) head: ResponseHead,
    pub(crate) variant: VariantKey,
    pub(crate) labels: Box<[Label]>,
}

impl ResponseRecord {
    pub(crate) fn to_bytes(&self, fingerprint: u64) -> Vec<u8> {
        let mut out = Writer::new(fingerprint);
        out.number(self.process);
        out.bytes(self.key.as_bytes());
        out.bytes(self.partition.as_bytes());
        out.number(self.generation);
        out.number(self.times.requested_s);
        out.number(self.times.received_s);
        out.bytes(self.policy.to_string().as_bytes());
        out.optional(self.length);
        out.number(self.head.status().code().into());
        out.bytes(self.head.reason());
        out.optional(self.head.content_length());
        out.bytes(self.variant.as_bytes());
        out.number(self.labels.len() as u64);
        self.labels.iter().for_each(|label| out.number(label.0));
        out.bytes(&self.head.clone().into_buffer());
        out.0
    }

    /// `None`: it is no such record, or one of another secret.
    pub(crate) fn from_bytes(bytes: &[u8], fingerprint: u64) -> Option<Self> {
        let mut input = Reader::new(bytes, fingerprint)?;
        let process = input.number()?;
        let key = Key::from_bytes(input.bytes()?)?;
        let partition = String::from_utf8(input.bytes()?.to_vec()).ok()?;
        let generation = input.number()?;
        let times = Times { requested_s: input.number()?, received_s: input.number()? };
        let policy = std::str::from_utf8(input.bytes()?).ok()?.parse::<PolicyChoice>().ok()?.of_object(false);
        let length = input.optional()?;
        let status = Status::new(u16::try_from(input.number()?).ok()?);
        let reason = input.bytes()?.to_vec();
        let content_length = input.optional()?;
        let variant = VariantKey::from_bytes(input.bytes()?)?;
        let labels = (0..input.number()?).map(|_| input.number().map(Label)).collect::<Option<_>>()?;
        let text = input.bytes()?.to_vec();
        let head = ResponseHead::of_lines(text, status, reason, content_length, |_| true);
        Some(Self { process, key, partition, generation, times, policy, length, head, variant, labels })
    }
}

/// The name of a purge in the store: a later purge of the same takes its place.
pub(crate) fn purge_key(purge: Purge) -> u128 {
    let (form, label) = parts(purge);
    u128::from(form) << 64 | u128::from(label)
}

/// The record of a purge.
pub(crate) fn purge_to_bytes(purged: Purged, fingerprint: u64) -> Vec<u8> {
    let (form, label) = parts(purged.purge);
    let mut out = Writer::new(fingerprint);
    [form, label, purged.generation].into_iter().for_each(|number| out.number(number));
    out.0
}

/// `None`: it is no such record, or one of another secret.
pub(crate) fn purge_from_bytes(bytes: &[u8], fingerprint: u64) -> Option<Purged> {
    let mut input = Reader::new(bytes, fingerprint)?;
    let (form, label, generation) = (input.number()?, Label(input.number()?), input.number()?);
    let purge = match form {
        0 => Purge::Everything,
        1 => Purge::Label(label),
        2 => Purge::Prefix(label),
        _ => return None,
    };
    Some(Purged { purge, generation })
}

fn parts(purge: Purge) -> (u64, u64) {
    match purge {
        Purge::Everything => (0, 0),
        Purge::Label(label) => (1, label.0),
        Purge::Prefix(label) => (2, label.0),
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn new(fingerprint: u64) -> Self {
        let mut out = Self(Vec::new());
        out.number(FORMAT ^ fingerprint);
        out
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn optional(&mut self, number: Option<u64>) {
        self.number(number.is_some().into());
        self.number(number.unwrap_or(0));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], fingerprint: u64) -> Option<Self> {
        let mut input = Self(bytes);
        (input.number()? == FORMAT ^ fingerprint).then_some(input)
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        let (is_some, number) = (self.number()?, self.number()?);
        Some((is_some == 1).then_some(number))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Another form of records gets another number; those of the old one are forgotten then.
const FORMAT: u64 = 2;

#[cfg(test)]
mod tests {
    use baton_segment::layout::Grouping;
    use baton_segment::policy::PolicyName;
    use baton_segment::rules::QueryRule;
    use proptest::prelude::*;

    use super::*;

    fn record(path: &str, labels: Vec<u64>, length: Option<u64>, vary: &str) -> ResponseRecord {
        let head = ResponseHead::of_lines(
            b"ETag: \"a\"\nX: y\n".to_vec(),
            Status::new(203),
            "Odd",
            length.map(|length| length / 2),
            |_| true,
        );
        ResponseRecord {
            process: 7,
            key: Key::of_uri(&QueryRule::default(), format!("https://host:81{path}?q").as_bytes()).unwrap(),
            partition: "site /route origin".into(),
            generation: 3 << 40,
            times: Times { requested_s: 1, received_s: 2 },
            policy: CachePolicy { name: PolicyName::Wu, grouping: Grouping::Exponential },
            length,
            head,
            variant: VariantKey::from_bytes(format!("{vary}\n").as_bytes()).unwrap(),
            labels: labels.into_iter().map(Label).collect(),
        }
    }

    proptest! {
        /// What was written is read again, by the same secret only, and no part of it is taken for something else.
        #[test]
        fn records_are_read_as_they_were_written(
            path in "/[a-z/]{0,20}",
            labels in proptest::collection::vec(any::<u64>(), 0..5),
            length: Option<u64>,
            vary in "[a-z:]{0,9}",
            cut: prop::sample::Index,
        ) {
            let record = record(&path, labels, length, &vary);
            let bytes = record.to_bytes(5);
            prop_assert_eq!(ResponseRecord::from_bytes(&bytes, 5), Some(record));
            prop_assert_eq!(ResponseRecord::from_bytes(&bytes, 6), None);
            prop_assert_eq!(ResponseRecord::from_bytes(&bytes[..cut.index(bytes.len())], 5), None);
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let _ = ResponseRecord::from_bytes(&bytes, 0);
            let _ = purge_from_bytes(&bytes, 0);
        }
    }

    #[test]
    fn purges_are_read_as_they_were_written() {
        for purge in [Purge::Everything, Purge::Label(Label(4)), Purge::Prefix(Label(4))] {
            let purged = Purged { purge, generation: 9 };
            assert_eq!(purge_from_bytes(&purge_to_bytes(purged, 5), 5), Some(purged));
            assert_eq!(purge_from_bytes(&purge_to_bytes(purged, 5), 6), None);
        }
        assert_ne!(purge_key(Purge::Label(Label(4))), purge_key(Purge::Prefix(Label(4))));
    }
}
