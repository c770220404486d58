//! Unmodified client libraries in front of a server: what an application that knows nothing of the proxy sees.
//!
//! Each test runs small programs from `tests/clients/`, which use a library as its documentation shows and tell what
//! they saw. What the tests find out is written in `docs/clients.md`, and a test whose rows there say something else
//! fails. A story that only a raw socket can tell is told elsewhere.

mod application;
mod browser;
mod chromium;
mod compressed;
mod continued;
mod curl;
mod cuts;
mod deployment;
mod event_source;
mod event_source_client;
mod fetch_event_source;
mod fixtures;
mod pages;
mod program;
mod roster;
mod scene;
mod sdk_resume;
mod sdks;
mod seen;
mod streams;
mod told;

pub(crate) use self::chromium::TURN as BROWSER_TURN;
pub(crate) use self::program::command;
