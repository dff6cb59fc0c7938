//! Locks between processes. The kernel drops them when their holder dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use anyhow::{Context, Result};

/// A `flock` on a file, held until the value is dropped.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits until nobody else holds the lock in any mode.
    pub(crate) fn exclusive(path: &Path) -> Result<Self> {
        let file = open(path)?;
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self { _file: file })
    }

    /// Waits until nobody holds the lock exclusively; any number of holders may share it.
    pub(crate) fn shared(path: &Path) -> Result<Self> {
        let file = open(path)?;
        file.lock_shared().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self { _file: file })
    }

    /// Takes the lock exclusively, or returns `None` at once when somebody holds it.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("cannot open the lock file {}", path.display()))
}
