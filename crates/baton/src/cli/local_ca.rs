//! `baton local-ca`: how clients come to trust the authority that signs for `tls = "local"`.

use std::process::ExitCode;
use std::time::SystemTime;

use baton_config::LocalAuthorityFolder;
use baton_report::utc;
use baton_tls::LOCAL_DOMAINS;
use clap::Args;

use super::output::{Failure, print};

/// Tell how browsers come to trust your authority for development, which signs for `--tls local` and `tls = "local"`
///
/// The authority is made once, for this user. It can only sign for local names and private addresses.
#[derive(Debug, Args)]
pub(super) struct LocalCa {
    /// Print its certificate, in PEM, and nothing else
    #[arg(long)]
    print: bool,
}

impl LocalCa {
    /// Prints.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let folder = LocalAuthorityFolder::of_user()?;
        let authority = folder.authority(SystemTime::now())?;
        if self.print {
            return print(authority.pem());
        }
        let certificate = authority.certificate();
        let name = certificate.subject.trim_start_matches("CN=");
        let path = folder.certificate_path().display().to_string();
        let domains = LOCAL_DOMAINS.map(|domain| format!(".{domain}")).join(", ");
        let ends = utc(certificate.not_after);
        let fingerprint = certificate.fingerprint_text();
        print(&format!(
            "{name}, until {}
  certificate: {path}
  SHA-256:     {fingerprint}
  signs for:   names in {domains}, and private addresses

curl
  curl --cacert {path} https://localhost:8443/
This system: curl, Python, git, ... (Debian, Ubuntu, Alpine; then Fedora, Arch)
  sudo cp {path} /usr/local/share/ca-certificates/baton-local.crt && sudo update-ca-certificates
  sudo trust anchor {path}
Chromium, Chrome (`certutil` is in libnss3-tools, nss-tools or nss)
  mkdir -p ~/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n '{name}' -i {path}
Firefox: Settings, Privacy & Security, View Certificates, Authorities, Import; or, while it is closed,
  for profile in ~/.mozilla/firefox/*.default*; do certutil -d sql:$profile -A -t C,, -n '{name}' -i {path}; done
Browsers from snaps: the same with ~/snap/chromium/current or ~/snap/firefox/common for ~ and $HOME
Android: copy the file to the phone; Settings, Security, More, Encryption & credentials, Install a certificate, CA certificate
iOS: send yourself the file and open it; install it in Settings, General, VPN & Device Management, and switch it on in
  Settings, General, About, Certificate Trust Settings

No more: remove it there, and {path} with its folder.
",
            &ends[..10]
        ))
    }
}
