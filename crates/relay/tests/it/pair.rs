//! What replicas have: certificates, generations, and a way to each other.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use streamweld_journal::{Epoch, Kind, Seq, StreamId, TerminalParts, Window, WindowConfig};
use streamweld_journal_redis::relay::{Answer, Ask, NoAnswer, Relay as _, Telling, Told};
use streamweld_relay::{Config, Files, Generations, Owned, Relay};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

pub(crate) async fn patience<F: Future>(future: F) -> F::Output {
    let waited = timeout(Duration::from_secs(30), future).await;
    waited.expect("it takes too long")
}

/// A CA, and a folder with what it has issued. It is gone with its handle.
pub(crate) struct Ca {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Ca {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("streamweld-relay-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let ca = Self {
            certificate,
            issuer: Issuer::new(params, key),
            folder,
        };
        ca.issue("127.0.0.1");
        ca
    }

    /// Puts a certificate for this name in place of the one that there was.
    pub(crate) fn issue(&self, name: &str) {
        self.issue_as(CertificateParams::new(vec![name.to_owned()]).unwrap());
    }

    /// The same with everything that a certificate may say.
    pub(crate) fn issue_as(&self, params: CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.put(
            &certificate.pem(),
            &key.serialize_pem(),
            &self.certificate.pem(),
        );
    }

    /// Puts there what another CA has issued.
    pub(crate) fn become_like(&self, other: &Self) {
        let read = |name: &str| std::fs::read_to_string(other.folder.join(name)).unwrap();
        self.put(&read("cert.pem"), &read("key.pem"), &read("ca.pem"));
    }

    pub(crate) fn put(&self, certificate: &str, key: &str, ca: &str) {
        for (name, text) in [("cert.pem", certificate), ("key.pem", key), ("ca.pem", ca)] {
            std::fs::write(self.folder.join(name), text).unwrap();
        }
    }

    pub(crate) fn files(&self) -> Files {
        let file = |name: &str| Path::new(&self.folder).join(name);
        Files {
            certificate: file("cert.pem"),
            key: file("key.pem"),
            ca: file("ca.pem"),
        }
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A replica that owns some generations.
pub(crate) struct Owner {
    pub(crate) relay: Relay,
    pub(crate) addr: SocketAddr,
    generations: Arc<Here>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Here(Mutex<HashMap<StreamId, Arc<Window>>>);

impl Generations for Here {
    fn owned(&self, id: StreamId) -> Option<Owned> {
        let window = self.0.lock().unwrap().get(&id).cloned()?;
        Some(Owned {
            window,
            access: [7; 32],
            hold: Box::new(()),
        })
    }
}

impl Owner {
    pub(crate) async fn new(ca: &Ca) -> Self {
        Self::with(ca, None, None).await
    }

    /// With another address to be reached by, or with a name that all have.
    pub(crate) async fn with(ca: &Ca, advertise: Option<String>, name: Option<&str>) -> Self {
        let bound = Relay::bind(Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise,
            name: name.map(str::to_owned),
            files: ca.files(),
        });
        let (relay, listener) = bound.await.unwrap();
        let addr = listener.addr().unwrap();
        let generations = Arc::new(Here::default());
        let told = Arc::clone(&generations) as Arc<dyn Generations>;
        let task = tokio::spawn(async move { match listener.run(told).await {} });
        Self {
            relay,
            addr,
            generations,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Begins a generation with so many entries, all of which stand.
    pub(crate) fn begin(&self, entries: u64) -> Arc<Window> {
        let id = StreamId::generate(SystemTime::now());
        let window = Window::new(id, Epoch::FIRST, SystemTime::now(), WindowConfig::default());
        for seq in 0..entries {
            stage(&window, if seq == 0 { Kind::Open } else { Kind::Event }, 20);
        }
        window.commit(window.received());
        let mut here = self.generations.0.lock().unwrap();
        here.insert(id, Arc::clone(&window));
        window
    }
}

pub(crate) fn stage(window: &Window, kind: Kind, len: usize) {
    window.stage(SystemTime::now()).push(kind, |out| {
        out.extend_from_slice(b"data: ");
        out.resize(out.len() + len, b'x');
        out.push(b'\n');
    });
}

pub(crate) fn end(window: &Window) {
    let terminal = TerminalParts {
        kind: Kind::Done,
        code: None,
        lines: b"event: streamweld.done\ndata: {}\n".to_vec(),
        ending: b"data: [DONE]\n\n".to_vec(),
        id_at: None,
    };
    window.stage_terminal(SystemTime::now(), terminal);
}

/// Asks, as a follower does that has everything through `after`.
pub(crate) async fn ask(
    relay: &Relay,
    address: &str,
    window: &Window,
    after: u64,
) -> Result<Answer, NoAnswer> {
    let ask = Ask {
        id: window.id(),
        after: Seq::new(after),
        writer: Some(window.epoch()),
    };
    patience(relay.ask(address, ask)).await
}

pub(crate) async fn next(telling: &mut Box<dyn Telling>) -> Option<Told> {
    patience(poll_fn(|cx| telling.poll_next(cx))).await
}
