//! The build and the host.

use std::fs;

use baton_sys::memory_bounds::MemoryBounds;
use baton_sys::process::allowed_cpus;
use rustix::process::{Resource, geteuid, getrlimit};
use rustix::thread::CapabilitySet;

use super::markdown::listed;

/// A line for each.
pub(super) fn list() -> String {
    listed([
        ("version", format!("{} {}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))),
        ("build", build()),
        ("kernel", kernel()),
        ("distribution", distribution()),
        ("processors", processors()),
        ("memory", memory()),
        ("user", user()),
        ("capabilities", capabilities()),
        ("descriptors", descriptors()),
    ])
}

fn build() -> String {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let profile = if cfg!(debug_assertions) { "with assertions (a debug build)" } else { "release" };
    format!("{}-{}-{libc}, {linked}, {profile}", std::env::consts::ARCH, std::env::consts::OS)
}

fn kernel() -> String {
    let uname = rustix::system::uname();
    let words = [uname.sysname(), uname.release(), uname.version(), uname.machine()];
    words.map(|word| word.to_string_lossy().into_owned()).join(" ")
}

fn distribution() -> String {
    let text = match fs::read_to_string("/etc/os-release") {
        Ok(text) => text,
        Err(error) => return format!("/etc/os-release: {error}"),
    };
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "not named".to_owned(), |name| name.trim_matches('"').to_owned())
}

fn processors() -> String {
    let count = allowed_cpus().map_or_else(|error| error.to_string(), |cpus| cpus.len().to_string());
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // Other architectures than x86 have no such line.
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| count.clone(), |(_, model)| format!("{count}, {model}"))
}

fn memory() -> String {
    let MemoryBounds { machine_bytes, group, address_space_bytes } = MemoryBounds::of_this_process();
    let mut told = format!("{} MiB", machine_bytes >> 20);
    if let Some(group) = group {
        told.push_str(&format!("; control group: {} MiB", group.bytes >> 20));
    }
    if let Some(bytes) = address_space_bytes {
        told.push_str(&format!("; address space: {} MiB", bytes >> 20));
    }
    told
}

fn user() -> String {
    if geteuid().is_root() { "root".to_owned() } else { "not root".to_owned() }
}

fn capabilities() -> String {
    let effective = match rustix::thread::capabilities(None) {
        Ok(sets) => sets.effective,
        Err(errno) => return errno.to_string(),
    };
    if effective.contains(CapabilitySet::all()) {
        return "all".to_owned();
    }
    let names: Vec<_> = effective.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn descriptors() -> String {
    let limit = getrlimit(Resource::Nofile);
    let shown = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    format!("soft limit {}, hard limit {}", shown(limit.current), shown(limit.maximum))
}
