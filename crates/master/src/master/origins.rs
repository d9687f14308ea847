//! Commands about origins.

use baton_report::log;

use super::Master;
use crate::control::Answer;

impl Master {
    /// Lets an origin get no more requests, or lets it get requests again. Workers see it in the table.
    pub(super) fn set_drained(&mut self, url: &str, is_drained: bool) -> Answer {
        match self.origins.set_drained(&self.config, url, is_drained) {
            Ok(told) => {
                let what = if is_drained { "drained" } else { "no longer drained" };
                log::notice(format_args!("origin {}: {what}", told["origin"].as_str().unwrap_or(url)));
                Answer::Ok(told)
            }
            Err(why) => Answer::error(why),
        }
    }
}
