//! Counters: a closed list, kept in memory that the supervisor shares with its workers.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_cache::CacheCounters;
use baton_http::Coding;
use baton_http::h2::{Bound, Cause, ConnectionError};
use baton_tls::FailureReason;
use baton_upstream::AnswerTransport;

use crate::figures::{FigureTally, Row};

/// Whether a value only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Declares the list of metrics: variant, Prometheus name, label, kind, help.
macro_rules! metrics {
    ($($variant:ident, $name:literal, $label:expr, $kind:ident, $help:literal;)*) => {
        /// What is counted. Outcomes and reasons have the words that the logs use as labels.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Metric {
            $(#[doc = $help] $variant,)*
        }

        impl Metric {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Name on the metrics page; several metrics that differ in their label share one.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Label and its value.
            pub fn label(self) -> Option<(&'static str, &'static str)> {
                match self { $(Self::$variant => $label,)* }
            }

            /// Whether the value only grows.
            pub fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind,)* }
            }

            /// What it means.
            pub fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

metrics! {
    ConnectionsAccepted, "baton_connections_accepted_total", None, Counter, "Connections accepted.";
    ConnectionsTakenOver, "baton_connections_taken_over_total", None, Counter, "Connections that a server had accepted whose place this one has taken.";
    ConnectionsOpen, "baton_connections_open", None, Gauge, "Connections open now.";
    ConnectionsRefused, "baton_connections_refused_total", None, Counter, "Connections that were closed at once: their client had limits.connections_per_address_max of them.";
    ConnectionsOverShare, "baton_connections_over_share_total", None, Counter, "Connections that were closed at once: most of limits.connections_max was taken, and their client had its share.";
    ConnectionsEvicted, "baton_connections_evicted_total", None, Counter, "Connections that were idle, or had no complete request, and ended because others needed their places.";
    AcceptsPaused, "baton_accepts_paused_total", None, Counter, "Times that accepting stopped for lack of descriptors or at connections_max.";
    Responses2xx, "baton_responses_total", Some(("class", "2xx")), Counter, "Responses by class of status.";
    Responses3xx, "baton_responses_total", Some(("class", "3xx")), Counter, "Responses by class of status.";
    Responses4xx, "baton_responses_total", Some(("class", "4xx")), Counter, "Responses by class of status.";
    Responses5xx, "baton_responses_total", Some(("class", "5xx")), Counter, "Responses by class of status.";
    OutcomeComplete, "baton_requests_total", Some(("outcome", "complete")), Counter, "Requests by how they ended.";
    OutcomeClientGone, "baton_requests_total", Some(("outcome", "client-gone")), Counter, "Requests by how they ended.";
    OutcomeTimedOut, "baton_requests_total", Some(("outcome", "timed-out")), Counter, "Requests by how they ended.";
    OutcomeRefused, "baton_requests_total", Some(("outcome", "refused")), Counter, "Requests by how they ended.";
    OutcomeFileChanged, "baton_requests_total", Some(("outcome", "file-changed")), Counter, "Requests by how they ended.";
    OutcomeFailed, "baton_requests_total", Some(("outcome", "failed")), Counter, "Requests by how they ended.";
    OutcomeApplicationFailed, "baton_requests_total", Some(("outcome", "application-failed")), Counter, "Requests by how they ended.";
    OutcomeOriginFailed, "baton_requests_total", Some(("outcome", "origin-failed")), Counter, "Requests by how they ended.";
    OutcomeStopped, "baton_requests_total", Some(("outcome", "stopped")), Counter, "Requests by how they ended.";
    OutcomeHandedOff, "baton_requests_total", Some(("outcome", "handed-over")), Counter, "Requests by how they ended.";
    Http2ClientResets, "baton_http2_errors_total", Some(("reason", "client-resets")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2ProvokedResets, "baton_http2_errors_total", Some(("reason", "provoked-resets")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2RefusedStreams, "baton_http2_errors_total", Some(("reason", "refused-streams")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2Pings, "baton_http2_errors_total", Some(("reason", "pings")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2SettingsFrames, "baton_http2_errors_total", Some(("reason", "settings-frames")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2PriorityFrames, "baton_http2_errors_total", Some(("reason", "priority-frames")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2EmptyFrames, "baton_http2_errors_total", Some(("reason", "empty-frames")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2IdleFrames, "baton_http2_errors_total", Some(("reason", "idle-frames")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2WindowUpdates, "baton_http2_errors_total", Some(("reason", "window-updates")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2SmallData, "baton_http2_errors_total", Some(("reason", "small-data")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2Continuations, "baton_http2_errors_total", Some(("reason", "continuations")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2BlockBytes, "baton_http2_errors_total", Some(("reason", "block-bytes")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2UnsentControl, "baton_http2_errors_total", Some(("reason", "unsent-control")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2IgnoredHeads, "baton_http2_errors_total", Some(("reason", "ignored-heads")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    Http2Violation, "baton_http2_errors_total", Some(("reason", "violation")), Counter, "Connections of HTTP/2 that the server ended, by the bound that the client went over, or violation.";
    BytesSent, "baton_sent_bytes_total", None, Counter, "Bytes handed to the kernel for clients, heads included.";
    Jobs, "baton_blocking_jobs_total", None, Counter, "Jobs that could have waited for a disk: files opened, pages brought in.";
    LoopBlockedMs, "baton_loop_blocked_milliseconds_total", None, Counter, "Time that event loops were kept waiting inside calls that should not wait (auto).";
    TemporaryBytes, "baton_temporary_bytes", None, Gauge, "Bytes in temporary files: bodies that are not complete, and responses that slow clients have not taken.";
    TemporaryRefused, "baton_temporary_refused_total", None, Counter, "Times that temporary files had no room for more: limits.temporary_bytes_max, or the disk.";
    OriginRetries, "baton_origin_retries_total", None, Counter, "Times that a request was tried again on another connection to an origin, or at another origin.";
    ClusterKeysMissing, "baton_cluster_keys_missing_total", None, Counter, "Requests without the key of their route to the cluster: their path was used in its place.";
    HandshakesFull, "baton_tls_handshakes_total", Some(("kind", "full")), Counter, "TLS handshakes that were completed.";
    HandshakesResumed, "baton_tls_handshakes_total", Some(("kind", "resumed")), Counter, "TLS handshakes that were completed.";
    HandshakeFailedNotTls, "baton_tls_handshakes_failed_total", Some(("reason", "not-tls")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedUnknownName, "baton_tls_handshakes_failed_total", Some(("reason", "unknown-name")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedNoCommonVersion, "baton_tls_handshakes_failed_total", Some(("reason", "no-common-version")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedNoCommonCipher, "baton_tls_handshakes_failed_total", Some(("reason", "no-common-cipher")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedNoCommonProtocol, "baton_tls_handshakes_failed_total", Some(("reason", "no-common-protocol")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedNoCertificate, "baton_tls_handshakes_failed_total", Some(("reason", "no-client-certificate")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedBadCertificate, "baton_tls_handshakes_failed_total", Some(("reason", "bad-client-certificate")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedPeerAlert, "baton_tls_handshakes_failed_total", Some(("reason", "peer-alert")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedMisbehaved, "baton_tls_handshakes_failed_total", Some(("reason", "misbehaved")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedTooLarge, "baton_tls_handshakes_failed_total", Some(("reason", "too-large")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedLeft, "baton_tls_handshakes_failed_total", Some(("reason", "left")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedTimedOut, "baton_tls_handshakes_failed_total", Some(("reason", "timed-out")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedOverloaded, "baton_tls_handshakes_failed_total", Some(("reason", "overloaded")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedOverShare, "baton_tls_handshakes_failed_total", Some(("reason", "over-share")), Counter, "TLS handshakes that came to nothing.";
    HandshakeFailedInternal, "baton_tls_handshakes_failed_total", Some(("reason", "internal")), Counter, "TLS handshakes that came to nothing.";
    CacheHits, "baton_shared_cache_requests_total", Some(("result", "hit")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheStaleHits, "baton_shared_cache_requests_total", Some(("result", "hit-stale")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheBypasses, "baton_shared_cache_requests_total", Some(("result", "bypass")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheMethods, "baton_shared_cache_requests_total", Some(("result", "method")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheUriMisses, "baton_shared_cache_requests_total", Some(("result", "uri-miss")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheVaryMisses, "baton_shared_cache_requests_total", Some(("result", "vary-miss")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheMisses, "baton_shared_cache_requests_total", Some(("result", "miss")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheRequests, "baton_shared_cache_requests_total", Some(("result", "request")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheStale, "baton_shared_cache_requests_total", Some(("result", "stale")), Counter, "Requests on cached routes, by what the shared cache did.";
    CachePartial, "baton_shared_cache_requests_total", Some(("result", "partial")), Counter, "Requests on cached routes, by what the shared cache did.";
    CacheStored, "baton_shared_cache_stored_total", None, Counter, "Responses that were stored as a whole.";
    CacheEvicted, "baton_shared_cache_evicted_total", None, Counter, "Stored responses that were given up for others.";
    CachePurged, "baton_shared_cache_purged_total", None, Counter, "Purges, and invalidations by requests that change something.";
    CacheSavedBytes, "baton_shared_cache_saved_bytes_total", None, Counter, "Bytes of bodies that came from the shared cache instead of an origin.";
    CacheNotWritten, "baton_shared_cache_disk_refused_blocks_total", None, Counter, "Blocks that the disk of the shared cache did not take: it is full, fails, or cannot keep up.";
    CacheLost, "baton_shared_cache_disk_lost_blocks_total", None, Counter, "Blocks that were damaged on the disk, or that it did not give back: fetched anew.";
    CacheRecovered, "baton_shared_cache_recovered_total", None, Counter, "Responses that were found on the disk after a start.";
    CachePrefetched, "baton_shared_cache_prefetched_total", None, Counter, "Segments that came before a client asked for them.";
    CompressedGzip, "baton_compressed_responses_total", Some(("coding", "gzip")), Counter, "Responses in a content coding that was made on the fly, from the cache or for them alone.";
    CompressedBrotli, "baton_compressed_responses_total", Some(("coding", "br")), Counter, "Responses in a content coding that was made on the fly, from the cache or for them alone.";
    CompressedZstd, "baton_compressed_responses_total", Some(("coding", "zstd")), Counter, "Responses in a content coding that was made on the fly, from the cache or for them alone.";
    CompressionBytesIn, "baton_compression_input_bytes_total", None, Counter, "Bytes that were compressed, as they were before.";
    CompressionBytesOut, "baton_compression_output_bytes_total", None, Counter, "Bytes that compressing them came to.";
    AnswersUnix, "baton_application_answers_total", Some(("transport", "unix")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersInet, "baton_application_answers_total", Some(("transport", "inet")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersShm, "baton_application_answers_total", Some(("transport", "shm")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersPassFd, "baton_application_answers_total", Some(("transport", "passfd")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersFile, "baton_application_answers_total", Some(("transport", "file")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersDeclinedCompression, "baton_application_answers_total", Some(("transport", "declined-compression")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersDeclinedInstruction, "baton_application_answers_total", Some(("transport", "declined-instruction")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersDeclinedHead, "baton_application_answers_total", Some(("transport", "declined-head")), Counter, "Complete answers of applications, by how they have travelled.";
    AnswersDeclined, "baton_application_answers_total", Some(("transport", "declined")), Counter, "Complete answers of applications, by how they have travelled.";
    LogLinesLost, "baton_log_lines_lost_total", None, Counter, "Access log lines that could not be written.";
}

impl Metric {
    /// The counter of connections that ended for this reason.
    pub fn of_http2_error(error: &ConnectionError) -> Self {
        match error.why {
            Cause::Violation(_) => Self::Http2Violation,
            Cause::Bound(Bound::ClientResets) => Self::Http2ClientResets,
            Cause::Bound(Bound::ProvokedResets) => Self::Http2ProvokedResets,
            Cause::Bound(Bound::RefusedStreams) => Self::Http2RefusedStreams,
            Cause::Bound(Bound::Pings) => Self::Http2Pings,
            Cause::Bound(Bound::SettingsFrames) => Self::Http2SettingsFrames,
            Cause::Bound(Bound::PriorityFrames) => Self::Http2PriorityFrames,
            Cause::Bound(Bound::EmptyFrames) => Self::Http2EmptyFrames,
            Cause::Bound(Bound::IdleFrames) => Self::Http2IdleFrames,
            Cause::Bound(Bound::WindowUpdates) => Self::Http2WindowUpdates,
            Cause::Bound(Bound::SmallData) => Self::Http2SmallData,
            Cause::Bound(Bound::Continuations) => Self::Http2Continuations,
            Cause::Bound(Bound::BlockBytes) => Self::Http2BlockBytes,
            Cause::Bound(Bound::IgnoredHeads) => Self::Http2IgnoredHeads,
            Cause::Bound(Bound::UnsentControl) => Self::Http2UnsentControl,
        }
    }

    /// The counter of responses in this coding.
    pub fn of_coded_response(coding: Coding) -> Self {
        match coding {
            // A body as it is has no counter of its own, and is never asked about.
            Coding::Gzip | Coding::Identity => Self::CompressedGzip,
            Coding::Brotli => Self::CompressedBrotli,
            Coding::Zstd => Self::CompressedZstd,
        }
    }

    /// The counter of requests with which the shared cache did this.
    pub fn of_cache_word(word: &'static str) -> Option<Self> {
        let all = &Self::ALL[Self::CacheHits as usize..=Self::CachePartial as usize];
        all.iter().find(|metric| metric.label() == Some(("result", word))).copied()
    }

    /// The counter of answers that have travelled so.
    pub fn of_transport(transport: AnswerTransport) -> Self {
        match transport {
            AnswerTransport::Unix => Self::AnswersUnix,
            AnswerTransport::Inet => Self::AnswersInet,
            AnswerTransport::Shm => Self::AnswersShm,
            AnswerTransport::PassFd => Self::AnswersPassFd,
            AnswerTransport::File => Self::AnswersFile,
            AnswerTransport::DeclinedCompression => Self::AnswersDeclinedCompression,
            AnswerTransport::DeclinedInstruction => Self::AnswersDeclinedInstruction,
            AnswerTransport::DeclinedHead => Self::AnswersDeclinedHead,
            AnswerTransport::Declined => Self::AnswersDeclined,
        }
    }

    /// The counter of responses with this status.
    pub fn of_status(status: u16) -> Self {
        match status / 100 {
            2 => Self::Responses2xx,
            3 => Self::Responses3xx,
            4 => Self::Responses4xx,
            _ => Self::Responses5xx,
        }
    }

    /// The counter of handshakes that were completed.
    pub fn of_handshake(resumed: bool) -> Self {
        if resumed { Self::HandshakesResumed } else { Self::HandshakesFull }
    }

    /// The counter of handshakes that failed for this reason.
    pub fn of_handshake_failure(reason: FailureReason) -> Self {
        match reason {
            FailureReason::NotTls => Self::HandshakeFailedNotTls,
            FailureReason::UnknownName => Self::HandshakeFailedUnknownName,
            FailureReason::NoCommonVersion => Self::HandshakeFailedNoCommonVersion,
            FailureReason::NoCommonCipher => Self::HandshakeFailedNoCommonCipher,
            FailureReason::NoCommonProtocol => Self::HandshakeFailedNoCommonProtocol,
            FailureReason::NoCertificate => Self::HandshakeFailedNoCertificate,
            FailureReason::BadCertificate => Self::HandshakeFailedBadCertificate,
            FailureReason::PeerAlert => Self::HandshakeFailedPeerAlert,
            FailureReason::Misbehaved => Self::HandshakeFailedMisbehaved,
            FailureReason::TooLarge => Self::HandshakeFailedTooLarge,
            FailureReason::Left => Self::HandshakeFailedLeft,
            FailureReason::TimedOut => Self::HandshakeFailedTimedOut,
            FailureReason::Overloaded => Self::HandshakeFailedOverloaded,
            FailureReason::OverShare => Self::HandshakeFailedOverShare,
            FailureReason::Internal => Self::HandshakeFailedInternal,
        }
    }
}

/// One worker's counters: memory shared with the supervisor, which outlives the worker.
#[derive(Clone, Copy, Debug)]
pub struct Counters(&'static [AtomicU64]);

impl Counters {
    /// Makes counters for `slots` workers; to be called before they are forked.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate(slots: usize) -> io::Result<Vec<Self>> {
        // Each slot ends on a border of two cache lines, so that no line is written by two CPUs.
        let stride = Metric::ALL.len().next_multiple_of(16);
        let all = baton_sys::shared::shared_counters(stride * slots)?;
        Ok(all.chunks(stride).map(Self).collect())
    }

    /// The value of a metric.
    pub fn get(&self, metric: Metric) -> u64 {
        self.0[metric as usize].load(Ordering::Relaxed)
    }

    /// The counters of the shared cache.
    pub fn of_cache(&self) -> CacheCounters {
        CacheCounters {
            stored: self.cell(Metric::CacheStored),
            evicted: self.cell(Metric::CacheEvicted),
            purged: self.cell(Metric::CachePurged),
            saved_bytes: self.cell(Metric::CacheSavedBytes),
            not_written: self.cell(Metric::CacheNotWritten),
            lost: self.cell(Metric::CacheLost),
            recovered: self.cell(Metric::CacheRecovered),
            prefetched: self.cell(Metric::CachePrefetched),
        }
    }

    /// The counter of a metric itself, for a crate that counts directly.
    pub fn cell(&self, metric: Metric) -> &'static AtomicU64 {
        &self.0[metric as usize]
    }

    /// Adds to a metric; gauges may be given what wraps around to a subtraction.
    pub fn add(&self, metric: Metric, amount: u64) {
        self.0[metric as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// Sets gauges to zero: for the worker that follows one that died.
    pub fn reset_gauges(&self) {
        for &metric in Metric::ALL {
            if metric.kind() == Kind::Gauge {
                self.0[metric as usize].store(0, Ordering::Relaxed);
            }
        }
    }
}

/// What one thread has counted since it last published: plain numbers, so that counting costs nothing.
#[derive(Debug)]
pub struct Tally {
    pending: [u64; Metric::ALL.len()],
    dirty: bool,
    counters: Counters,
    figures: Option<FigureTally>,
}

impl Tally {
    /// A tally that flows into `counters`, and counts each site, application and origin in `figures`.
    pub fn new(counters: Counters, figures: Option<FigureTally>) -> Self {
        Self { pending: [0; _], dirty: false, counters, figures }
    }

    /// The counters that it flows into.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A request of this row begins.
    pub fn begin_request(&mut self, row: Row) {
        if let Some(figures) = &mut self.figures {
            figures.begin(row);
            self.dirty = true;
        }
    }

    /// It has ended. `status`: 0, if it is counted elsewhere.
    pub fn end_request(&mut self, row: Row, status: u16, duration_us: u64, body_bytes: u64) {
        if let Some(figures) = &mut self.figures {
            figures.end(row, status, duration_us, body_bytes);
            self.dirty = true;
        }
    }

    /// Adds to a metric.
    pub fn add(&mut self, metric: Metric, amount: u64) {
        let value = &mut self.pending[metric as usize];
        *value = value.wrapping_add(amount);
        self.dirty = true;
    }

    /// Takes from a gauge.
    pub fn subtract(&mut self, metric: Metric, amount: u64) {
        self.add(metric, amount.wrapping_neg());
    }

    /// Whether something has been counted since the last [`publish`](Self::publish).
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Adds what was counted to the shared counters.
    pub fn publish(&mut self) {
        for (&metric, pending) in Metric::ALL.iter().zip(&mut self.pending) {
            if *pending != 0 {
                self.counters.add(metric, std::mem::take(pending));
            }
        }
        if let Some(figures) = &mut self.figures {
            figures.publish();
        }
        self.dirty = false;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.publish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_the_shared_cache_has_a_counter() {
        for word in baton_cache::CacheWord::ALL.map(baton_cache::CacheWord::as_str) {
            let metric = Metric::of_cache_word(word).expect("a counter");
            assert_eq!((metric.name(), metric.label()), (Metric::CacheHits.name(), Some(("result", word))));
        }
    }

    #[test]
    fn transports_have_the_words_of_the_log() {
        for transport in AnswerTransport::ALL {
            assert_eq!(Metric::of_transport(transport).label(), Some(("transport", transport.word())));
        }
    }

    /// The log and the metrics name a reason by the same word.
    #[test]
    fn failed_handshakes_have_the_words_of_the_log() {
        for reason in FailureReason::ALL {
            let label = Metric::of_handshake_failure(reason).label();
            assert_eq!(label, Some(("reason", reason.word())));
        }
    }
}
