//! Whom a capability lets in, and how far.

use streamweld_generation::CredentialHeaders;

use super::*;
use crate::caller::{Caller, Entry};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn config(keys: &[&str]) -> ResumeUrlConfig {
    ResumeUrlConfig {
        keys: keys.iter().map(|key| key.repeat(32)).collect(),
        lifetime: DAY,
        prefix: "/llm".to_owned(),
    }
}

fn access(key: &str) -> Access {
    Access::of(&CredentialHeaders::default(), |name| {
        (name == "x-api-key").then_some(key.as_bytes())
    })
}

fn id() -> StreamId {
    StreamId::generate(SystemTime::now())
}

/// The query of a URL that is given.
fn given(config: &ResumeUrlConfig, id: StreamId, scope: Scope) -> String {
    let mut head = HeaderMap::new();
    Grant::new(access("maker"), scope).show(config, id, &mut head);
    let url = head[head::RESUME_URL].to_str().expect("ASCII").to_owned();
    let query = url.strip_prefix(&format!("/llm/v1/streams/{id}/events?"));
    query.expect("the URL of its events").to_owned()
}

#[track_caller]
fn check(
    config: &ResumeUrlConfig,
    id: StreamId,
    query: &str,
    wants: Scope,
    expected: Result<Entry, ErrorCode>,
) {
    let caller = Caller::of(access("stranger"), Some(query), wants);
    let admitted = caller.admit(config, id, &access("maker").digest());
    assert_eq!(admitted.map_err(|error| error.code), expected, "{query}");
}

#[test]
fn a_url_lets_in_as_far_as_its_scope_goes() {
    let (config, id) = (config(&["a"]), id());
    let read = given(&config, id, Scope::Read);
    let stop = given(&config, id, Scope::ReadAndStop);
    check(&config, id, &read, Scope::Read, Ok(Entry::Lent));
    check(&config, id, &stop, Scope::Read, Ok(Entry::Lent));
    check(&config, id, &stop, Scope::ReadAndStop, Ok(Entry::Lent));
    let too_little = Err(ErrorCode::CapabilityScope);
    check(&config, id, &read, Scope::ReadAndStop, too_little);
}

#[test]
fn the_credential_goes_before_the_url() {
    let (config, id) = (config(&["a"]), id());
    let maker = Caller::of(access("maker"), Some("cap=r.1.x"), Scope::ReadAndStop);
    let admitted = maker.admit(&config, id, &access("maker").digest());
    assert_eq!(admitted.map_err(|error| error.code), Ok(Entry::Own));
}

#[test]
fn it_is_good_for_one_generation_and_one_credential() {
    let (config, one, other) = (config(&["a"]), id(), id());
    let query = given(&config, one, Scope::Read);
    let stranger = Err(ErrorCode::StreamNotFound);
    check(&config, other, &query, Scope::Read, stranger);
    let caller = Caller::of(access("stranger"), Some(&query), Scope::Read);
    let admitted = caller.admit(&config, one, &access("another").digest());
    assert_eq!(
        admitted.map_err(|error| error.code),
        Err(ErrorCode::StreamNotFound)
    );
}

#[test]
fn what_is_altered_anywhere_is_of_a_stranger() {
    let (config, id) = (config(&["a"]), id());
    let query = given(&config, id, Scope::Read);
    let start = "cap=".len();
    for at in start..query.len() {
        for other in ["A", "0", "s", ".", "=", "-", ""] {
            let altered = format!("{}{other}{}", &query[..at], &query[at + 1..]);
            if altered != query {
                let stranger = Err(ErrorCode::StreamNotFound);
                check(&config, id, &altered, Scope::Read, stranger);
            }
        }
    }
    let (scope, rest) = query[start..].split_once('.').expect("its parts");
    let (expires, mac) = rest.split_once('.').expect("its parts");
    assert_eq!(scope, "r");
    for altered in [
        format!("cap=rs.{expires}.{mac}"),
        format!("cap=r.0{expires}.{mac}"),
        format!("cap=r.+{expires}.{mac}"),
        format!("cap=r.99{expires}.{mac}"),
        format!("cap=r.{expires}.{mac}="),
        format!("cap=r.{expires}.{mac}.{mac}"),
        format!("cap=r.{expires}."),
        "cap=".to_owned(),
        "cap=%ff".to_owned(),
    ] {
        let stranger = Err(ErrorCode::StreamNotFound);
        check(&config, id, &altered, Scope::Read, stranger);
    }
}

#[test]
fn after_its_expiry_only_its_holder_is_told_so() {
    let (config, id) = (config(&["a"]), id());
    let (key, digest) = (config.keys.each().next(), access("maker").digest());
    let over = seconds(SystemTime::now()) - 1;
    let key = key.expect("there is one");
    let over = Capability::signed(key, Scope::ReadAndStop, over, id, &digest);
    let query = format!("cap={}", over.text());
    let expired = Err(ErrorCode::CapabilityExpired);
    check(&config, id, &query, Scope::Read, expired);
    let forged = query.replace("rs.", "r.");
    let stranger = Err(ErrorCode::StreamNotFound);
    check(&config, id, &forged, Scope::Read, stranger);
}

#[test]
fn keys_are_rotated() {
    let id = id();
    let old = given(&config(&["a"]), id, Scope::Read);
    for both in [config(&["a", "b"]), config(&["b", "a"])] {
        check(&both, id, &old, Scope::Read, Ok(Entry::Lent));
    }
    // The first one signs.
    let new = given(&config(&["b", "a"]), id, Scope::Read);
    check(&config(&["b"]), id, &new, Scope::Read, Ok(Entry::Lent));
    let stranger = Err(ErrorCode::StreamNotFound);
    check(&config(&["b"]), id, &old, Scope::Read, stranger);
}

#[test]
fn without_a_key_there_are_no_urls() {
    let (none, id) = (config(&[]), id());
    let query = given(&config(&["a"]), id, Scope::Read);
    let stranger = Err(ErrorCode::StreamNotFound);
    check(&none, id, &query, Scope::Read, stranger);
    let mut head = HeaderMap::new();
    Grant::new(access("maker"), Scope::Read).show(&none, id, &mut head);
    assert!(head.is_empty());
}
