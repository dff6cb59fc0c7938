//! Signatures of requests, as Standard Webhooks has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretSlice};
use sha2::Sha256;

/// Signs with one profile's secret. It prints nothing of it.
#[derive(Debug)]
pub(super) struct Signer(SecretSlice<u8>);

impl Signer {
    pub(super) fn new(key: SecretSlice<u8>) -> Self {
        Self(key)
    }

    /// The value of `webhook-signature` for a message: version 1, HMAC-SHA256 over `id.timestamp.body` in base64.
    pub(super) fn sign(&self, id: &str, timestamp_s: u64, body: &[u8]) -> String {
        // HMAC takes a key of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret()).expect("a key of any length will do");
        mac.update(format!("{id}.{timestamp_s}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the specification of Standard Webhooks.
    #[test]
    fn the_published_example() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("it is base64");
        let signer = Signer::new(key.into());
        let signed = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(!format!("{signer:?}").contains("49"), "a key is not printed");
    }
}
