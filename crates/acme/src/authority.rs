//! The conversation with an authority: the account, an order from its names to its certificate, renewal windows.
//!
//! ```text
//!   new order ─► authorizations ─► challenges at all workers ─► set ready ─► order ready ─► CSR ─► certificate
//! ```
//!
//! Each call blocks until it is done. What an order waits for between two requests, it waits for through [`Responder`].

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use baton_report::OperatorError;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeStatus, ChallengeType,
    Error, ExternalAccountKey, Identifier, NewAccount, NewOrder, Order, OrderStatus,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use serde::{Deserialize, Serialize};

use crate::challenge::tls_alpn_certificate;
use crate::failure::{Failure, explain, kind, sentence};
use crate::http::{Http, run};
use crate::messages::Challenge;
use crate::names::Names;
use crate::planner::Window;
use crate::settings::{AcmeSettings, ChallengeKind};
use crate::store::Store;
use crate::time::UnixTime;

/// What an order needs from the rest of the server.
pub(crate) trait Responder {
    /// Lets all workers answer the challenges. Returns when all do.
    fn put(&mut self, challenges: Vec<Challenge>) -> Result<(), Failure>;
    /// Lets no worker answer any challenge.
    fn remove_all(&mut self);
    /// Waits.
    fn pause(&mut self, time: Duration);
}

/// What is ordered.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) names: &'a Names,
    pub(crate) profile: Option<&'a str>,
    /// The certificate that this one replaces: renewals in the authority's window are exempt from its limits.
    pub(crate) replaces: Option<&'a CertificateIdentifier<'static>>,
    pub(crate) challenge: ChallengeKind,
}

/// An authority and our account there.
pub(crate) struct Authority {
    account: Account,
    http: Http,
}

impl Authority {
    /// Fetches the directory, and opens the stored account or creates one.
    pub(crate) fn connect(settings: &AcmeSettings, store: &Store) -> Result<Self, Failure> {
        let http = Http::new(settings.roots.as_deref()).map_err(Failure::ours)?;
        let builder = Account::builder_with_http(Box::new(http.clone()));
        let unusable = |error: &std::io::Error| {
            Failure::ours(OperatorError::of("use the account of the authority", error))
        };
        let email = settings.email.as_ref();
        let contact = email.map(|email| format!("mailto:{email}"));
        let contact = contact.as_deref();
        let account = if let Some(stored) = store.account().map_err(|error| unusable(&error))? {
            let stored: StoredAccount =
                serde_json::from_slice(&stored).map_err(|error| unusable(&error.into()))?;
            let account = run(builder.from_credentials(stored.credentials))
                .map_err(|error| Failure::of("open the account", &error, http.retry_after()))?;
            if stored.email.as_ref() != email {
                run(account.update_contacts(contact.as_slice())).map_err(|error| {
                    Failure::of("change the account's address", &error, http.retry_after())
                })?;
            }
            account
        } else {
            let new = NewAccount {
                contact: contact.as_slice(),
                terms_of_service_agreed: true,
                only_return_existing: false,
            };
            let external = external_account(settings)?;
            let (account, credentials) =
                run(builder.create(&new, settings.directory.clone(), external.as_ref()))
                    .map_err(|error| Failure::of("create an account", &error, http.retry_after()))?;
            let stored = StoredAccount { email: email.cloned(), credentials };
            let json = serde_json::to_vec(&stored).map_err(|error| unusable(&error.into()))?;
            store.write_account(&json).map_err(|error| unusable(&error))?;
            account
        };
        Ok(Self { account, http })
    }

    /// In which time a certificate should be renewed, and after how long to ask again; `None` if the authority has no
    /// suggestion.
    pub(crate) fn renewal_info(
        &self,
        certificate: &CertificateIdentifier<'_>,
    ) -> Result<Option<(Window, Duration)>, Failure> {
        match run(self.account.renewal_info(certificate)) {
            Ok((info, ask_after)) => {
                let moment = |seconds: i64| UnixTime(seconds.try_into().unwrap_or(0));
                let window = info.suggested_window;
                let start = moment(window.start.unix_timestamp());
                Ok(Some((Window { start, end: moment(window.end.unix_timestamp()) }, ask_after)))
            }
            Err(error @ Error::Other(_)) => {
                Err(Failure::of("ask when to renew", &error, self.http.retry_after()))
            }
            Err(_) => Ok(None),
        }
    }

    /// Orders a certificate. Returns its chain and its key as PEM.
    pub(crate) fn order(
        &self,
        request: &Request<'_>,
        responder: &mut dyn Responder,
    ) -> Result<String, Failure> {
        let mut order = self.new_order(request)?;
        let proven = self.prove(&mut order, request, responder);
        responder.remove_all();
        proven?;
        self.finalize(&mut order, request, responder)
    }

    fn new_order(&self, request: &Request<'_>) -> Result<Order, Failure> {
        let names: Vec<_> = request.names.all().iter().map(|name| Identifier::Dns(name.clone())).collect();
        let mut new = NewOrder::new(&names);
        if let Some(profile) = request.profile {
            new = new.profile(profile);
        }
        let answer = match request.replaces {
            Some(old) => match run(self.account.new_order(&replacing(&names, request.profile, old))) {
                // RFC 9773, 5: another order has replaced it; authorities without ARI know no such field.
                Err(Error::Api(problem)) if kind(&problem) == "alreadyReplaced" => {
                    run(self.account.new_order(&new))
                }
                Err(Error::Unsupported(_)) => run(self.account.new_order(&new)),
                answer => answer,
            },
            None => run(self.account.new_order(&new)),
        };
        answer.map_err(|error| self.failure("order it", &error))
    }

    /// Proves control over each name that the authority has no recent proof of.
    fn prove(
        &self,
        order: &mut Order,
        request: &Request<'_>,
        responder: &mut dyn Responder,
    ) -> Result<(), Failure> {
        let challenges = self.challenges(order, request.challenge)?;
        if !challenges.is_empty() {
            responder.put(challenges)?;
            self.set_ready(order, request.challenge)?;
        }
        for wait in waits() {
            match order.state().status {
                OrderStatus::Pending => {}
                OrderStatus::Invalid => return Err(self.rejection(order, request.challenge)),
                OrderStatus::Ready | OrderStatus::Processing | OrderStatus::Valid => return Ok(()),
            }
            responder.pause(self.http.retry_after().unwrap_or_default().clamp(wait, LONGEST_PAUSE));
            run(order.refresh()).map_err(|error| self.failure("follow the order", &error))?;
        }
        Err(too_slow("validated the names"))
    }

    /// What the workers are to answer.
    fn challenges(&self, order: &mut Order, kind: ChallengeKind) -> Result<Vec<Challenge>, Failure> {
        let mut challenges = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = run(authorizations.next()) {
            let mut authorization =
                authorization.map_err(|error| self.failure("fetch an authorization", &error))?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let name = authorization.identifier().to_string();
            let Some(challenge) = authorization.challenge(kind.of_library()) else {
                let what = format!("the authority does not accept {} for {name}", kind.word());
                return Err(Failure::ours(
                    OperatorError::new(what).remedy("allow another one: `challenges` in [acme]"),
                ));
            };
            let key_authorization = challenge.key_authorization();
            challenges.push(match kind {
                ChallengeKind::Http01 => Challenge::Http {
                    token: challenge.token.clone(),
                    key_authorization: key_authorization.as_str().to_owned(),
                },
                ChallengeKind::TlsAlpn01 => {
                    let pem = tls_alpn_certificate(&name, key_authorization.digest().as_ref()).map_err(
                        |error| Failure::ours(OperatorError::new(format!("cannot make a proof: {error}"))),
                    )?;
                    Challenge::TlsAlpn { name, pem }
                }
            });
        }
        Ok(challenges)
    }

    fn set_ready(&self, order: &mut Order, kind: ChallengeKind) -> Result<(), Failure> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = run(authorizations.next()) {
            let mut authorization =
                authorization.map_err(|error| self.failure("fetch an authorization", &error))?;
            if authorization.status == AuthorizationStatus::Pending
                && let Some(mut challenge) = authorization.challenge(kind.of_library())
                && challenge.status == ChallengeStatus::Pending
            {
                run(challenge.set_ready()).map_err(|error| self.failure("begin a validation", &error))?;
            }
        }
        Ok(())
    }

    /// Why an order became invalid: the errors are those of its challenges.
    fn rejection(&self, order: &mut Order, challenge: ChallengeKind) -> Failure {
        let mut reasons = Vec::new();
        let mut first = None;
        let mut authorizations = order.authorizations();
        while let Some(Ok(authorization)) = run(authorizations.next()) {
            for error in authorization.challenges.iter().filter_map(|challenge| challenge.error.as_ref()) {
                reasons.push(format!("{}: {}", authorization.identifier(), sentence(error)));
                first.get_or_insert_with(|| error.clone());
            }
        }
        let what = format!("the authority refused the proof by {}: {}", challenge.word(), reasons.join("; "));
        match first {
            Some(problem) => Failure::ours(explain(OperatorError::new(what), &problem)),
            None => Failure::ours(OperatorError::new("the authority refused the order without a reason")),
        }
    }

    /// Makes a key, and asks for the certificate.
    fn finalize(
        &self,
        order: &mut Order,
        request: &Request<'_>,
        responder: &mut dyn Responder,
    ) -> Result<String, Failure> {
        let (key, csr) = signing_request(request.names)
            .map_err(|error| Failure::ours(OperatorError::new(format!("cannot make a key: {error}"))))?;
        run(order.finalize_csr(&csr)).map_err(|error| self.failure("finalize the order", &error))?;
        for wait in waits() {
            let chain =
                run(order.certificate()).map_err(|error| self.failure("fetch the certificate", &error))?;
            if let Some(chain) = chain {
                return Ok(chain + &key.serialize_pem());
            }
            responder.pause(self.http.retry_after().unwrap_or_default().clamp(wait, LONGEST_PAUSE));
        }
        Err(too_slow("issued the certificate"))
    }

    fn failure(&self, operation: &str, error: &Error) -> Failure {
        Failure::of(operation, error, self.http.retry_after())
    }
}

/// The account as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredAccount {
    /// The address that the authority knows.
    email: Option<String>,
    credentials: AccountCredentials,
}

impl ChallengeKind {
    fn of_library(self) -> ChallengeType {
        match self {
            Self::Http01 => ChallengeType::Http01,
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
        }
    }
}

fn replacing<'a>(
    names: &'a [Identifier],
    profile: Option<&'a str>,
    old: &CertificateIdentifier<'static>,
) -> NewOrder<'a> {
    let new = NewOrder::new(names).replaces(old.clone());
    match profile {
        Some(profile) => new.profile(profile),
        None => new,
    }
}

fn external_account(settings: &AcmeSettings) -> Result<Option<ExternalAccountKey>, Failure> {
    let Some(external) = &settings.external_account else { return Ok(None) };
    let key = BASE64_URL_SAFE_NO_PAD.decode(external.hmac_key.trim_end_matches('=')).map_err(|error| {
        let what = format!("the key of `external_account` is not base64url: {error}");
        Failure::ours(OperatorError::new(what).remedy("copy it from the authority's page again"))
    })?;
    Ok(Some(ExternalAccountKey::new(external.key_id.clone(), &key)))
}

/// A new key and the request to certify it. A key is never used for a second certificate.
fn signing_request(names: &Names) -> Result<(KeyPair, Vec<u8>), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.all())?;
    params.distinguished_name = DistinguishedName::new();
    let csr = params.serialize_request(&key)?.der().to_vec();
    Ok((key, csr))
}

fn too_slow(what: &str) -> Failure {
    Failure {
        scope: crate::planner::FailureScope::Authority,
        ..Failure::ours(OperatorError::new(format!("the authority has not {what} within minutes")))
    }
}

/// The waits between looks at an order: five minutes in sum.
fn waits() -> impl Iterator<Item = Duration> {
    let first = [250, 500, 1000, 2000, 4000].map(Duration::from_millis);
    first.into_iter().chain(std::iter::repeat_n(Duration::from_secs(10), 30))
}

/// The longest `Retry-After` within an order that is followed.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
