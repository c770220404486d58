//! What a client says in a log: attack 25. One event is one line, whatever it holds.

use streamweld_mock::Script;
use streamweld_tests::{Process, Wire};

use super::process;

/// What somebody would write who wants another line to be read, or a terminal to be steered.
const FORGED: &str = "\u{1b}[31m\u{9b}2J\u{202e}\u{2028}";

#[tokio::test(flavor = "multi_thread")]
async fn row_25_no_client_writes_a_line_of_its_own() {
    for format in ["text", "json"] {
        let format_flag = format!("--log-format={format}");
        let (_mock, mut process) = process(
            Script::tokens(3),
            &["--log-level=trace", &format_flag, "--backend-name=llm"],
        )
        .await;
        let client = process.client().await;
        for model in [
            r"m\n2026-01-01T00:00:00Z ERROR forged line",
            r"m\r\nforged line",
            r"m\u001b[31mforged\u009b",
            r"m\u2028forged\u0000",
            r#"m\",\"level\":\"ERROR\",\"forged\":\"line"#,
        ] {
            let body =
                format!(r#"{{"model":"{model}","stream":true,"user":"{model}","messages":[]}}"#);
            let client = client
                .with("user-agent", &format!("forged {FORGED}"))
                .with("x-forwarded-for", "forged\",\"level\":\"ERROR");
            client
                .send("POST", "/v1/chat/completions", &body)
                .await
                .all()
                .await;
            let path = "/echo/%0aforged%20line/%1b[31m?a=%0d%0aforged";
            client.get(path).await.all().await;
        }
        // Heads that are refused.
        for head in [
            format!("GET /{FORGED} HTTP/1.1\r\nhost: h\r\n\r\n"),
            format!("{FORGED}\r\n\r\n"),
            format!("GET / HTTP/1.1\r\nhost: {FORGED}\r\nconnection: close\r\n\r\n"),
            "GET / HTTP/1.1\r\nhost: h\r\nx: a\nforged line\r\n\r\n".to_owned(),
        ] {
            Wire::open(&client, &head).await.rest().await;
        }
        let admin = process.admin().await;
        for of in ["%0aforged", "forged%1b[31m", "a\u{2028}forged"] {
            let path = format!("/admin/backends/{of}/drain");
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            Wire::open(&admin, &request).await.rest().await;
        }
        assert_lines(process, format).await;
    }
}

async fn assert_lines(process: Process, format: &str) {
    process.signal("TERM");
    let (status, output) = process.ended().await;
    assert_eq!(status.code(), Some(0));
    let steers = |c: char| (c.is_control() && c != '\n') || ['\u{2028}', '\u{202e}'].contains(&c);
    for line in output.lines() {
        assert!(!line.contains(steers), "{format}: {line:?}");
        let begins = line.trim_start();
        assert!(!begins.starts_with("forged"), "{format}: {line:?}");
        assert!(!begins.contains(" ERROR "), "{format}: {line:?}");
        if format == "json" && line.starts_with('{') {
            let value: serde_json::Value = serde_json::from_str(line).expect("one object");
            assert_ne!(value["level"], "ERROR", "{line}");
            assert_eq!(value.get("forged"), None, "{line}");
        }
    }
}
