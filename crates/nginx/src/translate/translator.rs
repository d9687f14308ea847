//! The state of a translation: what is known of the whole configuration, and what has been said.

use std::collections::HashSet;

use super::ports::Ports;
use crate::names::{Fate, fate};
use crate::note::{Note, Weight};
use crate::tree::{Directive, Includes};

/// The state of a translation.
pub(super) struct Translator<'t> {
    pub(super) includes: &'t mut dyn Includes,
    pub(super) upstreams: Vec<&'t Directive>,
    /// Of `limit_req_zone`.
    pub(super) zones: Vec<&'t Directive>,
    pub(super) maps: Vec<&'t Directive>,
    pub(super) ports: Ports,
    /// Names of servers with TLS.
    pub(super) hosts_with_tls: Vec<String>,
    pub(super) notes: Vec<Note>,
    /// All notes, so that each is said once.
    said: HashSet<Note>,
}

impl<'t> Translator<'t> {
    pub(super) fn new(
        includes: &'t mut dyn Includes,
        (upstreams, zones, maps): (Vec<&'t Directive>, Vec<&'t Directive>, Vec<&'t Directive>),
        ports: Ports,
    ) -> Self {
        let hosts_with_tls = Vec::new();
        Self {
            includes,
            upstreams,
            zones,
            maps,
            ports,
            hosts_with_tls,
            notes: Vec::new(),
            said: HashSet::new(),
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
                // What it says is a part of `expires`, or what origins are told anyway.
                _ if name == "map" && [BY_MEDIA_TYPE, "$http_upgrade"].contains(&directive.argument(0)) => {}
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

/// The variable by whose value a `map` says how long files are kept.
pub(super) const BY_MEDIA_TYPE: &str = "$sent_http_content_type";
