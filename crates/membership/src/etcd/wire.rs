//! Messages of the JSON gateway: keys and values in base64, 64-bit integers as strings, zeros left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Entry, Event, Snapshot, WatchLine};
use crate::failure::Failure;

/// A prefix of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(Vec<u8>);

/// A key, with its prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(Vec<u8>);

impl Prefix {
    pub(super) fn new(prefix: &str) -> Self {
        Self(prefix.as_bytes().to_vec())
    }

    /// The key of that name below it.
    pub(super) fn key(&self, name: &str) -> Key {
        Key([&self.0[..], name.as_bytes()].concat())
    }

    /// The first key that does not begin with it.
    fn end(&self) -> Vec<u8> {
        let mut end = self.0.clone();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                return end;
            }
        }
        // All keys from the first on.
        vec![0]
    }

    pub(super) fn range(&self, limit: u64) -> Value {
        json!({ "key": encoded(&self.0), "range_end": encoded(&self.end()), "limit": limit.to_string() })
    }

    pub(super) fn watch(&self, start_revision: i64) -> Value {
        json!({ "create_request": {
            "key": encoded(&self.0),
            "range_end": encoded(&self.end()),
            "start_revision": start_revision.to_string(),
        } })
    }

    /// A range's answer.
    pub(super) fn snapshot(&self, answer: &Value) -> Result<Snapshot, Failure> {
        let entries = answer["kvs"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Snapshot {
            cluster_id: unsigned(&answer["header"]["cluster_id"]),
            revision: revision(answer)?,
            entries: entries.iter().map(|entry| self.entry(entry)).collect::<Result<_, _>>()?,
        })
    }

    /// A line of a watch.
    pub(super) fn watched(&self, line: &[u8]) -> Result<WatchLine, Failure> {
        let line: Value = serde_json::from_slice(line).map_err(malformed)?;
        if let Some(error) = line.get("error") {
            return Ok(WatchLine::Ended(reason(error)));
        }
        let result = &line["result"];
        // It may be that of the revision that was asked for, which is compacted itself: any will do.
        if signed(&result["compact_revision"]) != 0 {
            return Ok(WatchLine::Compacted);
        }
        if result["canceled"] == true {
            return Ok(WatchLine::Ended(reason(&result["cancel_reason"])));
        }
        let events = result["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        let event = |event: &Value| {
            let entry = self.entry(&event["kv"])?;
            Ok(match event["type"].as_str() {
                Some("DELETE") => Event::Delete { key: entry.key, revision: entry.mod_revision },
                _ => Event::Put(entry),
            })
        };
        Ok(WatchLine::Events(events.iter().map(event).collect::<Result<_, _>>()?))
    }

    fn entry(&self, entry: &Value) -> Result<Entry, Failure> {
        let key = decoded(&entry["key"])?;
        let name = key.strip_prefix(&self.0[..]).ok_or_else(|| malformed("a key of another prefix"))?;
        Ok(Entry {
            key: String::from_utf8_lossy(name).into_owned(),
            value: decoded(&entry["value"])?,
            mod_revision: signed(&entry["mod_revision"]),
        })
    }
}

impl Key {
    pub(super) fn range(&self) -> Value {
        json!({ "key": encoded(&self.0) })
    }

    /// Writes the value if the key was last written at that revision; 0: if it is not there.
    pub(super) fn replace(&self, mod_revision: i64, value: Option<&[u8]>) -> Value {
        let change = match value {
            // Whatever lease it has.
            Some(value) if mod_revision != 0 => {
                json!({ "request_put": { "key": encoded(&self.0), "value": encoded(value), "ignore_lease": true } })
            }
            Some(value) => json!({ "request_put": { "key": encoded(&self.0), "value": encoded(value) } }),
            None => json!({ "request_delete_range": { "key": encoded(&self.0) } }),
        };
        json!({
            "compare": [{
                "key": encoded(&self.0),
                "target": "MOD",
                "result": "EQUAL",
                "mod_revision": mod_revision.to_string(),
            }],
            "success": [change],
        })
    }

    pub(super) fn put(&self, value: &[u8], lease: i64) -> Value {
        json!({ "key": encoded(&self.0), "value": encoded(value), "lease": lease.to_string() })
    }
}

/// The revision in an answer's header.
pub(super) fn revision(answer: &Value) -> Result<i64, Failure> {
    match signed(&answer["header"]["revision"]) {
        0 => Err(malformed("no revision")),
        revision => Ok(revision),
    }
}

/// A 64-bit integer: a string, or left out if it is 0.
pub(super) fn signed(value: &Value) -> i64 {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_i64()).unwrap_or(0)
}

fn unsigned(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_u64()).unwrap_or(0)
}

/// Why etcd refuses: a text, or an object with one, as the version has it.
pub(super) fn reason(error: &Value) -> String {
    let text = error.as_str().or_else(|| error["message"].as_str()).or_else(|| error["error"].as_str());
    let text = text.unwrap_or("no reason given");
    text.chars().take(REASON_CHARACTERS_MAX).collect()
}

pub(super) fn malformed(why: impl ToString) -> Failure {
    Failure::Malformed(why.to_string())
}

fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn decoded(value: &Value) -> Result<Vec<u8>, Failure> {
    // An empty value is left out.
    STANDARD.decode(value.as_str().unwrap_or_default()).map_err(malformed)
}

const REASON_CHARACTERS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix() -> Prefix {
        Prefix::new("/b/")
    }

    #[test]
    fn a_prefix_ends_with_the_next_key() {
        for (prefix, end) in [("/b/", &b"/b0"[..]), ("a", b"b"), ("", &[0])] {
            assert_eq!(Prefix::new(prefix).end(), end, "{prefix}");
        }
        assert_eq!(Prefix(vec![1, 255, 255]).end(), [2]);
    }

    /// Events as etcd 3.4 writes them.
    #[test]
    fn lines_of_a_watch_are_understood() {
        let created = br#"{"result":{"header":{"cluster_id":"1","revision":"1"},"created":true}}"#;
        assert_eq!(prefix().watched(created), Ok(WatchLine::Events(Vec::new())));
        let put = br#"{"result":{"header":{"revision":"7"},"events":[{"kv":{"key":"L2Iveg==","mod_revision":"7","value":"aGk="}},
            {"type":"DELETE","kv":{"key":"L2Iveg==","mod_revision":"8"}}]}}"#;
        let entry = Entry { key: "z".into(), value: b"hi".to_vec(), mod_revision: 7 };
        let events = vec![Event::Put(entry), Event::Delete { key: "z".into(), revision: 8 }];
        assert_eq!(prefix().watched(put), Ok(WatchLine::Events(events)));
        let compacted = br#"{"result":{"header":{"revision":"9"},"canceled":true,"compact_revision":"3"}}"#;
        assert_eq!(prefix().watched(compacted), Ok(WatchLine::Compacted));
        let refused = br#"{"error":{"grpc_code":14,"message":"etcdserver: no leader"}}"#;
        assert_eq!(prefix().watched(refused), Ok(WatchLine::Ended("etcdserver: no leader".into())));
        for bad in [
            "",
            "{",
            r#"{"result":{"events":[{"kv":{"key":"YQ=="}}]}}"#,
            r#"{"result":{"events":[{"kv":{"key":"*"}}]}}"#,
        ] {
            assert!(matches!(prefix().watched(bad.as_bytes()), Err(Failure::Malformed(_))), "{bad}");
        }
    }
}
