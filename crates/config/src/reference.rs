//! The list of all sections, for everything that explains settings to users.

use super::acme::{Acme, ExternalKey};
use super::admin::Admin;
use super::application::Application;
use super::basic_auth::BasicAuth;
use super::cache::Cache;
use super::cluster::{Cluster, ClusterNode, RouteCluster};
use super::cluster_etcd::{ClusterEtcd, ClusterRegister};
use super::compress::Compress;
use super::condition::When;
use super::cors::Cors;
use super::documents::Documents;
use super::files::{CacheRule, Files};
use super::guards::Guards;
use super::limits::Limits;
use super::log::LogSettings;
use super::media_types;
use super::origins::{Eject, Health, Origin};
use super::proxy::{OriginTls, Proxy};
use super::rate_limit::RateLimit;
use super::real_ip::{ProxyProtocol, RealIp};
use super::route::{Redirect, Respond, Rewrite, RouteSettings};
use super::schema::Schema;
use super::send::Send;
use super::server::Server;
use super::setting::{Section, Setting};
use super::shared_cache::{RouteCache, SharedCache};
use super::shown::Shown;
use super::site::SiteSettings;
use super::timeouts::Timeouts;
use super::tls::{CertificateFiles, ClientAuthentication, Tls};

/// A section as users see it.
pub(crate) struct SectionDescription {
    /// Its name in the file.
    pub name: &'static str,
    /// How its table is written: `[name]`, `[[name]]`, or inline as the value of a key.
    pub form: Form,
    /// What it is about, a line each.
    pub about: &'static [&'static str],
    /// Its settings.
    pub settings: Vec<Setting>,
    /// What others may see of them.
    pub shown: Shown,
    /// The names of settings without a default.
    pub needed: &'static [&'static str],
    /// What an editor may take for the value of each key.
    pub properties: fn() -> Vec<(&'static str, Schema)>,
}

/// How a section's table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `[name]`
    Table,
    /// `[[name]]`, any number of times.
    Tables,
    /// `key = { … }`
    Inline,
}

/// All sections in the order of the documentation.
pub(crate) fn sections() -> Vec<SectionDescription> {
    let types = SectionDescription {
        name: "media_types",
        form: Form::Table,
        about: media_types::ABOUT,
        settings: Vec::new(),
        shown: Shown::Whole,
        needed: &[],
        properties: Vec::new,
    };
    let mut site = described::<SiteSettings>(Form::Tables);
    site.settings.extend(Guards::settings());
    site.settings.extend(Files::settings());
    vec![
        described::<Server>(Form::Table),
        described::<Limits>(Form::Table),
        described::<Timeouts>(Form::Table),
        described::<Send>(Form::Table),
        described::<Cache>(Form::Table),
        described::<SharedCache>(Form::Table),
        described::<Tls>(Form::Table),
        described::<Acme>(Form::Table),
        described::<ExternalKey>(Form::Inline),
        described::<Cluster>(Form::Table),
        described::<ClusterNode>(Form::Inline),
        described::<ClusterEtcd>(Form::Inline),
        described::<ClusterRegister>(Form::Inline),
        described::<LogSettings>(Form::Table),
        described::<Admin>(Form::Table),
        types,
        site,
        described::<CertificateFiles>(Form::Inline),
        described::<ClientAuthentication>(Form::Inline),
        described::<Documents>(Form::Inline),
        described::<BasicAuth>(Form::Inline),
        described::<RateLimit>(Form::Inline),
        described::<Cors>(Form::Inline),
        described::<RealIp>(Form::Inline),
        described::<ProxyProtocol>(Form::Inline),
        described::<RouteSettings>(Form::Tables),
        described::<Redirect>(Form::Inline),
        described::<Rewrite>(Form::Inline),
        described::<Respond>(Form::Inline),
        described::<Proxy>(Form::Inline),
        described::<Origin>(Form::Inline),
        described::<Eject>(Form::Inline),
        described::<Health>(Form::Inline),
        described::<OriginTls>(Form::Inline),
        described::<RouteCluster>(Form::Inline),
        described::<RouteCache>(Form::Inline),
        described::<Application>(Form::Inline),
        described::<Compress>(Form::Inline),
        described::<CacheRule>(Form::Inline),
        described::<When>(Form::Inline),
    ]
}

impl SectionDescription {
    /// How its table begins in a file.
    pub(crate) fn head(&self) -> String {
        match self.form {
            Form::Table => format!("[{}]", self.name),
            Form::Tables => format!("[[{}]]", self.name),
            Form::Inline => format!("{} = {{ … }}", self.name),
        }
    }
}

fn described<S: Section>(form: Form) -> SectionDescription {
    SectionDescription {
        name: S::NAME,
        form,
        about: S::ABOUT,
        settings: S::settings(),
        shown: Shown::Section(S::shown),
        needed: S::NEEDED,
        properties: S::properties,
    }
}
