//! Answers as text for people. It refuses colour and width of its own: output is read by pipes as well.

mod plan;
mod status;

use comfy_table::{Table, presets::NOTHING};

pub(crate) use plan::plan;
pub(crate) use status::status;

/// A table without lines, indented.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head);
    for row in rows {
        table.add_row(row);
    }
    let lines = table.to_string();
    lines.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}

/// A value, or a dash.
fn or_dash(value: Option<&str>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or("-").to_owned()
}
