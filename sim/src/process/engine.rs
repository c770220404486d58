//! An engine: the mock, which goes on by token ids as a vLLM does.

use std::time::Duration;

use streamweld_mock::{Engine as Kind, MockConfig, Recorder, Script, Service};

use super::ENGINE;
use crate::host::Host;
use crate::net::Port;

/// What every engine says.
pub const TEXT: &str = "A lighthouse keeper counts the ships that pass at night, and writes each of them down in a \
    book that nobody reads, until one evening a ship stops. Its captain asks for the book, and reads it aloud to \
    the crew: name by name, night by night, and some of them hear of ships on which their fathers sailed. When the \
    morning comes they leave the book on the stairs, with one more line in it, in another hand.";

/// A process.
pub struct Engine {
    service: Service,
}

impl Engine {
    /// Runs one on a host that takes so long for each event.
    pub fn run(host: &Host, port: Port, pace: Duration) -> Self {
        let script = Script::text(TEXT).engine(Kind::Vllm).pace(pace);
        let service = Service::new(MockConfig {
            default: script,
            ..MockConfig::default()
        });
        let this = Self {
            service: service.clone(),
        };
        host.run(async move {
            let listener = port.listen(ENGINE);
            loop {
                let (stream, service) = (listener.accept().await, service.clone());
                tokio::spawn(async move { service.serve(stream).await });
            }
        });
        this
    }

    /// What it was asked.
    pub fn recorder(&self) -> &Recorder {
        self.service.recorder()
    }
}
