//! The mark of a model that no published rate confirms, which a report writes beside its name.

/// Words beside the name of such a model.
pub const UNVALIDATED: &str = "unvalidated model";

/// Sentence that explains the mark, once on a page.
pub const UNVALIDATED_REASON: &str = "Unvalidated model: none of its rates has been compared with \
                                      a published one, so nothing confirms its figures.";

/// `name` of a drive, with the mark where its model `is_unvalidated`.
pub fn marked(name: &str, is_unvalidated: bool) -> String {
    if is_unvalidated { format!("{name}, {UNVALIDATED}") } else { name.to_owned() }
}

/// True if `flag` is not set: it is left out of a file then.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
pub(crate) const fn is_unset(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_marked_where_nothing_confirms_the_model() {
        assert_eq!(marked("X 1 TB (MLC)", true), "X 1 TB (MLC), unvalidated model");
        assert_eq!(marked("X 1 TB (MLC)", false), "X 1 TB (MLC)");
    }
}
