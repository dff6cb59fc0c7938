//! A response body that says when it has been written whole.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body in one piece. When the server lets go of it after it took all of it, `when_written` is called; when the
/// connection breaks before, it is not.
pub(crate) struct Written<F: FnOnce()> {
    left: Option<Bytes>,
    when_written: Option<F>,
}

impl<F: FnOnce()> Written<F> {
    pub(crate) const fn new(body: Bytes, when_written: F) -> Self {
        Self { left: Some(body), when_written: Some(when_written) }
    }
}

impl<F: FnOnce() + Unpin> Body for Written<F> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.left.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl<F: FnOnce()> Drop for Written<F> {
    fn drop(&mut self) {
        if let (None, Some(when_written)) = (&self.left, self.when_written.take()) {
            when_written();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use std::cell::Cell;

    #[tokio::test]
    async fn only_a_body_that_was_taken_whole_was_written() {
        let written = Cell::new(0);
        drop(Written::new(Bytes::from_static(b"answer"), || written.set(written.get() + 1)));
        assert_eq!(written.get(), 0);
        let body = Written::new(Bytes::from_static(b"answer"), || written.set(written.get() + 1));
        assert_eq!(body.size_hint().exact(), Some(6));
        let taken = body.collect().await.expect("it cannot fail").to_bytes();
        assert_eq!((&taken[..], written.get()), (&b"answer"[..], 1));
    }
}
