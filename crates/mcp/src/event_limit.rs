//! A limit on each event of an answer: a stream of events may go on, but no single message may be longer than one over a pipe.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};

/// A body of events, of which none is longer than this.
pub(crate) struct LimitedEvents<B> {
    body: B,
    limit: usize,
    /// Bytes of the event that is being read.
    event: usize,
    /// Bytes of its last line.
    line: usize,
    was_return: bool,
}

impl<B> LimitedEvents<B> {
    pub(crate) fn new(body: B, limit: usize) -> Self {
        Self { body, limit, event: 0, line: 0, was_return: false }
    }

    /// Whether the event is still short enough with these bytes. An empty line ends it.
    fn add(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            let is_second_half = self.was_return && *byte == b'\n';
            self.was_return = *byte == b'\r';
            match byte {
                _ if is_second_half => {}
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => (self.event, self.line) = (self.event + 1, self.line + 1),
            }
            if self.event > self.limit {
                return false;
            }
        }
        true
    }
}

impl<B> Body for LimitedEvents<B>
where
    B: Body<Error = io::Error> + Unpin,
    B::Data: AsRef<[u8]>,
{
    type Data = B::Data;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        let fits = match data {
            Some(data) => self.add(data.as_ref()),
            None => true,
        };
        let too_long =
            || io::Error::other(format!("it sent a message of more than {} MiB", self.limit >> 20));
        Poll::Ready(if fits { frame } else { Some(Err(too_long())) })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "event_limit_tests.rs"]
mod tests;
