//! A body as the blocks that a client sees.

/// Takes whole blocks out of what was read.
#[derive(Default)]
pub(super) struct Blocks(Vec<u8>);

impl Blocks {
    pub(super) fn push(&mut self, data: &[u8]) {
        self.0.extend_from_slice(data);
    }

    /// The next block, without its blank line. Comments are left out.
    pub(super) fn next(&mut self) -> Option<String> {
        loop {
            while self.0.starts_with(b":") {
                let end = self.0.iter().position(|byte| *byte == b'\n')?;
                self.0.drain(..=end);
            }
            let end = self.0.windows(2).position(|pair| pair == b"\n\n")?;
            let block = self.0.drain(..end + 2).take(end).collect();
            let block = String::from_utf8(block).unwrap_or_else(|_| "not UTF-8".to_owned());
            if !block.is_empty() {
                return Some(block);
            }
        }
    }

    /// Whether something is left that is no whole block.
    pub(super) fn is_torn(&self) -> bool {
        !self.0.is_empty()
    }
}
