//! The way out to push runners, over real sockets.

mod cancels;
mod sockets;
mod statuses;
mod support;
