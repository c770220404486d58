//! Listeners, pages, paths and fields.

use super::*;

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
