//! What `check` and `explain` say of the way of an application's answers to a browser.

use baton_config::{BrowserArrival, Config, Route, browser_transport};
use baton_master::kernel_sealing;

/// The transport of a route's application to a browser, and why no better one. `None`: there is only one.
pub(super) fn transport(config: &Config, route: &Route, is_https: bool) -> Option<String> {
    let application = route.settings.application()?;
    let sealing = is_https.then(|| kernel_sealing(config));
    browser_transport(
        application,
        BrowserArrival {
            is_http2: is_https && config.offers_http2(),
            unsealed: sealing.as_ref().and_then(|sealing| sealing.why_not()),
            is_cached: route.settings.cache.is_some(),
            is_compressed: route.files.compress.is_some(),
        },
    )
}
