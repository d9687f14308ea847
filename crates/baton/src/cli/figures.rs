//! Rates and latencies between two statuses of a server.

use serde_json::Value;

use super::status::elements;

/// What a site, an application or an origin did between two statuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    pub(super) name: String,
    pub(super) requests: u64,
    pub(super) in_flight: u64,
    pub(super) body_bytes: u64,
    /// Responses by class: 2xx to 5xx; 1xx counts as 2xx.
    pub(super) classes: [u64; 4],
    buckets: Vec<u64>,
    bounds_us: Vec<u64>,
}

/// What all subjects of a kind (`sites`, `upstreams`) did since `before`; `None`: since the start.
pub(super) fn traffic(status: &Value, before: Option<&Value>, kind: &str) -> Vec<Traffic> {
    let figures = &status["figures"];
    let bounds_us: Vec<u64> = elements(&figures["bounds_us"]).iter().filter_map(Value::as_u64).collect();
    let former = |name: &Value| {
        let all = before.map(|before| elements(&before["figures"][kind])).unwrap_or_default();
        all.iter().find(|one| one["name"] == *name)
    };
    let one = |now: &Value| {
        let then = former(&now["name"]);
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        // A server that was upgraded meanwhile counts from 0.
        let since = |now: &Value, then: Option<&Value>| number(now).saturating_sub(then.map_or(0, number));
        let count = |key: &str| since(&now[key], then.map(|then| &then[key]));
        let mut classes = [0; 4];
        for (code, count) in now["codes"].as_object().into_iter().flatten() {
            let class = code.bytes().next().map_or(5, |digit| usize::from(digit.saturating_sub(b'0')));
            classes[class.clamp(2, 5) - 2] += since(count, then.map(|then| &then["codes"][code]));
        }
        let buckets = elements(&now["buckets"]).iter().enumerate();
        Traffic {
            name: now["name"].as_str().unwrap_or_default().to_owned(),
            requests: count("requests"),
            in_flight: number(&now["in_flight"]),
            body_bytes: count("body_bytes"),
            classes,
            buckets: buckets
                .map(|(at, bucket)| since(bucket, then.map(|then| &then["buckets"][at])))
                .collect(),
            bounds_us: bounds_us.clone(),
        }
    };
    elements(&figures[kind]).iter().map(one).collect()
}

impl Traffic {
    /// All of them together.
    pub(super) fn sum(all: &[Self]) -> Self {
        let mut sum = all.first().cloned().unwrap_or_default();
        for one in all.iter().skip(1) {
            sum.requests += one.requests;
            sum.in_flight += one.in_flight;
            sum.body_bytes += one.body_bytes;
            sum.classes.iter_mut().zip(one.classes).for_each(|(sum, count)| *sum += count);
            sum.buckets.iter_mut().zip(&one.buckets).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// The duration that so many of a thousand requests did not exceed, in microseconds: exact to a bucket. `None`: there
    /// were no requests.
    pub(super) fn quantile_us(&self, per_mille: u64) -> Option<u64> {
        let count: u64 = self.buckets.iter().sum();
        let rank = (count * per_mille).div_ceil(1000).max(1);
        let (mut below, mut from) = (0, 0);
        for (bucket, bound) in self.buckets.iter().zip(self.bounds_us.iter().map(Some).chain([None])) {
            let Some(bound) = bound else { return (count > 0).then_some(from) };
            if below + bucket >= rank && *bucket > 0 {
                return Some(from + (bound - from) * (rank - below) / bucket);
            }
            (below, from) = (below + bucket, *bound);
        }
        None
    }
}

/// A duration for humans, in five characters at the most.
pub(super) fn duration(us: Option<u64>) -> String {
    match us {
        None => "-".into(),
        Some(us @ 0..1_000) => format!("{us}us"),
        Some(us @ 1_000..10_000) => format!("{}.{}ms", us / 1_000, us % 1_000 / 100),
        Some(us @ 10_000..1_000_000) => format!("{}ms", us / 1_000),
        Some(us @ 1_000_000..10_000_000) => format!("{}.{}s", us / 1_000_000, us % 1_000_000 / 100_000),
        Some(us) => format!("{}s", us / 1_000_000),
    }
}

/// A number for humans, in five characters at the most.
pub(super) fn short(number: u64) -> String {
    let unit = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    match unit.into_iter().find(|(least, _)| number >= *least && number >= 10_000) {
        Some((unit, letter)) if number / unit < 10 => {
            format!("{}.{}{letter}", number / unit, number % unit / (unit / 10))
        }
        Some((unit, letter)) => format!("{}{letter}", number / unit),
        None => number.to_string(),
    }
}

/// A rate for humans: so many in so many milliseconds.
pub(super) fn rate(count: u64, elapsed_ms: u64) -> String {
    match count * 1_000 / elapsed_ms.max(1) {
        0..10 if count > 0 => {
            let tenths = count * 10_000 / elapsed_ms.max(1);
            format!("{}.{}", tenths / 10, tenths % 10)
        }
        rate => short(rate),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(buckets: [u64; 3], codes: &Value) -> Value {
        let requests: u64 = buckets.iter().sum();
        let site = json!({ "name": "s", "requests": requests, "in_flight": 1, "body_bytes": requests * 10, "buckets": buckets, "codes": codes });
        json!({ "figures": { "bounds_us": [100, 1000], "sites": [site], "upstreams": [] } })
    }

    #[test]
    fn what_counts_is_what_came_between() {
        let before = status([5, 0, 0], &json!({ "200": 5 }));
        let now = status([15, 90, 0], &json!({ "200": 95, "404": 7, "other": 3 }));
        let all = traffic(&now, Some(&before), "sites");
        assert_eq!((all.len(), all[0].requests, all[0].body_bytes, all[0].in_flight), (1, 100, 1000, 1));
        assert_eq!(all[0].classes, [90, 0, 7, 3]);
        assert_eq!(all[0].quantile_us(100), Some(100));
        assert_eq!(all[0].quantile_us(500), Some(500));
        assert_eq!(traffic(&now, Some(&now), "sites")[0].quantile_us(500), None);
        assert_eq!(traffic(&before, Some(&now), "sites")[0].requests, 0, "a successor counts from 0");
    }

    #[test]
    fn beyond_the_last_bound_nothing_is_known() {
        let all = traffic(&status([0, 0, 4], &json!({})), None, "sites");
        assert_eq!(all[0].quantile_us(990), Some(1000));
    }

    #[test]
    fn numbers_take_five_characters() {
        for (us, told) in
            [(7, "7us"), (1_230, "1.2ms"), (45_600, "45ms"), (2_500_000, "2.5s"), (90_000_000, "90s")]
        {
            assert_eq!(duration(Some(us)), told);
        }
        for (number, told) in [(9_999, "9999"), (12_345, "12k"), (1_234_567, "1.2M"), (987_654_321, "987M")] {
            assert_eq!(short(number), told);
        }
        assert_eq!((rate(3, 2_000), rate(30, 1_000), rate(0, 0)), ("1.5".into(), "30".into(), "0".into()));
    }
}
