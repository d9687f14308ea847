//! No descriptor leaks. In a test binary of its own, because it counts the descriptors of the whole process.

#[path = "suite/common/mod.rs"]
#[expect(dead_code, reason = "the suite needs more of it")]
mod common;

use std::time::Duration;

use baton_upstream::TransportChoice;

use common::app::{App, Offered};
use common::driver::Driver;
use common::{application, client, handed};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Under every transport, requests are answered, declined, lost and abandoned. Further rounds leave no more descriptors open
/// than the first.
#[test]
fn descriptors_are_closed() {
    let app = App::start(|peer| {
        let mut count = 0;
        while let Some(mut asked) = peer.request() {
            count += 1;
            match (std::mem::take(&mut asked.offer), count % 4) {
                (_, 3) => return,
                (Offered::PassFd { client, .. }, 0) => {
                    drop(client);
                    peer.answered(&asked, 0);
                }
                (Offered::Shm(mut ring), _) => {
                    peer.share(&asked, &mut ring, b"X-A: b\n\nhello");
                    peer.end(&asked);
                }
                _ => {
                    peer.answer(&asked, b"X-A: b\n\nhello");
                }
            }
        }
    });
    let round = |driver: &mut Driver| {
        for transport in [TransportChoice::Plain, TransportChoice::Shm, TransportChoice::PassFd] {
            let application = application(&app, |settings| settings.transport = transport);
            for id in 0..12 {
                let (server, _client) = client();
                driver.begin(id, handed(&application, &server));
                if id % 5 == 4 {
                    driver.run_for(Duration::from_millis(1));
                    driver.abandon(id);
                } else {
                    driver.finish(id);
                }
            }
        }
        driver.run_until(|driver| driver.gateway.report().as_array().unwrap().is_empty());
    };
    let mut driver = Driver::new();
    round(&mut driver);
    let before = open_descriptors();
    for _ in 0..5 {
        round(&mut driver);
    }
    // The application's end of the last connection is closed by its own thread.
    driver.run_until(|_| open_descriptors() <= before);
}
