//! Messages with connections from another process.

use baton_passport::{PARTS_BYTES_MAX, Passport, UNREAD_BYTES_MAX};

/// Any bytes as a message: what is taken is within bounds, and written and read again is the same.
pub fn message(input: &[u8]) {
    let Ok(passport) = Passport::from_message(input) else { return };
    assert!(passport.unread.len() <= UNREAD_BYTES_MAX);
    assert!(passport.parts.iter().map(|part| part.bytes.len()).sum::<usize>() <= PARTS_BYTES_MAX);
    if let Some(message) = passport.to_message() {
        assert_eq!(Passport::from_message(&message), Ok(passport));
    }
}
