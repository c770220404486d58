//! How answers look to people. Anything in them may be a client's own words, so nothing of it reaches a terminal that
//! could steer one.

use serde_json::Value;

/// The list of streams.
pub(super) fn streams(answer: &Value) -> String {
    let head = [
        "STREAM",
        "STATUS",
        "MODEL",
        "BACKEND",
        "CREATED",
        "READERS",
        "ATTEMPTS",
        "MIGRATIONS",
    ];
    let rows = items(&answer["data"]).iter().map(|state| {
        let backend = items(&state["backends"]).last().unwrap_or(&Value::Null);
        vec![
            text(&state["stream_id"]),
            text(&state["status"]),
            text(&state["model"]),
            text(backend),
            text(&state["created_at"]),
            text(&state["readers"]),
            text(&state["attempts"]),
            text(&state["migrations"]),
        ]
    });
    table(&head, rows)
}

/// The list of backends.
pub(super) fn backends(answer: &Value) -> String {
    let head = [
        "BACKEND",
        "STATE",
        "SINCE",
        "ENGINE",
        "GROUP",
        "MIGRATION",
        "WEIGHT",
        "IN FLIGHT",
        "STREAMS",
        "LAST FAILURE",
    ];
    let rows = items(&answer["data"]).iter().map(|backend| {
        vec![
            text(&backend["name"]),
            text(&backend["state"]),
            text(&backend["since"]),
            text(&backend["engine"]),
            text(&backend["group"]),
            text(&backend["migration"]),
            text(&backend["weight"]),
            text(&backend["in_flight"]),
            text(&backend["generations"]),
            text(&backend["last_failure"]["class"]),
        ]
    });
    table(&head, rows)
}

/// One object, a line for each member.
pub(super) fn members(answer: &Value) -> String {
    let rows = answer.as_object().into_iter().flatten();
    let rows = rows
        .filter(|(name, _)| *name != "object")
        .map(|(name, value)| vec![name.clone(), text(value)]);
    table(&[], rows)
}

/// A stream that was stopped.
pub(super) fn stopped(answer: &Value) -> String {
    format!(
        "{}: {}",
        text(&answer["stream_id"]),
        text(&answer["status"])
    )
}

/// A stream that was moved, or would be.
pub(super) fn migration(answer: &Value) -> String {
    let id = text(&answer["stream_id"]);
    let by = text(&answer["method"]);
    if answer["moved"] == true {
        let (from, to) = (text(&answer["from"]), text(&answer["to"]));
        return format!("{id}: moved from {from} to {to} by {by}");
    }
    if answer["would_move"] == true {
        return format!("{id}: would move to {} by {by}", text(&answer["target"]));
    }
    format!("{id}: would stay\n{}", gates(&answer["gates"]))
}

/// A backend that was drained, as far as it was.
pub(super) fn drain(answer: &Value) -> String {
    let remaining = items(&answer["remaining"]);
    let mut out = format!(
        "{}: {}; {} moved, {} left, {} ended, {} remaining, {} other requests\n",
        text(&answer["backend"]),
        if answer["drained"] == true {
            "drained"
        } else {
            "not drained"
        },
        text(&answer["moved"]),
        text(&answer["left"]),
        text(&answer["ended"]),
        remaining.len(),
        text(&answer["other_requests"]),
    );
    if !answer["warning"].is_null() {
        out.push_str(&format!("warning: {}\n", text(&answer["warning"])));
    }
    if !remaining.is_empty() {
        let rows = remaining.iter().map(|one| {
            let of_gates = |member: &str| {
                let gates = items(&one["gates"]).iter();
                gates.map(|gate| text(&gate[member])).collect::<Vec<_>>()
            };
            // What each of them saw says more than that they refuse.
            let reason = match of_gates("message") {
                said if said.is_empty() => text(&one["reason"]),
                said => said.join("; "),
            };
            vec![text(&one["stream_id"]), of_gates("gate").join(","), reason]
        });
        out.push_str(&table(&["STREAM", "GATES", "REASON"], rows));
    }
    out
}

/// A replica that leaves, as far as it has.
pub(super) fn left(answer: &Value) -> String {
    let remaining = items(&answer["remaining"]);
    let mut out = format!(
        "{}; {} handed over, {} remaining\n",
        if answer["drained"] == true {
            "drained"
        } else {
            "not drained"
        },
        text(&answer["handed_over"]),
        remaining.len(),
    );
    if !remaining.is_empty() {
        let rows = remaining
            .iter()
            .map(|one| vec![text(&one["stream_id"]), text(&one["reason"])]);
        out.push_str(&table(&["STREAM", "REASON"], rows));
    }
    out
}

/// A backend that gets attempts again.
pub(super) fn undrained(answer: &Value) -> String {
    format!("{}: {}", text(&answer["name"]), text(&answer["state"]))
}

/// An error of ours.
pub(super) fn refused(answer: &Value) -> String {
    let error = &answer["error"];
    let said = format!(
        "streamweld: {} ({})\n",
        text(&error["message"]),
        text(&error["code"])
    );
    said + &gates(&error["gates"])
}

/// Those that refuse.
fn gates(gates: &Value) -> String {
    let refusing = items(gates).iter().filter(|gate| gate["open"] == false);
    let rows: Vec<_> = refusing
        .map(|gate| vec![text(&gate["gate"]), text(&gate["message"])])
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(&["GATE", "SAYS"], rows.into_iter()),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A value as a cell. Nothing is a dash.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => harmless(text),
        other => harmless(&other.to_string()),
    }
}

fn harmless(text: &str) -> String {
    let steers = |c: char| {
        // The second kind turns the direction in which a terminal writes.
        c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let escaped = |c: char| match steers(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Columns as wide as they have to be, two spaces between.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let head = (!head.is_empty()).then_some(head);
    let rows: Vec<Vec<String>> = head.into_iter().chain(rows).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let answer = json!({"data": [
            {"name": "a", "state": "up", "since": "s", "engine": "vllm", "group": "g", "migration": "exact",
             "weight": 1, "in_flight": 12, "generations": 11, "last_failure": null},
            {"name": "longer", "state": "draining", "since": "s", "engine": "vllm", "group": null, "migration": "off",
             "weight": 10, "in_flight": 0, "generations": 0, "last_failure": {"class": "server_error"}},
        ]});
        let expected = "\
BACKEND  STATE     SINCE  ENGINE  GROUP  MIGRATION  WEIGHT  IN FLIGHT  STREAMS  LAST FAILURE
a        up        s      vllm    g      exact      1       12         11       -
longer   draining  s      vllm    -      off        10      0          0        server_error
";
        assert_eq!(backends(&answer), expected);
        assert!(streams(&json!({"data": []})).starts_with("STREAM  STATUS"));
    }

    #[test]
    fn what_a_client_wrote_does_not_steer_a_terminal() {
        let answer =
            json!({"data": [{"stream_id": "i", "model": "m\u{1b}[2J\u{9b}31m\n\u{202d}x"}]});
        let shown = streams(&answer);
        assert!(shown.contains(r"m\u{1b}[2J\u{9b}31m\n\u{202d}x"), "{shown}");
        assert_eq!(shown.lines().count(), 2);
    }

    #[test]
    fn a_drain_names_what_is_left() {
        let answer = json!({"backend": "a", "drained": false, "moved": 3, "left": 2, "ended": 4, "other_requests": 1, "warning": "careful",
            "remaining": [{"stream_id": "i", "reason": "it stays", "gates": [
                {"gate": "policy", "open": false, "message": "off"},
                {"gate": "seam", "open": false, "message": "none"}]}]});
        let expected = "\
a: not drained; 3 moved, 2 left, 4 ended, 1 remaining, 1 other requests
warning: careful
STREAM  GATES        REASON
i       policy,seam  off; none
";
        assert_eq!(drain(&answer), expected);
    }

    #[test]
    fn a_dry_run_names_the_gates_that_refuse() {
        let mut answer = json!({"stream_id": "i", "would_move": false, "target": "b", "method": "prefill", "gates": [
            {"gate": "policy", "open": true, "message": null},
            {"gate": "seam", "open": false, "message": "there is none"}]});
        let expected = "i: would stay\nGATE  SAYS\nseam  there is none\n";
        assert_eq!(migration(&answer), expected);
        answer["would_move"] = json!(true);
        assert_eq!(migration(&answer), "i: would move to b by prefill");
        let moved =
            json!({"stream_id": "i", "moved": true, "from": "a", "to": "b", "method": "restart"});
        assert_eq!(migration(&moved), "i: moved from a to b by restart");
    }

    #[test]
    fn a_refusal_is_told_with_its_code_and_gates() {
        let mut answer = json!({"error": {"message": "it stays", "code": "migration_refused", "gates": [
            {"gate": "policy", "open": false, "message": "off"}]}});
        let expected = "streamweld: it stays (migration_refused)\nGATE    SAYS\npolicy  off\n";
        assert_eq!(refused(&answer), expected);
        answer["error"]["gates"].take();
        assert_eq!(
            refused(&answer),
            "streamweld: it stays (migration_refused)\n"
        );
    }
}
