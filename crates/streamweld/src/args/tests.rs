//! What the command line accepts and refuses, and what it says then.

use super::*;

mod backends;
mod edge;
mod journal;
mod mock;
mod relays;

#[track_caller]
pub(super) fn read(line: &[&str]) -> Result<Args, String> {
    Args::read([&["streamweld"], line].concat()).map_err(|error| error.to_string())
}

#[track_caller]
fn serve(more: &[&str]) -> Result<Serve, String> {
    let args = read(&[&["serve", "--backend=http://127.0.0.1:8000"], more].concat())?;
    match args.command {
        Command::Serve(serve) => Ok(*serve),
        _ => panic!("another command"),
    }
}

/// These arguments are refused, and the error says all of this.
#[track_caller]
fn check(more: &[&str], said: &[&str]) {
    let error = serve(more).expect_err("refused");
    for said in said {
        assert!(error.contains(said), "{said:?} is not said: {error}");
    }
}

#[track_caller]
fn accept(more: &[&str]) {
    serve(more).expect("accepted");
}

#[test]
fn the_command_line_is_well_formed() {
    Args::command().debug_assert();
}

#[test]
fn defaults_are_those_of_the_server() {
    let serve = serve(&[]).expect("valid");
    let config = crate::serve::config(&serve).expect("valid");
    let [backend] = &config.backends[..] else {
        panic!("one backend")
    };
    let backend = streamweld_upstream::Backend::named(backend.name.as_str(), backend.url.clone());
    let defaults = streamweld_server::Config::new(backend);
    assert_eq!(format!("{config:?}"), format!("{defaults:?}"));
}

#[test]
fn bad_values_are_named() {
    check(
        &["--orphan-policy=stop"],
        &["--orphan-policy", "cancel_after"],
    );
    check(&["--listen=localhost:80"], &["--listen", "0.0.0.0:8080"]);
    check(&["--credential-header=x y"], &["--credential-header"]);
    check(&["--threads=0"], &["--threads", "1..=1024"]);
}

#[test]
fn times_have_a_unit_and_bounds() {
    for setting in [
        "max-duration",
        "heartbeat",
        "write-timeout",
        "connect-timeout",
        "first-byte-timeout",
        "url-lifetime",
    ] {
        let flag = format!("--{setting}");
        check(&[&flag, "0s"], &[&flag, "above zero"]);
    }
    // Zero has a sense here: nothing is kept, joined or waited for.
    for setting in ["retention", "retry-join", "shutdown-grace"] {
        accept(&[&format!("--{setting}=0s")]);
        check(
            &[&format!("--{setting}=101years")],
            &[&format!("--{setting}"), "100 years"],
        );
    }
    accept(&["--presence-lease=1s"]);
    accept(&["--presence-lease=10m"]);
    for lease in ["999ms", "601s"] {
        check(
            &["--presence-lease", lease],
            &["--presence-lease", "1s to 10m"],
        );
    }
    check(
        &["--orphan-policy=cancel_after=101years"],
        &["--orphan-policy", "100 years"],
    );
}

#[test]
fn sizes_are_above_zero() {
    for setting in [
        "journal-per-generation",
        "journal-total",
        "max-event",
        "max-request-body",
        "max-kept-body",
    ] {
        let flag = format!("--{setting}");
        check(&[&flag, "0"], &[&flag, "above zero"]);
    }
}

/// The path of a file with this text.
pub(super) fn file(name: &str, text: &str) -> String {
    let name = format!("streamweld-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("a temporary file");
    path.to_str().expect("plain").to_owned()
}

#[test]
fn the_name_of_a_backend_can_stand_anywhere() {
    let longest = "a".repeat(63);
    for name in ["default", "gpu-1.rack_2", "A", longest.as_str()] {
        assert_eq!(
            serve(&["--backend-name", name]).map(|args| args.backend_name),
            Ok(name.to_owned())
        );
    }
    let longer = "a".repeat(64);
    for name in ["", " ", "a b", "a\"b", "ä", "a/b", "a:1", "a\n", &longer] {
        check(
            &[&format!("--backend-name={name}")],
            &["--backend-name", "1 to 63"],
        );
    }
}

#[test]
fn the_backend_is_somebody_else() {
    accept(&["--listen=127.0.0.2:8000"]);
    for listen in ["127.0.0.1:8000", "0.0.0.0:8000", "[::ffff:127.0.0.1]:8000"] {
        check(&["--listen", listen], &["--backend leads to --listen"]);
    }
    for backend in ["0.0.0.0", "[::]", "localhost", "[::ffff:127.0.0.1]"] {
        let backend = format!("http://{backend}:8000");
        let error = read(&["serve", "--listen=127.0.0.1:8000", "--backend", &backend]);
        let error = error.expect_err("refused");
        assert!(error.contains("--backend leads to --listen"), "{error}");
    }
    check(
        &["--admin-listen=127.0.0.1:8000"],
        &["--backend leads to --admin-listen"],
    );
}

#[test]
fn the_url_of_a_backend_has_nothing_that_is_dropped() {
    for (url, said) in [
        ("engine:8000", "scheme"),
        ("ftp://engine", "scheme"),
        ("http://s3cret:s3cret@engine", "user information"),
        ("http://engine/?key=s3cret", "query"),
        ("http://engine/#s3cret", "fragment"),
    ] {
        for command in ["serve", "demo"] {
            let error = read(&[command, "--backend", url]).expect_err("refused");
            assert!(error.contains("--backend is refused"), "{error}");
            assert!(
                error.contains(said) && error.contains("http://HOST"),
                "{error}"
            );
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}

#[test]
fn files_are_read_before_anything_starts() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    check(
        &["--admin-token-file=/nowhere"],
        &["--admin-token-file", "/nowhere", "No such file"],
    );
    check(
        &["--admin-token-file", here],
        &["--admin-token-file", "one word"],
    );
    check(
        &["--backend-ca=/nowhere"],
        &["--backend-ca", "/nowhere", "No such file"],
    );
    check(&["--backend-ca", here], &["--backend-ca", "no certificate"]);
}

#[test]
fn every_fault_is_told_at_once() {
    check(
        &["--journal-per-generation=1GiB", "--listen=127.0.0.1:9090"],
        &["--journal-total", "--admin-listen"],
    );
}
