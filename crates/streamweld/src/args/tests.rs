//! What the command line accepts and refuses, and what it says then.

use super::*;

mod backends;

#[track_caller]
fn read(line: &[&str]) -> Result<Args, String> {
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

#[test]
fn the_journal_holds_at_least_one_ring() {
    accept(&["--journal-total=31MiB"]);
    check(
        &["--journal-total=31MiB", "--journal-per-generation=32MiB"],
        &[
            "--journal-total (31MiB)",
            "--journal-per-generation (32MiB)",
        ],
    );
    check(&["--journal-total=255KiB"], &["--journal-total", "256KiB"]);
    check(&["--journal-per-generation=1GiB"], &["--journal-total"]);
    // Smaller, and a reader would be overtaken by the first batch.
    accept(&["--journal-per-generation=256KiB"]);
    check(
        &["--journal-per-generation=255KiB"],
        &["--journal-per-generation", "256KiB"],
    );
}

#[test]
fn origins_are_what_browsers_write() {
    let config = |line: &[&str]| {
        crate::serve::config(&serve(line).expect("accepted"))
            .expect("valid")
            .edge
            .cors_origins
    };
    let two = ["https://app.example", "http://localhost:3000"];
    let expected: Vec<PageOrigin> = two.iter().map(|one| one.parse().expect("one")).collect();
    assert_eq!(config(&["--cors-origin", &two.join(",")]), expected);
    let repeated = [&["--cors-origin", two[0]][..], &["--cors-origin", two[1]]].concat();
    assert_eq!(config(&repeated), expected);
    for (origin, said) in [
        ("*", "every page"),
        ("null", "sandboxed"),
        ("app.example", "scheme://host"),
        ("https://App.example/", "https://app.example"),
        ("https://app.example,*", "every page"),
    ] {
        check(&["--cors-origin", origin], &["--cors-origin", said]);
    }
}

#[test]
fn urls_are_signed_with_keys_from_a_file() {
    let key = "0123456789abcdef0123456789abcdef";
    let keys = file("url-keys", &format!("{key}\n{key}{key}\n"));
    let keys = format!("--url-signing-key-file={keys}");
    let urls = |line: &[&str]| {
        let config = crate::serve::config(&serve(line).expect("accepted")).expect("valid");
        config.edge.resume_urls
    };
    let plain = urls(&[&keys]);
    let shown = (plain.keys.count(), plain.lifetime, plain.prefix.as_str());
    assert_eq!(shown, (2, Duration::from_secs(4200), ""));
    let longest = urls(&[&keys, "--max-duration=2h", "--retention=1h"]);
    assert_eq!(longest.lifetime, Duration::from_secs(3 * 3600));
    let given = urls(&[&keys, "--url-lifetime=5m", "--url-prefix=/llm"]);
    let shown = (given.lifetime, given.prefix.as_str());
    assert_eq!(shown, (Duration::from_secs(300), "/llm"));

    let short = file("url-key-short", &key[1..]);
    let short = format!("--url-signing-key-file={short}");
    check(&[&short], &["--url-signing-key-file", "at least 32"]);
    let error = serve(&[&short]).expect_err("refused");
    assert!(!error.contains(&key[1..]), "{error}");
    let none = "--url-signing-key-file=/nonexistent";
    check(&[none], &["--url-signing-key-file", "No such file"]);
    for alone in ["--url-lifetime=5m", "--url-prefix=/llm"] {
        let (flag, _) = alone.split_once('=').expect("a flag");
        check(&[alone], &[flag, "--url-signing-key-file"]);
    }
    let (above, within) = ("--url-lifetime=70m 1s", "--url-lifetime=70m");
    check(
        &[&keys, above],
        &["--url-lifetime (1h 10m 1s)", "--max-duration"],
    );
    accept(&[&keys, within]);
    for prefix in ["llm", "/llm/", "/", "//host", "/a?b", "/a b"] {
        check(&[&keys, "--url-prefix", prefix], &["--url-prefix"]);
    }
}

/// The path of a file with this text.
fn file(name: &str, text: &str) -> String {
    let name = format!("streamweld-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("a temporary file");
    path.to_str().expect("plain").to_owned()
}

/// The journal that a line asks for.
fn journal(line: &[&str]) -> crate::journal::Settings {
    crate::serve::journal(&serve(line).expect("accepted")).expect("valid")
}

#[test]
fn the_journal_is_memory_or_a_redis() {
    let place = |line: &[&str]| match journal(line).place {
        Place::Memory => "memory".to_owned(),
        Place::Redis(url) => format!("{url}, {}", if url.is_secret() { "secret" } else { "open" }),
    };
    assert_eq!(place(&[]), "memory");
    assert_eq!(place(&["--journal=memory"]), "memory");
    for (url, shown) in [
        ("redis://r:6379/1", "redis://r:6379, open"),
        (
            "redis+cluster://r:7000,s:7001",
            "redis+cluster://r:7000,s:7001, open",
        ),
        (
            "redis+unix:///run/redis.sock?db=1",
            "redis+unix:///run/redis.sock, open",
        ),
    ] {
        assert_eq!(place(&[&format!("--journal={url}")]), shown);
    }
    let secret = "rediss://user:pass@r:6379";
    let path = file("url", &format!("{secret}\n"));
    let by_file = format!("--journal-file={path}");
    assert_eq!(place(&[&by_file]), "rediss://r:6379, secret");
    check(
        &[&by_file, "--journal=memory"],
        &["--journal ", "--journal-file", "leave one"],
    );
    std::fs::remove_file(path).expect("there");
    for (bad, said) in [
        ("memroy", "redis://HOST"),
        ("", "redis://HOST"),
        ("r:6379", "scheme"),
        ("http://r:6379", "scheme"),
        ("redis://r:0", "port"),
        ("redis://r/a", "database"),
        ("redis+cluster://r,s/1", "databases"),
        ("redis+unix://r", "socket"),
        ("redis://r?a=b", "query"),
        ("redis+sentinel://a,b", "service"),
    ] {
        check(&[&format!("--journal={bad}")], &["--journal", said]);
    }
}

#[test]
fn the_files_of_a_journal_belong_to_a_redis() {
    let password = file("password", "hunter2\n");
    let by_password = format!("--journal-password-file={password}");
    for url in [
        "redis://r",
        "redis://user@r",
        "redis+sentinel://user@a,b/s",
        "redis+cluster://user@a,b",
        "redis+unix:///s?user=user",
    ] {
        let journal = journal(&[&format!("--journal={url}"), &by_password]);
        let file = journal.password_file.expect("it is taken");
        assert_eq!(file.to_str(), Some(password.as_str()));
    }
    check(&[&by_password], &["--journal-password-file", "in memory"]);
    let user = "--journal=redis://user@r";
    check(&[user], &["--journal ", "user or a password"]);
    let both = file("both", "rediss://user:hunter2@r");
    let by_file = format!("--journal-file={both}");
    check(
        &[&by_file, &by_password],
        &["--journal-password-file", "leave one"],
    );
    let sentinels = "--journal=redis+sentinel://user@a/s?sentinel_pass=hunter2";
    check(&[sentinels, &by_password], &["--journal ", "password"]);
    for (text, said) in [
        ("", "empty"),
        ("\r\n", "empty"),
        ("hunter2\nhunter2", "one line"),
        ("hunter2\rhunter2", "control character"),
        ("hunter2\0", "control character"),
    ] {
        let bad = file("bad-password", text);
        let line = format!("--journal-password-file={bad}");
        check(
            &["--journal=redis://r", &line],
            &["--journal-password-file", said],
        );
        std::fs::remove_file(bad).expect("there");
    }
    check(
        &["--journal=redis://r", "--journal-password-file=/nowhere"],
        &["--journal-password-file", "/nowhere", "No such file"],
    );
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    check(
        &["--journal=rediss://r", "--journal-ca-file", here],
        &["--journal-ca-file", "no certificate"],
    );
    for path in [password, both] {
        std::fs::remove_file(path).expect("there");
    }
}

#[test]
fn a_file_without_a_url_says_what_it_holds() {
    for (text, said) in [
        (&b""[..], "empty"),
        (b"\n", "empty"),
        (b"redis://r\nredis://hunter2\n", "one line"),
        (b"redis://r\0hunter2", "plain text"),
        (b"\xff\xfehunter2", "plain text"),
    ] {
        let path = file("no-url", "");
        std::fs::write(&path, text).expect("it is ours");
        check(
            &[&format!("--journal-file={path}")],
            &["--journal-file", said],
        );
        std::fs::remove_file(path).expect("there");
    }
    let path = file("binary-password", "");
    std::fs::write(&path, b"\xff\xfe").expect("it is ours");
    let line = format!("--journal-password-file={path}");
    let said = ["--journal-password-file", "does not hold text"];
    check(&["--journal=redis://r", &line], &said);
    std::fs::write(&path, " a password \n").expect("it is ours");
    serve(&["--journal=redis://r", &line]).expect("spaces may belong to it");
    std::fs::remove_file(path).expect("there");
}

#[test]
fn a_level_and_a_requirement_need_a_shared_journal() {
    let redis = "--journal=redis://r";
    for level in ["async", "replicated:2", "fsync"] {
        let line = [redis, &format!("--journal-durability={level}")];
        let journal = journal(&line);
        assert_eq!(journal.level.to_string(), level);
        assert!(!journal.required);
    }
    assert!(journal(&[redis, "--journal-required"]).required);
    for level in ["safe", "replicated", "replicated:0", "replicated:256"] {
        check(
            &[redis, &format!("--journal-durability={level}")],
            &["--journal-durability", "replicated:N"],
        );
    }
    for line in [
        &["--journal-durability=async"][..],
        &["--journal=memory", "--journal-required"],
    ] {
        check(
            line,
            &[
                line[line.len() - 1].split('=').next().unwrap_or_default(),
                "in memory",
                "--journal-file",
            ],
        );
    }
}

#[test]
fn the_url_of_a_journal_is_told_to_nobody() {
    let path = file("bad", "http://user:hunter2@r");
    for line in [
        "--journal=redis://user:hunter2@r:6379".to_owned(),
        "--journal=http://user:hunter2@r".to_owned(),
        "--journal=hunter2".to_owned(),
        format!("--journal-file={path}"),
    ] {
        let error = serve(&[&line]).expect_err("refused");
        assert!(error.contains("--journal"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    std::fs::remove_file(path).expect("there");
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
fn durable_paths_can_match() {
    accept(&["--durable-get=/feed,/live/*", "--durable-get=/*"]);
    check(
        &["--durable-get=feed"],
        &["--durable-get", "begins with `/`"],
    );
    check(&["--durable-get=*"], &["begins with `/`"]);
    check(&["--durable-get="], &["begins with `/`"]);
    check(&["--durable-get=/feed,"], &["begins with `/`"]);
    check(&["--durable-get=/a/*/b"], &["only at its end"]);
    check(&["--durable-get=/feed?x=1"], &["without a query"]);
    check(&["--durable-get=/feed#x"], &["without a query"]);
    check(&["--durable-get=/v1/streams/watch"], &["Streamweld's own"]);
    check(&["--durable-get=/my feed"], &["as a URL"]);
    check(&["--durable-get=/größe"], &["as a URL"]);
}

#[test]
fn a_dialect_is_told_for_paths_that_it_can_match() {
    accept(&[
        "--dialect=/app/*=openai_chat,/mcp=mcp",
        "--dialect=/raw=none",
    ]);
    accept(&["--dialect=/a=b=generic"]);
    check(&["--dialect=/app"], &["--dialect", "PATH=NAME"]);
    check(
        &["--dialect=/app=openai"],
        &[
            "--dialect",
            "unknown dialect",
            "gemini, mcp or generic, or none",
        ],
    );
    check(&["--dialect=/app="], &["unknown dialect"]);
    check(&["--dialect=app=mcp"], &["begins with `/`"]);
    check(&["--dialect=/a/*/b=mcp"], &["only at its end"]);
    check(&["--dialect=/a?x=mcp"], &["without a query"]);
    check(&["--dialect=/v1/streams/x=generic"], &["Streamweld's own"]);
    // The first one counts, so these could never.
    check(
        &["--dialect=/a=mcp,/a=none"],
        &["--dialect", "/a behind /a"],
    );
    check(
        &["--dialect=/a/*=mcp", "--dialect=/a/b*=none"],
        &["/a/b* behind /a/*"],
    );
    accept(&["--dialect=/a/b=mcp,/a/*=none"]);
}

#[test]
fn content_codings_are_known() {
    accept(&["--compress=gzip,br", "--compress=zstd"]);
    for bad in ["deflate", "GZIP", "", "gzip,", "*"] {
        check(
            &[&format!("--compress={bad}")],
            &["--compress", "expected gzip, br or zstd"],
        );
    }
}

#[test]
fn a_credential_is_no_field_that_differs_between_requests() {
    accept(&["--credential-header=x-own,Cookie"]);
    for name in [
        "last-event-id",
        "Content-Length",
        "Idempotency-Key",
        "x-stainless-retry-count",
        "X-Streamweld-Events",
    ] {
        check(
            &["--credential-header", name],
            &["--credential-header", "could be read again"],
        );
    }
}

#[test]
fn listeners_are_two_places() {
    accept(&["--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]);
    accept(&["--listen=127.0.0.1:80", "--admin-listen=127.0.0.2:80"]);
    for admin in [
        "127.0.0.1:80",
        "0.0.0.0:80",
        "[::]:80",
        "[::ffff:127.0.0.1]:80",
    ] {
        check(
            &["--listen=127.0.0.1:80", "--admin-listen", admin],
            &["--listen (127.0.0.1:80)", "--admin-listen ("],
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

/// This script is refused, and the reason is given once.
#[track_caller]
fn check_mock(line: &[&str], flag: &str, reason: &str) {
    let error = read(&[&["mock"], line].concat()).expect_err("refused");
    assert!(error.contains(flag), "{error}");
    assert_eq!(error.matches(reason).count(), 1, "{error}");
}

#[test]
fn a_bad_script_is_told_once_and_where() {
    check_mock(&["--set=tokenz=50"], "--set", "unknown field");
    check_mock(&["--set=end=foo"], "end=foo", "unknown end");
    check_mock(&["--set=tokens"], "--set", "write it as NAME=VALUE");
    check_mock(&["--set=text=5"], "text=5", "a string in quotes");
    check_mock(&["--script={"], "--script", "EOF while parsing");
    check_mock(&["--script={\"x\":1}"], "--script", "unknown field");
    check_mock(&["--script-file=/nowhere"], "/nowhere", "No such file");
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    check_mock(&["--script-file", here], "Cargo.toml", "at line 1");
}

#[test]
fn the_members_that_the_help_names_work_as_they_stand() {
    let examples: Vec<&str> = MEMBERS
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .map(|line| line.split("  ").next().unwrap_or(line))
        .collect();
    assert!(examples.len() > 5, "{examples:?}");
    for example in examples {
        let line = ["streamweld", "mock", "--set", example];
        assert!(Args::read(line).is_ok(), "{example}");
    }
}
