//! Server programs on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::run;

/// Oldest Postgres that is used.
pub(crate) const OLDEST_POSTGRES: u32 = 15;
/// Oldest nats-server that is used.
pub(crate) const OLDEST_NATS: (u32, u32) = (2, 9);

/// A Postgres installation: the folder has `postgres`, `initdb` and `psql`.
#[derive(Debug, Clone)]
pub(crate) struct PostgresBinaries {
    pub(crate) bin: PathBuf,
    pub(crate) version: String,
    pub(crate) major: u32,
}

/// A nats-server program.
#[derive(Debug, Clone)]
pub(crate) struct NatsBinary {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

/// Finds an installation: the one on `PATH`, then the newest in the places where distributions put it. `major` asks
/// for that version, because a data folder belongs to one.
pub(crate) fn postgres(major: Option<u32>) -> Option<PostgresBinaries> {
    let found: Vec<PostgresBinaries> = postgres_dirs().into_iter().filter_map(|bin| inspect_postgres(&bin)).collect();
    match major {
        Some(major) => found.into_iter().find(|candidate| candidate.major == major),
        None => found.into_iter().find(|candidate| candidate.major >= OLDEST_POSTGRES),
    }
}

/// Finds a nats-server that is new enough: on `PATH`, then in the usual places.
pub(crate) fn nats() -> Option<NatsBinary> {
    let mut dirs = path_dirs();
    dirs.extend(["/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from));
    if let Some(home) = env::var_os("HOME") {
        dirs.push(Path::new(&home).join("go/bin"));
    }
    dirs.into_iter().filter_map(|dir| inspect_nats(&dir.join("nats-server"))).next()
}

/// Finds a `psql`, for databases that somebody else runs.
pub(crate) fn psql() -> Option<PathBuf> {
    let mut dirs = postgres_dirs();
    dirs.extend(path_dirs());
    dirs.into_iter().map(|dir| dir.join("psql")).find(|path| path.is_file())
}

fn path_dirs() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

fn postgres_dirs() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = path_dirs().into_iter().filter(|dir| dir.join("initdb").is_file()).collect();
    let mut packaged: Vec<(u32, PathBuf)> = Vec::new();
    // Debian and Ubuntu; Red Hat; Homebrew on both kinds of Macs.
    for (parent, prefix) in [
        ("/usr/lib/postgresql", ""),
        ("/usr", "pgsql-"),
        ("/opt/homebrew/opt", "postgresql@"),
        ("/usr/local/opt", "postgresql@"),
    ] {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let major = name.to_str().and_then(|name| name.strip_prefix(prefix)).and_then(|rest| rest.parse().ok());
            if let Some(major) = major {
                packaged.push((major, entry.path().join("bin")));
            }
        }
    }
    packaged.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    dirs.extend(packaged.into_iter().map(|(_, dir)| dir));
    dirs
}

fn inspect_postgres(bin: &Path) -> Option<PostgresBinaries> {
    if !["initdb", "psql"].iter().all(|program| bin.join(program).is_file()) {
        return None;
    }
    // "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)"
    let output = run(Command::new(bin.join("postgres")).arg("--version")).ok()?;
    let version = output.split_whitespace().nth(2)?.to_owned();
    let major = version.split(|digit: char| !digit.is_ascii_digit()).next()?.parse().ok()?;
    Some(PostgresBinaries { bin: bin.to_owned(), version, major })
}

fn inspect_nats(path: &Path) -> Option<NatsBinary> {
    if !path.is_file() {
        return None;
    }
    // "nats-server: v2.9.10", in some builds without the v.
    let output = run(Command::new(path).arg("--version")).ok()?;
    let version = output.split_whitespace().last()?.trim_start_matches('v').to_owned();
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let newness = (numbers.next()?, numbers.next()?);
    (newness >= OLDEST_NATS).then(|| NatsBinary { path: path.to_owned(), version })
}
