//! Where a server listens.

use super::ports::{Address, address};
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
        let mut has_any = false;
        for listen in server.block.iter().filter(|directive| directive.name == "listen") {
            has_any = true;
            let Some(address) = address(listen.argument(0)) else {
                self.leave_out(listen);
                continue;
            };
            let options = &listen.arguments[1..];
            let has = |option: &str| options.iter().any(|word| word == option);
            if has("proxy_protocol") {
                listens.announced = Some(listen);
            }
            listens.is_default |= has("default_server") || has("default");
            let written = self.ports.written(&address);
            let list = if has("ssl") || has("quic") { &mut listens.tls } else { &mut listens.clear };
            if !list.contains(&written) {
                list.push(written);
            }
        }
        if !has_any {
            listens.clear.push(self.ports.written(&Address::EveryV4(80)));
        }
        listens
    }
}
