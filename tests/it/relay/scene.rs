//! Some replicas with relays, over one Redis, in front of one mock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use streamweld_journal_redis::testing::{Server as Redis, Setup, until};
use streamweld_mock::{Ask, Dialect, FaultRelay, Mock, MockConfig, Script};
use streamweld_tests::{
    Block, CHAT, Client, Process, Response, blocks, numbered, patience, wait_seq,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Short, so that it is soon noticed that Redis is away.
const LEASE: Duration = Duration::from_secs(2);

/// A CA of replicas.
struct Ca {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("plain");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a CA");
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate for this machine and the key to it.
    fn issue(&self) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("an address");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        (certificate, key)
    }
}

pub(super) struct Scene {
    pub(super) mock: Mock,
    pub(super) redis: Redis,
    ca: Ca,
    script: Script,
}

/// One of the replicas.
pub(super) struct Replica {
    pub(super) process: Process,
    pub(super) client: Client,
    pub(super) admin: Client,
    pub(super) relay: SocketAddr,
    /// What the others reach its relay through.
    pub(super) way: FaultRelay,
}

impl Scene {
    /// Answers by this script, over a Redis that loses nothing when it is killed.
    pub(super) async fn new(script: Script) -> Self {
        let redis = Setup::new().append_only(streamweld_journal_redis::testing::Fsync::Always);
        Self::over(redis, script).await
    }

    pub(super) async fn over(redis: Setup, script: Script) -> Self {
        let config = MockConfig {
            default: script.clone(),
            ..MockConfig::default()
        };
        let redis = redis.start().await;
        let ca = Ca::new();
        let file = |name: &str, text: &str| {
            std::fs::write(redis.folder().join(name), text).expect("it is ours");
        };
        file("relay-ca.pem", &ca.certificate.pem());
        let (certificate, key) = ca.issue();
        file("relay.pem", &certificate.pem());
        file("relay.key", &key.serialize_pem());
        Self {
            mock: Mock::bind("127.0.0.1:0", config).await.expect("a port"),
            redis,
            ca,
            script,
        }
    }

    pub(super) async fn replica(&self) -> Replica {
        self.replica_with(&[]).await
    }

    pub(super) async fn replica_with(&self, more: &[&str]) -> Replica {
        self.replica_over(&self.redis.url(), more).await
    }

    pub(super) async fn replica_over(&self, redis: &str, more: &[&str]) -> Replica {
        // Nobody is there before the replica says where its relay listens.
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let way = FaultRelay::start(nowhere).await.expect("a port");
        let file = |name: &str| {
            let path = self.redis.folder().join(name);
            path.to_str().expect("plain").to_owned()
        };
        let arguments = [
            format!("--backend={}", self.mock.url()),
            format!("--journal={redis}"),
            format!("--presence-lease={}ms", LEASE.as_millis()),
            "--relay-listen=127.0.0.1:0".to_owned(),
            // Whoever waits in vain is to be seen.
            "--heartbeat=1h".to_owned(),
            format!("--relay-advertise={}", way.addr()),
            format!("--relay-ca={}", file("relay-ca.pem")),
            format!("--relay-cert={}", file("relay.pem")),
            format!("--relay-key={}", file("relay.key")),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut process = Process::serve(&[&arguments[..], more].concat());
        let client = process.client().await;
        let admin = process.admin().await;
        let output = process.output();
        let (_, relay) = output.split_once("relay listener on ").expect("one");
        let end = relay.find(|c: char| !matches!(c, '0'..='9' | '.' | ':'));
        let relay = relay[..end.unwrap_or(relay.len())]
            .parse()
            .expect("an address");
        way.set_target(relay);
        Replica {
            process,
            client,
            admin,
            relay,
            way,
        }
    }

    /// So many, all of which know where the others are.
    pub(super) async fn replicas<const COUNT: usize>(&self) -> [Replica; COUNT] {
        let mut replicas = Vec::new();
        for _ in 0..COUNT {
            replicas.push(self.replica().await);
        }
        self.acquainted(COUNT).await;
        let Ok(replicas) = replicas.try_into() else {
            panic!("there are {COUNT}")
        };
        replicas
    }

    /// Waits until each of so many knows where the others are.
    pub(super) async fn acquainted(&self, count: usize) {
        let relays = ["HLEN", "streamweld:{presence}:relays"];
        until("all have said where they are", async || {
            self.redis.cli(&relays).await == count.to_string()
        })
        .await;
        // Each reads the addresses behind a look; the one before the second look from now has seen them all.
        for _ in 0..2 {
            let before = self.signs().await;
            until("all have looked again", async || {
                let now = self.signs().await;
                let moved = |sign: &String| !before.contains(sign);
                now.len() >= count && now.iter().all(moved)
            })
            .await;
        }
    }

    /// Until when each replica is believed alive.
    async fn signs(&self) -> Vec<String> {
        let range = [
            "ZRANGE",
            "streamweld:{presence}:replicas",
            "0",
            "-1",
            "WITHSCORES",
        ];
        let said = self.redis.cli(&range).await;
        said.lines().skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// A connection to the relay of a replica, as another of them would make it.
    pub(super) async fn dial(&self, relay: SocketAddr) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        let ca = self.ca.certificate.der().clone();
        roots.add(ca).expect("a CA");
        let (certificate, key) = self.ca.issue();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("known")
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate.der().clone()], key.into())
            .expect("they belong together");
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(relay).await.expect("it listens");
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let connector = TlsConnector::from(Arc::new(config));
        connector
            .connect(name, stream)
            .await
            .expect("it is one of them")
    }

    /// What an uninterrupted reader is given.
    pub(super) fn whole(&self, id: &str) -> Vec<u8> {
        let ask = Ask::read(Dialect::OpenAiChat, CHAT.as_bytes(), 1);
        numbered(id, &self.script.expected(&ask))
    }
}

/// Begins an answer at one replica that stands still after `count` events, and reads it at another.
pub(super) async fn begin(
    one: &Client,
    other: &Client,
    count: usize,
) -> (String, Response, Response) {
    let mut here = one.durable_chat().await;
    let id = here.id();
    here.body.blocks(count).await;
    wait_seq(one, &id, count as u64 + 1).await;
    let mut there = other.events(&id).await;
    assert_eq!(there.status, 200);
    there.body.blocks(count).await;
    (id, here, there)
}

/// What was shown is `whole`: every event once and in its place, under its own id or under none. Gives how many had none.
#[track_caller]
pub(super) fn assert_shown(shown: &[u8], whole: &[u8]) -> usize {
    let (shown, whole) = (blocks(shown), blocks(whole));
    let without = |block: &Block| Block {
        id: None,
        ..block.clone()
    };
    let same: Vec<Block> = whole.iter().map(without).collect();
    let seen: Vec<Block> = shown.iter().map(without).collect();
    assert_eq!(seen, same);
    for (shown, whole) in shown.iter().zip(&whole) {
        assert!(shown.id.is_none() || shown.id == whole.id, "{shown:?}");
    }
    shown.iter().filter(|block| block.id.is_none()).count()
}

/// Whoever comes now is given `whole` under its ids.
pub(super) async fn assert_whole(client: &Client, id: &str, whole: &[u8]) {
    let (body, end) = patience(client.events(id)).await.all().await;
    assert_eq!(end, streamweld_tests::End::Proper);
    assert!(body == whole, "{}", String::from_utf8_lossy(&body));
}
