//! Text on its way into HTML: whatever comes from a run passes through here.

use std::fmt;

use results::Step;

/// A string that is displayed escaped, safe as element text and inside quoted attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// A sentence in which what stands between backticks is code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code<'a>(pub(crate) &'a str);

impl fmt::Display for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.split('`').enumerate() {
            match index % 2 {
                0 => Text(part).fmt(f)?,
                _ => write!(f, "<code>{}</code>", Text(part))?,
            }
        }
        Ok(())
    }
}

/// Text of a cell of a table; what follows a line break is its interval, below it in grey.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a>(pub(crate) &'a str);

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once('\n') {
            Some((figure, interval)) => {
                write!(
                    f,
                    "{}<span class=\"interval below\">{}</span>",
                    Text(figure),
                    Text(interval)
                )
            }
            None => Text(self.0).fmt(f),
        }
    }
}

/// A name for an element, from any text: letters, digits and hyphens only.
pub(crate) fn anchor(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

/// `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// The loads of `steps`, each once: `T4Q4 and T16Q16`.
pub(crate) fn loads<'a>(steps: impl IntoIterator<Item = &'a Step>) -> String {
    let mut loads: Vec<String> = Vec::new();
    for step in steps {
        let load = format!("T{}Q{}", step.threads, step.queue_per_thread);
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    listed(&loads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        let hostile = r#"<b a="x" b='y'>&"#;
        assert_eq!(Text(hostile).to_string(), "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;");
        assert_eq!(Code("add `<fill>` to it").to_string(), "add <code>&lt;fill&gt;</code> to it");
        assert_eq!(
            Cell("1 & 2\n<3>").to_string(),
            "1 &amp; 2<span class=\"interval below\">&lt;3&gt;</span>"
        );
        assert_eq!(anchor("8K 70/30 \"x\""), "8k-70-30--x-");
    }
}
