//! The NBD server: arbitrary bytes from a client, before and after the handshake.

use std::sync::Arc;

use export::nbd::{Dialect, Negotiation, Session, Terms};
use export::{Exports, Replies};

/// Has a server read `input`, the first byte of which chooses how the client begins.
pub(crate) fn run(input: &[u8]) {
    let Some((choice, input)) = input.split_first() else { return };
    let exports = crate::exports(choice & 0x80 != 0);
    let dialect = match choice & 3 {
        0 => return negotiate(exports, input),
        1 => Dialect::Simple,
        2 => Dialect::Structured,
        _ => Dialect::Extended,
    };
    let export = Arc::clone(exports.find("fuzz").expect("it is there"));
    serve(Terms { export, dialect, reports_allocation: choice & 0x40 != 0 }, input);
}

fn negotiate(exports: Exports, input: &[u8]) {
    let mut replies = Replies::new();
    let mut negotiation = Negotiation::new(exports, &mut replies);
    let Ok(taken) = negotiation.take(input, &mut replies) else { return };
    if let Some(terms) = negotiation.into_terms() {
        serve(terms, &input[taken.used_bytes..]);
    }
}

fn serve(terms: Terms, mut input: &[u8]) {
    let mut session = Session::new(terms);
    let mut replies = Replies::new();
    while let Ok(taken) = session.take(input, &mut replies) {
        input = &input[taken.used_bytes..];
        session.settle(&mut replies);
        replies.clear();
        if taken.wanted_bytes > 0 || session.is_over() {
            return;
        }
        assert!(taken.used_bytes > 0, "replies were sent, and still nothing was taken");
    }
}
