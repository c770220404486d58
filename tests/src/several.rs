//! A server in front of several mocks.

use streamweld_generation::HealBounds;
use streamweld_mock::{Mock, MockConfig, Script};
use streamweld_server::Config;
use streamweld_upstream::fleet::{Engine, Spec};

use crate::harness::Replica;

/// Several backends, and a server in front of them. All end with it.
pub struct Several {
    /// The backends, named `a`, `b` and so on.
    pub mocks: Vec<Mock>,
    /// The server.
    pub replica: Replica,
}

impl Several {
    /// A backend for each script, all of them of `engine` and in one group.
    ///
    /// # Panics
    /// When a port cannot be had.
    pub async fn start(
        engine: Engine,
        scripts: Vec<Script>,
        change: impl FnOnce(&mut Config) + Send,
    ) -> Self {
        let mut mocks = Vec::new();
        for script in scripts {
            let config = MockConfig {
                default: script,
                ..MockConfig::default()
            };
            let mock = Mock::bind("127.0.0.1:0", config);
            mocks.push(mock.await.expect("a port for the mock"));
        }
        let specs = mocks.iter().zip('a'..).map(|(mock, name)| {
            let url = mock.url().parse().expect("the mock has a plain URL");
            Spec {
                group: Some("twins".to_owned()),
                ..Spec::new(name, url, engine)
            }
        });
        let specs: Vec<_> = specs.collect();
        let change = |config: &mut Config| {
            config.backends = specs;
            // Their scripts are for the requests of the story alone.
            config.migration.vouched.insert("twins".to_owned());
            change(config);
        };
        let replica = Replica::start(&mocks[0], change, None, HealBounds::default()).await;
        Self { mocks, replica }
    }
}
