//! A site that belongs to one application.

use std::path::Path;

use crate::visitor::HOST;

/// The configuration. `route` and `fastcgi` are lines of the tables with these names.
pub(crate) fn of_one_application(root: &Path, route: &str, fastcgi: &str) -> String {
    let root = root.display();
    format!(
        r#"
processes = 1
[[site]]
name = "{HOST}"
{{listen}}
root = "{root}"
[[site.route]]
path = "/"
{route}
[site.route.fastcgi]
passfd_users = ["{{user}}"]
{fastcgi}
"#
    )
}
