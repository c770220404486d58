//! Where the journal is, and how much it may hold.

use super::*;

/// The journal that a line asks for.
fn journal(line: &[&str]) -> crate::journal::Settings {
    crate::serve::journal(&serve(line).expect("accepted")).expect("valid")
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
fn credentials_are_kept_only_where_they_are_sealed() {
    let keys = file("request-keys", "0123456789abcdef0123456789abcdef\n");
    let sealed = format!("--request-key-file={keys}");
    let kept = serve(&[&sealed, "--keep-credentials"]).expect("accepted");
    assert!(kept.keep_credentials && kept.request_key_file.is_some());
    accept(&[&sealed]);
    check(
        &["--keep-credentials"],
        &["--keep-credentials", "--request-key-file"],
    );
    std::fs::write(&keys, "short\n").expect("there");
    check(&[&sealed], &["--request-key-file", "32"]);
    std::fs::remove_file(keys).expect("there");
}
