//! Slots: the 16,384 parts into which a cluster divides all names.
//!
//! Whatever is asked of Redis is asked for a slot, also where one server has all of them, so that no call can forget
//! it.

use streamweld_journal::StreamId;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot(u16);

impl Slot {
    /// How many there are.
    pub(crate) const COUNT: usize = 1 << 14;

    /// That of a key or a sharded channel: of what stands in its first braces, if anything does, so that names can
    /// be made to lie together.
    pub(crate) fn of(name: &str) -> Self {
        let tag = name
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
            .map_or(name, |(tag, _)| if tag.is_empty() { name } else { tag });
        // A power of two, so the rest is the low bits.
        Self(crc16(tag.as_bytes()) % Self::COUNT as u16)
    }

    /// The one with this index, which is less than [`COUNT`](Self::COUNT).
    pub(crate) fn at(index: usize) -> Self {
        Self(index as u16)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// That of all keys of a generation: its id is their tag.
impl From<StreamId> for Slot {
    fn from(id: StreamId) -> Self {
        Self::of(&id.text())
    }
}

/// CRC-16/XMODEM: the polynomial 0x1021 and nothing else.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let at = (crc >> 8) ^ u16::from(*byte);
        (crc << 8) ^ TABLE[usize::from(at)]
    })
}

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let mut crc = (at as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_its_catalogue() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    /// As `CLUSTER KEYSLOT` says.
    #[test]
    fn slots_are_those_of_redis() {
        for (name, slot) in [("foo", 12182), ("bar", 5061), ("123456789", 12739), ("", 0)] {
            assert_eq!(Slot::of(name), Slot(slot), "{name}");
        }
    }

    #[test]
    fn the_first_braces_decide_unless_they_are_empty_or_open() {
        for (name, tag) in [
            ("{user1000}.following", "user1000"),
            ("a{foo}{bar}", "foo"),
            ("foo{{bar}}zap", "{bar"),
        ] {
            assert_eq!(Slot::of(name), Slot::of(tag), "{name}");
        }
        for name in ["foo{}{bar}", "foo{bar", "foo}bar", "}{"] {
            assert_eq!(
                Slot::of(name),
                Slot(crc16(name.as_bytes()) % 16384),
                "{name}"
            );
        }
    }

    #[test]
    fn a_generation_has_the_slot_of_its_keys() {
        let id = StreamId::parse("01arz3ndektsv4rrffq69g5fav").unwrap();
        let keys = crate::keys::Prefix::default().keys(id);
        for key in [&keys.log, &keys.meta, &keys.gone, &keys.readers, &keys.feed] {
            assert_eq!(Slot::of(key), Slot::from(id), "{key}");
        }
    }
}
