//! Which engine a backend is, by its own words, and what it serves.

use sha2::{Digest, Sha256};
use streamweld_dialect::{Description, Engine, MODELS, Served};

use super::ask::{Asker, NotExamined, Untold};

/// What a backend says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The engine. None where its words do not agree, or name none that is known here.
    pub engine: Option<Engine>,
    /// What shows that, for people.
    pub evidence: String,
    /// What it says of itself besides. Empty without an engine.
    pub description: Description,
    /// The names of the models that it lists.
    pub models: Vec<String>,
    /// The one that was asked for, or the first. None if it does not list it.
    pub model: Option<Served>,
}

/// Asks a backend for the models, and then as the engine that these name.
pub(super) async fn ask(asker: &Asker<'_>, model: Option<&str>) -> Result<Identity, NotExamined> {
    let told = asker.get(MODELS).await.and_then(|body| {
        let served = Served::list(&body).filter(|served| !served.is_empty());
        served.ok_or(Untold::NotUnderstood)
    });
    let served = told.map_err(|untold| asker.failed(untold))?;
    let models = served.iter().map(|served| served.name.clone()).collect();
    let first = served[0].owner.clone();
    let model = match model {
        None => served.into_iter().next(),
        Some(name) => served.into_iter().find(|served| served.name == name),
    };
    let owner = model.as_ref().map_or(first, |model| model.owner.clone());
    let words = words(asker, owner.as_deref());
    let words = words.await.map_err(|untold| asker.failed(untold))?;
    Ok(Identity {
        engine: words.engine,
        evidence: words.evidence,
        description: words.description,
        models,
        model,
    })
}

struct Words {
    engine: Option<Engine>,
    evidence: String,
    description: Description,
}

impl Words {
    fn none(evidence: String) -> Self {
        Self {
            engine: None,
            evidence,
            description: Description::default(),
        }
    }
}

async fn words(asker: &Asker<'_>, owner: Option<&str>) -> Result<Words, Untold> {
    let owner = owner.unwrap_or("nobody");
    let Some(engine) = Engine::by_owner(owner) else {
        let evidence =
            format!("{MODELS} names {owner:?} as the owner, which is no engine known here");
        return Ok(Words::none(evidence));
    };
    for path in engine.description_paths() {
        let body = match asker.get(path).await {
            Ok(body) => body,
            Err(untold) if untold.may_pass() => return Err(untold),
            Err(_) => continue,
        };
        if let Some(description) = engine.describe(&body) {
            let version = description.version.as_deref().unwrap_or_default();
            return Ok(Words {
                engine: Some(engine),
                evidence: format!(
                    "{MODELS} names {owner:?} as the owner, {path} version {version:?}"
                ),
                description,
            });
        }
    }
    let paths = engine.description_paths().join(" and ");
    Ok(Words::none(format!(
        "{MODELS} names {owner:?} as the owner, but {paths} is not as of {engine}"
    )))
}

impl Identity {
    /// Thirty-two digits that change when anything does that the backend tells of itself and of its model.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        // Each with its length, so that no two lists are one text.
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        add(self.engine.map_or("", Engine::as_str));
        let Description {
            version,
            context,
            weights,
            settings,
        } = &self.description;
        add(version.as_deref().unwrap_or_default());
        add(&format!("{context:?}"));
        for (name, value) in weights.iter().chain(settings) {
            add(name);
            add(value);
        }
        match &self.model {
            None => self.models.iter().for_each(|name| add(name)),
            Some(Served {
                name,
                owner,
                root,
                context,
                weights,
            }) => {
                add(name);
                add(owner.as_deref().unwrap_or_default());
                add(root.as_deref().unwrap_or_default());
                add(&format!("{context:?}"));
                for (name, value) in weights {
                    add(name);
                    add(value);
                }
            }
        }
        hex(&hash.finalize())
    }

    /// The most tokens of a prompt with its answer: the least of what it says.
    #[must_use]
    pub fn context(&self) -> Option<u64> {
        let model = self.model.as_ref().and_then(|model| model.context);
        let server = self.description.context;
        model.into_iter().chain(server).min()
    }

    /// What it tells of the weights, by name.
    pub(super) fn weights(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let model = self.model.iter().flat_map(|model| &model.weights);
        let told = model.chain(&self.description.weights);
        told.map(|(&name, value)| (name, value.as_str()))
    }
}

/// The first half of a digest.
pub(super) fn hex(hash: &[u8]) -> String {
    let bytes = hash.iter().take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            engine: Some(Engine::LlamaCpp),
            evidence: "it says so".to_owned(),
            description: Description {
                version: Some("b1".to_owned()),
                context: Some(2048),
                settings: [("chat_template", "x".to_owned())].into(),
                ..Description::default()
            },
            models: vec!["m".to_owned()],
            model: Some(Served {
                name: "m".to_owned(),
                owner: Some("llamacpp".to_owned()),
                root: None,
                context: Some(4096),
                weights: [("ftype", "Q4_1".to_owned())].into(),
            }),
        }
    }

    #[test]
    fn the_digest_is_of_what_is_told_and_of_nothing_else() {
        let one = identity();
        assert_eq!(one.digest().len(), 32);
        let mut same = identity();
        same.evidence = "in other words".to_owned();
        same.models.push("an adapter".to_owned());
        assert_eq!(one.digest(), same.digest());
        let changes: [fn(&mut Identity); 6] = [
            |it| it.engine = Some(Engine::Vllm),
            |it| it.description.version = None,
            |it| it.description.context = None,
            |it| it.description.settings.clear(),
            |it| it.model = None,
            |it| it.model.as_mut().unwrap().root = Some("m".to_owned()),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = identity();
            change(&mut other);
            assert_ne!(one.digest(), other.digest(), "{number}");
        }
    }

    #[test]
    fn of_two_limits_the_lower_one_holds() {
        assert_eq!(identity().context(), Some(2048));
    }
}
