//! Where a server listens.

use super::ports::{Address, address};
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;

/// Where a server listens.
#[derive(Clone, Debug, Default)]
pub(super) struct Listens {
    pub(super) clear: Vec<String>,
    pub(super) tls: Vec<String>,
    pub(super) is_default: bool,
}

impl Translator<'_> {
    pub(super) fn listens(&mut self, server: &Directive) -> Listens {
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
                let text = "\"proxy_protocol\" has no counterpart: clients have the address of the proxy";
                self.note(listen, Weight::Guard, text);
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
