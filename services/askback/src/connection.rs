//! Which server to speak to, and as whom.

use crate::failure::Failure;
use clap::Args;
use secrecy::SecretString;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use wire::{Client, Secret};

/// The folder that `askback dev` keeps its data in.
pub(crate) const DATA_DIR: &str = ".askback";

/// Which server to speak to, and as whom.
///
/// What is not given is read from `.askback` here or in a parent folder. The token of that folder is sent only to the
/// server of that folder: a URL from elsewhere needs a token from elsewhere.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConnectionArgs {
    /// The server [default: that of `.askback` here or in a parent folder].
    #[arg(long, global = true, env = "ASKBACK_URL")]
    url: Option<String>,
    /// The token to act with [default: that of `.askback` here or in a parent folder].
    #[arg(long, global = true, env = "ASKBACK_TOKEN", hide_env_values = true, value_parser = parse_secret)]
    token: Option<Secret>,
}

fn parse_secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text.trim()))
}

impl ConnectionArgs {
    /// A client of the server that is meant, as the one that is meant; folders are looked up from `here`.
    pub(crate) fn client(&self, here: &Path) -> Result<Client, Failure> {
        let (url, token) = self.resolve(here)?;
        Ok(Client::new(&url, Some(&token))?)
    }

    /// Whether a server or a token was named, be it by flag or by environment.
    pub(crate) fn is_given(&self) -> bool {
        let url = self.url.as_deref().is_some_and(|url| !url.trim().is_empty());
        url || self.token.as_ref().is_some_and(|token| !token.expose().is_empty())
    }

    fn resolve(&self, here: &Path) -> Result<(String, Secret), Failure> {
        let given_url = self.url.as_deref().map(trim_url).filter(|url| !url.is_empty());
        let given_token = self.token.clone().filter(|token| !token.expose().is_empty());
        let (url, token) = match (given_url, given_token) {
            (Some(url), Some(token)) => return Ok((url.to_owned(), token)),
            given => given,
        };
        let folder = find_folder(here);
        let Some(url) = url.map(str::to_owned).or_else(|| folder.as_ref().map(|folder| folder.url.clone())) else {
            return Err(Failure::own("no_server", "no server is known")
                .with_hint("give --url or set ASKBACK_URL, or run this in a folder where `askback dev` was started"));
        };
        let own_token = folder.filter(|folder| folder.url == url).and_then(|folder| folder.token);
        let Some(token) = token.or(own_token) else {
            return Err(Failure::own("no_token", format!("no token is known for {url}"))
                .with_hint("give --token or set ASKBACK_TOKEN"));
        };
        Ok((url, token))
    }
}

/// What a running `askback dev` has written down for its clients.
struct Folder {
    url: String,
    token: Option<Secret>,
}

fn find_folder(here: &Path) -> Option<Folder> {
    here.ancestors().map(|folder| folder.join(DATA_DIR)).find_map(|folder| {
        let url = fs::read_to_string(folder.join("url")).ok()?;
        let url = trim_url(&url).to_owned();
        let token = fs::read_to_string(folder.join("token")).ok().map(|token| Secret::new(token.trim()));
        (!url.is_empty()).then_some(Folder { url, token })
    })
}

/// The database of a running `askback dev`, in `here` or above.
pub(crate) fn find_database_url(here: &Path) -> Option<SecretString> {
    here.ancestors().find_map(|folder| {
        let url = fs::read_to_string(folder.join(DATA_DIR).join("database-url")).ok()?;
        let url = url.trim();
        (!url.is_empty()).then(|| SecretString::from(url))
    })
}

fn trim_url(url: &str) -> &str {
    url.trim().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(url: &str, token: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir_all(root.path().join(DATA_DIR)).expect("a fresh folder takes another");
        fs::create_dir_all(root.path().join("a/b")).expect("a fresh folder takes another");
        fs::write(root.path().join(DATA_DIR).join("url"), format!("{url}\n")).expect("a fresh folder takes a file");
        fs::write(root.path().join(DATA_DIR).join("token"), format!("{token}\n")).expect("a fresh folder takes a file");
        root
    }

    fn given(url: Option<&str>, token: Option<&str>) -> ConnectionArgs {
        ConnectionArgs { url: url.map(str::to_owned), token: token.map(Secret::new) }
    }

    fn code(result: Result<(String, Secret), Failure>) -> String {
        result.err().map(|failure| failure.code().to_owned()).unwrap_or_default()
    }

    #[test]
    fn both_are_read_from_the_nearest_folder_above() {
        let root = folder_with("http://127.0.0.1:7070/", "abk_dev");
        let (url, token) = given(None, None).resolve(&root.path().join("a/b")).expect("a folder is above");
        assert_eq!((url.as_str(), token.expose()), ("http://127.0.0.1:7070", "abk_dev"));
    }

    #[test]
    fn what_is_given_wins_each_by_itself() {
        let root = folder_with("http://127.0.0.1:7070", "abk_dev");
        let (url, token) = given(None, Some("aba_1")).resolve(root.path()).expect("the URL is in the folder");
        assert_eq!((url.as_str(), token.expose()), ("http://127.0.0.1:7070", "aba_1"));
        let (_, token) = given(Some("http://127.0.0.1:7070/"), Some("")).resolve(root.path()).expect("the same server");
        assert_eq!(token.expose(), "abk_dev");
    }

    #[test]
    fn the_folders_token_goes_to_no_other_server() {
        let root = folder_with("http://127.0.0.1:7070", "abk_dev");
        assert_eq!(code(given(Some("http://elsewhere"), None).resolve(root.path())), "no_token");
    }

    #[test]
    fn without_any_it_says_so() {
        let root = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(code(given(None, None).resolve(root.path())), "no_server");
    }
}
