//! Scripts, in the Lua that Redis has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mlua::{Function, IntoLua, Lua, MultiValue, Table, Value};

use super::reply::Reply;
use super::store::Store;

/// What a script did: its changes as commands, and what it published.
#[derive(Default)]
pub(super) struct Deeds {
    pub(super) writes: Vec<Vec<Bytes>>,
    pub(super) published: Vec<(Bytes, Bytes)>,
}

/// What `redis.call` reaches.
struct Scene {
    store: Arc<Mutex<Store>>,
    now: u64,
    deeds: Deeds,
}

/// An interpreter over a store.
pub(super) struct Scripts {
    lua: Lua,
    scene: Arc<Mutex<Scene>>,
}

impl Scripts {
    pub(super) fn over(store: Arc<Mutex<Store>>) -> Self {
        let scene = Arc::new(Mutex::new(Scene {
            store,
            now: 0,
            deeds: Deeds::default(),
        }));
        let lua = Lua::new();
        install(&lua, &scene).expect("a table with two functions");
        Self { lua, scene }
    }

    /// Runs a script.
    pub(super) fn run(
        &self,
        now: u64,
        text: &[u8],
        keys: &[Bytes],
        args: &[Bytes],
    ) -> (Reply, Deeds) {
        lock(&self.scene).now = now;
        let reply = self.evaluate(text, keys, args);
        let deeds = std::mem::take(&mut lock(&self.scene).deeds);
        let reply = reply.unwrap_or_else(|error| match raised(&error) {
            Some(error) => Reply::Error(error),
            None => Reply::error(format!(
                "ERR {}",
                error.to_string().replace(['\r', '\n'], " ")
            )),
        });
        (reply, deeds)
    }

    fn evaluate(&self, text: &[u8], keys: &[Bytes], args: &[Bytes]) -> mlua::Result<Reply> {
        let list = |words: &[Bytes]| {
            let words = words.iter().map(|word| self.lua.create_string(word));
            self.lua
                .create_sequence_from(words.collect::<mlua::Result<Vec<_>>>()?)
        };
        let globals = self.lua.globals();
        globals.set("KEYS", list(keys)?)?;
        globals.set("ARGV", list(args)?)?;
        let value: Value = self.lua.load(text).eval()?;
        reply(value)
    }
}

fn install(lua: &Lua, scene: &Arc<Mutex<Scene>>) -> mlua::Result<()> {
    let redis = lua.create_table()?;
    let call = |is_protected: bool| -> mlua::Result<Function> {
        let scene = Arc::clone(scene);
        lua.create_function(move |lua, words: MultiValue| {
            let words = words.iter().map(word).collect::<mlua::Result<Vec<_>>>()?;
            let reply = lock(&scene).call(words);
            match reply {
                Reply::Error(error) if !is_protected => Err(mlua::Error::external(Raised(error))),
                reply => value(lua, reply),
            }
        })
    };
    redis.set("call", call(false)?)?;
    redis.set("pcall", call(true)?)?;
    lua.globals().set("redis", redis)
}

impl Scene {
    fn call(&mut self, words: Vec<Bytes>) -> Reply {
        let name = words
            .first()
            .map(|name| String::from_utf8_lossy(name).to_ascii_uppercase());
        let name = name.unwrap_or_default();
        if let ("PUBLISH" | "SPUBLISH", [_, channel, message]) = (&*name, &words[..]) {
            self.deeds
                .published
                .push((channel.clone(), message.clone()));
            return Reply::Int(0);
        }
        let reply = lock(&self.store).call(self.now, &words);
        if Store::is_write(&name) && !reply.is_error() {
            self.deeds.writes.push(words);
        }
        reply
    }
}

/// An error of a command that a script did not catch.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raised(error: &mlua::Error) -> Option<String> {
    error
        .downcast_ref::<Raised>()
        .map(|raised| raised.0.clone())
}

/// What a command is given: texts, and numbers as Redis writes them down.
fn word(value: &Value) -> mlua::Result<Bytes> {
    match value {
        Value::String(text) => Ok(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Integer(number) => Ok(number.to_string().into()),
        Value::Number(number) => Ok(number.to_string().into()),
        _ => Err(mlua::Error::runtime(
            "Lua redis lib command arguments must be strings or integers",
        )),
    }
}

/// What a script is given for an answer, in the words of RESP2.
fn value(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let tagged = |tag: &str, text: &str| -> mlua::Result<Value> {
        let table = lua.create_table()?;
        table.set(tag, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Line(line) => tagged("ok", line),
        Reply::Error(error) => tagged("err", &error),
        Reply::Int(number) => number.into_lua(lua),
        Reply::Bulk(bytes) => Ok(Value::String(lua.create_string(&bytes)?)),
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Double(score) => Ok(Value::String(
            lua.create_string(super::reply::number(score))?,
        )),
        Reply::Array(parts) | Reply::Set(parts) | Reply::Map(parts) | Reply::Push(parts) => {
            let parts = parts.into_iter().map(|part| value(lua, part));
            let parts = parts.collect::<mlua::Result<Vec<_>>>()?;
            Ok(Value::Table(lua.create_sequence_from(parts)?))
        }
    }
}

/// What a script's result is for whoever called it.
fn reply(value: Value) -> mlua::Result<Reply> {
    Ok(match value {
        Value::String(text) => Reply::Bulk(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Integer(number) => Reply::Int(number),
        // Redis cuts off what is behind the point.
        Value::Number(number) => Reply::Int(number as i64),
        Value::Boolean(true) => Reply::Int(1),
        Value::Table(table) => return several(&table),
        _ => Reply::Nil,
    })
}

fn several(table: &Table) -> mlua::Result<Reply> {
    if let Value::String(error) = table.raw_get::<Value>("err")? {
        return Ok(Reply::Error(error.to_string_lossy()));
    }
    // It ends with the first that is not there.
    let mut parts = Vec::new();
    for place in 1.. {
        match table.raw_get::<Value>(place)? {
            Value::Nil => break,
            part => parts.push(reply(part)?),
        }
    }
    Ok(Reply::Array(parts))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
