//! Names that nothing else on the machine has, and stable short names for long ones.

use uuid::Uuid;

/// Returns 32 hexadecimal digits that no other call returns, on this machine or another.
pub(crate) fn token() -> String {
    fresh().simple().to_string()
}

/// Returns a secret for a server that only listens on loopback: two tokens, 148 random bits.
pub(crate) fn password() -> String {
    format!("{}{}", token(), token())
}

/// Returns a number below `limit` that differs from call to call.
pub(crate) fn number_below(limit: u16) -> u16 {
    let low_bits = u128::from(u64::MAX) & fresh().as_u128();
    // The remainder of a division by a u16 always fits into a u16.
    u16::try_from(low_bits % u128::from(limit.max(1))).unwrap_or(0)
}

/// Returns 16 hexadecimal digits (FNV-1a) that stand for `text`, the same in every process and every build.
pub(crate) fn digest(text: &[u8]) -> String {
    let hash = text
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[expect(clippy::disallowed_methods, reason = "names of test resources are no part of the product's ids")]
fn fresh() -> Uuid {
    Uuid::now_v7()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_digests_do_not() {
        assert_ne!(token(), token());
        assert_eq!(digest(b"a"), "af63dc4c8601ec8c");
        assert!(number_below(7) < 7);
    }
}
