//! How backends are written: `URL[,OPTION…]`, several with white space between them (protocol.md 13).
//!
//! People write passwords into URLs, and the parser of the command line shows every value that it refuses. So it is told
//! of no fault here; [`Backends::each`] tells them, without the text.

use std::convert::Infallible;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::uri::PathAndQuery;
use streamweld_upstream::fleet::{Credential, Engine, Family, HealthCheck, Reach, Spec};
use streamweld_upstream::{BackendUrl, BackendUrlError};

use super::{backend_name, nearest};

/// What one flag or the variable says.
#[derive(Clone, Debug)]
pub(crate) struct Backends(Vec<Result<Listed, Fault>>);

/// One backend as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) url: BackendUrl,
    pub(crate) name: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) reach: Reach,
    engine: Engine,
    family: Option<Family>,
    weight: NonZeroU32,
    credential: Credential,
    health: HealthCheck,
}

/// What is wrong with one. Repeats nothing of its URL.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// With its URL.
    Url(BackendUrlError),
    /// With an option, in words.
    Option(String),
}

impl Backends {
    /// Each, if it was written well.
    pub(crate) fn each(&self) -> impl Iterator<Item = Result<&Listed, &Fault>> {
        self.0.iter().map(Result::as_ref)
    }
}

impl FromStr for Backends {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.split_whitespace().map(Listed::read).collect()))
    }
}

/// The options that there are.
const OPTIONS: [&str; 8] = [
    "credential-file",
    "dns",
    "engine",
    "family",
    "group",
    "health",
    "name",
    "weight",
];

impl Listed {
    fn read(text: &str) -> Result<Self, Fault> {
        let mut parts = text.split(',');
        let url = parts.next().unwrap_or_default();
        let url = url.parse().map_err(Fault::Url)?;
        let mut listed = Self {
            url,
            name: None,
            group: None,
            reach: Reach::Host,
            engine: Engine::Unknown,
            family: None,
            weight: NonZeroU32::MIN,
            credential: Credential::PassThrough,
            health: HealthCheck::Engine,
        };
        let (mut seen, mut credential) = (Vec::new(), None);
        for part in parts {
            let (option, value) = match part.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (part, None),
            };
            if seen.contains(&option) {
                return Err(fault(option, "stands twice; leave one of them out"));
            }
            match value {
                None => listed.switch(option)?,
                // It is shown as its family wants it, which may be said behind it.
                Some(file) if option == "credential-file" => credential = Some(PathBuf::from(file)),
                Some(value) => listed.set(option, value)?,
            }
            seen.push(option);
        }
        if let Some(file) = credential {
            listed.credential = read_credential(&file, listed.family())?;
        }
        Ok(listed)
    }

    /// An option without a value.
    fn switch(&mut self, option: &str) -> Result<(), Fault> {
        match option {
            "dns" => {
                self.reach = Reach::EveryAddress;
                Ok(())
            }
            option if OPTIONS.contains(&option) => Err(fault(
                option,
                &format!("has no value; write it as {option}=…"),
            )),
            option => Err(unknown(option)),
        }
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), Fault> {
        let bad = |why: &str| fault(option, &format!("is refused: {why}"));
        match option {
            "name" => self.name = Some(backend_name(value).map_err(|why| bad(&why))?),
            "group" => self.group = Some(backend_name(value).map_err(|why| bad(&why))?),
            "engine" => {
                let engine: Result<Engine, _> = value.parse();
                self.engine = engine.map_err(|why| bad(&why.to_string()))?;
            }
            "family" => {
                let mut families = FAMILIES.into_iter();
                let family = families.find(|family| family.as_str() == value);
                let why = "not a family; one of openai, anthropic, gemini, unknown";
                self.family = Some(family.ok_or_else(|| bad(why))?);
            }
            "weight" => {
                let weight = value.parse().ok();
                let weight = weight.filter(|weight: &NonZeroU32| weight.get() <= HEAVIEST);
                self.weight = weight.ok_or_else(|| bad("a weight is 1 to 1000"))?;
            }
            "health" => {
                let path = value.parse().ok();
                let path = path.filter(|path: &PathAndQuery| path.as_str().starts_with('/'));
                let why = "write a path that begins with `/`, or off";
                self.health = match value {
                    "off" => HealthCheck::Off,
                    _ => HealthCheck::Path(path.ok_or_else(|| bad(why))?),
                };
            }
            "dns" => return Err(fault(option, "takes no value; write it alone")),
            option => return Err(unknown(option)),
        }
        Ok(())
    }

    /// The dialects it is asked in.
    fn family(&self) -> Family {
        self.family.unwrap_or(self.engine.family())
    }

    /// What the fleet has to know, under this name where it has none of its own.
    pub(crate) fn spec(&self, name: &str) -> Spec {
        let name = self.name.as_deref().unwrap_or(name);
        Spec {
            reach: self.reach,
            family: self.family(),
            group: self.group.clone(),
            weight: self.weight,
            credential: self.credential.clone(),
            health: self.health.clone(),
            ..Spec::new(name, self.url.clone(), self.engine)
        }
    }
}

const FAMILIES: [Family; 4] = [
    Family::Openai,
    Family::Anthropic,
    Family::Gemini,
    Family::Unknown,
];
/// Only how weights compare counts.
const HEAVIEST: u32 = 1000;

fn read_credential(file: &Path, family: Family) -> Result<Credential, Fault> {
    Credential::from_file(file, family).map_err(|error| {
        // Which file, and why: neither is what is in it.
        let error = anyhow::Error::from(error);
        fault("credential-file", &format!("is refused: {error:#}"))
    })
}

fn fault(option: &str, what: &str) -> Fault {
    Fault::Option(format!("option `{option}` {what}"))
}

/// What is no word may be a part of the URL, in which people write passwords.
fn unknown(option: &str) -> Fault {
    let is_word = (1..=24).contains(&option.len())
        && option
            .bytes()
            .all(|c| c.is_ascii_lowercase() || b"-_".contains(&c));
    let known = "there are credential-file, dns, engine, family, group, health, name and weight; a comma in a URL \
                 is written %2C, and the next backend stands behind white space, or in a flag of its own";
    let nearest = nearest(option, OPTIONS);
    Fault::Option(match (is_word, nearest) {
        (true, Some(nearest)) => {
            format!("there is no option `{option}`; did you mean `{nearest}`?")
        }
        (true, None) => format!("there is no option `{option}`; {known}"),
        (false, _) => format!("something behind a comma is no option; {known}"),
    })
}
