//! `to` of a proxy: one origin, or several with weights, and how requests are distributed among them.

use baton_dispatch::PolicyName;
use baton_upstream::PEERS_MAX;

use super::application::Target;
use super::duration::Milliseconds;
use super::kind::{Flag, Integer, Kind, ListOf, Reading};
use super::origin_url::OriginUrl;
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::{Text, TextOf, Wrong};
use super::words::words;

settings! {
    /// An origin among several. Where only its URL matters, the URL alone says the same.
    Origin in "site.route.proxy.to" needs ["to"] {
        /// Its URL. The path must be the same for all.
        to: OriginUrl = OriginUrl::in_clear(Target::Host("origin".into(), 80)), Url;
        /// Its part of the requests, in relation to the weights of the others.
        weight: u64 = 1, Integer(1, 100);
        /// Whether it is asked only while all others are ejected.
        backup: bool = false, Flag;
    }
}

settings! {
    /// When an origin among several gets no requests because it fails. While all are ejected, all are asked.
    Eject in "site.route.proxy.eject" {
        /// Failures within `window_ms` that eject an origin: no connection, no response in time, or a broken one. What Baton's
        /// own bounds and clients cause does not count. Failures of responses, which one client's requests may cause, must come
        /// from at least two client addresses (of IPv6, networks of 64 bits) and two paths, and be half of the origin's answers
        /// since the first of them. They leave at least half of the origins in.
        failures: u64 = 3, Integer(1, 1_000_000);
        /// Milliseconds in which failures are counted together.
        window_ms: u64 = 10_000, Milliseconds(1, DAY_MS);
        /// Milliseconds without requests. They double each time that the origin fails again soon after its return.
        out_ms: u64 = 10_000, Milliseconds(1, DAY_MS);
        /// Milliseconds without requests at most; at least `out_ms`.
        out_ms_max: u64 = 300_000, Milliseconds(1, DAY_MS);
        /// Statuses that make a response a failure, such as `[502, 503, 504]`. It is passed on to the client nevertheless. Empty:
        /// none, since an application may answer so on one page.
        statuses: Vec<u64> = Vec::new(), ListOf(Integer(400, 599));
    }
}

settings! {
    /// Requests of our own by which each origin among several is checked, from the start on. One that fails its checks gets no
    /// requests while another is well.
    Health in "site.route.proxy.health" needs ["path"] {
        /// The path that is asked for, with its query: of the origin, not of the route.
        path: String = "/".into(), PATH;
        /// Milliseconds from the end of a check of an origin to the next. One of the processes makes it, for all.
        interval_ms: u64 = 5_000, Milliseconds(10, DAY_MS);
        /// Milliseconds that a check may take.
        timeout_ms: u64 = 2_000, Milliseconds(1, DAY_MS);
        /// Good answers in a row after which an origin that was down gets requests again.
        rise: u64 = 2, Integer(1, 1_000);
        /// Bad answers in a row, or none, after which it gets no more.
        fall: u64 = 3, Integer(1, 1_000);
        /// Statuses of good answers. Empty: 200 to 399.
        statuses: Vec<u64> = Vec::new(), ListOf(Integer(200, 599));
    }
}

/// A path of an origin, perhaps with a query.
const PATH: TextOf = TextOf {
    accepted: "a path, perhaps with a query",
    check: |path| match path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
    {
        true => Ok(path),
        false => Err(Wrong::new("is not a path", "expected `/…` of visible ASCII")),
    },
};

words! {
    for PolicyName {
        /// origins take turns by weight, those with fewer requests under way more often
        Wrr = "wrr",
        /// the origin with the fewest requests under way for its weight
        LeastConnections = "least-connections",
        /// the better of two origins drawn at random
        PowerOfTwo = "power-of-two",
        /// a path always goes to the same origin; few paths move when one comes or goes
        ConsistentHash = "consistent-hash",
        /// the same, but origins with too many requests are passed over
        BoundedHash = "bounded-hash",
        /// consistent hashing by a table: the most even of the hashes
        Maglev = "maglev",
        /// a hash of the path says which origin, whatever its load
        Lb = "lb",
        /// a path stays at one origin until loads are out of balance
        Lard = "lard",
        /// the same, and popular paths get more origins
        LardR = "lard-r",
        /// the same, and new paths go where a hash says
        LardH = "lard-h",
    }
}

/// One origin, or an array of them.
pub(crate) struct Origins;

impl Kind for Origins {
    type Value = Vec<Origin>;

    const SHOWN: Shown = Inline::<Origin>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, or an array of these or of {}", Url.accepted(), Inline::<Origin>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::one_or_several(OneOrigin.schema())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<Origin>> {
        let Value::Array(elements) = node.get_ref() else {
            return Url.read(node, reading).map(|to| vec![Origin { to, ..Origin::default() }]);
        };
        let origins: Vec<_> = elements.iter().map(|element| OneOrigin.read(element, reading)).collect();
        let origins: Vec<_> = origins.into_iter().collect::<Option<_>>()?;
        check(&origins, elements, node, reading)?;
        Some(origins)
    }

    fn write(&self, value: &Vec<Origin>) -> toml::Value {
        match &value[..] {
            [Origin { to, weight: 1, backup: false }] => Url.write(to),
            origins => toml::Value::Array(origins.iter().map(|origin| OneOrigin.write(origin)).collect()),
        }
    }
}

/// Complains about origins that cannot stand for each other.
fn check(origins: &[Origin], elements: &[Node], node: &Node, reading: &mut Reading<'_>) -> Option<()> {
    if !(1..=PEERS_MAX).contains(&origins.len()) {
        let label = format!("expected 1 to {PEERS_MAX} origins");
        reading.refuse(node.span(), "has too many or too few origins", label);
        return None;
    }
    if origins.iter().all(|origin| origin.backup) {
        reading.refuse(
            node.span(),
            "has nothing but backups",
            "one of them must answer in the ordinary case",
        );
        return None;
    }
    for (at, (origin, element)) in origins.iter().zip(elements).enumerate() {
        let before = &origins[..at];
        if before.iter().any(|other| other.to == origin.to) {
            let complaint = reading.complaint("names an origin twice").at(element.span(), "was named before");
            reading.complain(complaint.help("to ask it more often, give it a `weight`"));
            return None;
        }
        if before.first().is_some_and(|first| {
            first.to.base() != origin.to.base() || first.to.path.is_some() != origin.to.path.is_some()
        }) {
            reading.refuse(
                element.span(),
                "has origins with different paths",
                "another path than the first one's",
            );
            return None;
        }
    }
    Some(())
}

/// A URL, or a table with one.
struct OneOrigin;

impl Kind for OneOrigin {
    type Value = Origin;

    const SHOWN: Shown = Inline::<Origin>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, or {}", Url.accepted(), Inline::<Origin>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Url.schema(), Inline::<Origin>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Origin> {
        match node.get_ref() {
            Value::Table(_) => Inline::<Origin>::new().read(node, reading),
            _ => Url.read(node, reading).map(|to| Origin { to, ..Origin::default() }),
        }
    }

    fn write(&self, value: &Origin) -> toml::Value {
        match value {
            Origin { to, weight: 1, backup: false } => Url.write(to),
            other => Inline::<Origin>::new().write(other),
        }
    }
}

/// The URL of an origin.
pub(crate) struct Url;

impl Kind for Url {
    type Value = OriginUrl;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"http://HOST:PORT\", \"https://HOST/PATH\", \"unix:/socket\" or \"unix:/socket:/PATH\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<OriginUrl> {
        let text = Text.read(node, reading)?;
        OriginUrl::parse(&text, reading.base_at(&node.span()))
            .map_err(|why| {
                let complaint = reading.complaint("is not the URL of an origin").at(node.span(), why);
                reading.complain(complaint.help(format!("accepted: {}", self.accepted())));
            })
            .ok()
    }

    fn write(&self, value: &OriginUrl) -> toml::Value {
        value.to_string().into()
    }
}

const DAY_MS: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use crate::Config;

    fn checked(proxy: &str) -> Result<Config, String> {
        Config::from_toml(&format!("[[site]]\n[[site.route]]\npath = '/'\nproxy = {proxy}\n"))
            .map_err(|error| error.render(false))
    }

    #[test]
    fn one_origin_and_several_are_written_as_they_are_meant() {
        assert_eq!(checked("'http://a'"), checked("{ to = ['http://a'] }"));
        assert_eq!(
            checked("{ to = ['http://a', { to = 'http://b', weight = 1, backup = false }] }"),
            checked("{ to = ['http://a', 'http://b'] }")
        );
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (proxy, words) in [
            ("{ to = [] }", "expected 1 to 64 origins"),
            ("{ to = ['http://a', 'http://a'] }", "give it a `weight`"),
            ("{ to = ['http://a', 'http://b/c'] }", "different paths"),
            ("{ to = [{ to = 'http://a', backup = true }] }", "nothing but backups"),
            ("{ to = [{ weight = 2 }] }", "is missing"),
            ("{ to = ['http://a', { to = 'http://b', weight = 0 }] }", "an integer from 1 to 100"),
            ("{ to = ['http://a', 'http://b'], host = 'origin' }", "which of the origins"),
            (
                "{ to = ['http://a', 'http://b'], policy = 'least-connection' }",
                "did you mean `least-connections`",
            ),
            ("{ to = ['http://a', 'http://b'], eject = { failures = 0 } }", "out of range"),
            (
                "{ to = ['http://a', 'http://b'], eject = { out_ms = 9, out_ms_max = 8 } }",
                "less than `out_ms`",
            ),
            ("{ to = ['http://a', 'http://b'], health = { path = 'x' } }", "is not a path"),
            ("{ to = 'http://a', health = { path = '/' } }", "only one origin"),
        ] {
            let said = checked(proxy).expect_err(proxy);
            assert!(said.contains(words), "{proxy}: {said}");
        }
    }
}
