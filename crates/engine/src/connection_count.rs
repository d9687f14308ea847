//! Open connections of one worker process: descriptors and limits belong to the process, however many loops it has.

use std::net::SocketAddr;

use baton_shares::{ClientKey, Full, Permit, Shares};

use baton_session::context::Context;

/// Counts open connections, and how many each client has. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionCount {
    shares: Shares,
    /// Connections for which there are descriptors.
    clients_max: usize,
}

impl ConnectionCount {
    pub(crate) fn new(clients_max: usize) -> Self {
        Self { shares: Shares::default(), clients_max }
    }

    /// How many more connections may be accepted. Loops that ask at the same instant may each accept one too many.
    pub(crate) fn room(&self, ctx: &Context) -> usize {
        self.max(ctx).saturating_sub(self.shares.taken())
    }

    /// Counts a connection that was accepted.
    ///
    /// # Errors
    /// Its client, which has its share: others need what is left.
    pub(crate) fn admit(&self, peer: Option<SocketAddr>, ctx: &Context) -> Result<Permit, Option<ClientKey>> {
        let client = client_of(peer, ctx);
        match self.shares.take(client, self.max(ctx)) {
            Ok(place) => Ok(place),
            Err(Full::Table) => Ok(self.shares.enter(client)),
            Err(Full::Share) => Err(client),
        }
    }

    /// Counts a connection that another process has admitted.
    pub(crate) fn enter(&self, peer: Option<SocketAddr>, ctx: &Context) -> Permit {
        self.shares.enter(client_of(peer, ctx))
    }

    /// Who has most of them.
    pub(crate) fn greediest(&self) -> Option<ClientKey> {
        self.shares.greediest()
    }

    fn max(&self, ctx: &Context) -> usize {
        ctx.plan.limits.connections_max.min(self.clients_max)
    }
}

/// Whose share a connection belongs to. `None`: many clients stand behind it, or it is of this machine.
fn client_of(peer: Option<SocketAddr>, ctx: &Context) -> Option<ClientKey> {
    let address = peer?.ip();
    (!ctx.plan.is_proxy(address)).then(|| ClientKey::of(address))
}
