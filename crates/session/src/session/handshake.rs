//! The handshake of a session whose connection begins with TLS.

use baton_http::BadProxyHeader;
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_tls::{FailureReason, HandshakeFailure};

use super::{Need, Session};
use crate::context::Context;
use crate::job::Job;
use crate::transport::HandshakeNeed;

impl Session {
    /// Takes the handshake as far as it goes without waiting; `None`: there is none, or it is over and bytes may flow.
    pub(super) fn shake_hands(&mut self, ctx: &mut Context) -> Option<Need> {
        if !self.connection.transport.is_handshaking() || !self.connection.is_open() {
            return None;
        }
        Some(match self.connection.transport.shake_hands() {
            HandshakeNeed::Readable => Need::Readable,
            HandshakeNeed::Writable => Need::Writable,
            HandshakeNeed::Work(machine) => {
                ctx.tally.add(Metric::Jobs, 1);
                Need::Job(Job::Handshake(machine), self.connection.client())
            }
            HandshakeNeed::WorkUnderWay => Need::JobUnderWay,
            HandshakeNeed::Failed(failure) => self.fail_handshake(&failure, ctx),
            HandshakeNeed::Clear => {
                let detail = "a client spoke in clear where TLS is expected, and was told the right address";
                report(&HandshakeFailure::new(FailureReason::NotTls, detail), ctx);
                return None;
            }
            HandshakeNeed::Unannounced(why) => self.end_unannounced(why, ctx),
            // The load balancer has said whose connection it is, which is in clear.
            HandshakeNeed::Nothing if self.connection.transport.tls().is_none() => return None,
            HandshakeNeed::Nothing => {
                let resumed = self.connection.transport.tls().is_some_and(|facts| facts.resumed);
                ctx.tally.add(Metric::of_handshake(resumed), 1);
                self.begin_protocol(ctx);
                return None;
            }
        })
    }

    /// The deadline has passed; `None`: not for the handshake.
    pub(super) fn time_out_handshake(&mut self, ctx: &mut Context) -> Option<Need> {
        if !self.connection.transport.is_handshaking() {
            return None;
        }
        if self.connection.transport.awaits_announcement() {
            return Some(self.end_unannounced(None, ctx));
        }
        let failure =
            HandshakeFailure::new(FailureReason::TimedOut, "the client took too long to shake hands");
        Some(self.fail_handshake(&failure, ctx))
    }

    /// Closes a connection of which the load balancer has not said whose it is.
    fn end_unannounced(&mut self, why: Option<BadProxyHeader>, ctx: &mut Context) -> Need {
        if let Some(why) = why {
            let peer =
                self.connection.transport.peer().map_or("unix:".to_owned(), |peer| peer.ip().to_string());
            ctx.warn_of_tls(format_args!("a connection from {peer} was closed: {why}"));
        }
        self.end(Outcome::ClientGone, ctx)
    }

    fn fail_handshake(&mut self, failure: &HandshakeFailure, ctx: &mut Context) -> Need {
        report(failure, ctx);
        self.end(Outcome::ClientGone, ctx)
    }
}

/// Counts a failure, and tells the operator if there is something to do about it.
fn report(failure: &HandshakeFailure, ctx: &mut Context) {
    ctx.tally.add(Metric::of_handshake_failure(failure.reason), 1);
    let concerns_the_operator = match failure.reason {
        FailureReason::UnknownName
        | FailureReason::NoCommonVersion
        | FailureReason::NoCommonCipher
        | FailureReason::NoCommonProtocol
        | FailureReason::NoCertificate
        | FailureReason::BadCertificate
        | FailureReason::PeerAlert
        | FailureReason::NotTls
        | FailureReason::Overloaded
        | FailureReason::OverShare
        | FailureReason::Internal => true,
        FailureReason::Misbehaved
        | FailureReason::TooLarge
        | FailureReason::Left
        | FailureReason::TimedOut => false,
    };
    if concerns_the_operator {
        ctx.warn_of_tls(format_args!("TLS handshake failed: {failure}"));
    }
}

#[cfg(test)]
mod tests {
    use baton_content::CacheSettings;
    use baton_telemetry::metrics::Counters;

    use super::*;
    use crate::job::JobDone;
    use crate::session::Stage;
    use crate::session::Wake;
    use crate::transport::memory::{self, connect};
    use crate::transport::tls_client::{NAME, TlsClient, server};

    /// A session that begins with TLS, its client, and the context of a thread that must not block.
    struct Game {
        session: Session,
        ctx: Context,
        client: TlsClient,
    }

    impl Game {
        fn new() -> Self {
            let mut ctx = Context::without_sites(CacheSettings::default());
            ctx.clock.set(1_000_000, 1_000);
            let (server_end, client_end) = connect(1 << 20, true);
            let transport = memory::transport(server_end, "192.0.2.1:1".parse().unwrap(), Some(&server()));
            let session = Session::over(transport, 0, &mut ctx);
            Self { session, ctx, client: TlsClient::new(client_end, NAME) }
        }

        /// The next need; the client has sent something.
        fn step(&mut self) -> Need {
            self.session.handle_ready(true);
            self.session.step(&mut self.ctx, Stage::Any)
        }

        fn count(&mut self, metric: Metric) -> u64 {
            self.ctx.tally.publish();
            self.counters().get(metric)
        }

        fn counters(&self) -> Counters {
            self.ctx.tally.counters()
        }
    }

    /// The work is a job; while it is under way, neither events nor the deadline disturb it.
    #[test]
    fn a_request_is_answered_behind_the_handshake() {
        let mut game = Game::new();
        game.client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let Need::Job(job, _) = game.step() else { panic!("no job") };
        assert!(matches!(game.step(), Need::JobUnderWay));
        let done = job.run();
        assert!(matches!(done, JobDone::Handshake(_)));
        game.session.handle_job(done, &game.ctx);
        assert!(matches!(game.step(), Need::Readable));
        assert_eq!(game.client.take(), Ok(Vec::new()));
        game.step();
        let answer = game.client.take().unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 404 "), "{}", String::from_utf8_lossy(&answer));
        assert!(game.client.has_heard_end());
        assert_eq!(game.count(Metric::HandshakesFull), 1);
    }

    #[test]
    fn a_request_in_clear_is_told_the_right_address() {
        let mut game = Game::new();
        game.client.end.send(b"GET /a?b=<c> HTTP/1.1\r\nHost: site.test:8443\r\n\r\n");
        game.step();
        let answer = String::from_utf8(game.client.end.take_output()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("https://site.test:8443/a?b="), "{answer}");
        assert_eq!(game.count(Metric::HandshakeFailedNotTls), 1);
    }

    /// A drain closes idle sessions. A client in its handshake would take that for a failure and not come again.
    #[test]
    fn a_client_in_its_handshake_is_not_idle() {
        let mut game = Game::new();
        assert!(matches!(game.step(), Need::Readable));
        assert!(game.session.is_idle());
        game.client.send(b"");
        assert!(matches!(game.step(), Need::Job(..)));
        assert!(!game.session.is_idle());
    }

    #[test]
    fn a_silent_client_is_given_up() {
        let mut game = Game::new();
        assert!(matches!(game.step(), Need::Readable));
        let deadline_ms = game.session.deadline_ms();
        assert_eq!(deadline_ms, 1_000_000 + game.ctx.plan.limits.head_timeout_ms);
        game.ctx.clock.set(deadline_ms, 2_000);
        assert!(matches!(game.session.handle_wake(Wake::TimedOut, &mut game.ctx), Some(Need::Finished)));
        assert_eq!(game.count(Metric::HandshakeFailedTimedOut), 1);
        assert_eq!(game.count(Metric::ConnectionsOpen), 0);
    }
}
