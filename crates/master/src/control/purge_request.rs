//! What an operator wants to be purged, as `baton ctl purge` and the admin listener are told.

use baton_cache::{PurgeOrder, PurgeRefusal};
use baton_config::{Config, RouteCache};
use serde::{Deserialize, Serialize};

/// What to purge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PurgeRequest {
    /// URLs, each with all its variants: `https://host/path?query`.
    pub urls: Vec<String>,
    /// All URLs that begin so: `https://host/path/`.
    pub prefixes: Vec<String>,
    /// Words of the fields for tags.
    pub tags: Vec<String>,
    /// Everything.
    pub all: bool,
}

impl PurgeRequest {
    /// The purges.
    ///
    /// # Errors
    /// What is wrong with which of them; then none of them is made.
    pub(crate) fn orders(&self, config: &Config) -> Result<Vec<PurgeOrder>, String> {
        let rules: Vec<_> = config.cached_routes().map(RouteCache::query_rule).collect();
        if rules.is_empty() {
            return Err("nothing is cached: no route has `cache`".into());
        }
        if *self == Self::default() {
            return Err("nothing to purge: name URLs, prefixes or tags, or all".into());
        }
        let refused = |kind: &str, text: &str, why: PurgeRefusal| format!("{kind} {text:?}: {why}");
        let mut orders = Vec::new();
        for url in &self.urls {
            orders.extend(PurgeOrder::uris(url, &rules).map_err(|why| refused("url", url, why))?);
        }
        for prefix in &self.prefixes {
            orders.push(PurgeOrder::prefix(prefix).map_err(|why| refused("prefix", prefix, why))?);
        }
        for tag in &self.tags {
            orders.push(PurgeOrder::tag(tag).map_err(|why| refused("tag", tag, why))?);
        }
        orders.extend(self.all.then_some(PurgeOrder::Everything));
        match orders.iter().all(|order| order.text_len() <= PurgeOrder::TEXT_BYTES_MAX) {
            true => Ok(orders),
            false => Err(format!("longer than {} bytes", PurgeOrder::TEXT_BYTES_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(route: &str) -> Config {
        let text = format!(
            "[[site]]\nlisten = ['127.0.0.1:0']\n[[site.route]]\npath = '/'\nproxy = 'http://127.0.0.1:9'\n{route}"
        );
        Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn orders(json: &str) -> Result<Vec<PurgeOrder>, String> {
        let request: PurgeRequest = serde_json::from_str(json).unwrap();
        request.orders(&config("cache = { drop_parameters = ['utm_*'] }"))
    }

    #[test]
    fn urls_are_purged_as_routes_know_them() {
        let uri = |uri: &str| PurgeOrder::Uri(uri.into());
        let all = orders(r#"{"urls":["http://A/?utm_x&b"],"tags":["t"],"all":true}"#).unwrap();
        let expected = [uri("http://a/?utm_x&b"), uri("http://a/?b")];
        assert_eq!(all[..2], expected);
        assert_eq!(all[2..], [PurgeOrder::Tag("t".into()), PurgeOrder::Everything]);
    }

    #[test]
    fn what_cannot_be_purged_is_refused_with_its_reason() {
        for (json, part) in [
            ("{}", "nothing to purge"),
            (r#"{"urls":["/a"]}"#, "url \"/a\": expected https://HOST/PATH"),
            (r#"{"urls":["http://a/","ftp://a/"]}"#, "ftp://a/"),
            (r#"{"prefixes":["http://a/b"]}"#, "ends with a slash"),
            (r#"{"tags":["a b"]}"#, "one word"),
        ] {
            let why = orders(json).unwrap_err();
            assert!(why.contains(part), "{json}: {why}");
        }
        let long = format!("{{\"urls\":[\"http://a/{}\"]}}", "x".repeat(PurgeOrder::TEXT_BYTES_MAX));
        assert!(orders(&long).unwrap_err().contains("longer than"));
        let all = PurgeRequest { all: true, ..PurgeRequest::default() };
        assert!(all.orders(&config("")).unwrap_err().contains("no route has `cache`"));
        assert!(serde_json::from_str::<PurgeRequest>(r#"{"url":["http://a/"]}"#).is_err());
    }
}
