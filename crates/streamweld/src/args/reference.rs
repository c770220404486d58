//! `docs/configuration.md`, made from what the flags say of themselves.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, CommandFactory};

use super::{Args, FILE};
use crate::reload::is_live;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

/// The page as it has to be.
fn page() -> String {
    let mut page = String::from(HEAD);
    let mut command = Args::command();
    // An argument shows its values once its command is complete.
    command.build();
    let serve = command.find_subcommand("serve").expect("it is one");
    for setting in serve.get_arguments() {
        if setting.get_env().is_some() && setting.get_id() != FILE {
            page.push_str(&row(setting));
        }
    }
    page.push_str(FOOT);
    page
}

fn row(setting: &Arg) -> String {
    let name = setting.get_id().as_str();
    let mut value = setting
        .get_value_names()
        .and_then(|names| names.first())
        .map_or_else(String::new, |name| name.to_string());
    let possible = setting.get_possible_values();
    if !possible.is_empty() && !matches!(value.as_str(), "BOOL") {
        let names: Vec<&str> = possible.iter().map(|value| value.get_name()).collect();
        value = names.join(", ");
    }
    if matches!(setting.get_action(), ArgAction::Append) {
        value = format!("[{value}, …]");
    }
    let help = setting.get_help().map(ToString::to_string);
    let mut help = help.unwrap_or_default().replace('|', "\\|");
    let default = match setting.get_default_values() {
        [] => take_default(&mut help),
        values => {
            let values = values.iter().map(|value| value.to_string_lossy());
            values.collect::<Vec<_>>().join(", ")
        }
    };
    // It is the array that says it here.
    let help = help
        .replace(" (repeatable)", "")
        .replace("(repeatable; options below)", "(options below)");
    let when = if is_live(name) {
        "at once"
    } else {
        "at the start"
    };
    let mut row = String::new();
    writeln!(
        row,
        "| `{name}` | {} | {default} | {when} | {help} |",
        value.to_lowercase()
    )
    .expect("into memory");
    row
}

/// `… [default: never]`: what is no value is said in words.
fn take_default(help: &mut String) -> String {
    let Some((text, default)) = help.split_once(" [default: ") else {
        return "none".to_owned();
    };
    let default = default.trim_end_matches(']').to_owned();
    *help = text.to_owned();
    default
}

const HEAD: &str = "\
# Configuration

Every setting of `streamweld serve`. A test writes this page from the help of the flags (`make reference`), so it says what
`streamweld serve --help` says.

A setting stands in one of three places, and the first that has it counts (protocol.md 13.2):

1. a flag: `--journal-total=1GiB`;
2. a variable: `STREAMWELD_JOURNAL_TOTAL=1GiB`;
3. the settings file that `--config` or `STREAMWELD_CONFIG` names: `journal_total = \"1GiB\"`.

```toml
# streamweld.toml
listen = \"0.0.0.0:8080\"
admin_listen = \"0.0.0.0:9090\"
admin_token_file = \"/run/secrets/streamweld-admin\"
journal = \"redis://redis:6379/0\"
journal_password_file = \"/run/secrets/redis-password\"

[[backend]]
url = \"http://10.0.0.1:8000\"
name = \"a\"
engine = \"vllm\"
group = \"llama\"

[[backend]]
url = \"http://10.0.0.2:8000\"
name = \"b\"
engine = \"vllm\"
group = \"llama\"
```

| command | what it does |
|---|---|
| `streamweld check-config --config streamweld.toml` | says whether `serve` would take it, and starts nothing: exit code 0, or 2 with every fault, its file and line |
| `streamweld config show --config streamweld.toml` | shows what `serve` would use, and where each value stands |
| `kill -HUP PID` | has a running `serve` read everything again; a file that changes is noticed within 5 s |

What is refused when it is read again changes nothing: the settings from before hold, the log says why, and
`streamweld_config_last_reload_successful` is 0. *At once* means: for requests that come, and for generations that begin, as soon as it was
read again; *at the start* means that the log names it, and that it holds from the next start on.

A time is written `15s`, `10m`, `1h 30m`; a size `16MiB`, `512KiB` or in bytes. Secrets stand in files of their own, which settings
that end in `_file` name; no flag takes one.

| setting | value | default | holds | meaning |
|---|---|---|---|---|
";

const FOOT: &str = "
The members of a `[[backend]]` are `url`, `name`, `engine`, `family`, `group`, `weight`, `dns`, `credential_file` and `health`; what they mean is
in protocol.md 13, and what is refused in 13.1.
";

#[test]
fn the_page_is_what_the_flags_say() {
    let page = page();
    if std::env::var_os("STREAMWELD_WRITE_REFERENCE").is_some() {
        std::fs::write(PAGE, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page, "run `make reference`");
}

/// What stands there as an example is one.
#[test]
fn the_example_on_the_page_is_well() {
    let (_, rest) = HEAD.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let secrets =
        ["admin", "redis"].map(|name| super::tests::file(&format!("{name}-secret"), "word\n"));
    let example = example
        .replace("/run/secrets/streamweld-admin", &secrets[0])
        .replace("/run/secrets/redis-password", &secrets[1]);
    let file = super::tests::file("example.toml", &example);
    super::tests::read(&["check-config", "--config", &file]).expect("well");
}
