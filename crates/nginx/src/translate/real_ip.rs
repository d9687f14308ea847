//! Proxies and load balancers in front, which say whose requests they pass on.

use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;
use crate::written::Keys;

/// Directives that say where a client's address is found.
pub(super) const REAL_IP: [&str; 2] = ["real_ip_header", "set_real_ip_from"];

impl Translator<'_> {
    /// Where the addresses of a site's clients are found. `announced`: an address whose connections begin with the PROXY
    /// protocol.
    pub(super) fn real_ip(&mut self, scope: &Scope<'_>, announced: Option<&Directive>, keys: &mut Keys) {
        let mut from = Vec::new();
        for trusted in scope.all(&["set_real_ip_from"]) {
            match trusted.argument(0) {
                word if word == "unix:" || word.bytes().all(is_of_address) => from.push(word.to_owned()),
                _ => self.leave_out(trusted),
            }
        }
        let header = scope.find("real_ip_header");
        let field = header.map_or("X-Real-IP", |header| header.argument(0));
        let mut table = Keys::default();
        table.set("from", from.clone());
        match (announced, from.is_empty(), header) {
            (Some(listen), true, _) => {
                let text = "\"proxy_protocol\" needs the addresses of the load balancers, which no \"set_real_ip_from\" names: \
                            their connections are closed until you say `proxy_protocol = { from = [\"10.0.0.0/8\"] }`";
                self.note(listen, Weight::Guard, text);
            }
            (Some(_), false, header) => {
                keys.set("proxy_protocol", table);
                if let Some(header) = header.filter(|_| field != "proxy_protocol") {
                    let text = "with \"proxy_protocol\", the address is the one that the load balancer says: left out";
                    self.note(header, Weight::LeftOut, text);
                }
            }
            (None, true, _) => {}
            (None, false, Some(header)) if field == "proxy_protocol" => self.leave_out(header),
            (None, false, _) => {
                let is_list = field.eq_ignore_ascii_case("X-Forwarded-For");
                if let Some(header) =
                    header.filter(|_| is_list && scope.word("real_ip_recursive") != Some("on"))
                {
                    let text =
                        "the address is the last one that is no proxy, as with \"real_ip_recursive on\"";
                    self.note(header, Weight::LeftOut, text);
                }
                table.set("header", field);
                keys.set("real_ip", table);
            }
        }
    }

    /// Says which of these directives a location has, where they are left out.
    pub(super) fn account_real_ip(&mut self, own: &Scope<'_>) {
        for directive in own.all(&REAL_IP) {
            let text = format!("\"{}\" is for whole sites: left out here", directive.name);
            self.note(directive, Weight::Guard, text);
        }
    }
}

fn is_of_address(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':' | b'/')
}
