//! Whether the kernel seals records of TLS for this server.

use std::io;

use baton_config::{Config, KernelTls};
use baton_sys::kernel_tls;
use rustix::io::Errno;

/// Whether the kernel seals, and why or why not.
#[derive(Clone, Debug)]
pub struct KernelSealing {
    why_not: Option<String>,
}

impl KernelSealing {
    /// Whether workers may have it seal.
    pub(crate) fn is_on(&self) -> bool {
        self.why_not.is_none()
    }

    /// Why the kernel does not seal; `None`: it does.
    pub fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// In words, for the operator.
    pub fn told(&self) -> String {
        match &self.why_not {
            None => "yes: long files under HTTP/1 and TLS 1.3, and answers by `passfd`".into(),
            Some(why) => format!("no: {why}"),
        }
    }
}

/// Decides it, by a test that has the kernel load its part of TLS, which workers may not.
pub fn kernel_sealing(config: &Config) -> KernelSealing {
    let why_not = if !config.has_tls() {
        Some("no site has TLS".into())
    } else if config.tls.kernel == KernelTls::Off {
        Some("`tls.kernel` is off".into())
    } else {
        test_kernel_tls().err()
    };
    KernelSealing { why_not }
}

/// Tries whether the kernel seals, whatever is configured.
///
/// # Errors
/// Why not.
pub fn test_kernel_tls() -> Result<(), String> {
    kernel_tls::self_test().map_err(|error| why_not(&error))
}

fn why_not(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) if !rustix::process::geteuid().is_root() => {
            "the kernel has not loaded its part (`modprobe tls` as root does)".into()
        }
        Some(Errno::NOENT) => "the kernel lacks it (CONFIG_TLS)".into(),
        Some(Errno::INVAL) => "the kernel is too old for TLS 1.3".into(),
        _ => format!("its test failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_reason_is_told() {
        let without = config("[[site]]\nroot = '/'\n");
        assert_eq!(kernel_sealing(&without).told(), "no: no site has TLS");
        let site = "[[site]]\nroot = '/'\nlisten = [':1 tls']\ntls = { certificate = '/c.pem' }\n";
        let switched_off = kernel_sealing(&config(&format!("[tls]\nkernel = 'off'\n{site}")));
        assert!(!switched_off.is_on());
        assert_eq!(switched_off.told(), "no: `tls.kernel` is off");
        let tried = kernel_sealing(&config(site));
        assert_eq!(tried.is_on(), kernel_tls::self_test().is_ok());
        assert_eq!(tried.is_on(), tried.told().starts_with("yes"));
        assert_eq!(why_not(&Errno::INVAL.into()), "the kernel is too old for TLS 1.3");
    }
}
