//! Where a server listens.

use super::ports::{self, Address, address, has};
use super::translator::Translator;
use crate::tree::Directive;

/// Where a server listens.
#[derive(Clone, Debug, Default)]
pub(super) struct Listens<'t> {
    pub(super) clear: Vec<String>,
    pub(super) tls: Vec<String>,
    pub(super) is_default: bool,
    /// Where connections begin with the PROXY protocol.
    pub(super) announced: Option<&'t Directive>,
}

impl<'t> Translator<'t> {
    pub(super) fn listens(&mut self, server: &'t Directive) -> Listens<'t> {
        let mut listens = Listens::default();
        let all = ports::listens(server);
        for listen in &all {
            let Some(address) = address(listen.argument(0)) else {
                self.leave_out(listen);
                continue;
            };
            listens.is_default |= has(listen, "default_server") || has(listen, "default");
            let written = self.ports.written(&address);
            if self.ports.is_announced(&written) {
                listens.announced = Some(listen);
            }
            let list = if self.ports.is_tls(&written) { &mut listens.tls } else { &mut listens.clear };
            if !list.contains(&written) {
                list.push(written);
            }
        }
        if all.is_empty() {
            listens.clear.push(self.ports.written(&Address::EveryV4(80)));
        }
        listens
    }
}
