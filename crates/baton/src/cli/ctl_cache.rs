//! The answer to `baton ctl cache URL`, for humans: which segments of which responses are here.

use baton_report::counted;
use serde_json::Value;

use super::status::elements;

/// What is here, as lines.
pub(super) fn for_humans(told: &Value) -> String {
    let url = told["url"].as_str().unwrap_or_default();
    let responses = elements(&told["responses"]);
    if responses.is_empty() {
        return format!("{url}: nothing is here\n");
    }
    let mut out = format!("{url}: {}\n", counted(responses.len() as u64, "stored response"));
    responses.iter().for_each(|one| response(one, &mut out));
    out
}

fn response(one: &Value, out: &mut String) {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let length =
        one["length"].as_u64().map_or("a length that is not known yet".into(), |len| counted(len, "byte"));
    let age = match one["ttl_s"].as_i64().unwrap_or(0) {
        stale if stale <= 0 => format!("stale for {} s", -stale),
        fresh => format!("fresh for {fresh} s"),
    };
    let segments = one["segments"].as_u64().map_or("?".into(), |count| count.to_string());
    let here = elements(&one["here"]);
    let count = here.len() as u64 + number(&one["more"]);
    out.push_str(&format!(
        "  {}, {length}, {age}, kept by {}; something of {count} of {segments} segments:\n",
        one["status"],
        one["policy"].as_str().unwrap_or_default()
    ));
    for segment in here {
        let [begin, end, blocks, memory, disk] =
            ["begin", "end", "blocks", "in_memory", "on_disk"].map(|key| number(&segment[key]));
        let first = segment["segment"] == 0;
        let bytes = match (begin == end, first) {
            (true, _) => "the last block".into(),
            (_, true) => format!("bytes {begin}-{} and the last block", end - 1),
            _ => format!("bytes {begin}-{}", end - 1),
        };
        out.push_str(&format!(
            "    {}: {bytes}; of {}, {memory} in memory, {disk} on disk\n",
            segment["segment"],
            counted(blocks, "block")
        ));
    }
    if number(&one["more"]) > 0 {
        out.push_str(&format!("    and {} more\n", number(&one["more"])));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn segments_are_told_with_their_bytes() {
        let told = json!({ "url": "http://a/f.mp4", "responses": [{
            "status": 200, "length": 1_000_000, "ttl_s": 60, "policy": "reach", "block_bytes": 4096, "segments": 16, "more": 0,
            "here": [
                { "segment": 0, "begin": 0, "end": 65_536, "blocks": 17, "in_memory": 17, "on_disk": 0 },
                { "segment": 3, "begin": 196_608, "end": 262_144, "blocks": 16, "in_memory": 1, "on_disk": 2 },
            ],
        }]});
        assert_eq!(
            for_humans(&told),
            "http://a/f.mp4: 1 stored response\n  200, 1000000 bytes, fresh for 60 s, kept by reach; something of 2 of 16 segments:\n    \
             0: bytes 0-65535 and the last block; of 17 blocks, 17 in memory, 0 on disk\n    \
             3: bytes 196608-262143; of 16 blocks, 1 in memory, 2 on disk\n"
        );
        let nothing = json!({ "url": "http://a/b", "responses": [] });
        assert_eq!(for_humans(&nothing), "http://a/b: nothing is here\n");
    }
}
