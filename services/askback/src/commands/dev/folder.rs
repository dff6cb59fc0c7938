//! The data folder: what a start leaves for clients and for the next start.

use crate::failure::Failure;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The data folder of one `askback dev`.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder if it is absent, and keeps git away from it: it holds a token.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let folder = Self(path.to_owned());
        fs::create_dir_all(path).map_err(|why| folder.failure("", &why))?;
        if folder.read(".gitignore")?.is_none() {
            folder.write(".gitignore", "*")?;
        }
        Ok(folder)
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The text of a file, trimmed; `None` if it is absent or empty.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, Failure> {
        match fs::read_to_string(self.0.join(name)) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(self.failure(name, &why)),
        }
    }

    /// Writes a file that only this account can read. A reader finds the old text or the new one, never a part.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.replace(name, text).map_err(|why| self.failure(name, &why))
    }

    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.0.join(format!("{name}.new"));
        // What a killed predecessor left may have another mode.
        match fs::remove_file(&new) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(new, self.0.join(name))
    }

    fn failure(&self, name: &str, why: &io::Error) -> Failure {
        Failure::own("data_folder", format!("{}: {why}", self.0.join(name).display()))
            .with_hint("give another folder with --data-dir")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_written_is_read_and_is_nobody_elses() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::open(&root.path().join("a/b")).expect("a fresh folder takes another");
        assert_eq!(folder.read("token").expect("it can be read"), None);
        fs::write(folder.path().join("token.new"), "left over").expect("a fresh folder takes a file");
        folder.write("token", "abk_1").expect("it can be written");
        folder.write("token", "abk_2").expect("it can be written again");
        assert_eq!(folder.read("token").expect("it can be read").as_deref(), Some("abk_2"));
        let mode = fs::metadata(folder.path().join("token")).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!folder.path().join("token.new").exists());
    }
}
