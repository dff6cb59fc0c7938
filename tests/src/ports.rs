//! Ports that no other test takes while a service is between two processes.

use anyhow::{Context as _, Result, bail};
use devstack::free_port;
use std::fs::{self, File, TryLockError};

const TRIES: usize = 100;

/// A port on 127.0.0.1, kept for this test as long as the value lives, also while nobody listens on it.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// Locked; the kernel lets go of it with the process, however that ends.
    _lock: File,
}

impl Port {
    /// Takes a port that is free and that no other test keeps.
    ///
    /// # Errors
    /// When there is none, or the lock files cannot be written.
    pub fn lease() -> Result<Self> {
        let folder = std::env::temp_dir().join("askback-test-ports");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for _ in 0..TRIES {
            let number = free_port()?;
            let lock = File::create(folder.join(number.to_string())).context("cannot write the lock of a port")?;
            match lock.try_lock() {
                Ok(()) => return Ok(Self { number, _lock: lock }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error).context("cannot lock a port"),
            }
        }
        bail!("no port is free after {TRIES} tries")
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }
}
