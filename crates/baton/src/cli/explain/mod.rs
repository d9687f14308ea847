//! `baton explain URL`: the way of a request, from the address it arrives at to the last line of the response head.

mod absent;
mod cached;
mod client;
mod compression;
mod dry_run;
mod forwarded;
mod guards;
mod lines;
mod origins;
mod representation;
mod target;
mod way;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use baton_config::{AccessLog, Config, ConfigSource, Destination, PemFiles, Resources, Site, Value};
use baton_engine::ListenAddress;
use baton_http::origin::HostRule;
use baton_http::{HeadLimits, RequestHead};
use baton_master::kernel_sealing;
use baton_report::counted;
use baton_site::address_range::AddressSet;
use baton_site::condition::RequestView;
use baton_site::plan::{Action, Digest, UNANSWERED};
use clap::{Args, ValueHint};
use toml::Spanned;

use self::dry_run::DryRun;
use self::forwarded::Forwarded;
use self::lines::{Lines, field};
use self::target::{Target, split};
use self::way::End;
use super::browser_advice;
use super::check::described;
use super::command_line::{CommandLine, parse_header};
use super::config_file::{ConfigFile, load};
use super::output::{Failure, print};

/// Show which site, route, file, caches and steps a request takes, and the head of its response
///
/// Nothing needs to run: the request is answered by the server's own machinery, over a private socket.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// http://HOST[:PORT]/PATH, https://…, or /PATH
    #[arg(value_name = "URL", value_parser = Target::parse)]
    target: Target,

    #[command(flatten)]
    file: ConfigFile,

    /// Explain what `baton serve DIR` would do, instead of a configuration file
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<String>,

    /// Field of the request, such as `Accept-Encoding: br`; may be repeated
    #[arg(short = 'H', long, value_name = "NAME:VALUE", value_parser = parse_header)]
    header: Vec<(String, String)>,

    /// Explain for a client with this address [default: the loopback address]
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
}

impl Explain {
    /// Explains.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let config = load(&self.source()?)?;
        let addresses = config.addresses();
        let tls = |address| config.sites.iter().any(|site| site.has_tls(address));
        let known: Vec<_> = addresses.iter().map(|address| (*address, tls(address))).collect();
        let Some(listener) = self.target.listener(&known) else {
            let known =
                known.iter().map(|(address, tls)| format!("{address}{}", if *tls { " tls" } else { "" }));
            let wanted = match (self.target.port, self.target.tls) {
                (Some(port), Some(true)) => format!("port {port} with TLS"),
                (Some(port), _) => format!("port {port}"),
                (None, _) => "an address with TLS".to_owned(),
            };
            return Err(Failure(format!(
                "error: nothing listens on {wanted}\n  listening: {}",
                known.collect::<Vec<_>>().join(", ")
            )));
        };
        print(&self.explain(&config, listener, addresses[listener])?)
    }

    fn source(&self) -> std::io::Result<ConfigSource> {
        let Some(dir) = &self.dir else { return Ok(ConfigSource::File(self.file.config.clone())) };
        let mut line = CommandLine::new("baton explain");
        let root = Spanned::new(line.word(dir), Value::String(dir.clone()));
        line.set_site("root", root);
        line.set_compress(None);
        Ok(ConfigSource::CommandLine(Box::new(line.finish(std::env::current_dir()?))))
    }

    fn explain(&self, config: &Config, listener: usize, address: &ListenAddress) -> Result<String, Failure> {
        let ids: HashMap<_, _> = config.addresses().into_iter().zip(0..).collect();
        let pem_files = PemFiles::read(config)?;
        let certificates = config.certificates(&pem_files)?;
        let dry_run = DryRun::new()?;
        let socket = dry_run.stand_in();
        let resources = Resources { pem_files, stand_in: Some(socket.clone()), ..Resources::default() };
        let plan = Arc::new(config.plan(&ids, &resources)?);
        let host = self.target.host.as_deref();
        // Whether a request does harm is for the application to say: none is asked.
        let rehearsed = config.with_applications_at(&socket).plan(&ids, &resources)?;
        // In clear text: what TLS would encrypt is the same.
        let mut rehearsed = rehearsed.with_tls(HashMap::new());
        let is_https = config.sites.iter().any(|site| site.has_tls(address));
        if is_https {
            rehearsed = rehearsed.rehearsing_tls();
        }
        let found = plan.site(listener, host).map(|index| (&plan.sites()[index], config.site_of_plan(index)));
        let client = client::of(self.from, address);
        // The engine is told of the client as a load balancer tells of its clients.
        let balancer = client.map(|_| (listener, AddressSet { has_local: true, ..AddressSet::default() }));
        let rehearsed = Arc::new(rehearsed.with_balancers(balancer.into_iter().collect()));
        let announcement = client.map(client::announcement).unwrap_or_default().into_bytes();
        let request = [announcement, self.request()].concat();
        let rehearsed = dry_run.ask(rehearsed, config.tuning(), listener, &request)?;
        let (mut head, forwarded) = (rehearsed.response, rehearsed.forwarded);

        let mut lines = Lines::default();
        lines.add("request", format!("GET {} at {address}", self.target.path));
        let Some((planned, Some(site))) = found else {
            lines.add("site", "none answers here".into());
            return Ok(lines.finish(&head));
        };
        lines.add("site", format!("{} ({})", site.name(), why_site(site, host, address)));
        if site.has_tls(address) {
            for one in certificates.iter().filter(|one| one.site == site.name()) {
                lines.add("tls", described(one));
            }
        }
        let request = self.request();
        let Ok(asked) = RequestHead::parse(&request, &HeadLimits::default()) else {
            return Ok(lines.finish(&head));
        };
        let address = guards::client_behind(&mut lines, planned, client, &asked);
        let view = RequestView { head: &asked, address, has_certificate: false };
        let Some(End { route, configured, target, rewrites }) = way::follow(&mut lines, planned, site, &view)
        else {
            return Ok(lines.finish(&head));
        };
        let (path, query) = split(&target);
        let asked = asked.with_target(path.as_bytes(), query.map(str::as_bytes));
        let view = RequestView { head: &asked, address, has_certificate: false };
        if guards::refuse(&mut lines, route.guards.as_deref(), &view, &head) {
            return Ok(lines.finish(&head));
        }
        if let Action::Respond { status: UNANSWERED, .. } = route.action {
            lines.add("response", "none: the connection is closed".into());
            return Ok(lines.finish(""));
        }
        let delegated =
            matches!(route.action, Action::Delegated(_) | Action::Copies(..) | Action::Scripts(..))
                && head.starts_with("HTTP/1.1 502");
        if let Action::Delegated(delegate) = &route.action
            && let Some(terms) = delegate.proxy()
        {
            let came_by = (planned, path, &rewrites);
            let arrival = |head: &RequestHead<'_>| delegate.arrival(client, is_https, head);
            let kept = delegate
                .cache
                .as_ref()
                .and_then(|route| cached::forwarded_target(route, &self.request(), arrival, came_by));
            let (path, query) = split(kept.as_deref().unwrap_or(&target));
            let asked = terms.forwarding.target(path.as_bytes(), query.map(str::as_bytes));
            let asked = asked.map_or_else(|refusal| refusal.to_string(), |target| text(&target));
            let host = match &terms.forwarding.host {
                HostRule::Client => "the client's",
                HostRule::Origin => &terms.forwarding.authority,
                HostRule::Fixed(host) => host,
            };
            lines.add("asked for", format!("{asked}, with Host: {host}"));
            if let Some(cluster) = &terms.cluster {
                lines.add("key", origins::key(&cluster.key, view.head));
            }
            origins::explain(
                &mut lines,
                config,
                &ids,
                (
                    &planned.name,
                    &configured.map_or_else(|| route.matcher.to_string(), |one| one.settings.name()),
                ),
                view.head,
            )?;
        }
        if let Action::Delegated(delegate) | Action::Scripts(_, delegate) = &route.action
            && let Some(cache) = &delegate.cache
            && let Some((asked, kept)) =
                cached::explain((cache, &config.shared_cache), &self.request(), |head| {
                    delegate.arrival(client, is_https, head)
                })
        {
            match route.cache_bypass.as_ref().filter(|when| when.holds(&view)) {
                Some(when) => lines.add("cache", format!("not asked, and nothing is kept: {when}")),
                None => {
                    lines.add("cache", asked);
                    lines.add("kept", kept);
                }
            }
        }
        let run = configured.filter(|route| route.settings.application().is_some());
        let sealing = run.filter(|_| is_https).map(|_| kernel_sealing(config));
        let transport = run.and_then(|route| browser_advice::transport(config, route, sealing.as_ref()));
        if let Some(transport) = transport {
            lines.add("transport", transport);
        }
        if delegated && let Action::Scripts(..) = route.action {
            lines.add("file", "a script, which is run".into());
        } else if let Action::Files(tree) | Action::Lent(tree, _) | Action::Scripts(tree, _) = &route.action {
            let files = configured.map_or(&site.files, |route| &route.files);
            let tag = field(&head, "etag").unwrap_or_default();
            let settings = configured.map(|route| &route.settings);
            match representation::find(files, settings, &target, tag.as_bytes()) {
                Some((name, size)) => {
                    explain_file(&mut lines, config, &name.display().to_string(), size);
                    if let Some(fetching) = plan.fetching() {
                        lines.add("home", origins::home(fetching, path));
                    }
                    if let Some(compress) = &files.compress {
                        let word = compression::of_file(compress, &self.request(), &head, size);
                        lines.add("coding", word);
                    }
                }
                None => {
                    let withheld = representation::withheld(files, settings, &target, tree);
                    let is_behind_link = tree.hidden_link(path.as_bytes()).is_some();
                    lines.add(
                        "file",
                        no_file(&head, withheld.as_deref(), is_behind_link, |status| {
                            absent::why(files, settings, &target, status)
                        }),
                    );
                }
            }
        }
        if let Action::Files(tree) | Action::Lent(tree, _) | Action::Scripts(tree, _) = &route.action
            && let Some(link) = tree.hidden_link(path.as_bytes())
        {
            lines.add("link", link.to_string());
        }
        if let Action::Lent(..) = &route.action
            && let Some((told, redirect)) = origins::document(config, path)
        {
            lines.add("document", told);
            head = redirect.unwrap_or(head);
        }
        let compress = configured.map_or(&site.files, |route| &route.files).compress.as_ref();
        if let Some(compress) = compress.filter(|_| delegated) {
            lines.add("coding", compression::of_stream(compress, &self.request()));
        }
        if let Some(digest) = route.digest.filter(|_| delegated) {
            lines.add("etag", tag_of(digest));
        }
        if delegated {
            let is_proxied = matches!(&route.action, Action::Delegated(delegate) | Action::Copies(_, delegate) if delegate.proxy().is_some());
            let whose = if is_proxied { "origin" } else { "application" };
            lines.add("response", format!("the {whose}'s, which is not asked here"));
            match forwarded {
                Some(Forwarded::Head(forwarded)) => {
                    lines.add(
                        "request",
                        format!("as the origin would get it {}:", client::told(self.from, client)),
                    );
                    head = forwarded;
                }
                Some(Forwarded::Parameters(parameters)) => {
                    let from = client::told(self.from, client);
                    head = parameters_of(&mut lines, &parameters, &from);
                }
                None => head.clear(),
            }
        }
        lines.add(
            "runs on",
            format!("{}: {}", config.server.architecture, config.server.architecture.summary()),
        );
        lines.add("log", logged(config, site));
        Ok(lines.finish(&head))
    }

    fn request(&self) -> Vec<u8> {
        let mut request = format!("GET {} HTTP/1.1\r\n", self.target.path);
        if !self.header.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request.push_str(&format!("Host: {}\r\n", self.target.authority()));
        }
        for (name, value) in &self.header {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        (request + "\r\n").into_bytes()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn why_site(site: &Site, host: Option<&str>, address: &ListenAddress) -> String {
    let host = host.unwrap_or("localhost").to_ascii_lowercase();
    let matching = |pattern: &&String| match pattern.strip_prefix('*') {
        Some(suffix) => host.ends_with(suffix),
        None => **pattern == host,
    };
    match site.settings.hosts.iter().find(matching) {
        Some(pattern) => format!("host {pattern}"),
        None => format!("the default of {address}"),
    }
}

fn explain_file(lines: &mut Lines, config: &Config, name: &str, size: u64) {
    let (cache, send) = (config.cache_settings(), &config.send);
    lines.add("file", format!("{name} ({})", counted(size, "byte")));
    let name = match cache.names {
        true => format!("remembered; the file system is asked again after {} ms", cache.revalidate_ms),
        false => "resolved for each request".into(),
    };
    lines.add("name", name);
    let in_memory = cache.files && size <= cache.memory_file_bytes_max.min(cache.memory_bytes_max);
    let contents = match (cache.files, in_memory) {
        (true, true) => format!("in memory (up to {} bytes are)", cache.memory_file_bytes_max),
        (true, false) if size <= cache.memory_hot_file_bytes_max => {
            "in the kernel's page cache, the file kept open; copied to memory once it is requested often"
                .into()
        }
        (true, false) => "in the kernel's page cache; the file is kept open".into(),
        (false, _) => "the file is opened for each request".into(),
    };
    lines.add("contents", contents);
    lines.add(
        "head",
        if cache.heads && cache.files { "kept with the file" } else { "made for each request" }.into(),
    );
    let sent = match in_memory {
        true => "head and body with one send".into(),
        false => format!(
            "the head, then the file by sendfile, up to {} bytes before others have their turn",
            send.quantum_bytes
        ),
    };
    lines.add("sent", sent);
}

fn tag_of(digest: Digest) -> String {
    let strength = match digest {
        Digest::Kept => "weak, since the shared cache answers for ranges",
        Digest::Passing => "strong, but for a coding made here, or for an application that has ranges",
    };
    let kib_max = Digest::BYTES_MAX >> 10;
    format!("if the response has none, a digest of up to {kib_max} KiB in memory: {strength}")
}

/// Tells which program answers, and returns the parameters that it gets.
fn parameters_of(lines: &mut Lines, parameters: &[(String, String)], from: &str) -> String {
    if let Some((name, file)) = parameters.iter().find(|(name, _)| name == "SCRIPT_FILENAME") {
        // An application may take the name for something else than a file of this machine.
        let there = if Path::new(file).is_file() { "" } else { ", which is no file here" };
        lines.add("script", format!("{file} ({name}{there})"));
    }
    lines.add(
        "request",
        format!("parameters as the application would get them {from}, but for those of the connection:"),
    );
    let of_connection = ["REMOTE_PORT", "SERVER_ADDR", "SERVER_PORT"];
    let told = parameters.iter().filter(|(name, _)| !of_connection.contains(&&**name));
    told.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\r\n")
}

fn no_file(
    head: &str,
    withheld: Option<&Path>,
    is_behind_link: bool,
    why: impl Fn(&str) -> Option<String>,
) -> String {
    let status = head.split(' ').nth(1).unwrap_or_default();
    match status {
        "404" if let Some(script) = withheld => format!(
            "not sent: {} is a script that no application runs here; `script_sources = true` sends it as it is",
            script.display()
        ),
        "304" => "not named by the response".into(),
        _ if is_behind_link => "not sent: it lies behind a link that is not followed".into(),
        _ => why(status).unwrap_or_else(|| "none that may be served".into()),
    }
}

fn logged(config: &Config, site: &Site) -> String {
    match (&site.settings.access_log, &config.log.access) {
        (AccessLog::Off, _) => "off for this site".into(),
        (AccessLog::Own(own), _) => own.file.to_string(),
        (_, Destination::Off) => "off".into(),
        (_, Destination::Stdout) => "standard output".into(),
        (_, Destination::Stderr) => "standard error".into(),
        (_, Destination::File(path)) => path.display().to_string(),
        (_, Destination::Syslog(daemon)) => daemon.to_string(),
    }
}
