//! `.sqlx`: what Postgres says about every statement of the store, so that the store compiles without a database.

use anyhow::{Context, Result, bail};
use devstack::TestDb;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Asks Postgres about all statements and writes `.sqlx`, or, with `check`, fails if that would change it.
pub(crate) async fn run(root: &Path, check: bool) -> Result<()> {
    let kept = root.join(".sqlx");
    let fresh = root.join("target/xtask/sqlx");
    describe(root, &fresh).await?;
    let (old, new) = (files(&kept)?, files(&fresh)?);
    if old == new {
        println!(".sqlx is fresh: {} statements", new.len());
        return Ok(());
    }
    if check {
        bail!(".sqlx does not fit the statements in shared/store: run `cargo xtask prepare` and commit what it writes");
    }
    // The macros add files and never remove one, so the folder is written anew.
    if kept.exists() {
        fs::remove_dir_all(&kept).context("cannot empty .sqlx")?;
    }
    fs::create_dir_all(&kept)?;
    for (name, content) in &new {
        fs::write(kept.join(name), content)?;
    }
    println!(".sqlx is written: {} statements", new.len());
    Ok(())
}

/// Compiles the store against a migrated database; the macros write what they learn into `into`.
async fn describe(root: &Path, into: &Path) -> Result<()> {
    if into.exists() {
        fs::remove_dir_all(into)?;
    }
    fs::create_dir_all(into)?;
    let migrations = migrations(root)?;
    let mut hash = DefaultHasher::new();
    for path in &migrations {
        fs::read(path)?.hash(&mut hash);
    }
    let migrate = async |url: &str| migrations.iter().try_for_each(|path| apply(url, path));
    let database = TestDb::create(migrate, &format!("prepare_{:016x}", hash.finish())).await?;
    // Cargo does not know that the macros read a database: a changed time stamp makes it run them.
    let lib = fs::File::options().append(true).open(root.join("shared/store/src/lib.rs"))?;
    lib.set_modified(fs::metadata(root.join("Cargo.toml"))?.modified()?.max(now_of(into)?))?;
    let status = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--package", "store"])
        .current_dir(root)
        .env("SQLX_OFFLINE", "false")
        .env("SQLX_OFFLINE_DIR", into)
        .env("DATABASE_URL", database.url())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("the store does not compile against its own migrations");
    }
    Ok(())
}

/// The time the file system gives to a file made now.
fn now_of(folder: &Path) -> Result<std::time::SystemTime> {
    Ok(fs::metadata(folder)?.modified()?)
}

fn migrations(root: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root.join("shared/store/migrations"))? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Runs a migration with `psql`: the store, which knows how to migrate, may not compile yet.
fn apply(url: &str, migration: &Path) -> Result<()> {
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--single-transaction", "--dbname", url])
        .arg("--file")
        .arg(migration)
        .output()
        .context("cannot start psql; install the PostgreSQL client (Debian: postgresql-client)")?;
    if !output.status.success() {
        bail!("{} fails: {}", migration.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The statement files of a folder by name; none if there is no folder.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    if !folder.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json")
            && let Some(name) = path.file_name().and_then(|name| name.to_str())
        {
            found.insert(name.to_owned(), fs::read(&path)?);
        }
    }
    Ok(found)
}
