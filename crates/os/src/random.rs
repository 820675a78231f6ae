//! Randomness of the operating system.

/// Bytes that nobody can guess: for tokens and passwords.
///
/// # Panics
/// Panics if the operating system has no randomness, as nothing safe can be done then.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::disallowed_methods, reason = "this is where it comes from")]
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
