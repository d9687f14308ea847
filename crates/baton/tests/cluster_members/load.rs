//! Clients that ask without a pause, and count.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::common::server::{Server, wait_until};

/// A client for each front-end, until this is stopped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    answers: AtomicU64,
    failures: Mutex<Vec<String>>,
}

impl Load {
    /// Begins when each front-end answers: its workers hear of nodes a moment after the master, which tells of them.
    pub(crate) fn on(fronts: &[&Server]) -> Self {
        for front in fronts {
            wait_until("a node for requests", || front.get("/").status == 200);
        }
        let shared = Arc::<Shared>::default();
        let client = |front: &&Server| {
            let (shared, front) = (Arc::clone(&shared), front.over(front.protocol()));
            std::thread::spawn(move || {
                let mut agent = front.agent();
                for number in 0_u64.. {
                    if shared.is_over.load(Relaxed) {
                        return;
                    }
                    // What was asked for before has its node; a node that joins gets what is new.
                    let path = format!("/{}", if number % 2 == 0 { number } else { number % 97 });
                    let response = agent.get(&path);
                    if response.status == 200 {
                        shared.answers.fetch_add(1, Relaxed);
                    } else {
                        let what = format!("{path}: {}", response.status);
                        shared.failures.lock().expect("no panic").push(what);
                    }
                }
            })
        };
        let clients = fronts.iter().map(client).collect();
        Self { shared, clients }
    }

    /// How many requests were answered well so far.
    pub(crate) fn answers(&self) -> u64 {
        self.shared.answers.load(Relaxed)
    }

    /// Those that were not.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.shared.failures.lock().expect("no panic").clone()
    }

    /// Ends. Returns how many requests were answered well.
    pub(crate) fn stop(self) -> u64 {
        self.shared.is_over.store(true, Relaxed);
        self.clients.into_iter().for_each(|client| client.join().expect("no panic"));
        assert_eq!(self.shared.failures.lock().expect("no panic")[..], [] as [String; 0]);
        self.shared.answers.load(Relaxed)
    }
}
