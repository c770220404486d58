//! Reading what the server wrote, by the output profile and nothing more lenient.

/// One block as it stood on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The value of its `event:` line.
    pub event: Option<String>,
    /// Its data lines, joined with LF.
    pub data: Option<String>,
    /// The value of its `id:` line.
    pub id: Option<String>,
    /// The value of its `retry:` line.
    pub retry: Option<String>,
    /// A line that is no field but JSON: how an error looks to plain readers of Gemini.
    pub bare: Option<String>,
}

impl Block {
    /// The sequence in its id.
    ///
    /// # Panics
    /// When it has none.
    #[must_use]
    pub fn seq(&self) -> u64 {
        let id = self.id.as_deref().expect("a block with an id");
        id.split_once(':')
            .and_then(|(_, seq)| seq.parse().ok())
            .expect("an id of ours")
    }
}

/// Every block in `bytes`, which must keep to the output profile (protocol.md 5) to the letter; heartbeats between
/// blocks are allowed and left out.
///
/// # Panics
/// When it does not.
#[must_use]
#[track_caller]
pub fn blocks(bytes: &[u8]) -> Vec<Block> {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    assert!(!text.contains('\r'), "a CR on the wire");
    assert!(
        text.is_empty() || text.ends_with("\n\n") || text.ends_with("\n:\n") || text == ":\n",
        "a torn end: {text:?}"
    );
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').expect("ends with LF");
        match (&mut open, line) {
            (None, ":") => {}
            (None, "") => panic!("a blank line that closes nothing"),
            (Some(block), "") => {
                assert!(
                    block.data.is_some() || block.bare.is_some(),
                    "a block without data"
                );
                blocks.extend(open.take());
            }
            (None, line) if line.starts_with("{\"error\":") => {
                open = Some(Block {
                    bare: Some(line.to_owned()),
                    ..Block::default()
                });
            }
            (_, line) => {
                let (name, value) = line
                    .split_once(": ")
                    .unwrap_or_else(|| panic!("not `field: value`: {line:?}"));
                let block = open.get_or_insert_default();
                assert!(block.bare.is_none(), "{line:?} beside JSON");
                assert!(block.id.is_none(), "{line:?} after the id");
                match name {
                    "event" => assert!(
                        block.event.replace(value.to_owned()).is_none() && block.data.is_none()
                    ),
                    "data" => match &mut block.data {
                        Some(data) => {
                            data.push('\n');
                            data.push_str(value);
                        }
                        None => block.data = Some(value.to_owned()),
                    },
                    "retry" => assert!(block.retry.replace(value.to_owned()).is_none()),
                    "id" => block.id = Some(value.to_owned()),
                    other => panic!("a field named {other:?}"),
                }
            }
        }
    }
    assert!(open.is_none(), "an unfinished block");
    blocks
}

/// The data of every block.
#[must_use]
#[track_caller]
pub fn events(bytes: &[u8]) -> Vec<String> {
    blocks(bytes)
        .into_iter()
        .filter_map(|block| block.data)
        .collect()
}

/// The text that chat chunks carry, joined.
#[must_use]
#[track_caller]
pub fn texts(bytes: &[u8]) -> String {
    events(bytes)
        .iter()
        .filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok())
        .filter_map(|chunk| {
            chunk["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect()
}
