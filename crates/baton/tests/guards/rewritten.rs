//! Requests that a route rewrites: the guards of both routes judge them.

use crate::site::{HASH, basic, run};

const RATE_OFF: &str = "rate_limit = 'off'";

fn burst(requests: u32) -> String {
    format!("rate_limit = {{ requests = 1, per = '1h', burst = {requests} }}")
}

/// Goal: no limit is gone around by a rewrite, and none takes two tokens of one request. Method: limits that the site, the route
/// that rewrites, or the one that answers has alone.
#[test]
fn each_limit_takes_one_token() {
    let server = run(&format!(
        "[[site]]\n{{listen}}\nroot = '{{root}}'\n{of_site}\n\
         [[site.route]]\nexact = '/of-site'\nrewrite = {{ to = '/page' }}\n\
         [[site.route]]\nexact = '/page'\nrespond = {{ status = 200 }}\n\
         [[site.route]]\nexact = '/from'\nrewrite = {{ to = '/free' }}\n{two}\n\
         [[site.route]]\nexact = '/free'\nrespond = {{ status = 200 }}\n{RATE_OFF}\n\
         [[site.route]]\nexact = '/to'\nrewrite = {{ to = '/counted' }}\n{RATE_OFF}\n\
         [[site.route]]\nexact = '/counted'\nrespond = {{ status = 200 }}\n{two}\n",
        of_site = burst(3),
        two = burst(2),
    ));
    let mut client = server.agent();
    let mut statuses = |path: &str| [(); 4].map(|()| client.get(path).status);
    assert_eq!(statuses("/of-site"), [200, 200, 200, 429], "one limit on both routes");
    assert_eq!(statuses("/from"), [200, 200, 429, 429], "a limit on what rewrites");
    assert_eq!(statuses("/to"), [200, 200, 429, 429], "a limit on what answers");
}

/// Goal: a rewrite opens no door. Method: the route that answers, or the one that rewrites, asks for a password, or lets no
/// address in.
#[test]
fn no_guard_is_gone_around() {
    let auth = format!("basic_auth = {{ users = {{ ada = '{HASH}' }} }}");
    let server = run(&format!(
        "[[site]]\n{{listen}}\nroot = '{{root}}'\n\
         [[site.route]]\nexact = '/to-locked'\nrewrite = {{ to = '/locked' }}\n\
         [[site.route]]\nexact = '/locked'\nrespond = {{ status = 200 }}\n{auth}\n\
         [[site.route]]\nexact = '/locked-too'\nrewrite = {{ to = '/open-page' }}\n{auth}\n\
         [[site.route]]\nexact = '/open-page'\nrespond = {{ status = 200 }}\n\
         [[site.route]]\nexact = '/to-closed'\nrewrite = {{ to = '/closed' }}\n\
         [[site.route]]\nexact = '/closed'\nrespond = {{ status = 200 }}\ndeny = ['127.0.0.0/8', '::1']\n",
    ));
    let mut client = server.agent();
    for path in ["/to-locked", "/locked-too"] {
        assert_eq!(client.get(path).status, 401, "{path}");
        assert_eq!(client.ask("GET", path, &basic("ada", "wrong")).status, 401, "{path}");
        assert_eq!(client.ask("GET", path, &basic("ada", "secret")).status, 200, "{path}");
    }
    assert_eq!(client.get("/to-closed").status, 403);
}
