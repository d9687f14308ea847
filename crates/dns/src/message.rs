//! Questions to a DNS server, and its answers, as bytes (RFC 1035).

use std::net::IpAddr;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};

use crate::LookupError;

/// The kind of addresses that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

/// What a server has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsAnswer {
    /// Addresses, at least one, and for how many seconds they hold.
    Found {
        /// In the order of the answer.
        addresses: Vec<IpAddr>,
        /// The shortest time of the records that led to them, in seconds.
        ttl_s: u32,
    },
    /// No such name, or none of this kind of address.
    Absent,
    /// The answer is too long for a datagram: ask over TCP.
    Truncated,
    /// An answer to another question, which may be an attacker's: go on waiting.
    Other,
    /// The server cannot say, or what it says is no answer.
    Failed(LookupError),
}

/// A question. `id` is random: an attacker who cannot see the question must not guess it. `None`: no question can be about
/// this name.
pub fn question(id: u16, host: &str, family: Family) -> Option<Vec<u8>> {
    let name = Name::new(host).ok().filter(|_| is_host(host))?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(name, QTYPE::TYPE(family.kind()), QCLASS::CLASS(CLASS::IN), false));
    packet.build_bytes_vec().ok()
}

/// Reads the answer to a question of [`question`], with the same arguments.
pub fn read_answer(bytes: &[u8], id: u16, host: &str, family: Family) -> DnsAnswer {
    if bytes.first_chunk() != Some(&id.to_be_bytes()) {
        return DnsAnswer::Other;
    }
    let Ok(packet) = Packet::parse(bytes) else { return DnsAnswer::Failed(LookupError::Malformed) };
    let Ok(name) = Name::new(host) else { return DnsAnswer::Other };
    let is_ours = packet.has_flags(PacketFlag::RESPONSE)
        && matches!(&packet.questions[..], [question]
            if same(&question.qname, &name) && question.qtype == QTYPE::TYPE(family.kind()));
    if !is_ours {
        return DnsAnswer::Other;
    }
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return DnsAnswer::Truncated;
    }
    match packet.rcode() {
        RCODE::NoError => follow(&packet, name, family),
        RCODE::NameError => DnsAnswer::Absent,
        _ => DnsAnswer::Failed(LookupError::Refused),
    }
}

/// Follows the aliases from `name` to addresses, within the answer: a recursive server has put all of them there.
fn follow(packet: &Packet<'_>, name: Name<'_>, family: Family) -> DnsAnswer {
    let mut name = name;
    let mut ttl_s = u32::MAX;
    for _ in 0..ALIASES_MAX {
        let mut addresses = Vec::new();
        let mut alias = None;
        for record in packet.answers.iter().filter(|record| same(&record.name, &name)) {
            match (&record.rdata, family) {
                (RData::A(found), Family::V4) => addresses.push(IpAddr::from(found.address.to_be_bytes())),
                (RData::AAAA(found), Family::V6) => addresses.push(IpAddr::from(found.address.to_be_bytes())),
                (RData::CNAME(target), _) => alias = Some(target.0.clone()),
                _ => continue,
            }
            ttl_s = ttl_s.min(record.ttl);
        }
        if !addresses.is_empty() {
            addresses.truncate(ADDRESSES_MAX);
            return DnsAnswer::Found { addresses, ttl_s };
        }
        match alias {
            Some(alias) => name = alias,
            None => return DnsAnswer::Absent,
        }
    }
    DnsAnswer::Failed(LookupError::Malformed)
}

/// Whether a host may have this name: letters, digits, hyphens, and underscores, which Docker's services have.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.split('.').all(is_label)
}

fn same(one: &Name<'_>, other: &Name<'_>) -> bool {
    let labels = |name: &Name<'_>| name.to_string().trim_end_matches('.').to_ascii_lowercase();
    labels(one) == labels(other)
}

impl Family {
    const fn kind(self) -> TYPE {
        match self {
            Self::V4 => TYPE::A,
            Self::V6 => TYPE::AAAA,
        }
    }
}

/// Aliases that are followed; resolvers stop after a dozen or so, too.
const ALIASES_MAX: usize = 12;

/// Addresses that are kept of one answer: the most that a pool can make use of.
const ADDRESSES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, AAAA, CNAME};

    /// The answer to a question for `host`, changed.
    fn answer(host: &str, family: Family, change: impl FnOnce(&mut Packet<'_>)) -> Vec<u8> {
        let asked = question(7, host, family).unwrap();
        let mut packet = Packet::parse(&asked).unwrap().into_reply();
        change(&mut packet);
        packet.build_bytes_vec_compressed().unwrap()
    }

    fn record(name: &'static str, ttl: u32, rdata: RData<'static>) -> ResourceRecord<'static> {
        ResourceRecord::new(Name::new(name).unwrap(), CLASS::IN, ttl, rdata)
    }

    fn a(last: u8) -> RData<'static> {
        RData::A(A { address: u32::from_be_bytes([192, 0, 2, last]) })
    }

    fn alias(to: &'static str) -> RData<'static> {
        RData::CNAME(CNAME(Name::new(to).unwrap()))
    }

    #[test]
    fn addresses_and_the_shortest_time_of_their_way_are_found() {
        let bytes = answer("Origin.test", Family::V4, |packet| {
            packet.answers = vec![
                record("origin.test", 300, alias("pool.test")),
                record("other.test", 1, a(9)),
                record("POOL.test", 60, a(1)),
                record("pool.test", 50, a(2)),
            ];
        });
        let addresses = vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        assert_eq!(
            read_answer(&bytes, 7, "Origin.test", Family::V4),
            DnsAnswer::Found { addresses, ttl_s: 50 }
        );

        let bytes = answer("origin.test", Family::V6, |packet| {
            packet.answers = vec![record("origin.test", 5, RData::AAAA(AAAA { address: 1 }))];
        });
        let addresses = vec!["::1".parse().unwrap()];
        assert_eq!(
            read_answer(&bytes, 7, "origin.test", Family::V6),
            DnsAnswer::Found { addresses, ttl_s: 5 }
        );
    }

    #[test]
    fn answers_without_addresses_say_why() {
        let read = |change: fn(&mut Packet<'_>)| {
            read_answer(&answer("origin.test", Family::V4, change), 7, "origin.test", Family::V4)
        };
        assert_eq!(read(|_| ()), DnsAnswer::Absent);
        assert_eq!(read(|packet| *packet.rcode_mut() = RCODE::NameError), DnsAnswer::Absent);
        assert_eq!(
            read(|packet| *packet.rcode_mut() = RCODE::ServerFailure),
            DnsAnswer::Failed(LookupError::Refused)
        );
        assert_eq!(read(|packet| packet.set_flags(PacketFlag::TRUNCATION)), DnsAnswer::Truncated);
        assert_eq!(
            read(|packet| packet.answers = vec![record("origin.test", 1, alias("origin.test"))]),
            DnsAnswer::Failed(LookupError::Malformed),
            "a loop"
        );
        assert_eq!(
            read(|packet| packet.answers = vec![record("origin.test", 1, alias("x.test"))]),
            DnsAnswer::Absent
        );
    }

    #[test]
    fn the_answer_to_another_question_is_not_believed() {
        let read = |id, host, family| {
            let bytes = answer("origin.test", Family::V4, |packet| {
                packet.answers = vec![record("origin.test", 1, a(1))];
            });
            read_answer(&bytes, id, host, family)
        };
        assert!(matches!(read(7, "origin.test", Family::V4), DnsAnswer::Found { .. }));
        assert_eq!(read(8, "origin.test", Family::V4), DnsAnswer::Other);
        assert_eq!(read(7, "other.test", Family::V4), DnsAnswer::Other);
        assert_eq!(read(7, "origin.test", Family::V6), DnsAnswer::Other);
        let asked = question(7, "origin.test", Family::V4).unwrap();
        assert_eq!(read_answer(&asked, 7, "origin.test", Family::V4), DnsAnswer::Other, "a question");
        assert_eq!(read_answer(b"short", 7, "origin.test", Family::V4), DnsAnswer::Other);
        let cut = &answer("origin.test", Family::V4, |_| ())[..20];
        let cut = read_answer(cut, 7, "origin.test", Family::V4);
        assert_eq!(cut, DnsAnswer::Failed(LookupError::Malformed));
    }

    #[test]
    fn names_that_no_host_has_are_not_asked_for() {
        for host in ["", "a b", "a..b", r"a\.b", &"a".repeat(64), &"a.".repeat(200)] {
            assert_eq!(question(7, host, Family::V4), None, "{host}");
        }
        assert!(question(7, "my_service.internal", Family::V4).is_some(), "Docker's names have them");
    }
}
