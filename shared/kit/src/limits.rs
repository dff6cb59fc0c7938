//! Limits of the process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The largest body of a request that has no limit of its own, in bytes.
pub const BODY: usize = 256 * 1024;
/// The largest page of a list.
pub const PAGE: u32 = 200;
/// The size of a page when none is asked for.
pub const PAGE_DEFAULT: u32 = 50;
/// The longest `Idempotency-Key`, in characters.
pub const IDEMPOTENCY_KEY: usize = 255;

/// Raises the soft limit of open files to the hard one: each waiter and each stream is an open file, and the usual
/// soft limit of 1,024 ends an instance long before its memory does. Returns the limit that holds now.
///
/// # Errors
/// What the system says; the process can go on with the limit it had.
pub fn raise_open_files() -> std::io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = raise_open_files().expect("a process may raise its soft limit");
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).expect("limits can be read"), (limit, limit));
    }
}
