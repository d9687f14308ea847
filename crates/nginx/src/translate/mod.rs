//! Sites and routes from servers and locations.

mod address_maps;
mod cache;
mod compression;
mod conditions;
mod elsewhere;
mod error_page;
mod expression;
mod files;
mod guards;
mod index_files;
mod listen;
mod location;
mod logs;
mod matching;
mod passwords;
mod path_maps;
mod ports;
mod rates;
mod real_ip;
mod referers;
mod request_part;
mod route;
mod scope;
mod server;
mod translator;
mod whole;

use crate::note::Note;
use crate::tree::{Directive, Includes};
use crate::written::Document;
use ports::Ports;
use scope::Scope;
use translator::{OfHttp, Translator};

/// A configuration of Baton with what this one says, and what is to be said of its lines.
pub(crate) fn configuration(tree: &[Directive], includes: &mut dyn Includes) -> (Document, Vec<Note>) {
    // A file for `sites-enabled` alone has what is in the block of `http`.
    let block = tree.iter().find(|directive| directive.name == "http").map(|http| http.block.as_slice());
    let (main, http) = block.map_or((&[][..], tree), |block| (tree, block));
    let named = |name: &str| http.iter().filter(|directive| directive.name == name).collect::<Vec<_>>();
    let of_http = OfHttp {
        upstreams: named("upstream"),
        zones: named("limit_req_zone"),
        maps: named("map"),
        address_maps: named("geo"),
    };
    let servers = named("server");
    let ports = Ports::of(&servers);
    let mut translator = Translator::new(includes, of_http, ports);
    translator.account(main);
    translator.account(http);
    translator.account_caches(http);
    let mut sections = translator.whole(main, http);
    let scope = Scope::of(http);
    let mut sites: Vec<_> = servers.iter().map(|server| translator.server(server, &scope)).collect();
    translator.account_maps(http);
    // The first site of an address answers for names that no site has.
    sites.sort_by_key(|site| !site.is_default);
    sections.extend(sites.into_iter().flat_map(|site| site.sections));
    (Document { sections }, translator.notes)
}
