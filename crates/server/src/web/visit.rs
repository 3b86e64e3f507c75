//! A request that was accepted, on its way to an answer.

use std::io;

use super::connection::Connection;
use super::connections::Entry;
use super::reply::Reply;
use super::request::Request;
use super::token::Token;

/// Accepted request, with the connection to answer on.
pub(super) struct Visit<'a> {
    pub(super) request: &'a Request,
    pub(super) token: &'a Token,
    pub(super) entry: &'a Entry,
    pub(super) connection: &'a Connection,
}

impl Visit<'_> {
    pub(super) fn is_head(&self) -> bool {
        self.request.method == "HEAD"
    }

    pub(super) fn send(&self, reply: &Reply) -> io::Result<()> {
        reply.send(self.connection, self.is_head())
    }
}
