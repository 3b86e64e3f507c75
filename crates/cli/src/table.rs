//! Columns of text.

/// Rows in columns, left-aligned and two spaces apart; the last column is not padded.
pub(crate) fn columns<R: AsRef<[String]>>(rows: &[R]) -> String {
    let count = rows.first().map_or(0, |row| row.as_ref().len());
    let width = |column: usize| {
        rows.iter().map(|row| row.as_ref()[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A text in lines of at most so many columns, broken between words; a word that is longer is
/// broken anywhere.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = vec![String::new()];
    let mut filled = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if filled > 0 && filled + 1 + length > columns {
            lines.push(String::new());
            filled = 0;
        }
        let line = lines.last_mut().expect("there is one");
        if filled > 0 {
            line.push(' ');
            filled += 1;
        }
        for letter in word.chars() {
            if filled == columns {
                lines.push(String::new());
                filled = 0;
            }
            lines.last_mut().expect("there is one").push(letter);
            filled += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [["a".into(), "long".into(), "x".into()], ["bbb".into(), String::new(), "y".into()]];
        assert_eq!(columns(&rows), "a    long  x\nbbb        y");
    }

    #[test]
    fn lines_are_broken_between_words_and_within_those_that_are_too_long() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("a bcdefgh i", 4), ["a", "bcde", "fgh", "i"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
