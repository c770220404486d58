//! Several backends, and what is done when one fails.

use std::time::Duration;

use streamweld_generation::migration::Policy;
use streamweld_server::Config;
use streamweld_upstream::fleet::{Credential, Engine, Family, HealthCheck, Reach};

use super::read;
use crate::args::{Command, Serve};

#[track_caller]
fn serve(line: &[&str]) -> Result<Serve, String> {
    match read(&[&["serve"], line].concat())?.command {
        Command::Serve(serve) => Ok(*serve),
        _ => panic!("another command"),
    }
}

#[track_caller]
fn config(line: &[&str]) -> Config {
    crate::serve::config(&serve(line).expect("accepted")).expect("valid")
}

/// It is refused, by the name of the flag, and all of this is said. What nobody may see is not.
#[track_caller]
fn check(line: &[&str], said: &[&str]) {
    let error = serve(line).expect_err("refused");
    for said in said {
        assert!(error.contains(said), "{said:?} is not said: {error}");
    }
    assert!(!error.contains("s3cret"), "{error}");
}

/// A file that is there as long as this.
struct File(std::path::PathBuf);

impl File {
    fn with(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("streamweld-{name}-{}", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        Self(path)
    }

    fn option(&self) -> String {
        format!("credential-file={}", self.0.display())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_plain_url_is_one_backend_of_which_nothing_is_known() {
    let config = config(&["--backend=http://engine:8000", "--backend-name=llm"]);
    let [backend] = &config.backends[..] else {
        panic!("one")
    };
    assert_eq!(
        (backend.name.as_str(), backend.engine),
        ("llm", Engine::Unknown)
    );
    assert_eq!((&backend.group, backend.reach), (&None, Reach::Host));
}

#[test]
fn options_stand_behind_the_url() {
    let key = File::with("key", "sk-s3cret\n");
    let all = format!(
        "--backend=https://engine/v1,name=a,engine=vllm,family=anthropic,group=g,weight=3,dns,health=/live?x=1,{}",
        key.option()
    );
    let config = config(&[&all]);
    let [backend] = &config.backends[..] else {
        panic!("one")
    };
    assert_eq!(backend.name, "a");
    assert_eq!(
        (backend.engine, backend.family),
        (Engine::Vllm, Family::Anthropic)
    );
    assert_eq!(
        (backend.group.as_deref(), backend.weight.get()),
        (Some("g"), 3)
    );
    assert_eq!(backend.reach, Reach::EveryAddress);
    let path = "/live?x=1".parse().expect("a path");
    assert_eq!(backend.health, HealthCheck::Path(path));
    assert_eq!(backend.url.host(), "engine");
    // As the family reads it, wherever that was said.
    let mut headers = http::HeaderMap::new();
    backend.credential.apply(&mut headers);
    assert_eq!(headers["x-api-key"], "sk-s3cret");
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn what_is_not_said_is_the_engines() {
    let config = config(&["--backend=http://engine,engine=gemini,health=off"]);
    let backend = &config.backends[0];
    assert_eq!((backend.family, backend.weight.get()), (Family::Gemini, 1));
    assert_eq!(backend.health, HealthCheck::Off);
    assert!(matches!(backend.credential, Credential::PassThrough));
}

#[test]
fn several_are_repeated_or_stand_in_one_value() {
    let names = |line: &[&str]| {
        let backends = config(line).backends.into_iter();
        backends.map(|backend| backend.name).collect::<Vec<_>>()
    };
    let (a, b, c) = ("http://x,name=a", "http://y,name=b", "http://z,name=c,dns");
    assert_eq!(names(&["--backend", a, "--backend", b]), ["a", "b"]);
    let lines = format!("  {a}\n\t{b} ");
    assert_eq!(
        names(&["--backend", &lines, "--backend", c]),
        ["a", "b", "c"]
    );
    check(
        &["--backend", " \n"],
        &["--backend names no backend", "http://HOST:PORT"],
    );
    check(&[], &["--backend"]);
}

#[test]
fn options_that_there_are_not_name_the_nearest() {
    let refused = |option: &str, said: &[&str]| {
        check(&["--backend", &format!("http://engine,{option}")], said);
        check(
            &["--backend", &format!("http://engine,{option}")],
            &["--backend"],
        );
    };
    refused("wieght=3", &["`wieght`", "did you mean `weight`?"]);
    refused("credential_file=/x", &["did you mean `credential-file`?"]);
    refused("zzz=3", &["`zzz`", "engine, family, group"]);
    refused("dnss", &["did you mean `dns`?"]);
    // What is no word may be a part of the URL.
    refused("S3CRET:s3cret@host", &["something behind a comma", "%2C"]);
    refused("", &["something behind a comma"]);
    refused("name", &["`name`", "name=…"]);
    refused("dns=yes", &["`dns`", "alone"]);
    refused("name=a,name=b", &["`name`", "twice"]);
}

#[test]
fn options_have_values_that_they_can_have() {
    let refused = |option: &str, said: &[&str]| {
        check(&["--backend", &format!("http://engine,{option}")], said);
    };
    refused("name=a:b", &["`name`", "1 to 63"]);
    refused("group=", &["`group`", "1 to 63"]);
    refused("engine=vLLM", &["`engine`", "vllm, sglang"]);
    refused("family=openia", &["`family`", "openai, anthropic"]);
    for weight in ["0", "1001", "-1", "many", ""] {
        refused(&format!("weight={weight}"), &["`weight`", "1 to 1000"]);
    }
    for health in ["on", "", "http://host/health", "health"] {
        refused(
            &format!("health={health}"),
            &["`health`", "begins with `/`"],
        );
    }
    refused(
        "credential-file=/nowhere",
        &["`credential-file`", "/nowhere", "No such file"],
    );
    let two = File::with("two", "sk-s3cret\nsk-s3cret\n");
    refused(&two.option(), &["`credential-file`", "one key"]);
    check(
        &["--backend=http://127.0.0.1:8000,dns"],
        &["`dns`", "one address"],
    );
    check(
        &["--backend=http://[::1]:8000,dns"],
        &["`dns`", "one address"],
    );
}

#[test]
fn several_are_told_apart_by_their_names() {
    let (a, b) = (
        "--backend=http://s3cret.x,name=a",
        "--backend=http://y,name=b",
    );
    check(
        &[a, "--backend=http://s3cret.y"],
        &["number 2", "needs a name", "name=a"],
    );
    check(
        &[a, b, "--backend=http://s3cret.z,name=a"],
        &["two backends a"],
    );
    check(
        &[a, b, "--backend-name=c"],
        &["--backend-name is for a single backend"],
    );
    check(
        &[a, "--backend-name=c"],
        &["--backend-name (c)", "`name`", "(a)"],
    );
    check(
        &[a, "--backend=ftp://s3cret,name=b"],
        &["number 2", "scheme"],
    );
    check(
        &[a, "--backend=http://127.0.0.1:8080,name=b"],
        &["number 2", "leads to --listen"],
    );
    // Not the only way to write a name as it was.
    assert!(serve(&[a]).is_ok());
}

#[test]
fn certificates_are_of_use_where_one_of_them_has_tls() {
    let own = rcgen::generate_simple_self_signed(["engine".to_owned()]).expect("a certificate");
    let ca = File::with("ca", &own.cert.pem());
    let option = format!("--backend-ca={}", ca.0.display());
    check(
        &[
            "--backend=http://x,name=a",
            "--backend=http://y,name=b",
            &option,
        ],
        &["--backend-ca has no use"],
    );
    let one = [
        "--backend=http://x,name=a",
        "--backend=https://y,name=b",
        &option,
    ];
    assert!(serve(&one).is_ok());
}

#[test]
fn groups_have_policies() {
    let (a, b) = (
        "--backend=http://x,name=a,group=small",
        "--backend=http://y,name=b,group=large",
    );
    let config = config(&[a, b, "--migration=small=prefill,large=off"]);
    let policy = |group| config.migration.policy(Some(group));
    assert_eq!(
        (policy("small"), policy("large")),
        (Policy::Prefill, Policy::Off)
    );
    for bad in ["small", "small=maybe", "=off", "s p=off", "small="] {
        check(
            &[a, &format!("--migration={bad}")],
            &["--migration", "GROUP=exact"],
        );
    }
    check(
        &[a, "--migration=smal=off"],
        &["--migration", "smal", "did you mean small?"],
    );
    check(
        &[a, "--migration=zzz=off"],
        &["--migration", "zzz", "group=zzz"],
    );
    check(
        &[a, "--migration=small=off,small=exact"],
        &["--migration", "twice"],
    );
    check(
        &[a, "--vouched=small", "--vouched=small"],
        &["--vouched", "small", "twice"],
    );
}

#[test]
fn counts_and_times_have_bounds() {
    let backend = "--backend=http://x";
    for (flag, values, said) in [
        ("--attempts", &["0", "17", "x"][..], "1 to 16"),
        ("--migrations", &["17", "-1"], "16"),
        ("--health-failures", &["0", "101"], "1 to 100"),
        ("--health-successes", &["0", "101"], "1 to 100"),
        ("--health-every", &["9ms", "25h"], "10ms to 1day"),
        ("--health-timeout", &["0s", "25h"], "10ms to 1day"),
        ("--first-token-timeout", &["0s"], "above zero"),
        ("--between-tokens-timeout", &["0s"], "above zero"),
        ("--migration-wait", &["101years", "10"], "write it as"),
    ] {
        for value in values {
            let said = if *value == "101years" {
                "100 years"
            } else {
                said
            };
            check(&[backend, &format!("{flag}={value}")], &[flag, said]);
        }
    }
    let config = config(&[
        backend,
        "--attempts=16",
        "--migrations=0",
        "--migration-wait=0s",
        "--first-token-timeout=20s",
        "--between-tokens-timeout=7s",
        "--health-every=10ms",
        "--health-timeout=1s",
        "--health-failures=1",
        "--health-successes=100",
    ]);
    let (fleet, migration) = (config.fleet, config.migration);
    assert_eq!((migration.attempts.get(), migration.moves), (16, 0));
    assert_eq!(migration.wait, Duration::ZERO);
    assert_eq!(migration.first_token, Some(Duration::from_secs(20)));
    assert_eq!(migration.between_tokens, Some(Duration::from_secs(7)));
    assert_eq!(fleet.probe_every, Duration::from_millis(10));
    assert_eq!(fleet.probe_timeout, Duration::from_secs(1));
    let counts = (fleet.probe_failures.get(), fleet.probe_successes.get());
    assert_eq!(counts, (1, 100));
}
