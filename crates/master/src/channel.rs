//! Messages between the master and a worker: JSON, with descriptors of sockets, logs and configurations, over a pair of
//! sockets that keep message boundaries.

use std::path::PathBuf;

use baton_acme::Challenge;
use baton_cache::PurgeOrder;
use baton_dcws::{Origin, ServedCounts};
pub(super) use baton_supervise::messages::{MESSAGE_BYTES_MAX, receive, send};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::control::{RouteQuestion, RouteTopic};

/// A message to a worker, which handles messages in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub(super) enum ToWorker {
    /// Sockets for the next [`Prepare`](Self::Prepare): a descriptor for each of the ids.
    Listeners {
        /// See [`Listening::id`](super::listeners::Listening::id).
        ids: Vec<usize>,
    },
    /// Three descriptors: the process table of an application, for the next [`Prepare`](Self::Prepare).
    ProcessTable {
        /// Its address in the configuration.
        path: PathBuf,
    },
    /// Make a plan of two files in memory, and keep it ready: the configuration, and the PEM files that it names.
    Prepare {
        /// Which reload this belongs to.
        generation: u64,
        /// Of each of the configuration's addresses, in order, the id of its listener: old ones too.
        listeners: Vec<usize>,
    },
    /// Serve by the plan that was prepared.
    Commit {
        /// Which reload this belongs to.
        generation: u64,
    },
    /// Drop the prepared plan: another worker, or the master, failed.
    Abort,
    /// Write to other log files from now on: descriptors for those that are named, the access log's first.
    ReopenLogs {
        /// Whether the access log's is among them.
        access: bool,
        /// Whether the error log's is among them.
        error: bool,
    },
    /// A descriptor for each of these access logs of sites.
    SiteLogs {
        /// Their paths.
        paths: Vec<PathBuf>,
        /// Whether to go on in these files; else they are for the next [`Prepare`](Self::Prepare).
        reopened: bool,
    },
    /// Accept from these sockets, too, a descriptor for each of the ids: their worker is down. More may follow.
    AcceptFor {
        /// The slot of that worker.
        slot: usize,
        /// See [`Listening::id`](super::listeners::Listening::id).
        ids: Vec<usize>,
    },
    /// Close the sockets of that worker again.
    StopAcceptingFor {
        /// Its slot.
        slot: usize,
    },
    /// Seal session tickets by the secrets in the file in memory that comes with this.
    TicketSecrets,
    /// Show certificate authorities a proof.
    PutProof {
        /// Its number.
        id: u64,
        /// The proof.
        challenge: Challenge,
    },
    /// Show a proof no more.
    RemoveProof {
        /// Its number.
        id: u64,
    },
    /// One descriptor comes with this: a file in memory that says where the documents of a site are.
    DocumentMap,
    /// Say what documents were asked for since the last time.
    CountDocuments,
    /// Let the caches take this part of the memory that they can give up.
    CacheMemory {
        /// In thousandths.
        permille: u16,
    },
    /// Wake all loops, even if there is nothing to do.
    Wake,
    /// Purge.
    Purge {
        /// What.
        orders: Vec<PurgeOrder>,
        /// Which purges are complete then. If there are any, the worker confirms.
        tickets: Vec<u64>,
    },
    /// Say something of a request.
    Why {
        /// Which question this is; the answer repeats it.
        ticket: u64,
        /// What.
        topic: RouteTopic,
        /// The request.
        asked: RouteQuestion,
    },
    /// Report your status.
    Status {
        /// Which question this is; the answer repeats it.
        ticket: u64,
    },
    /// Give connections back to the front-ends that have handed them over, or keep them again.
    GiveBack {
        /// Whether to.
        gives_back: bool,
    },
    /// Accept nothing new, finish what is under way, end. With a descriptor: the way to other processes, which go on with
    /// connections between two requests.
    Drain {
        /// How long connections may stay on which nothing is under way, in milliseconds: their next request is answered.
        linger_ms: u64,
        /// How long the rest may take after that, in milliseconds.
        limit_ms: u64,
        /// How long tunnels may take after `linger_ms`, in milliseconds.
        tunnels_ms: u64,
        /// The highest version of passports that the other processes read.
        passports: u32,
    },
    /// End.
    Stop,
}

/// A message to the master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub(super) enum FromWorker {
    /// The worker is about to serve.
    Ready,
    /// The worker cannot serve, and ends.
    Failed {
        /// Why.
        error: String,
    },
    /// The plan is ready.
    Prepared {
        /// Of which reload.
        generation: u64,
    },
    /// The worker serves by that plan.
    Committed {
        /// Of which reload.
        generation: u64,
    },
    /// No plan can be made of the configuration.
    Refused {
        /// Of which reload.
        generation: u64,
        /// Why.
        error: String,
    },
    /// The worker shows a proof.
    HasProof {
        /// Its number.
        id: u64,
    },
    /// What documents of a site were asked for.
    DocumentsServed {
        /// The site.
        site: Origin,
        /// The counts.
        served: ServedCounts,
    },
    /// The worker has purged, for these.
    Purged {
        /// Which purges.
        tickets: Vec<u64>,
        /// Responses that it has dropped.
        responses: u64,
    },
    /// The worker has invalidated something, and so must the others.
    Invalidated {
        /// What.
        orders: Vec<PurgeOrder>,
    },
    /// What was asked of a request.
    Why {
        /// Which question this answers.
        ticket: u64,
        /// What there is to say, or why it cannot be said.
        told: Result<Value, String>,
    },
    /// Its status.
    Status {
        /// Which question this answers.
        ticket: u64,
        /// The engine's report.
        status: Value,
    },
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd as _;

    use baton_sys::passing;

    use super::*;

    #[test]
    fn reports_of_a_worker_that_ended_without_reading_arrive() {
        let (master, worker) = passing::message_pair().unwrap();
        send(&master, &ToWorker::Stop, &[]).unwrap();
        send(&worker, &FromWorker::Ready, &[]).unwrap();
        drop(worker);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (report, _) = receive::<FromWorker>(&master, &mut buffer).unwrap().unwrap();
        assert_eq!(report, FromWorker::Ready);
        assert!(receive::<FromWorker>(&master, &mut buffer).unwrap().is_none());
    }

    #[test]
    fn messages_arrive_whole_with_their_descriptors() {
        let (master, worker) = passing::message_pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"[server]").unwrap();
        file.rewind().unwrap();
        let order = ToWorker::Prepare { generation: 7, listeners: vec![0, 3] };
        send(&master, &order, &[file.as_fd()]).unwrap();
        send(&master, &ToWorker::Stop, &[]).unwrap();
        drop(master);

        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (received, mut descriptors) = receive::<ToWorker>(&worker, &mut buffer).unwrap().unwrap();
        assert_eq!(received, order);
        let mut text = String::new();
        File::from(descriptors.remove(0)).read_to_string(&mut text).unwrap();
        assert_eq!(text, "[server]");
        let (received, descriptors) = receive::<ToWorker>(&worker, &mut buffer).unwrap().unwrap();
        assert_eq!((received, descriptors.len()), (ToWorker::Stop, 0));
        assert!(receive::<ToWorker>(&worker, &mut buffer).unwrap().is_none());
    }
}
