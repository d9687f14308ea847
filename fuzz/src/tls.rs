//! TLS: a handshake judges any bytes the same in any pieces, and an established connection opens what the client sealed,
//! refuses what it did not, and never more than that.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use baton_tls::{
    FailureReason, HANDSHAKE_INPUT_BYTES_MAX, Handshake, Identity, Needs, Opened, OriginHandshake,
    OriginNeeds, OriginPolicy, OriginTlsError, PemFile, Protocol, RecordError, Records, Server, Site,
    TicketSecrets, Tickets, Trust, self_signed,
};
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion, RootCertStore,
    SupportedCipherSuite,
};

const NAME: &str = "fuzz.test";

/// Any bytes of a client.
pub fn handshake(input: &[u8]) {
    // Beyond it, the bound depends on how much comes at once.
    if input.len() > HANDSHAKE_INPUT_BYTES_MAX / 2 {
        return;
    }
    let whole = judge(input, input.len().max(1));
    assert_eq!(whole, judge(input, 1000));
    if input.len() < 4000 {
        assert_eq!(whole, judge(input, 1));
    }
}

/// How a handshake ends with these bytes; `None`: it waits for more.
fn judge(input: &[u8], bytes_at_once: usize) -> Option<FailureReason> {
    let mut handshake = Handshake::new(server());
    for piece in input.chunks(bytes_at_once) {
        handshake.feed(piece);
        loop {
            match handshake.poll() {
                Needs::Input => break,
                Needs::Work => handshake.work(),
                Needs::Nothing(_) => panic!("a client without the key cannot finish a handshake"),
                Needs::Failed(failure) => {
                    // An alert at the end of a flight.
                    assert!(handshake.take_output().len() < 16 * 1024);
                    return Some(failure.reason);
                }
            }
        }
    }
    None
}

/// Any bytes of an origin, to which a handshake has begun.
pub fn origin(input: &[u8]) {
    if input.len() > HANDSHAKE_INPUT_BYTES_MAX / 2 {
        return;
    }
    let whole = judge_origin(input, input.len().max(1));
    assert_eq!(whole, judge_origin(input, 1000));
    if input.len() < 4000 {
        assert_eq!(whole, judge_origin(input, 1));
    }
}

/// How a handshake with an origin ends with these bytes; `None`: it waits for more.
fn judge_origin(input: &[u8], bytes_at_once: usize) -> Option<OriginTlsError> {
    static POLICY: OnceLock<OriginPolicy> = OnceLock::new();
    let policy = POLICY.get_or_init(|| OriginPolicy::new(NAME, Trust::Anything, None).expect("a name"));
    let mut handshake = OriginHandshake::new(policy);
    for piece in input.chunks(bytes_at_once) {
        handshake.feed(piece);
        match handshake.poll() {
            OriginNeeds::Input => {}
            OriginNeeds::Nothing(_) => panic!("no input has a key"),
            OriginNeeds::Failed(trouble) => {
                assert!(handshake.take_output().len() < 16 * 1024);
                return Some(trouble);
            }
        }
    }
    None
}

/// What a client with keys sends. The first byte chooses the suite; then come steps of a type, two bytes of length and
/// content: 21 to 23 are records of that type, others change a bit in what follows or go out as they are.
pub fn records(input: &[u8]) {
    let Some((suite, mut steps)) = input.split_first() else { return };
    let suite =
        [TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]
            [usize::from(*suite) % 3];
    let (mut records, mut key) = connect(suite);
    let mut expected = Vec::new();
    let mut sent = Vec::new();
    // Whether everything so far must be accepted.
    let mut is_good = true;
    while let [kind, high, low, rest @ ..] = steps {
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len()).min(1 << 14);
        let (content, rest) = rest.split_at(len);
        steps = rest;
        if (21..=23).contains(kind) {
            sent.extend(key.seal(ContentType::from(*kind), content));
            is_good &= *kind == 23 && !content.is_empty();
            if is_good {
                expected.extend_from_slice(content);
            }
        } else {
            is_good = false;
            sent.extend_from_slice(content);
        }
    }
    let mut opened = Vec::new();
    let end = open_all(&mut records, &mut sent, &mut opened);
    assert!(opened.starts_with(&expected), "what was sealed is opened");
    if is_good {
        assert_eq!((opened.len(), end), (expected.len(), Ok(())));
    }
    if end.is_ok() {
        // Whatever came in, the server can still seal.
        let mut out = [0; 1000];
        let sealed = records.seal(&[b"answer"], 0, &mut out).unwrap();
        assert!(sealed.taken == 6 && sealed.written <= 100);
    }
}

fn open_all(records: &mut Records, sent: &mut [u8], opened: &mut Vec<u8>) -> Result<(), RecordError> {
    let mut at = 0;
    loop {
        let left = sent.len() - at;
        match records.open(&mut sent[at..])? {
            Opened::Data { data, consumed } => {
                assert!(!data.is_empty() && data.end <= consumed && consumed <= left);
                opened.extend_from_slice(&sent[at..][data]);
                at += consumed;
            }
            Opened::Control { consumed } => {
                assert!((1..=left).contains(&consumed));
                at += consumed;
            }
            Opened::Part | Opened::End => return Ok(()),
        }
    }
}

/// The client's key.
struct Key {
    suite: SupportedCipherSuite,
    key: [u8; 32],
    iv: [u8; 12],
    sequence: u64,
}

impl Key {
    fn seal(&mut self, typ: ContentType, content: &[u8]) -> Vec<u8> {
        let payload = OutboundChunks::Single(content);
        let message = OutboundPlainMessage { typ, version: ProtocolVersion::TLSv1_2, payload };
        let sealed = self.encrypter().encrypt(message, self.sequence).unwrap();
        self.sequence += 1;
        sealed.encode()
    }

    /// A new one for each record: one that began in the middle would take later numbers for repeated ones.
    fn encrypter(&self) -> Box<dyn MessageEncrypter> {
        match self.suite {
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(self.key.into(), self.iv.into()),
            SupportedCipherSuite::Tls12(suite) => {
                suite.aead_alg.encrypter(self.key.into(), &self.iv[..4], &self.iv[4..])
            }
        }
    }
}

fn connect(suite: SupportedCipherSuite) -> (Box<Records>, Key) {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites = vec![suite];
    let mut trusted = RootCertStore::empty();
    trusted.add(CertificateDer::from_pem_slice(pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(provider));
    let config = config.with_protocol_versions(&[suite.version()]).unwrap();
    let mut config = config.with_root_certificates(trusted).with_no_client_auth();
    config.enable_secret_extraction = true;
    let name = ServerName::try_from(NAME).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut handshake = Handshake::new(server());
    let established = loop {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        handshake.feed(&bytes);
        let mut needs = handshake.poll();
        while matches!(needs, Needs::Work) {
            handshake.work();
            needs = handshake.poll();
        }
        let answer = handshake.take_output();
        let mut answer = &answer[..];
        while !answer.is_empty() {
            client.read_tls(&mut answer).unwrap();
            client.process_new_packets().unwrap();
        }
        match needs {
            Needs::Nothing(established) => break established,
            Needs::Input => {}
            other => panic!("{other:?}"),
        }
    };
    let (sequence, secrets) = client.dangerous_extract_secrets().unwrap().tx;
    let (key, iv) = match &secrets {
        ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key.as_ref(), iv.as_ref()),
        _ => unreachable!("no such suite is offered"),
    };
    let key = Key { suite, key: key.try_into().unwrap(), iv: iv.try_into().unwrap(), sequence };
    (Box::new(established.records), key)
}

fn pem() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| self_signed(&[NAME.into()], SystemTime::now()).unwrap().to_string())
}

fn server() -> Arc<Server> {
    static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
    let make = || {
        let file = PemFile::new("fuzz", pem().as_bytes().to_vec());
        let identities = vec![Arc::new(Identity::load(&file, &file).unwrap())];
        let site = Site { hosts: vec![NAME.into()], identities, clients: None };
        let tickets = Arc::new(Tickets::new(TicketSecrets::draw().unwrap()));
        Arc::new(Server::new(vec![site], &[Protocol::Http11], &tickets).unwrap())
    };
    Arc::clone(SERVER.get_or_init(make))
}
