//! From `cors` to rules for the fields of responses, and to what the engine makes of each request.

use std::sync::Arc;

use baton_http::{FieldRules, VariableText};
use baton_site::cors;
use baton_site::cors::{ALLOW_CREDENTIALS, ALLOW_ORIGIN, EXPOSE_HEADERS, Origins};

use super::cors::{ALL, Cors};
use super::route::Route;
use super::site::Site;

impl Cors {
    /// What the engine makes of it.
    pub(crate) fn plan(&self) -> Arc<cors::Cors> {
        Arc::new(cors::Cors {
            origins: self.origins.clone(),
            methods: self.methods.join(", "),
            headers: self.headers.as_ref().map(|names| names.join(", ")),
            exposed: self.exposed(),
            credentials: self.credentials,
            max_age_s: self.max_age,
        })
    }

    fn exposed(&self) -> Option<String> {
        (!self.expose.is_empty()).then(|| self.expose.join(", "))
    }

    /// Adds what is the same for all responses to the rules for their fields. What an application or an origin says of
    /// the matter is dropped: two answers are none to a browser.
    fn rule(&self, rules: &mut FieldRules) {
        let field = |name: &str, value: &str| (name.to_owned(), VariableText::from(value));
        rules.remove.extend([ALLOW_ORIGIN, ALLOW_CREDENTIALS, EXPOSE_HEADERS].map(str::to_owned));
        match self.origins {
            Origins::All => {
                rules.set.push(field(ALLOW_ORIGIN, ALL));
                rules.set.extend(self.exposed().map(|exposed| field(EXPOSE_HEADERS, &exposed)));
            }
            // Also where no origin is named: a cache must not give that response to a page.
            Origins::Some(_) => rules.add.push(field("Vary", "Origin")),
        }
    }
}

impl Site {
    /// The site with the fields of `cors` that all responses have.
    pub(super) fn with_cors(self) -> Self {
        let mut site = self;
        let routes = site.routes.iter_mut().map(Route::guards_and_files);
        for (guards, files) in routes.chain([(&site.guards, &mut site.files)]) {
            if let Some(cors) = &guards.cors {
                cors.rule(&mut files.headers);
            }
        }
        site
    }
}
