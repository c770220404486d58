use super::*;

#[track_caller]
fn accept(text: &str, shown: &str, credential: bool) -> RedisUrl {
    let url: RedisUrl = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(url.to_string(), shown);
    assert_eq!(url.has_credential(), credential, "{text}");
    let debug = format!("{url:?} {:?}", url.target);
    assert!(
        !debug.contains("pass") && !debug.contains("user"),
        "{debug}"
    );
    url
}

#[test]
fn a_redis_is_shown_without_who_asks_it() {
    accept("redis://r", "redis://r", false);
    accept("redis://10.0.0.1:6379/", "redis://10.0.0.1:6379", false);
    accept("rediss://[::1]:6380/2", "rediss://[::1]:6380", false);
    accept("redis://:pass@r:6379/0", "redis://r:6379", true);
    accept("rediss://user:pass%40@r", "rediss://r", true);
    accept("redis://user@r", "redis://r", true);
    accept("redis+cluster://r", "redis+cluster://r", false);
    let shown = "rediss+cluster://a:7000,[::1]:7001,c";
    accept(
        "rediss+cluster://user:pass@a:7000,[::1]:7001,c/",
        shown,
        true,
    );
}

#[test]
fn a_socket_is_shown_by_its_path() {
    let shown = "redis+unix:///run/redis.sock";
    accept(shown, shown, false);
    for (query, credential, password) in [
        ("?db=2", false, false),
        ("?db=2&user=u", true, false),
        ("?pass=pass", true, true),
        ("?user=u&db=1&pass=pa%26ss", true, true),
    ] {
        let url = accept(&format!("{shown}{query}"), shown, credential);
        assert_eq!((url.has_password(), url.is_tls()), (password, false));
    }
}

#[test]
fn sentinels_are_shown_without_who_asks_them() {
    let shown = "redis+sentinel://a:26379,[::1],c/main";
    accept(shown, shown, false);
    accept(
        "redis+sentinel://user:pass@a:26379,[::1],c/main/2",
        shown,
        true,
    );
    let url = accept(
        "rediss+sentinel://a/main?sentinel_user=user&sentinel_pass=pass%40",
        "rediss+sentinel://a/main",
        true,
    );
    assert!(url.is_secret() && !url.has_password());
    for (text, tls, password) in [
        ("redis+sentinel://a/s", false, false),
        ("rediss+sentinel://user@a/my-service.1", true, false),
        ("rediss://user:pass@a", true, true),
    ] {
        let url: RedisUrl = text.parse().expect("good");
        assert_eq!((url.is_tls(), url.has_password()), (tls, password));
        assert_eq!(url.is_secret(), password);
    }
}

#[track_caller]
fn refuse(text: &str, expected: UrlError) {
    let error = text.parse::<RedisUrl>().expect_err(text);
    assert_eq!(error, expected, "{text}");
    assert!(!format!("{error} {error:?}").contains("secret"), "{text}");
}

#[test]
fn everything_else_is_refused_by_its_part_and_never_repeated() {
    refuse("", UrlError::Scheme);
    refuse("redis://a b", UrlError::Syntax);
    refuse("memory", UrlError::Scheme);
    refuse("r:6379", UrlError::Scheme);
    refuse("http://r", UrlError::Scheme);
    refuse("redis://r:0", UrlError::Port);
    refuse("redis://r:", UrlError::Port);
    refuse("redis://r:65536", UrlError::Port);
    refuse("redis://[::1]6379", UrlError::Port);
    refuse("redis://::1", UrlError::Syntax);
    refuse("redis://[::1", UrlError::Syntax);
    refuse("redis://:secret@", UrlError::Host);
    refuse("redis://:6379", UrlError::Host);
    refuse("redis://:secret@:6379", UrlError::Host);
    refuse("redis://:secret/@r", UrlError::Syntax);
    refuse("redis://r/a", UrlError::Database);
    refuse("redis://r/1/2", UrlError::Database);
    refuse("redis://r/70000", UrlError::Database);
    refuse("redis://r?protocol=3", UrlError::Query);
    refuse("rediss://:secret@r#insecure", UrlError::Fragment);
    refuse("sentinel://a/s", UrlError::Scheme);
    refuse("redis+sentry://r", UrlError::Scheme);
}

#[test]
fn so_are_sentinels() {
    refuse("redis+sentinel://a", UrlError::Service);
    refuse("redis+sentinel://:secret@a/", UrlError::Service);
    refuse("redis+sentinel://a/s%20", UrlError::Service);
    refuse("redis+sentinel://a/s s", UrlError::Service);
    refuse("redis+sentinel://:secret@a,,b/s", UrlError::Host);
    refuse("redis+sentinel:///s", UrlError::Host);
    refuse("redis+sentinel://a:0/s", UrlError::Port);
    refuse("redis+sentinel://a/s/b", UrlError::Database);
    for query in [
        "pass=secret",
        "sentinel_user=secret",
        "sentinel_pass=se@cret",
        "sentinel_pass",
    ] {
        let text = format!("redis+sentinel://a/s?{query}");
        refuse(&text, UrlError::SentinelQuery);
    }
}

#[test]
fn so_are_clusters_and_sockets() {
    refuse("redis+cluster://", UrlError::Host);
    refuse("redis+cluster://a,,b", UrlError::Host);
    refuse("redis+cluster://a,b:0", UrlError::Port);
    refuse("redis+cluster://a,b/1", UrlError::Cluster);
    refuse("redis+cluster://a,b?protocol=3", UrlError::Query);
    refuse("redis+cluster://:secret@a,b c", UrlError::Syntax);
    refuse("redis+cluster+unix:///run/redis.sock", UrlError::Scheme);
    refuse("redis+unix://", UrlError::Socket);
    refuse("redis+unix://run/redis.sock", UrlError::Socket);
    refuse("redis+unix:///", UrlError::Socket);
    refuse("redis+unix:///s?db=a", UrlError::Database);
    refuse("redis+unix:///s?db=", UrlError::SocketQuery);
    refuse("redis+unix:///s?protocol=3", UrlError::SocketQuery);
    refuse("redis+unix:///s?pass", UrlError::SocketQuery);
}
