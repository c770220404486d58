//! A backend as a table: its options are members, and the text is what a flag says.

use toml::de::{DeTable, DeValue};

use super::{scalar, unknown};

/// The members that there are. All but the URL are written `NAME=VALUE` behind it, with `-` for `_`.
const MEMBERS: [&str; 9] = [
    "url",
    "name",
    "engine",
    "family",
    "group",
    "weight",
    "dns",
    "credential_file",
    "health",
];

/// A table as a flag says it: `URL[,OPTION…]`.
///
/// # Errors
/// Its URL is missing, or a member is unknown, or has a value that cannot be said in that way.
pub(super) fn written(table: &DeTable<'_>) -> Result<String, String> {
    let mut text = None;
    let mut options = String::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let of = |fault: String| format!("has a member {name} that {fault}");
        if !MEMBERS.contains(&name) {
            return Err(of(unknown_member(name)));
        }
        let value = match (name, value.get_ref()) {
            // An option without a value.
            ("dns", DeValue::Boolean(true)) => {
                options.push_str(",dns");
                continue;
            }
            ("dns", DeValue::Boolean(false)) => continue,
            ("dns", _) => return Err(of("is true or false".to_owned())),
            (_, value) => scalar(value).map_err(of)?,
        };
        if value.contains(|c: char| c == ',' || c.is_whitespace()) {
            return Err(of("has a comma or white space".to_owned()));
        }
        if name == "url" {
            text = Some(value);
        } else {
            options.push(',');
            options.push_str(&name.replace('_', "-"));
            options.push('=');
            options.push_str(&value);
        }
    }
    let mut text = text.ok_or("has no url")?;
    text.push_str(&options);
    Ok(text)
}

fn unknown_member(name: &str) -> String {
    unknown(name, MEMBERS.into_iter()).replace("is no setting", "there is not")
}
