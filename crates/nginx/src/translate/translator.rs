//! The state of a translation: what is known of the whole configuration, and what has been said.

use std::collections::HashSet;

use super::ports::Ports;
use crate::names::{Fate, fate};
use crate::note::{Note, Weight};
use crate::tree::{Directive, Includes};

/// The state of a translation.
pub(super) struct Translator<'t> {
    pub(super) includes: &'t mut dyn Includes,
    pub(super) of_http: OfHttp<'t>,
    /// Variables of maps that have become something else.
    pub(super) used_maps: HashSet<String>,
    pub(super) ports: Ports,
    /// Where the server's access log goes.
    pub(super) server_log: Option<String>,
    pub(super) notes: Vec<Note>,
    /// All notes, so that each is said once.
    said: HashSet<Note>,
}

/// What servers refer to by name.
pub(super) struct OfHttp<'t> {
    pub(super) upstreams: Vec<&'t Directive>,
    /// Of `limit_req_zone`.
    pub(super) zones: Vec<&'t Directive>,
    pub(super) maps: Vec<&'t Directive>,
    /// Of `geo`.
    pub(super) address_maps: Vec<&'t Directive>,
}

impl<'t> Translator<'t> {
    pub(super) fn new(includes: &'t mut dyn Includes, of_http: OfHttp<'t>, ports: Ports) -> Self {
        Self {
            includes,
            of_http,
            used_maps: HashSet::new(),
            ports,
            server_log: None,
            notes: Vec::new(),
            said: HashSet::new(),
        }
    }

    /// Says which maps are left out, once all servers are translated.
    pub(super) fn account_maps(&mut self, http: &[Directive]) {
        for map in http.iter().filter(|directive| MAPS.contains(&&*directive.name)) {
            let variable = map.arguments.last().map_or("", String::as_str);
            // What it says is a part of `expires`, or what origins are told anyway.
            let is_known = map.name == "map" && [BY_MEDIA_TYPE, "$http_upgrade"].contains(&map.argument(0));
            if !is_known && !self.used_maps.contains(variable) {
                let text = format!("\"{}\" has no counterpart: left out", map.name);
                self.note(map, Weight::LeftOut, text);
            }
        }
    }

    /// Says something of a directive. What several places inherit is said once.
    pub(super) fn note(&mut self, directive: &Directive, weight: Weight, text: impl Into<String>) {
        let note = directive.note(weight, text);
        if self.said.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// Says that a directive is left out because it has variables, or a form, for which there is no counterpart.
    pub(super) fn leave_out(&mut self, directive: &Directive) {
        let words = [std::slice::from_ref(&directive.name), &directive.arguments[..]].concat().join(" ");
        self.note(directive, Weight::LeftOut, format!("\"{words}\" has no counterpart: left out"));
    }

    /// Says which directives of a block are left out.
    pub(super) fn account(&mut self, block: &[Directive]) {
        for directive in block {
            let name = &directive.name;
            match fate(name, directive.argument(0)) {
                _ if MAPS.contains(&&**name) => {}
                Fate::Translated | Fate::Needless => {}
                Fate::LeftOut => {
                    self.note(directive, Weight::LeftOut, format!("\"{name}\" has no counterpart: left out"));
                }
                Fate::Guard => {
                    let text = format!("\"{name}\" guards something, and has no counterpart: left out");
                    self.note(directive, Weight::Guard, text);
                }
            }
        }
    }

    /// What has been said since there were so many notes.
    pub(super) fn said_since(&self, count: usize) -> Vec<Note> {
        self.notes[count..].to_vec()
    }
}

/// Directives that give a variable one of several values.
const MAPS: [&str; 2] = ["map", "geo"];

/// The variable by whose value a `map` says how long files are kept.
pub(super) const BY_MEDIA_TYPE: &str = "$sent_http_content_type";
