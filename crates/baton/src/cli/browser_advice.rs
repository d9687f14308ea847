//! What `check` and `explain` say of the way of an application's answers to a browser.

use baton_config::{BrowserArrival, Config, Route, browser_transport};
use baton_master::KernelSealing;

/// The transport of a route's application to a browser, and why no better one. `None`: there is only one. `sealing`: `None`: the
/// browser comes in clear.
pub(super) fn transport(config: &Config, route: &Route, sealing: Option<&KernelSealing>) -> Option<String> {
    browser_transport(
        route.settings.application()?,
        BrowserArrival {
            is_http2: sealing.is_some() && config.offers_http2(),
            unsealed: sealing.and_then(KernelSealing::why_not),
            is_cached: route.settings.cache.is_some(),
            is_digested: route.settings.digest().is_some(),
            is_compressed: route.files.compress.is_some(),
        },
    )
}
