//! Tokens: how they look, how they are stored, how they arrive. Who a token is lies in the database.

use crate::idgen::IdGen;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq as _;
use wire::problem::{Code, Problem};

/// Digits of a token's random part; 43 of them hold 32 bytes.
const DIGITS: usize = 43;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a token is for; its prefix says so to people and to secret scanners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A person's API token, `abk_…`.
    Api,
    /// A token bound to one session, `aba_…`.
    Agent,
}

/// A token as it is stored: SHA-256 of the whole text. A token is 256 random bits, so a slow hash would only slow
/// down every request.
pub type TokenHash = [u8; 32];

/// A token that was just made.
#[derive(Debug)]
pub struct Minted {
    /// The token, to be shown once.
    pub secret: SecretString,
    /// What is stored.
    pub hash: TokenHash,
}

impl TokenKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Api => "abk_",
            Self::Agent => "aba_",
        }
    }
}

/// Makes a token.
#[must_use]
pub fn mint(kind: TokenKind) -> Minted {
    let text = format!("{}{}", kind.prefix(), base62(IdGen.bytes()));
    Minted { hash: hash(&text), secret: SecretString::from(text) }
}

/// The kind and the stored form of a token that was presented, or `None` if it cannot be one of ours, which saves a
/// look into the database.
#[must_use]
pub fn recognise(token: &str) -> Option<(TokenKind, TokenHash)> {
    let kind = [TokenKind::Api, TokenKind::Agent].into_iter().find(|kind| token.starts_with(kind.prefix()))?;
    let digits = &token[kind.prefix().len()..];
    let fits = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
    fits.then(|| (kind, hash(token)))
}

/// The stored form of a token.
#[must_use]
pub fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// `bytes` as one big number in base 62, with leading zeros.
fn base62(mut bytes: [u8; 32]) -> String {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        let mut rest = 0_u32;
        for byte in &mut bytes {
            let value = rest * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        *digit = BASE62[rest as usize];
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

/// The token of an `Authorization: Bearer` header. `None` without one, with another scheme, or with several headers,
/// of which two readers could take different ones.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' ')).then_some(token)
}

/// What is said to a request that carries no valid token.
#[must_use]
pub fn unauthenticated() -> Problem {
    Problem::new(Code::Unauthenticated, "a valid token is needed: Authorization: Bearer …")
}

/// The bearer token of a request, as an extractor; without one the request is refused.
#[derive(Debug)]
pub struct Bearer(pub SecretString);

impl<S: Sync> FromRequestParts<S> for Bearer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        bearer(&parts.headers).map(|token| Self(SecretString::from(token))).ok_or_else(unauthenticated)
    }
}

/// The secret that services show each other.
#[derive(Clone, Debug)]
pub struct InternalToken(Arc<SecretString>);

impl InternalToken {
    /// Takes the configured secret.
    #[must_use]
    pub fn new(secret: SecretString) -> Self {
        Self(Arc::new(secret))
    }

    /// A secret of this process alone, for services that run in one process.
    #[must_use]
    pub fn random() -> Self {
        Self::new(SecretString::from(base62(IdGen.bytes())))
    }

    /// The secret, to be shown to another service.
    #[must_use]
    pub fn secret(&self) -> &SecretString {
        &self.0
    }

    /// Compares in a time that depends neither on where the two differ nor on how long they are.
    #[must_use]
    pub fn is(&self, presented: &str) -> bool {
        hash(presented).ct_eq(&hash(self.0.expose_secret())).into()
    }
}

/// Middleware of internal routes: lets only calls with the internal token pass.
///
/// `router.layer(axum::middleware::from_fn_with_state(token, kit::auth::internal_only))`
///
/// # Errors
/// `unauthenticated` for every other call.
pub async fn internal_only(
    State(token): State<InternalToken>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if bearer(request.headers()).is_some_and(|presented| token.is(presented)) {
        Ok(next.run(request).await)
    } else {
        Err(unauthenticated())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_62_keeps_every_bit() {
        assert_eq!(base62([0; 32]), "0".repeat(DIGITS));
        let mut one = [0; 32];
        one[31] = 62;
        assert!(base62(one).ends_with("0010"));
        let largest = base62([255; 32]);
        assert_eq!(largest.len(), DIGITS);
        assert_ne!(
            largest,
            base62({
                let mut less = [255; 32];
                less[31] = 254;
                less
            })
        );
    }

    #[test]
    fn a_minted_token_is_recognised_by_its_kind_and_hash() {
        for kind in [TokenKind::Api, TokenKind::Agent] {
            let minted = mint(kind);
            assert_eq!(recognise(minted.secret.expose_secret()), Some((kind, minted.hash)));
        }
        assert_ne!(mint(TokenKind::Api).hash, mint(TokenKind::Api).hash);
        for other in ["", "abk_", "abk_short", "xyz_0000000000000000000000000000000000000000000"] {
            assert_eq!(recognise(other), None);
        }
        assert_eq!(recognise(&format!("abk_{}é", "0".repeat(41))), None);
    }

    #[test]
    fn a_bearer_header_is_read_strictly() {
        let headers = |values: &[&str]| {
            let values = values.iter().map(|value| (AUTHORIZATION, value.parse().expect("a header value")));
            values.collect::<HeaderMap>()
        };
        assert_eq!(bearer(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer(&headers(&["bearer  abc"])), Some("abc"));
        for wrong in [&[][..], &["Basic abc"], &["Bearer"], &["Bearer "], &["Bearer a b"], &["Bearer a", "Bearer a"]] {
            assert_eq!(bearer(&headers(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn only_the_internal_token_is_the_internal_token() {
        let token = InternalToken::random();
        assert!(token.is(token.secret().expose_secret()));
        assert!(!token.is("") && !InternalToken::random().is(token.secret().expose_secret()));
    }
}
