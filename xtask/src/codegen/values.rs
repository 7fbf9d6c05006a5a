//! The table of the chart's values, from the comments in values.yaml that begin with `# --`. It refuses a value without
//! one, and YAML beyond what such a file needs: keys by two spaces, short values on the key's line.

use anyhow::{Result, bail};

/// A value: its path, its default, what it is for.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    path: String,
    default: String,
    about: String,
}

/// The table as Markdown.
pub(super) fn table(values: &str) -> Result<String> {
    let mut text = String::from("| value | default | |\n|---|---|---|\n");
    for Row { path, default, about } in rows(values)? {
        let default = if default.is_empty() { default } else { format!("`{default}`") };
        text.push_str(&format!("| `{path}` | {default} | {about} |\n"));
    }
    Ok(text)
}

fn rows(values: &str) -> Result<Vec<Row>> {
    let (mut rows, mut above) = (Vec::<Row>::new(), Vec::<&str>::new());
    let mut about = String::new();
    // A value that has several lines is told of once, at its own key.
    let mut inside: Option<usize> = None;
    for (number, line) in (1..).zip(values.lines()) {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some(comment) = text.strip_prefix('#') {
            match comment.strip_prefix(" -- ") {
                Some(begin) => about = begin.to_owned(),
                None if !about.is_empty() => about = format!("{about} {}", comment.trim()),
                None => {}
            }
            continue;
        }
        if text.is_empty() || inside.is_some_and(|outer| depth > outer) {
            if let (false, Some(row)) = (text.is_empty(), rows.last_mut()) {
                let gap = if row.default.is_empty() { "" } else { ", " };
                row.default = format!("{}{gap}{text}", row.default);
            }
            continue;
        }
        let Some((key, value)) = text.split_once(':').filter(|_| depth % 2 == 0) else {
            bail!("values.yaml:{number}: not a key with its value: {text}");
        };
        above.truncate(depth / 2);
        above.push(key);
        inside = None;
        if about.is_empty() && value.is_empty() {
            continue;
        }
        if about.is_empty() {
            bail!("values.yaml:{number}: `{}` has no comment that begins with `# -- `", above.join("."));
        }
        inside = value.is_empty().then_some(depth);
        rows.push(Row {
            path: above.join("."),
            default: value.trim().to_owned(),
            about: std::mem::take(&mut about),
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &str = "\
# Not told.

image:
  # -- Where it is:
  # a registry.
  repository: spanwire

a:
  b:
    # -- Deep.
    c: null
  # -- Several lines.
  d:
    requests: {cpu: 1}
    limits: {cpu: 2}
# -- A list.
e: []
";

    #[test]
    fn every_value_has_a_row() {
        let rows = rows(VALUES).unwrap();
        let row = |path: &str, default: &str, about: &str| Row {
            path: path.to_owned(),
            default: default.to_owned(),
            about: about.to_owned(),
        };
        assert_eq!(rows[0], row("image.repository", "spanwire", "Where it is: a registry."));
        assert_eq!(rows[1], row("a.b.c", "null", "Deep."));
        assert_eq!(rows[2], row("a.d", "requests: {cpu: 1}, limits: {cpu: 2}", "Several lines."));
        assert_eq!(rows[3], row("e", "[]", "A list."));
        assert_eq!(rows.len(), 4);
        assert!(table(VALUES).unwrap().contains("| `e` | `[]` | A list. |\n"));
    }

    #[test]
    fn a_value_without_a_comment_is_refused() {
        let error = table("a:\n  b: 1\n").unwrap_err().to_string();
        assert!(error.contains("values.yaml:2") && error.contains("`a.b`"), "{error}");
    }
}
