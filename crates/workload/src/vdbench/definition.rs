//! Definitions of a parameter file: lines of parameters, with those that a `default` gives.

use super::Refusal;

/// One parameter of a definition, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) key: String,
    /// Values: several where they stand in brackets.
    pub(super) values: Vec<String>,
    pub(super) line: u32,
}

impl Parameter {
    /// The only value.
    pub(super) fn value(&self) -> Result<&str, Refusal> {
        match self.values.as_slice() {
            [value] => Ok(value),
            _ => Err(self.refused("several values are not supported")),
        }
    }

    /// The only value as a number.
    pub(super) fn number(&self) -> Result<f64, Refusal> {
        self.numbers()?.first().copied().ok_or_else(|| self.refused("it has no value"))
    }

    /// All values as numbers.
    pub(super) fn numbers(&self) -> Result<Vec<f64>, Refusal> {
        let number = |text: &String| {
            let number = text.trim_end_matches('%').parse::<f64>().ok();
            let wrong = || self.refused(&format!("`{text}` is not a number"));
            number.filter(|it| it.is_finite()).ok_or_else(wrong)
        };
        self.values.iter().map(number).collect()
    }

    pub(super) fn refused(&self, why: &str) -> Refusal {
        (self.line, format!("{}={}: {why}", self.key, self.values.join(",")))
    }
}

/// One line of parameters; the first of them says what it defines.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// `sd`, `wd`, `rd`, or the key of a general parameter.
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) line: u32,
    /// The parameters after the first one, and those of the `default` before it that it lacks.
    pub(super) parameters: Vec<Parameter>,
}

impl Definition {
    /// The parameter `key`.
    pub(super) fn get(&self, key: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.key == key)
    }
}

/// The definitions of a file, in their order.
pub(super) fn definitions(text: &str) -> Result<Vec<Definition>, Refusal> {
    let mut all: Vec<Definition> = Vec::new();
    let mut defaults: Vec<Definition> = Vec::new();
    for (written, line) in joined(text) {
        let mut parameters = parameters(&written, line)?;
        if parameters.is_empty() {
            continue;
        }
        let first = parameters.remove(0);
        let (kind, name) = (first.key.clone(), first.values.join(","));
        let mut definition = Definition { kind, name, line, parameters };
        if !["sd", "wd", "rd"].contains(&first.key.as_str()) {
            definition.parameters.insert(0, first);
            all.push(definition);
            continue;
        }
        let default = defaults.iter().find(|it| it.kind == definition.kind);
        let inherited = default.into_iter().flat_map(|it| &it.parameters);
        let lacking: Vec<Parameter> =
            inherited.filter(|it| definition.get(&it.key).is_none()).cloned().collect();
        definition.parameters.extend(lacking);
        if definition.name == "default" {
            defaults.retain(|it| it.kind != definition.kind);
            defaults.push(definition);
        } else {
            all.push(definition);
        }
    }
    Ok(all)
}

/// Lines without comments, those that end with a comma joined with the next.
fn joined(text: &str) -> Vec<(String, u32)> {
    let mut lines: Vec<(String, u32)> = Vec::new();
    let mut goes_on = false;
    for (written, line) in text.lines().zip(1_u32..) {
        let written = written.trim();
        if written.is_empty() || written.starts_with(['*', '#', '/']) {
            continue;
        }
        // What follows a blank is a comment.
        let written = written.split_whitespace().next().unwrap_or_default();
        match lines.last_mut() {
            Some((before, _)) if goes_on => before.push_str(written),
            _ => lines.push((written.to_owned(), line)),
        }
        goes_on = written.ends_with(',');
    }
    lines
}

/// `a=1,b=(2,3)` as parameters.
fn parameters(text: &str, line: u32) -> Result<Vec<Parameter>, Refusal> {
    let mut parts: Vec<String> = vec![String::new()];
    let mut depth = 0_u32;
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if letter == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(letter);
        }
    }
    let mut found: Vec<Parameter> = Vec::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err((line, format!("`{part}` is not a parameter such as xfersize=4k")));
        };
        let value = value.trim_start_matches('(').trim_end_matches(')').to_lowercase();
        let values = value.split(',').map(|it| it.trim().to_owned()).collect();
        found.push(Parameter { key: key.trim().to_lowercase(), values, line });
    }
    Ok(found)
}
