//! `[shared_cache]`, and the `cache` of a route: responses of origins and applications that are kept for other clients.

use std::path::PathBuf;
use std::sync::Arc;

use baton_cache::{
    CachedRoute, DiskSettings, Grouping, PolicyChoice, PolicyName, QueryRule, RouteRules, Settings,
};

use super::condition::{When, WhenKind};
use super::duration::Seconds;
use super::kind::{Bytes, Flag, Integer, Kind, ListOf, Or, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::{FilePath, Text};
use super::words::{Word, words};

words! {
    for PolicyName {
        /// the least recently used
        Lru = "lru",
        /// Greedy-Dual-Size: of what is used equally often the larger is evicted first; more hits, fewer bytes
        Gds = "gds",
        /// three queues: what is not asked for again soon after it came is evicted first
        S3Fifo = "s3-fifo",
        /// first segments stay; later ones come with the second request
        Wu = "wu",
        /// what is asked for least often, byte by byte
        Reach = "reach",
    }
}

settings! {
    /// The cache of the responses of origins and applications, for routes with `cache`. Each worker process has its own;
    /// `auto` has one process if a route is cached. Needs a restart.
    SharedCache in "shared_cache" {
        /// Bytes of response bodies kept in memory, whether they are in `folder` or not.
        memory_bytes_max: u64 = 256 << 20, Bytes(1 << 20, 1 << 50);
        /// Of these, bytes that stay when memory is short: the more time is lost by that in the server's control group, the closer
        /// the cache comes to them. `auto`: an eighth. As many as `memory_bytes_max`: it gives none up.
        memory_bytes_min: Option<u64> = None, Or("auto", Bytes(0, 1 << 50));
        /// Folder in which bodies and heads are kept, too, so that a restart keeps them. The master creates it for the
        /// workers' user, and below it a folder for each worker process. On ext4, XFS, Btrfs or tmpfs.
        folder: Option<PathBuf> = None, Or("none", FilePath);
        /// Bytes of the file system that the bodies in `folder` may take: all worker processes together, in equal parts.
        disk_bytes_max: u64 = 10 << 30, Bytes(1 << 20, 1 << 50);
        /// Bytes of that file system that are left free for others: where fewer are free, the cache grows no more.
        disk_reserve_bytes: u64 = 256 << 20, Bytes(0, 1 << 50);
        /// Responses kept. Each takes about a kilobyte for its head, besides its body.
        objects_max: u64 = 100_000, Integer(1, 100_000_000);
        /// Bodies are kept in blocks of this size, a power of two from 4 KiB to 16 MiB.
        block_bytes: u64 = 256 << 10, BlockBytes;
        /// What goes when there is no room for more. `auto`: `reach` for films (`video/…` and `audio/…` of more than 32 blocks),
        /// `s3-fifo` for everything else. A route may have another one.
        policy: Option<PolicyName> = None, Or("auto", Word::<PolicyName>::new());
        /// The name of this cache in `Cache-Status`.
        name: String = "baton".into(), Text;
    }
}

settings! {
    /// How the responses of a route are kept for other clients. Responses decide by `Cache-Control` and the like; this
    /// says what holds where they leave it open.
    RouteCache in "site.route.cache" {
        /// How long in seconds a response is fresh that does not say so itself, if its status may be kept at all; 0: a
        /// tenth of the time since `Last-Modified`, if it has one.
        default_s: u64 = 0, SECONDS;
        /// The longest time in seconds that is estimated from `Last-Modified`.
        heuristic_max_s: u64 = 86_400, SECONDS;
        /// The longest time in seconds for which an HLS or DASH manifest is fresh that does not say so itself: a live one
        /// changes with each segment.
        manifest_s: u64 = 1, SECONDS;
        /// How long in seconds a 404 or 410 is kept that does not say so itself.
        negative_s: u64 = 10, SECONDS;
        /// The longest time in seconds for which errors are kept, whatever they say themselves.
        error_max_s: u64 = 10, SECONDS;
        /// For how many seconds a stale response is served while a fresh one is fetched, if the response does not say.
        stale_while_revalidate_s: u64 = 0, SECONDS;
        /// For how many seconds a stale response takes the place of a 500, 502, 503 or 504, if the response does not say.
        stale_if_error_s: u64 = 0, SECONDS;
        /// For how many seconds a stale response is served if the origin cannot be reached, if the response does not say.
        stale_if_unreachable_s: u64 = 60, SECONDS;
        /// What goes first of the route's responses when there is no room for more. `auto`: as `policy` of `[shared_cache]`
        /// says. Each policy has the share of the cache that it makes use of.
        policy: Option<PolicyName> = None, Or("auto", Word::<PolicyName>::new());
        /// How many blocks of a response come and go together, as a segment: `uniform:4` (4 each, at most 65536), `exponential`
        /// (2, 4, 8 …) or `pyramid` (1, 1, 2, 4 …). `auto`: as suits the policy.
        segments: Option<Grouping> = None, Or("auto", SegmentGrouping);
        /// How many of the segments behind the one that a client gets are fetched before it asks for them, where names
        /// count (`seg-12.m4s`); only with `proxy`.
        prefetch: u64 = 0, Integer(0, 16);
        /// Whether all queries of a path get the same response; the origin sees none.
        ignore_query: bool = false, Flag;
        /// Whether the order of a query's parameters counts for nothing; the origin sees them in order.
        sort_query: bool = false, Flag;
        /// Parameters that count for nothing, and that the origin does not see; `utm_*` stands for all that begin so.
        drop_parameters: Vec<String> = Vec::new(), ListOf(Text);
        /// Request fields that reach the origin and tell no responses apart, unless these say so (`Vary`). Those that browsers
        /// send, and names of requests, do so in any case; every other field is a part of the key.
        unkeyed_fields: Vec<String> = Vec::new(), ListOf(Text);
        /// Response fields that come before `Cache-Control`, for this cache only.
        control_fields: Vec<String> = vec!["CDN-Cache-Control".into()], ListOf(Text);
        /// Response fields whose words are tags, by which responses are purged.
        tag_fields: Vec<String> = vec!["Cache-Tag".into(), "Surrogate-Key".into()], ListOf(Text);
        /// Whether responses with `Set-Cookie` are kept: each client would get the cookie of the first one.
        store_set_cookie: bool = false, Flag;
        /// Requests that the cache has nothing to do with: they go to the origin, and nothing of the answer is kept.
        /// `{ cookie = { session = true } }`.
        bypass_when: Option<When> = None, Or("never", WhenKind);
        /// Whether clients may ask for a fresh response (`Cache-Control: no-cache`), as browsers do on reload.
        obey_clients: bool = true, Flag;
    }
}

impl SharedCache {
    /// The bounds of a worker's cache. Its disk is that of all workers together: see [`DiskSettings::of_process`].
    pub fn settings_of_worker(&self) -> Settings {
        Settings {
            memory_bytes_max: self.memory_bytes_max,
            memory_bytes_min: self.memory_bytes_min.unwrap_or(self.memory_bytes_max / 8),
            disk: self.folder.clone().map(|folder| DiskSettings {
                folder,
                bytes_max: self.disk_bytes_max,
                reserve_bytes: self.disk_reserve_bytes,
            }),
            objects_max: usize::try_from(self.objects_max).unwrap_or(usize::MAX),
            block_bytes: u32::try_from(self.block_bytes).unwrap_or(u32::MAX),
            policy: self.policy,
            name: self.name.clone(),
        }
    }
}

impl RouteCache {
    /// What of a query counts.
    pub fn query_rule(&self) -> QueryRule {
        QueryRule {
            is_ignored: self.ignore_query,
            is_sorted: self.sort_query,
            dropped: self.drop_parameters.clone(),
        }
    }

    /// What a route means to the cache. Two sites, routes or origins share no responses.
    pub(crate) fn plan(&self, site: &str, route: &str, origin: &str) -> Arc<CachedRoute> {
        let seconds = |seconds: u64| u32::try_from(seconds).unwrap_or(u32::MAX);
        let rules = RouteRules {
            query: self.query_rule(),
            unkeyed_fields: self.unkeyed_fields.clone(),
            targeted_fields: self.control_fields.clone(),
            tag_fields: self.tag_fields.clone(),
            default_s: seconds(self.default_s),
            heuristic_max_s: seconds(self.heuristic_max_s),
            manifest_s: seconds(self.manifest_s),
            negative_s: seconds(self.negative_s),
            error_max_s: seconds(self.error_max_s),
            stale_while_revalidate_s: seconds(self.stale_while_revalidate_s),
            stale_if_error_s: seconds(self.stale_if_error_s),
            stale_if_unreachable_s: seconds(self.stale_if_unreachable_s),
            stores_set_cookie: self.store_set_cookie,
            obeys_requests: self.obey_clients,
            ..RouteRules::default()
        };
        Arc::new(CachedRoute {
            partition: format!("{site} {route} {origin}").into(),
            policy: PolicyChoice { name: self.policy, grouping: self.segments },
            rules,
            prefetch: u32::try_from(self.prefetch).unwrap_or(u32::MAX),
        })
    }
}

/// `true`, or a table: how; `false`: not at all.
pub(crate) struct CacheKind;

impl Kind for CacheKind {
    type Value = Option<RouteCache>;

    const SHOWN: Shown = Inline::<RouteCache>::SHOWN;

    fn accepted(&self) -> String {
        format!("{}, or {}", Flag.accepted(), Inline::<RouteCache>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), Inline::<RouteCache>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Self::Value> {
        match node.get_ref() {
            Value::Table(_) => Inline::<RouteCache>::new().read(node, reading).map(Some),
            Value::Boolean(is_on) => Some(is_on.then(RouteCache::default)),
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &Self::Value) -> toml::Value {
        match value {
            Some(cache) => Inline::<RouteCache>::new().write(cache),
            None => false.into(),
        }
    }
}

/// How blocks are grouped into segments. Not as a whole: that a viewer who leaves has the rest fetched the server does not do.
struct SegmentGrouping;

const GROUPINGS: &str = "\"uniform:BLOCKS\" (1 to 65536), \"exponential\" or \"pyramid\"";
const SEGMENT_BLOCKS_MAX: u32 = 65_536;

impl Kind for SegmentGrouping {
    type Value = Grouping;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        GROUPINGS.into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Grouping> {
        let Value::String(word) = node.get_ref() else { return reading.mismatch(node, GROUPINGS) };
        let has_bound = |grouping: &Grouping| match grouping {
            Grouping::Uniform(blocks) => blocks.get() <= SEGMENT_BLOCKS_MAX,
            grouping => *grouping != Grouping::Whole,
        };
        let grouping = word.parse().ok().filter(has_bound);
        if grouping.is_none() {
            reading.refuse(node.span(), "is no grouping of blocks", format!("expected {GROUPINGS}"));
        }
        grouping
    }

    fn write(&self, value: &Grouping) -> toml::Value {
        value.to_string().into()
    }
}

/// The size of a block.
struct BlockBytes;

const BLOCK_BYTES: Bytes = Bytes(4 << 10, 16 << 20);

impl Kind for BlockBytes {
    type Value = u64;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("{}, a power of two", BLOCK_BYTES.accepted())
    }

    fn schema(&self) -> Schema {
        BLOCK_BYTES.schema()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        let bytes = BLOCK_BYTES.read(node, reading)?;
        if !bytes.is_power_of_two() {
            let below = 1 << bytes.ilog2();
            reading.refuse(node.span(), "is no power of two", format!("{below} and {} are", below * 2));
            return None;
        }
        Some(bytes)
    }

    fn write(&self, value: &u64) -> toml::Value {
        BLOCK_BYTES.write(value)
    }
}

/// Up to a year: longer means the same, and HTTP counts no further than 2^31.
const SECONDS: Seconds = Seconds(0, 31_536_000);
