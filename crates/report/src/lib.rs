//! What a reviewer sees: one self-contained HTML file.

use results::Run;

/// The review of `runs`, side by side, under the heading `title`: one HTML file, nothing beside.
pub fn review(runs: &[Run], title: &str) -> String {
    let items: Vec<String> = runs.iter().map(|run| escaped(&run.id)).collect();
    let (title, items) = (escaped(title), items.join("<li>"));
    format!("<!doctype html><title>{title}</title><h1>{title}</h1><ul><li>{items}</ul>")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
