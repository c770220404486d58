//! What the SDKs are run against: a server of our own before a mock, or one that somebody else has started.
//!
//! With `STREAMWELD_TEST_URL=http://HOST:PORT` that is the deployment that is asked, and
//! `STREAMWELD_TEST_BACKEND_LISTEN=ADDRESS` is where its backend has to be: the mock listens there. The stories need
//! nothing else of it, no admin listener and no settings. They take turns then, since there is one backend.
//!
//! Each request of an application has a path of its own below which the mock plays what was prepared for it, so that
//! many can be under way and the application is changed in nothing but its base URL.

use std::env;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use streamweld_mock::{Mock, MockConfig, Request, Script};
use streamweld_tests::{Client, Harness, Setup};
use tokio::sync::{Mutex, MutexGuard};

use super::roster::Way;

/// A running deployment and the mock that is its backend.
pub(super) struct Deployment {
    place: Place,
    cases: AtomicUsize,
}

enum Place {
    Ours(Box<Harness>),
    Theirs {
        server: SocketAddr,
        mock: Mock,
        _turn: MutexGuard<'static, ()>,
    },
}

/// A request that is still to be made, and what the mock answers to it.
pub(super) struct Case {
    /// Also the name of its gate.
    pub(super) path: String,
}

/// So short that a story sees many.
const HEARTBEAT: Duration = Duration::from_millis(50);

impl Deployment {
    /// Starts one, or waits for its turn at the one that there is.
    pub(super) async fn start() -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let place = match env::var("STREAMWELD_TEST_URL") {
            Ok(url) => Place::Theirs {
                server: address(&url),
                _turn: TURN.lock().await,
                mock: mock().await,
            },
            Err(_) => Place::Ours(Box::new(
                Setup::new(elsewhere())
                    .config(|config| {
                        config.edge.heartbeat = HEARTBEAT;
                        // A repeat may be late on a busy machine.
                        config.generation.retry_join = Duration::from_secs(300);
                    })
                    .start()
                    .await,
            )),
        };
        Self {
            place,
            cases: AtomicUsize::new(0),
        }
    }

    /// Where it listens.
    pub(super) fn server(&self) -> SocketAddr {
        match &self.place {
            Place::Ours(harness) => harness.client.addr,
            Place::Theirs { server, .. } => *server,
        }
    }

    /// Its backend.
    pub(super) fn mock(&self) -> &Mock {
        match &self.place {
            Place::Ours(harness) => &harness.mock,
            Place::Theirs { mock, .. } => mock,
        }
    }

    /// Prepares the answer to a request in this way. `script` is told the name of the gate of this case.
    pub(super) fn case(&self, way: &Way, script: impl FnOnce(&str) -> Script) -> Case {
        let path = format!("/case-{}", self.cases.fetch_add(1, Ordering::Relaxed));
        let script = script(&path);
        self.mock()
            .set_script_at(format!("{path}{}", way.path), script);
        Case { path }
    }

    /// The requests of a case that reached the backend.
    pub(super) fn requests(&self, case: &Case) -> Vec<Request> {
        let below = format!("{}/", case.path);
        let mut requests = self.mock().recorder().requests();
        requests.retain(|request| request.target.starts_with(&below));
        requests
    }

    /// Waits until so many have.
    pub(super) async fn wait_requests(&self, case: &Case, count: usize) {
        let patient = self
            .mock()
            .recorder()
            .with_deadline(Duration::from_secs(120));
        patient
            .wait_until(|_| self.requests(case).len() >= count)
            .await
            .expect("the backend is asked");
    }

    /// A client with the credential of a case.
    pub(super) fn same_credential(&self, case: &Case) -> Client {
        let requests = self.requests(case);
        let request = requests.first().expect("it came");
        ["authorization", "x-api-key", "x-goog-api-key"]
            .iter()
            .filter_map(|name| Some((name, request.header(name)?)))
            .fold(Client::new(self.server()), |client, (name, value)| {
                client.with(name, value)
            })
    }
}

impl Case {
    /// The base URL of its application, which asks at this address.
    pub(super) fn at(&self, addr: SocketAddr) -> String {
        format!("http://{addr}{}", self.path)
    }
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://")
        .map(|rest| rest.trim_end_matches('/'))
        .and_then(|host| host.to_socket_addrs().ok()?.next())
        .unwrap_or_else(|| panic!("STREAMWELD_TEST_URL has to be http://HOST:PORT and not {url:?}"))
}

/// A request that goes where nothing was prepared must not look like an answer.
fn elsewhere() -> Script {
    Script::error(404)
}

async fn mock() -> Mock {
    let listen = env::var("STREAMWELD_TEST_BACKEND_LISTEN").unwrap_or_else(|_| {
        panic!("STREAMWELD_TEST_BACKEND_LISTEN has to say where the backend of that deployment is")
    });
    let config = MockConfig {
        default: elsewhere(),
        ..MockConfig::default()
    };
    Mock::bind(&*listen, config)
        .await
        .unwrap_or_else(|error| panic!("the mock cannot listen on {listen}: {error}"))
}
