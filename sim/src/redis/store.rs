//! The data, and what each command does to it.

use std::collections::{BTreeMap, BTreeSet};
use std::str;

use bytes::Bytes;

use super::broken::Broken;
use super::reply::Reply;
use super::stream::Stream;

/// See the module. Time, in milliseconds since 1970, is an argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    keys: BTreeMap<Bytes, Key>,
    /// A rule that no Redis leaves out.
    broken: Option<Broken>,
    /// How many there were, for who forgets some of them.
    appends: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Key {
    value: Value,
    expires: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(Bytes),
    Hash(BTreeMap<Bytes, Bytes>),
    Set(BTreeSet<Bytes>),
    Scores(BTreeMap<Bytes, f64>),
    Stream(Stream),
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Gives the value of a key of one kind: absent, of that kind, or an error.
macro_rules! of_kind {
    ($self:ident, $key:expr, $kind:ident) => {
        match $self.keys.get_mut($key).map(|key| &mut key.value) {
            None => None,
            Some(Value::$kind(value)) => Some(value),
            Some(_) => return Reply::error(WRONG_TYPE),
        }
    };
}

/// The same, made where it is absent.
macro_rules! made {
    ($self:ident, $key:expr, $kind:ident) => {{
        let key = $self.keys.entry($key.clone()).or_insert_with(|| Key {
            value: Value::$kind(Default::default()),
            expires: None,
        });
        match &mut key.value {
            Value::$kind(value) => value,
            _ => return Reply::error(WRONG_TYPE),
        }
    }};
}

impl Store {
    pub(super) fn break_rule(&mut self, rule: Option<Broken>) {
        self.broken = rule;
    }

    /// Whether a command changes anything.
    pub fn is_write(name: &str) -> bool {
        matches!(
            name,
            "DEL" | "HSET" | "PEXPIRE" | "SADD" | "SET" | "SREM" | "XADD" | "ZADD" | "ZREM"
        )
    }

    /// Carries a command out.
    pub fn call(&mut self, now: u64, words: &[Bytes]) -> Reply {
        let Some((name, args)) = words.split_first() else {
            return Reply::error("ERR empty command");
        };
        let name = String::from_utf8_lossy(name).to_ascii_uppercase();
        self.expire(now);
        match (&*name, args) {
            ("TIME", []) => Reply::Array(vec![
                Reply::text((now / 1000).to_string()),
                Reply::text((now % 1000 * 1000).to_string()),
            ]),
            ("DEL", keys @ [_, ..]) => Reply::Int(
                keys.iter()
                    .filter(|key| self.keys.remove(*key).is_some())
                    .count() as i64,
            ),
            ("EXISTS", keys @ [_, ..]) => Reply::Int(
                keys.iter()
                    .filter(|key| self.keys.contains_key(*key))
                    .count() as i64,
            ),
            ("PEXPIRE", [key, after]) => self.expire_after(now, key, after),
            ("PTTL", [key]) => Reply::Int(match self.keys.get(key) {
                None => -2,
                Some(key) => key.expires.map_or(-1, |at| (at - now) as i64),
            }),
            ("GET", [key]) => {
                of_kind!(self, key, Text).map_or(Reply::Nil, |text| Reply::Bulk(text.clone()))
            }
            ("SET", [key, value, options @ ..]) => self.set(now, key, value, options),
            ("HSET", [key, pairs @ ..]) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
                let hash = made!(self, key, Hash);
                let added = pairs
                    .chunks(2)
                    .filter(|pair| hash.insert(pair[0].clone(), pair[1].clone()).is_none());
                Reply::Int(added.count() as i64)
            }
            ("HGET", [key, field]) => {
                let hash = of_kind!(self, key, Hash);
                hash.and_then(|hash| hash.get(field))
                    .map_or(Reply::Nil, |value| Reply::Bulk(value.clone()))
            }
            ("HMGET", [key, fields @ ..]) if !fields.is_empty() => {
                let hash = of_kind!(self, key, Hash);
                let value = |field| hash.as_ref()?.get(field).cloned();
                Reply::Array(
                    fields
                        .iter()
                        .map(|field| value(field).map_or(Reply::Nil, Reply::Bulk))
                        .collect(),
                )
            }
            ("SADD", [key, members @ ..]) if !members.is_empty() => {
                let set = made!(self, key, Set);
                Reply::Int(
                    members
                        .iter()
                        .filter(|member| set.insert((*member).clone()))
                        .count() as i64,
                )
            }
            ("SREM", [key, members @ ..]) if !members.is_empty() => {
                let removed = of_kind!(self, key, Set).map_or(0, |set| {
                    members.iter().filter(|member| set.remove(*member)).count()
                });
                self.tidy(key);
                Reply::Int(removed as i64)
            }
            ("SMEMBERS", [key]) => {
                let set = of_kind!(self, key, Set);
                Reply::Set(
                    set.iter()
                        .flat_map(|set| set.iter())
                        .cloned()
                        .map(Reply::Bulk)
                        .collect(),
                )
            }
            ("ZADD", [key, options @ .., score, member]) => {
                self.add_score(key, options, score, member)
            }
            ("ZREM", [key, members @ ..]) if !members.is_empty() => {
                let removed = of_kind!(self, key, Scores).map_or(0, |scores| {
                    members
                        .iter()
                        .filter(|member| scores.remove(*member).is_some())
                        .count()
                });
                self.tidy(key);
                Reply::Int(removed as i64)
            }
            ("ZSCORE", [key, member]) => {
                let scores = of_kind!(self, key, Scores);
                scores
                    .and_then(|scores| scores.get(member))
                    .map_or(Reply::Nil, |score| Reply::Double(*score))
            }
            ("ZRANGEBYSCORE", [key, low, high]) => self.by_score(key, low, high),
            ("XADD", [key, flag, id, fields @ ..]) if flag.eq_ignore_ascii_case(b"NOMKSTREAM") => {
                if !self.keys.contains_key(key) {
                    return Reply::Nil;
                }
                self.appends += 1;
                if self.broken == Some(Broken::AnswersAreTrue) && self.appends % 32 == 0 {
                    return Reply::Bulk(id.clone());
                }
                let in_order = self.broken != Some(Broken::AppendsAreOrdered);
                add(made!(self, key, Stream), id, fields, in_order)
            }
            ("XADD", [key, id, fields @ ..]) => {
                let is_new = !self.keys.contains_key(key);
                let reply = add(made!(self, key, Stream), id, fields, true);
                if is_new && reply.is_error() {
                    self.keys.remove(key);
                }
                reply
            }
            ("XRANGE", [key, low, high, count @ ..]) => self.range(key, low, high, false, count),
            ("XREVRANGE", [key, high, low, count @ ..]) => self.range(key, low, high, true, count),
            _ => Reply::error(format!(
                "ERR unknown command, or its arguments are not known here: {name}"
            )),
        }
    }

    /// Puts away what has expired.
    fn expire(&mut self, now: u64) {
        self.keys
            .retain(|_, key| key.expires.is_none_or(|at| at > now));
    }

    /// An empty collection is no key.
    fn tidy(&mut self, key: &Bytes) {
        let is_empty = match self.keys.get(key).map(|key| &key.value) {
            Some(Value::Set(set)) => set.is_empty(),
            Some(Value::Scores(scores)) => scores.is_empty(),
            _ => false,
        };
        if is_empty {
            self.keys.remove(key);
        }
    }

    fn expire_after(&mut self, now: u64, key: &Bytes, after: &Bytes) -> Reply {
        let Some(after) = read::<i64>(after) else {
            return Reply::error("ERR value is not an integer or out of range");
        };
        let Some(found) = self.keys.get_mut(key) else {
            return Reply::Int(0);
        };
        if after <= 0 {
            self.keys.remove(key);
        } else {
            found.expires = Some(now + after.unsigned_abs());
        }
        Reply::Int(1)
    }

    fn set(&mut self, now: u64, key: &Bytes, value: &Bytes, options: &[Bytes]) -> Reply {
        let expires = match options {
            [] => None,
            [unit, after] if unit.eq_ignore_ascii_case(b"PX") => match read::<u64>(after) {
                Some(after @ 1..) => Some(now + after),
                _ => return Reply::error("ERR invalid expire time in 'set' command"),
            },
            _ => return Reply::error("ERR syntax error"),
        };
        let value = Value::Text(value.clone());
        self.keys.insert(key.clone(), Key { value, expires });
        Reply::Line("OK")
    }

    fn add_score(
        &mut self,
        key: &Bytes,
        options: &[Bytes],
        score: &Bytes,
        member: &Bytes,
    ) -> Reply {
        let Some(score) = read::<f64>(score) else {
            return Reply::error("ERR value is not a valid float");
        };
        let (new, old) = match options {
            [] => (true, true),
            [option] if option.eq_ignore_ascii_case(b"NX") => (true, false),
            [option] if option.eq_ignore_ascii_case(b"XX") => (false, true),
            _ => return Reply::error("ERR syntax error"),
        };
        let is_there =
            of_kind!(self, key, Scores).is_some_and(|scores| scores.contains_key(member));
        if (is_there && old) || (!is_there && new) {
            made!(self, key, Scores).insert(member.clone(), score);
        }
        Reply::Int(i64::from(!is_there && new))
    }

    fn by_score(&mut self, key: &Bytes, low: &Bytes, high: &Bytes) -> Reply {
        let (Some(low), Some(high)) = (limit(low), limit(high)) else {
            return Reply::error("ERR min or max is not a float");
        };
        let scores = of_kind!(self, key, Scores);
        let is_within = |score: f64| {
            (if low.1 { score > low.0 } else { score >= low.0 })
                && (if high.1 {
                    score < high.0
                } else {
                    score <= high.0
                })
        };
        let all = scores.into_iter().flatten();
        let mut found: Vec<_> = all.filter(|(_, score)| is_within(**score)).collect();
        found.sort_by(|one, other| one.1.total_cmp(other.1).then(one.0.cmp(other.0)));
        Reply::Array(
            found
                .into_iter()
                .map(|(member, _)| Reply::Bulk(member.clone()))
                .collect(),
        )
    }

    fn range(
        &mut self,
        key: &Bytes,
        low: &Bytes,
        high: &Bytes,
        is_reverse: bool,
        count: &[Bytes],
    ) -> Reply {
        let count = match count {
            [] => usize::MAX,
            [word, count] if word.eq_ignore_ascii_case(b"COUNT") => match read(count) {
                Some(count) => count,
                None => return Reply::error("ERR value is not an integer or out of range"),
            },
            _ => return Reply::error("ERR syntax error"),
        };
        match of_kind!(self, key, Stream) {
            Some(stream) => stream.range(low, high, is_reverse, count),
            None => Reply::Array(Vec::new()),
        }
    }
}

fn add(stream: &mut Stream, id: &Bytes, fields: &[Bytes], in_order: bool) -> Reply {
    if fields.is_empty() || fields.len() % 2 != 0 {
        return Reply::error("ERR wrong number of arguments for 'xadd' command");
    }
    stream.add(id, fields, in_order)
}

fn read<T: str::FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// A limit of a range, and whether it is outside of it.
fn limit(text: &[u8]) -> Option<(f64, bool)> {
    match text.strip_prefix(b"(") {
        Some(text) => Some((read(text)?, true)),
        None => Some((read(text)?, false)),
    }
}
